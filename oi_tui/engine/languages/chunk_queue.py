"""From a kernel's messages, which come as they please, to chunks at a pace that a screen can follow."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from oi_tui.engine.approval import InputRequest
from oi_tui.engine.lmc import Chunk

PACE = 1 / 60
"""Seconds between two batches of output. The first comes at once."""
PIECE = 64 * 1024
"""Characters of one output chunk, at most."""
FULL = 512 * 1024
"""Characters that may wait to be taken; then `on_full(True)` asks the source to wait."""
ENOUGH = 8 * 1024 * 1024
"""Characters that are kept after `overflow`."""

Item: TypeAlias = Chunk | InputRequest


class ChunkQueue:
    """Takes text and chunks in order, gives them out in batches with the text joined.

    Nothing is dropped, except that an active line replaces one that nobody has taken yet, and after `overflow`.
    """

    def __init__(self, code_id: str, *, on_full: Callable[[bool], None]) -> None:
        self._code_id = code_id
        self._on_full = on_full
        self._may_overflow = False
        self._left_out = 0
        self._items: deque[Item] = deque()
        self._texts: list[str] = []
        self._length = 0
        self._lines: dict[str, Chunk] = {}
        self._filled = asyncio.Event()
        self._finished = asyncio.Event()
        self._next_output = 0.0
        self._loop = asyncio.get_running_loop()

    def text(self, text: str) -> None:
        """Console output."""
        if not text:
            return
        if self._may_overflow and self._length + len(text) > ENOUGH:
            self._left_out += len(text)
            return
        self._texts.append(text)
        self._length += len(text)
        self._filled.set()
        if self._length > FULL and not self._may_overflow:
            self._on_full(True)

    def put(self, item: Item) -> None:
        """Anything else, after the text so far."""
        self._join_texts()
        self._items.append(item)
        self._filled.set()

    def line(self, name: str, number: int | None) -> None:
        """A line indicator (`active_line`, …): only its newest value counts."""
        self._lines[name] = Chunk("computer", "console", name, number, id=self._code_id)
        self._filled.set()

    def overflow(self) -> None:
        """From now on leave out what is too much instead of asking the source to wait: it is being stopped."""
        self._may_overflow = True
        self._on_full(False)

    def finish(self) -> None:
        """Nothing more will come."""
        if self._left_out:
            left_out, self._left_out, self._may_overflow = self._left_out, 0, False
            self.text(f"\n[{left_out:,} characters that were printed until the code stopped were left out]\n")
        self._finished.set()
        self._filled.set()

    async def take(self) -> list[Item]:
        """The next batch; empty when everything was given out and no more will come."""
        await self._filled.wait()
        if self._texts and not self._finished.is_set():
            await self._keep_pace()
        self._filled.clear()
        batch: list[Item] = [*self._lines.values()]
        self._lines.clear()
        if self._texts:
            self._next_output = self._loop.time() + PACE
        self._join_texts()
        batch += self._items
        self._items.clear()
        self._on_full(False)
        if self._finished.is_set():
            self._filled.set()
        return batch

    async def _keep_pace(self) -> None:
        delay = self._next_output - self._loop.time()
        if delay <= 0:
            return
        try:
            async with asyncio.timeout(delay):
                await self._finished.wait()
        except TimeoutError:
            pass

    def _join_texts(self) -> None:
        if not self._texts:
            return
        text = "".join(self._texts)
        self._texts.clear()
        self._length = 0
        for start in range(0, len(text), PIECE):
            piece = text[start : start + PIECE]
            self._items.append(Chunk("computer", "console", "output", piece, id=self._code_id))
