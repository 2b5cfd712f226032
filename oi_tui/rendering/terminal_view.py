"""Terminal lines laid out for a width: wrapped as a terminal wraps, or one row each to be scrolled sideways."""

from __future__ import annotations

from bisect import bisect_right

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from oi_tui.rendering.lines import RenderedLine, Wrapped, chop, is_narrow
from oi_tui.rendering.sgr import StyledText
from oi_tui.rendering.terminal_text import TerminalText
from oi_tui.rendering.theme import RenderTheme

_KEPT_STRIPS = 2000


class TerminalView:
    """Rows of a `TerminalText`, counted from its oldest kept line. Call `update` after feeding."""

    def __init__(self, text: TerminalText, width: int, *, is_wrapped: bool = True) -> None:
        self.text = text
        self.width = max(1, width)
        self.is_wrapped = is_wrapped
        self.widest = 0
        """The widest line so far, in cells, for a horizontal scroll bar."""
        self._changes = text.changes()
        self._from = text.first  # the line that the sums begin with
        self._origin = 0  # rows before it, dropped ones
        self._ends: list[int] = []  # after each line: all rows up to here
        self._drawn: dict[tuple[int, int, RenderTheme], RenderedLine] = {}
        self._parts: tuple[int, list[Wrapped]] = (-1, [])
        self._extend()

    @property
    def height(self) -> int:
        """How many rows there are."""
        return (self._ends[-1] - self._origin) if self._ends else 0

    def update(self) -> int | None:
        """Take in what has been printed. Returns the first row that is new or different; None if none is.

        When old lines were dropped every row has moved, and 0 is returned.
        """
        changed = self._changes.take()
        if changed is None:
            return None
        moved = self._drop(self.text.first)
        keep = max(0, changed - self._from)
        del self._ends[keep:]
        self._parts = (-1, [])
        if self._drawn:
            self._drawn = {key: line for key, line in self._drawn.items() if self._from <= key[0] < changed}
        first = (self._ends[-1] if self._ends else self._origin) - self._origin
        self._extend()
        return 0 if moved else first

    def _drop(self, first: int) -> bool:
        count = first - self._from
        if count <= 0:
            return False
        if count >= len(self._ends):
            self._origin, self._ends = 0, []
        else:
            self._origin = self._ends[count - 1]
            del self._ends[:count]
        self._from = first
        return True

    def _extend(self) -> None:
        total = self._ends[-1] if self._ends else self._origin
        for number in range(self._from + len(self._ends), self.text.end):
            total += self._rows_of(number)
            self._ends.append(total)

    def _rows_of(self, number: int) -> int:
        text = self.text.plain(number)
        if is_narrow(text):
            self.widest = max(self.widest, len(text))
            return -(-len(text) // self.width) or 1 if self.is_wrapped else 1
        self.widest = max(self.widest, cell_len(text))
        return len(chop(text, self.width)) if self.is_wrapped else 1

    def locate(self, row: int) -> tuple[int, int]:
        """The line that a row belongs to, and which of its rows it is. Raises `IndexError` outside."""
        if not 0 <= row < self.height:
            raise IndexError(row)
        index = bisect_right(self._ends, row + self._origin)
        before = self._ends[index - 1] if index else self._origin
        return self._from + index, row + self._origin - before

    def row_of(self, number: int) -> int:
        """The first row of a line; of a dropped one, 0; after the last one, `height`."""
        index = min(number - self._from, len(self._ends))
        return self._ends[index - 1] - self._origin if index > 0 else 0

    def line(self, row: int, theme: RenderTheme) -> RenderedLine:
        """A row in the colours of the theme. Raises `IndexError` outside."""
        number, part = self.locate(row)
        key = (number, part, theme)
        drawn = self._drawn.get(key)
        if drawn is None:
            if len(self._drawn) > _KEPT_STRIPS:
                self._drawn.clear()
            drawn = self._drawn[key] = self._draw(number, part, theme)
        return drawn

    def _draw(self, number: int, part: int, theme: RenderTheme) -> RenderedLine:
        pieces = self.text.line(number)
        is_last = True
        if self.is_wrapped:
            if self._parts[0] != number:
                self._parts = (number, chop("".join(text for text, _ in pieces), self.width))
            parts = self._parts[1]
            pieces = _slice(pieces, parts[part])
            is_last = part == len(parts) - 1
        segments = [Segment(text, state.style(theme)) for text, state in pieces]
        is_joined = not is_last or self.text.is_joined(number)
        return RenderedLine(Strip(segments), "".join(text for text, _ in pieces), 0, "" if is_joined else None)


def _slice(pieces: StyledText, part: Wrapped) -> StyledText:
    sliced: StyledText = []
    place = 0
    for text, state in pieces:
        piece = text[max(0, part.start - place) : max(0, part.end - place)]
        if piece:
            sliced.append((piece, state))
        place += len(text)
        if place >= part.end:
            break
    return sliced
