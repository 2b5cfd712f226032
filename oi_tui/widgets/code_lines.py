"""Code as numbered, highlighted, wrapped lines between the rails."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rich.cells import cell_len, split_graphemes
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from oi_tui.engine.hidden_text import Finding, reveal
from oi_tui.rendering.highlight import Highlighter
from oi_tui.rendering.lines import Run, Wrapped, expand_tabs, is_narrow, slice_runs
from oi_tui.widgets.block import Line, Mapped
from oi_tui.widgets.block_theme import BlockTheme
from oi_tui.widgets.frame import RAIL_LEFT, framed, inner_width

TAB_SIZE = 4
REREAD_LINES = 25
"""Lines before a change whose colours may change with it."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_BARS = "▁▂▃▄▅▆▇█"
_KEPT_ROWS = 4000
_LONG_LINE = 4000
_TIMES_WIDTH = 11
"""Cells of the column with the times: " 1234.56 s ▇"."""


@dataclass(frozen=True)
class Marks:
    """What the gutter and the right edge say about lines. Lines count from 1."""

    active: int | None = None
    statement: int | None = None
    """The statement from which the active line was reached."""
    failed: int | None = None
    added: frozenset[int] = frozenset()
    """Lines that the user wrote."""
    times: Mapping[int, float] = field(default_factory=dict)
    """Seconds; empty: the column is not there."""

    def sign(self, number: int, theme: BlockTheme) -> tuple[str, Style]:
        """What stands between the number and the code."""
        if number == self.active:
            return "►", theme.running
        if number == self.statement:
            return "▹", theme.running
        if number == self.failed:
            return "✗", theme.failed
        return ("+", theme.added) if number in self.added else (" ", theme.faint)


class _Look(NamedTuple):
    """All that the drawn form of a row depends on, but its text."""

    width: int
    theme: BlockTheme
    rail: Style
    sign: str
    sign_style: Style
    is_active: bool
    time: float | None
    longest: float


