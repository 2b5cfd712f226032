"""What is being written at this moment: text of a message that has begun and not ended."""

from __future__ import annotations

from collections import deque
from typing import Any

from oi_tui.engine.history import CodeFate
from oi_tui.engine.lmc import Chunk, new_id

HEAD = 32 * 1024
TAIL = 128 * 1024
"""Characters of a long text that are kept here. The whole output of a run is in a file of its own."""


class Unfinished:
    """Collects one streamed message, in bounded memory."""

    def __init__(self, opened: Chunk) -> None:
        self._opened = opened
        self._id = new_id() if opened.role == "computer" else opened.id or new_id()
        self._head: list[str] = []
        self._head_length = 0
        self._tail: deque[str] = deque()
        self._tail_length = 0
        self._left_out = 0

    def add(self, text: str) -> None:
        """The next piece."""
        if self._head_length < HEAD:
            self._head.append(text[: HEAD - self._head_length])
            taken = len(self._head[-1])
            self._head_length += taken
            text = text[taken:]
        if text:
            self._tail.append(text[-TAIL:])
            self._left_out += max(0, len(text) - TAIL)
            self._tail_length += len(self._tail[-1])
            while self._tail_length - len(self._tail[0]) >= TAIL:
                gone = self._tail.popleft()
                self._left_out += len(gone)
                self._tail_length -= len(gone)

    def clear(self) -> None:
        """What was collected has been taken back."""
        self._head.clear()
        self._tail.clear()
        self._head_length = self._tail_length = self._left_out = 0

    @property
    def is_empty(self) -> bool:
        return self._head_length == 0

    def message(self) -> dict[str, Any]:
        """As it is stored until it is finished."""
        opened = self._opened
        gap = f"\n[… {self._left_out:,} characters left out …]\n" if self._left_out else ""
        meta: dict[str, Any] = {"partial": True}
        if opened.role == "computer":
            meta = {"code_id": opened.id}
        elif opened.type == "code":
            meta["state"] = CodeFate.INCOMPLETE
        return {
            "id": self._id,
            "role": opened.role,
            "type": opened.type,
            "format": "output" if opened.type == "console" else opened.format,
            "recipient": opened.recipient,
            "content": "".join(self._head) + gap + "".join(self._tail),
            "meta": meta,
        }
