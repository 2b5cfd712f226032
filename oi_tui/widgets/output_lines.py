"""The output of a block, drawn under its code: whole while it is short, else its head and its tail."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.segment import Segment
from rich.style import Style

from oi_tui.rendering.lines import Wrapped
from oi_tui.rendering.sgr import StyledText
from oi_tui.rendering.terminal_text import TerminalText
from oi_tui.widgets.block import Line
from oi_tui.widgets.block_theme import BlockTheme
from oi_tui.widgets.code_lines import hard_wrap
from oi_tui.widgets.frame import framed, framed_words, grouped, inner_width

HEAD_ROWS, TAIL_ROWS = 8, 12
"""Rows shown of long output that is complete."""
LIVE_ROWS = 14
"""Rows shown of long output while it comes."""
EXPANDED_ROWS = 1000
"""Rows shown when everything is expanded; more is for the full-size pane."""
_LONGEST_ROWS_OF_LINE = EXPANDED_ROWS
_LONGEST_TRACEBACK = 200
_RULE = re.compile(r"-{3,200}")
_LAST_LINE_OF_ERROR = re.compile(r"(?:[\w.]+(?:Error|Exception|Exit|Iteration|Warning)|KeyboardInterrupt)\b")

Row = tuple[StyledText, str, bool]
"""A drawn row: pieces, its text, and whether its line goes on."""


class OutputLines:
    """What a run has printed. Keeps the newest lines, and the first few for ever."""

    def __init__(self) -> None:
        self.terminal = TerminalText()
        self.leaves_out = False
        """The last drawing did not show everything."""
        self._head: list[StyledText] | None = None  # once it is complete

    def __bool__(self) -> bool:
        return not self.terminal.is_empty

    @property
    def line_count(self) -> int:
        """Lines printed so far, kept or not."""
        return self.terminal.end

    @property
    def text(self) -> str:
        """All that is kept, as text."""
        return self.terminal.text()

    @property
    def error(self) -> str:
        """The name of the error in the last line, if a traceback stands above it; otherwise empty."""
        terminal = self.terminal
        if terminal.is_empty:
            return ""
        last = terminal.end - 1
        while last > terminal.first and not terminal.plain(last).strip():
            last -= 1
        found = _LAST_LINE_OF_ERROR.match(terminal.plain(last))
        above = range(max(terminal.first, last - _LONGEST_TRACEBACK), last)
        is_error = found and any("Traceback (most recent call last)" in terminal.plain(number) for number in above)
        return found[0] if found and is_error else ""

    def append(self, text: str) -> None:
        """Print foreign text, cut anywhere."""
        if self._head is None:
            text = self._print_head(text)
        self.terminal.feed(text)

    def close(self) -> None:
        """Nothing more comes."""
        self.terminal.close()

    def estimate(self, width: int) -> int:
        """About how many lines `draw` gives."""
        return min(self.line_count, HEAD_ROWS + TAIL_ROWS + 1) + (1 if self else 0)

    def draw(self, width: int, theme: BlockTheme, rail: Style, *, whole: bool, tail_only: bool) -> list[Sequence[Line]]:
        """The lines between the rails. `tail_only`: it is still coming, the end is what matters."""
        room = inner_width(width)
        most = EXPANDED_ROWS if whole else HEAD_ROWS + TAIL_ROWS if not tail_only else LIVE_ROWS
        tail, shown = self._rows_from_end(room, most)
        hidden = self.terminal.end - shown
        self.leaves_out = hidden > 0
        if not hidden:
            return [[self._line(row, width, theme, rail) for row in tail]]
        head: list[Row] = []
        if not whole and not tail_only:
            tail, shown = self._rows_from_end(room, TAIL_ROWS)
            head, at_top = self._rows_from_start(room, HEAD_ROWS)
            hidden = self.terminal.end - shown - at_top
        hint = "   enter opens all" if whole else "   space shows more, enter opens all"
        words = [
            (f"⋯ {self._count(hidden)}", theme.quiet),
            (hint, theme.faint),
        ]
        return [
            [self._line(row, width, theme, rail) for row in head],
            [framed_words(words, width, rail)],
            [self._line(row, width, theme, rail) for row in tail],
        ]

    def _count(self, hidden: int) -> str:
        """Lines that are left out, in words. The pieces in which an endless line is kept are one line, a long one."""
        newest = range(max(self.terminal.first, self.terminal.end - EXPANDED_ROWS), self.terminal.end)
        pieces = sum(self.terminal.is_joined(number) for number in newest)
        count = max(1, hidden - pieces)
        return f"{grouped(count)} {'very long ' if pieces else ''}line{'s' if count != 1 else ''}"

    def _print_head(self, text: str) -> str:
        """Print up to the end of the head, and keep that: the terminal text drops its oldest lines."""
        missing = HEAD_ROWS - self.terminal.end + 1
        place = 0
        while missing > 0 and (place := text.find("\n", place) + 1):
            missing -= 1
        if missing > 0:
            return text
        self.terminal.feed(text[:place])
        if self.terminal.end >= HEAD_ROWS:
            self._head = [self.terminal.line(number) for number in range(HEAD_ROWS)]
        return text[place:]

    def _rows_from_end(self, room: int, most: int) -> tuple[list[Row], int]:
        """The last rows, and of how many lines they are."""
        rows: list[Row] = []
        terminal = self.terminal
        number = terminal.end
        while number > terminal.first and len(rows) < most:
            number -= 1
            rows[:0] = list(_rows(terminal.line(number), room, joined=terminal.is_joined(number)))
        lines = terminal.end - number
        if len(rows) > most:
            rows = rows[-most:]
            lines -= 1
        return rows, lines

    def _rows_from_start(self, room: int, most: int) -> tuple[list[Row], int]:
        """The first rows, and of how many whole lines they are."""
        rows: list[Row] = []
        lines = 0
        while len(rows) < most and lines < min(most, self.terminal.end):
            pieces = self._head[lines] if self._head is not None else self.terminal.line(lines)
            rows += _rows(pieces, room, joined=False)
            lines += 1
        if len(rows) > most:
            rows = rows[:most]
            lines -= 1
        return rows, lines

    @staticmethod
    def _line(row: Row, width: int, theme: BlockTheme, rail: Style) -> Line:
        pieces, text, goes_on = row
        segments = [Segment(piece, state.style(theme.render)) for piece, state in pieces]
        return Line(framed(segments, width, rail), text, 2, "" if goes_on else None)


def _rows(pieces: StyledText, room: int, *, joined: bool) -> Iterator[Row]:
    """A line of output cut into rows, as a terminal cuts it."""
    text = "".join(piece for piece, _ in pieces)
    # The rule above a traceback is as wide as a terminal without our rails: cut it, a second row says nothing.
    cuts = [Wrapped(0, min(len(text), room))] if _RULE.fullmatch(text) else hard_wrap(text, room)
    for index, cut in enumerate(cuts[:_LONGEST_ROWS_OF_LINE]):
        is_last = index == len(cuts) - 1
        yield _slice(pieces, cut), text[cut.start : cut.end], not is_last or joined


def _slice(pieces: StyledText, cut: Wrapped) -> StyledText:
    shown: StyledText = []
    place = 0
    for text, state in pieces:
        part = text[max(0, cut.start - place) : max(0, cut.end - place)]
        if part:
            shown.append((part, state))
        place += len(text)
    return shown