class CodeLines:
    """The lines of one block of code, growing at the end while they are written."""

    def __init__(self) -> None:
        self.lines: list[str] = [""]
        self._text: str | None = ""
        self._findings: dict[int, list[Finding]] | None = None  # None: nobody has looked yet
        self._language = ""
        self._shown: dict[int, tuple[str, Sequence[Run]]] = {}
        self._rows: dict[tuple[int, int], tuple[_Look, Line]] = {}
        self._is_last_reading = False
        self._cuts: list[Sequence[Wrapped] | None] = []  # None: one row
        self._ends: list[int] = []  # rows up to and with each line
        self._cut_width = 0
        self._highlighter = Highlighter(None)
        self.is_coloured = True
        """All colours are worked out."""

    @property
    def line_count(self) -> int:
        """Lines that are drawn: the empty one behind the last line end is not."""
        return len(self.lines) - (len(self.lines) > 1 and not self.lines[-1])

    @property
    def text(self) -> str:
        if self._text is None:
            self._text = "\n".join(self.lines)
        return self._text

    def append(self, text: str, language: str) -> None:
        """More code at the end. Costs what it adds."""
        pieces = text.split("\n")
        changed = len(self.lines) - 1
        self.lines[-1] += pieces[0]
        self.lines += pieces[1:]
        self._text, self._findings = None, None
        self._speak(language)
        self._highlighter.append(text)
        self._forget_from(changed)

    def replace(self, text: str, language: str) -> None:
        """Other code in the place of this one."""
        self.lines = text.split("\n")
        self._text, self._findings = text, None
        self._speak(language)
        self._highlighter.replace(text)
        self._forget_from(0)

    def finish(self) -> None:
        """The code is complete: its colours are worked out once more, by `advance`."""
        self._highlighter.finish()
        self.is_coloured = False
        self._is_last_reading = True

    def advance(self) -> None:
        """Work out more of the colours, about 10 ms."""
        self.is_coloured = not self._highlighter.advance()
        if self.is_coloured and self._is_last_reading:
            self._shown.clear()
            self._rows.clear()
        for key in [key for key in self._rows if key[0] not in self._shown]:
            del self._rows[key]

    def _speak(self, language: str) -> None:
        self.is_coloured = self._is_last_reading = False
        if language != self._language:
            self._language = language
            self._highlighter = Highlighter(language)

    def set_findings(self, findings: Sequence[Finding]) -> None:
        """The hidden characters of the whole code, to be drawn as stand-ins."""
        by_line: dict[int, list[Finding]] = {}
        for finding in findings:
            by_line.setdefault(finding.line - 1, []).append(finding)
        first = min([*by_line, *(self._findings or ())], default=None)
        if self._findings is None and not self.text.isascii():
            first = 0  # drawn by what each line alone says, until now
        self._findings = by_line
        if first is not None:
            self._forget_from(first)

    # -- rows --------------------------------------------------------------------------------------------------------

    def gutter_width(self) -> int:
        """Number, blank, sign, blank."""
        return len(str(self.line_count)) + 3

    def row_count(self, width: int) -> int:
        """Rows of the whole code at this width of the block."""
        self._cut(width)
        return self._ends[self.line_count - 1]

    def rows_before(self, line: int, width: int) -> int:
        """Rows above a line, which counts from 0."""
        self._cut(width)
        return self._ends[line - 1] if line else 0

    def lines_within(self, rows: int) -> int:
        """How many whole lines the first rows show, at the width drawn last."""
        return bisect_right(self._ends, rows)

    def draw(
        self, width: int, theme: BlockTheme, rail: Style, marks: Marks, first: int = 0, last: int | None = None
    ) -> Sequence[Line]:
        """The lines from `first` to before `last`, drawn when they are looked at."""
        self._cut(width)
        start = self._ends[first - 1] if first else 0
        end = self._ends[(self.line_count if last is None else last) - 1]
        longest = max(marks.times.values(), default=0.0)

        def make(index: int) -> Line:
            line, section = self._row(start + index)
            number = line + 1
            time = marks.times.get(number) if marks.times else None
            look = _Look(width, theme, rail, *marks.sign(number, theme), number == marks.active, time, longest)
            known = self._rows.get((line, section))
            if known is None or known[0] != look:
                if len(self._rows) > _KEPT_ROWS:
                    self._rows.clear()
                known = self._rows[line, section] = (look, self._draw_row(line, section, look))
            return known[1]

        return Mapped(end - start, make)

    def _row(self, index: int) -> tuple[int, int]:
        """The line that a row belongs to, and which of its rows it is."""
        line = bisect_right(self._ends, index)
        return line, index - (self._ends[line - 1] if line else 0)

    def _draw_row(self, line: int, section: int, look: _Look) -> Line:
        width, theme = look.width, look.theme
        shown, runs = self._display(line)
        cuts = self._cuts[line] or (Wrapped(0, len(shown)),)
        cut, is_last = cuts[section], section == len(cuts) - 1
        if len(cuts) > 1:
            [runs] = slice_runs(runs, [cut])
        digits = self.gutter_width() - 3
        number = line + 1 if section == 0 else ""
        sign = look.sign if section == 0 else "↪"
        sign_style = look.sign_style if section == 0 else theme.faint
        style = theme.render.style
        content = [Segment(f"{number:>{digits}} ", theme.faint), Segment(f"{sign} ", sign_style)]
        content += [Segment(text, style(*meaning) if meaning else None) for text, meaning in runs]
        if look.time is not None and is_last:
            content = _with_time(content, look.time, look.longest, inner_width(width), theme)
        source = self.lines[line]
        background = theme.line_active if look.is_active else None
        return Line(
            framed(content, width, look.rail, background=background),
            text=shown[cut.start : cut.end],
            start=len(RAIL_LEFT) + digits + 3,
            joint=None if is_last else "",
            source=source if len(cuts) == 1 and source != shown else None,
        )

    # -- one line ----------------------------------------------------------------------------------------------------

    def _display(self, line: int) -> tuple[str, Sequence[Run]]:
        """A line as it is drawn: hidden characters as stand-ins, tabs as blanks, highlighted."""
        if (display := self._shown.get(line)) is None:
            if len(self._shown) > 20_000:
                self._shown.clear()
            source = self.lines[line]
            runs = self._highlighter.runs(line)
            if not source.isascii() or not source.isprintable() or (self._findings and line in self._findings):
                runs = expand_tabs(self._reveal(line, runs), TAB_SIZE)
                runs = [(_CONTROL.sub("�", text), meaning) for text, meaning in runs]
            display = ("".join(text for text, _ in runs), runs)
            # One plain run may only mean that it has not been read yet; very long lines stay plain.
            if len(runs) != 1 or runs[0][1] or len(source) > _LONG_LINE:
                self._shown[line] = display
        return display

    def _reveal(self, line: int, runs: Sequence[Run]) -> list[Run]:
        """The runs with stand-ins for what hides."""
        source = self.lines[line].removesuffix("\r")
        findings = None
        if self._findings is not None:
            findings = [replace(finding, offset=finding.column - 1) for finding in self._findings.get(line, ())]
        revealed = reveal(source, findings, language=self._language)
        if not revealed.spans:
            return list(runs)
        shown: list[Run] = []
        place = 0
        for text, meaning in runs:
            begin, end = revealed.from_source(place), revealed.from_source(place + len(text))
            place += len(text)
            for start, stop, finding in revealed.spans:
                if start >= end or stop <= begin:
                    continue
                shown.append((revealed.text[begin:start], meaning))
                shown.append((revealed.text[start:stop], meaning if finding.kind == "gap" else ("hidden",)))
                begin = stop
            shown.append((revealed.text[begin:end], meaning))
        return [run for run in shown if run[0]]

    def _forget_from(self, line: int) -> None:
        for known in [known for known in self._shown if known >= line - REREAD_LINES]:
            del self._shown[known]
        for key in [key for key in self._rows if key[0] >= line - REREAD_LINES]:
            del self._rows[key]
        del self._cuts[line:], self._ends[line:]

    def _cut(self, width: int) -> None:
        """Work out the rows of lines that are not known yet at this width."""
        room = max(8, inner_width(width) - self.gutter_width())
        if room != self._cut_width:
            self._cut_width = room
            self._cuts, self._ends = [], []
            self._rows.clear()
        total = self._ends[-1] if self._ends else 0
        for line in range(len(self._cuts), len(self.lines)):
            source = self.lines[line]
            cuts = None
            if len(source) > room or not source.isascii() or not source.isprintable():
                cuts = hard_wrap(self._display(line)[0], room)
            total += len(cuts) if cuts is not None else 1
            self._cuts.append(cuts)
            self._ends.append(total)


