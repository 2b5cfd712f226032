"""Looking for words in the conversation: where they are, which hit is shown, and how hits are marked."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from time import monotonic

from textual.strip import Strip

from oi_tui.rendering.lines import restyle
from oi_tui.widgets.block import Block, Line
from oi_tui.widgets.canvas import Canvas

_TURN = 0.01
"""Seconds of searching before others have their turn."""
_WRAPS = 4
"""Rows of a wrapped line before and behind that are looked at for hits that go over a row's end."""


class Finder:
    """Counts the hits in every block from its text, and lays out only the block whose hit is shown."""

    def __init__(self, canvas: Canvas) -> None:
        self._canvas = canvas
        self._pattern: re.Pattern[str] | None = None
        self._blocks: list[Block] = []
        self._ends: list[int] = []  # hits up to and with each of them
        self.position = 0
        """Which hit is shown, from 1; 0: none."""
        self._current_in: tuple[Sequence[Line], int, tuple[int, int] | None] | None = None

    @property
    def total(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def is_active(self) -> bool:
        return self._pattern is not None

    async def search(self, query: str) -> None:
        """Look for these words, upper and lower case alike, and show the hit nearest above the bottom of the view."""
        self.clear()
        if not query:
            return
        pattern = re.compile(re.escape(query), re.IGNORECASE)
        bottom = self._canvas.visible_blocks()
        blocks: list[Block] = []
        counts: list[int] = []
        nearest = 0
        started = monotonic()
        for block in list(self._canvas.blocks):
            if count := sum(1 for _ in pattern.finditer(block.searchable)):
                blocks.append(block)
                counts.append(count)
            if bottom and block is bottom[-1]:
                nearest = sum(counts)
            if monotonic() - started > _TURN:
                await asyncio.sleep(0)
                started = monotonic()
        self._pattern, self._blocks, self._ends = pattern, blocks, list(accumulate(counts))
        self._canvas.highlighter = self
        self.position = nearest or self.total
        self._show()

    def move(self, step: int) -> None:
        """Show the next hit, or the one before; goes round."""
        if self.total:
            self.position = (self.position - 1 + step) % self.total + 1
            self._show()

    def clear(self) -> None:
        """Mark nothing any more."""
        self._pattern = None
        self._blocks, self._ends, self.position = [], [], 0
        self._canvas.highlighter = None
        self._canvas.refresh()

    # -- the hit that is shown ---------------------------------------------------------------------------------------

    def _current(self) -> tuple[Block, int] | None:
        """The block with the hit, and which of its hits it is."""
        if not self.position:
            return None
        index = bisect_right(self._ends, self.position - 1)
        return self._blocks[index], self.position - 1 - (self._ends[index - 1] if index else 0)

    def _show(self) -> None:
        if (current := self._current()) is None or self._pattern is None:
            return
        block, ordinal = current
        if block not in self._canvas.blocks:
            return
        place = self._place_of(block, ordinal)
        if place is None:  # folded away
            block.expand(True)
            self._canvas.redraw(block)
            place = self._place_of(block, ordinal)
        self._canvas.show_block(block, place[0] if place is not None else 0, margin=2)
        self._canvas.refresh()

    def _place_of(self, block: Block, ordinal: int) -> tuple[int, int] | None:
        """The drawn line with that hit, and which of the hits that begin there it is. If fewer are drawn than the
        source has, the last one; None if none is."""
        assert self._pattern is not None
        found = None
        seen = 0
        lines = block.lines(self._canvas.column, self._canvas.theme)
        for number, line in enumerate(lines):
            if line.text is None:
                continue
            begun = sum(start >= 0 for start, _ in self._hits(lines, number))
            if begun:
                found = number, min(begun - 1, ordinal - seen)
                seen += begun
                if seen > ordinal:
                    break
        return found

    def _hits(self, lines: Sequence[Line], number: int) -> list[tuple[int, int]]:
        """Ranges of a line that are hits. A hit that began in a row before starts below 0."""
        assert self._pattern is not None
        line = lines[number]
        before = after = ""
        for back in range(1, _WRAPS):
            if number < back or (joint := lines[number - back].joint) is None:
                break
            before = (lines[number - back].text or "") + joint + before
        joint, forward = line.joint, 1
        while joint is not None and forward < _WRAPS and number + forward < len(lines):
            after += joint + (lines[number + forward].text or "")
            joint, forward = lines[number + forward].joint, forward + 1
        text, offset = before + (line.text or "") + after, len(before)
        length = len(line.text or "")
        found = ((m.start() - offset, m.end() - offset) for m in self._pattern.finditer(text))
        return [(start, end) for start, end in found if start < length and end > 0]

    def _current_place(self, block: Block, lines: Sequence[Line]) -> tuple[int, int] | None:
        """Where the hit that is shown stands, if it is in this block; worked out once for each drawing of it."""
        current = self._current()
        if current is None or current[0] is not block:
            return None
        if self._current_in is None or self._current_in[0] is not lines or self._current_in[1] != self.position:
            self._current_in = (lines, self.position, self._place_of(block, current[1]))
        return self._current_in[2]

    # -- marks -------------------------------------------------------------------------------------------------------

    def highlight(self, block: Block, lines: Sequence[Line], number: int, strip: Strip) -> Strip:
        """The line with its hits marked; the one that is shown stands out."""
        if self._pattern is None or not (hits := self._hits(lines, number)):
            return strip
        line, theme = lines[number], self._canvas.theme
        ranges = [(line.start + max(0, start), line.start + end) for start, end in hits]
        strip = restyle(strip, ranges, theme.match)
        place = self._current_place(block, lines)
        if place is not None and place[0] == number:
            before = sum(start < 0 for start, _ in hits)  # hits that began in a row above
            strip = restyle(strip, ranges[before + place[1] :][:1], theme.match_current)
        return strip
