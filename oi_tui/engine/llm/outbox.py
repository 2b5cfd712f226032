"""The worker's side of the flow: pieces of an answer, joined into few lines, the first one at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from oi_tui.engine.llm.worker_protocol import WINDOW, Piece

INTERVAL = 1 / 60
"""Seconds between two lines of an answer."""

LINE = 128 * 1024
"""Characters in one line; a longer delta is sent in several, so that the reader is never busy with one for long."""

FULL = 512 * 1024
"""Characters that may wait here; then the endpoint is not read until the consumer has caught up."""


class Outbox:
    """Joins the pieces of one answer and sends them through `send`, at most `WINDOW` lines ahead of the consumer."""

    def __init__(self, send: Callable[[list[Piece]], None]) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._pending: list[Piece] = []
        self._parts: list[str] = []
        self._size = 0
        self._credit = WINDOW
        self._last_sent = -INTERVAL
        self._timer: asyncio.TimerHandle | None = None
        self._progress = asyncio.Event()
        self._is_closing = False

    def add(self, piece: Piece) -> None:
        """Take a piece; it is sent now if the last line is long enough ago, else joined with what follows."""
        size = _size(piece)
        if not self._joins(piece):
            self._settle()
            self._pending.append(piece)
        if piece[0] in _TEXT_AT:
            self._parts.append(piece[_TEXT_AT[piece[0]]])
        self._size += size
        self._pump()

    async def room(self) -> None:
        """Wait until more may be taken."""
        while self._size > FULL:
            self._progress.clear()
            await self._progress.wait()

    async def drain(self) -> None:
        """Send everything without further delay and wait until it is sent."""
        self._is_closing = True
        self._pump()
        while self._pending:
            self._progress.clear()
            await self._progress.wait()

    def acknowledge(self) -> None:
        """The consumer has taken one line."""
        self._credit += 1
        self._pump()

    def discard(self) -> None:
        """Nothing more is sent."""
        self._pending, self._parts, self._size = [], [], 0
        if self._timer is not None:
            self._timer.cancel()

    def _joins(self, piece: Piece) -> bool:
        """Whether the piece goes on where the last one ends, of the same kind and the same call."""
        if not self._pending:
            return False
        last = self._pending[-1]
        if piece[0] == "c":
            return bool(last[0] == "c" and last[1] == piece[1] and piece[2] in (None, last[2]) and piece[3] is None)
        return bool(piece[0] in _TEXT_AT and last[0] == piece[0])

    def _settle(self) -> None:
        """Write the joined text into the last piece."""
        if self._pending and self._parts:
            last = self._pending[-1]
            last[_TEXT_AT[last[0]]] = "".join(self._parts)
        self._parts = []

    def _pump(self) -> None:
        while self._pending and self._credit > 0:
            due = self._last_sent + INTERVAL - self._loop.time()
            if due > 0 and not self._is_closing and self._size < LINE:
                if self._timer is None:
                    self._timer = self._loop.call_later(due, self._on_timer)
                return
            self._send_line()

    def _on_timer(self) -> None:
        self._timer = None
        self._pump()

    def _send_line(self) -> None:
        self._settle()
        line: list[Piece] = []
        size = 0
        while self._pending and size < LINE:
            piece = self._pending[0]
            if size + _size(piece) > LINE and piece[0] in _TEXT_AT:
                piece = _cut(piece, LINE - size)
            else:
                self._pending.pop(0)
            line.append(piece)
            size += _size(piece)
        self._size -= size
        if self._pending and self._pending[-1][0] in _TEXT_AT:
            self._parts = [self._pending[-1][_TEXT_AT[self._pending[-1][0]]]]
        self._credit -= 1
        self._last_sent = self._loop.time()
        self._send(line)
        self._progress.set()


_TEXT_AT = {"t": 1, "r": 1, "c": 4}


def _size(piece: Piece) -> int:
    return len(piece[_TEXT_AT[piece[0]]]) if piece[0] in _TEXT_AT else 0


def _cut(piece: Piece, length: int) -> Piece:
    """Take the first characters off a piece; what stays goes on with the same call, without name and id."""
    at = _TEXT_AT[piece[0]]
    head = list(piece)
    head[at], piece[at] = piece[at][:length], piece[at][length:]
    if piece[0] == "c":
        piece[3] = None
    return head