def hard_wrap(text: str, width: int) -> list[Wrapped]:
    """Cut a line every `width` cells. Nothing is left out, not even blanks: this is code that will run."""
    if is_narrow(text):
        return [Wrapped(at, min(at + width, len(text))) for at in range(0, max(1, len(text)), width)]
    cuts: list[Wrapped] = []
    start = used = 0
    for begin, _, cells in split_graphemes(text)[0]:
        if used + cells > width and begin > start:
            cuts.append(Wrapped(start, begin))
            start, used = begin, 0
        used += cells
    return [*cuts, Wrapped(start, len(text))]


def _with_time(content: list[Segment], seconds: float, longest: float, width: int, theme: BlockTheme) -> list[Segment]:
    """The row with the time of its line at the right; code in the way is cut, it has been read when it was approved."""
    used = sum(cell_len(segment.text) for segment in content)
    room = width - _TIMES_WIDTH - 1
    if used > room:
        content = [*Strip(content).crop(0, room - 1), Segment("…", theme.faint)]
        used = room
    bar = _BARS[min(7, int(seconds / longest * 8))] if longest else " "
    time = f"{seconds:.2f} s" if seconds < 1000 else f"{seconds:.0f} s"
    padding = width - used - len(time) - 2
    return [*content, Segment(" " * padding), Segment(f"{time} ", theme.quiet), Segment(bar, theme.running)]
