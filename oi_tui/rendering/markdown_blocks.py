"""Blocks of Markdown: built once from tokens, laid out for a width, drawn line by line."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, overload

from rich.cells import cell_len

from oi_tui.rendering.highlight import MARGIN, Highlighter
from oi_tui.rendering.lines import (
    PLAIN,
    RenderedLine,
    Run,
    Wrapped,
    chop,
    expand_tabs,
    slice_runs,
    to_strip,
    wrap,
)
from oi_tui.rendering.markdown_table import Table, TableLine, lay_out
from oi_tui.rendering.sanitise import show_bidi
from oi_tui.rendering.theme import RenderTheme

TAB_SIZE = 4


class Prefix(NamedTuple):
    """What stands before the text of a line: bullet, bar, indentation; and how that was written."""

    runs: tuple[Run, ...] = ()
    source: str = ""

    def __add__(self, other: Prefix) -> Prefix:  # type: ignore[override]
        return Prefix(self.runs + other.runs, self.source + other.source) if self.runs else other

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.runs)

    def aligned(self, width: int) -> Prefix:
        """The same with its outermost part, a number or the blanks under one, at this width."""
        if not self.runs:
            return self
        (outer, meaning), *inner = self.runs
        return Prefix(((f"{outer.strip():>{width - 1}} ", meaning), *inner), self.source)

    def within(self, width: int) -> Prefix:
        """The prefix for a line of this width: deep nesting in a narrow terminal leaves room for text."""
        if cell_len(self.text) <= width // 2:
            return self
        return Prefix(self.runs[-1:] if cell_len(self.runs[-1][0]) <= width // 2 else (), self.source)


NO_PREFIX = Prefix()


class Row(NamedTuple):
    """A line of a leaf without its prefix."""

    runs: Sequence[Run]
    joint: str | None = None
    source: str | None = None


class Leaf:
    """Something with lines. `first` stands before its first line, `rest` before the others."""

    __slots__ = ("_count", "_width", "first", "rest")  # there are very many of these

    def __init__(self, first: Prefix, rest: Prefix) -> None:
        self.first = first
        self.rest = rest
        self._width = 0
        self._count = 0

    def count(self, width: int) -> int:
        """How many lines it has."""
        if width != self._width:
            self._width = width
            self._lay_out(
                max(1, width - cell_len(self._prefix(0).text)), max(1, width - cell_len(self._prefix(1).text))
            )
            self._count = self._rows()
        return self._count

    def align(self, width: int) -> None:
        """Give the outermost part of the prefix this width."""
        first, rest = self.first.aligned(width), self.rest.aligned(width)
        if first != self.first or rest != self.rest:
            self.first, self.rest, self._width = first, rest, 0

    def draw(self, index: int, width: int, theme: RenderTheme) -> RenderedLine:
        """One of its lines."""
        self.count(width)
        row = self._row(index)
        prefix = self._prefix(index)
        text = "".join(text for text, _ in row.runs)
        source = row.source
        if source is None and index == 0 and prefix.source:
            source = prefix.source + text
        elif source is None and prefix.source and self._begins_line(index):
            source = prefix.source + text
        strip = to_strip((*prefix.runs, *row.runs), theme)
        return RenderedLine(strip, text, len(prefix.text), row.joint, source)

    def _prefix(self, index: int) -> Prefix:
        return (self.first if index == 0 else self.rest).within(self._width)

    def _begins_line(self, index: int) -> bool:
        """True if the line does not go on from the one before."""
        return self._row(index - 1).joint is None

    def _lay_out(self, first: int, width: int) -> None:
        raise NotImplementedError

    def _rows(self) -> int:
        raise NotImplementedError

    def _row(self, index: int) -> Row:
        raise NotImplementedError


class TextLeaf(Leaf):
    """A paragraph or a heading: logical lines of runs, wrapped. `sources` is how they were written, where that differs
    from what is drawn."""

    __slots__ = ("_cuts", "_lines", "_sources")

    def __init__(
        self, first: Prefix, rest: Prefix, lines: Sequence[Sequence[Run]], sources: Sequence[str] | None = None
    ) -> None:
        super().__init__(first, rest)
        self._sources = sources
        self._lines = tuple((tuple(line), "".join(text for text, _ in line)) for line in lines)
        self._cuts: tuple[tuple[int, Wrapped, str | None], ...] = ()

    def _lay_out(self, first: int, width: int) -> None:
        cuts: list[tuple[int, Wrapped, str | None]] = []
        for number, (_, text) in enumerate(self._lines):
            wrapped = wrap(text, width, first if number == 0 else None)
            for cut, following in zip(wrapped, [*wrapped[1:], None], strict=True):
                cuts.append((number, cut, None if following is None else text[cut.end : following.start]))
        self._cuts = tuple(cuts)

    def _rows(self) -> int:
        return len(self._cuts)

    def _row(self, index: int) -> Row:
        number, cut, joint = self._cuts[index]
        line, text = self._lines[number]
        [runs] = slice_runs(line, [cut])
        is_whole = self._sources is not None and joint is None and cut.start == 0
        source = self._sources[number] if self._sources is not None and is_whole else None
        return Row(runs, joint, source if source != text else None)


class BlankLeaf(Leaf):
    """An empty line between others, within these bars."""

    __slots__ = ()

    def __init__(self, bars: Prefix = NO_PREFIX) -> None:
        bars = bars if bars.text.strip() else NO_PREFIX
        super().__init__(bars, bars)

    def _lay_out(self, first: int, width: int) -> None:
        pass

    def _rows(self) -> int:
        return 1

    def _row(self, index: int) -> Row:
        return Row((), None, self.first.source.rstrip())


class RuleLeaf(Leaf):
    """A line across."""

    __slots__ = ("_room",)

    def _lay_out(self, first: int, width: int) -> None:
        self._room = first

    def _rows(self) -> int:
        return 1

    def _row(self, index: int) -> Row:
        return Row([("─" * self._room, ("rail",))], None, self.first.source + "---")


class TableLeaf(Leaf):
    """A table."""

    __slots__ = ("_lines", "_table")

    def __init__(self, first: Prefix, rest: Prefix, table: Table) -> None:
        super().__init__(first, rest)
        self._table = table
        self._lines: list[TableLine] = []

    def _lay_out(self, first: int, width: int) -> None:
        self._lines = lay_out(self._table, width)

    def _rows(self) -> int:
        return len(self._lines)

    def _row(self, index: int) -> Row:
        line = self._lines[index]
        is_first = index == 0 or self._lines[index - 1].is_last_of_row
        place = 1 if line.row is None else line.row + (line.row > 0)
        source = (
            (self.rest.source + self._table.sources[place]) if is_first and place < len(self._table.sources) else ""
        )
        return Row(line.runs, None if line.is_last_of_row else "", source)


class CodeLeaf(Leaf):
    """Code that is not to be run: highlighted, cut where it is too wide. Grows at its end."""

    __slots__ = ("_ends", "_room", "highlighter", "line_count")

    def __init__(self, first: Prefix, rest: Prefix, highlighter: Highlighter, line_count: int) -> None:
        super().__init__(first, rest)
        self.highlighter = highlighter
        self.line_count = line_count
        """Lines to show: the empty one after the last line end is not."""
        self._ends: list[int] = []
        self._room = 0

    def grown(self, from_line: int, line_count: int) -> int:
        """Lines from this one on have changed. Returns the first drawn line that may look different."""
        self.line_count = line_count
        recoloured = max(0, from_line - MARGIN)
        first = self._ends[recoloured - 1] if 0 < recoloured <= len(self._ends) else 0
        del self._ends[from_line:]
        self._width = 0
        return first

    def _lay_out(self, first: int, width: int) -> None:
        if width != self._room:
            self._room = width
            self._ends = []
        total = self._ends[-1] if self._ends else 0
        for number in range(len(self._ends), self.line_count):
            line = self.highlighter.line(number)
            simple = len(line) <= width and line.isascii() and "\t" not in line
            total += 1 if simple else len(chop(self._shown(self.highlighter.runs(number))[1], width))
            self._ends.append(total)

    def _rows(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _row(self, index: int) -> Row:
        number = bisect_right(self._ends, index)
        part = index - (self._ends[number - 1] if number else 0)
        runs, text = self._shown(self.highlighter.runs(number))
        cuts = chop(text, self._room)
        [shown] = slice_runs(runs, [cuts[part]])
        source = self.highlighter.line(number)
        return Row(shown, None if part == len(cuts) - 1 else "", source if len(cuts) == 1 and source != text else None)

    def _begins_line(self, index: int) -> bool:
        return False  # code is copied without the marks of the quote or list it stands in

    @staticmethod
    def _shown(runs: Sequence[Run]) -> tuple[Sequence[Run], str]:
        text = "".join(text for text, _ in runs)
        if "\t" in text or not text.isascii():
            runs = expand_tabs([(show_bidi(text), meaning) for text, meaning in runs], TAB_SIZE)
            text = "".join(text for text, _ in runs)
        return runs, text


class ListGroup:
    """The items of one ordered list: their numbers are aligned, so a tenth item moves the first nine."""

    def __init__(self, kind: str, start: int) -> None:
        self.kind = kind
        """The list's token type and its delimiter: another delimiter is another list."""
        self.next_number = start
        self.width = 3
        """Cells of a number, its delimiter and a blank."""

    def take_number(self) -> int:
        """The number of the next item."""
        number = self.next_number
        self.next_number += 1
        self.width = max(self.width, len(str(number)) + 2)
        return number


class Block:
    """A top-level piece of a document, an item of a top-level list being one. Caches its drawn lines."""

    __slots__ = ("_drawn", "_drawn_for", "_ends", "_laid_out", "group", "leaves")

    def __init__(self, leaves: Sequence[Leaf], group: ListGroup | None = None) -> None:
        self.leaves = tuple(leaves)
        self.group = group
        self._drawn: dict[int, RenderedLine] | None = None
        self._drawn_for: tuple[int, RenderTheme, int] | None = None
        self._ends: tuple[int, ...] = ()
        self._laid_out: tuple[int, int] | None = None

    def count(self, width: int) -> int:
        """How many lines it has at this width."""
        key = (width, self.group.width if self.group else 0)
        if key != self._laid_out:
            self._laid_out = key
            if self.group is not None:
                for leaf in self.leaves:
                    leaf.align(self.group.width)
            self._ends = tuple(accumulate(leaf.count(width) for leaf in self.leaves))
        return self._ends[-1] if self._ends else 0

    def line(self, index: int, width: int, theme: RenderTheme) -> RenderedLine:
        """One of its lines."""
        self.count(width)
        key = (width, theme, self.group.width if self.group else 0)
        if key != self._drawn_for or self._drawn is None:
            self._drawn_for = key
            self._drawn = {}
        line = self._drawn.get(index)
        if line is None:
            leaf = bisect_right(self._ends, index)
            line = self.leaves[leaf].draw(index - (self._ends[leaf - 1] if leaf else 0), width, theme)
            self._drawn[index] = line
        return line

    def changed(self, from_line: int = 0) -> None:
        """The last leaf has grown: forget its drawn lines from this one on."""
        self._laid_out = None
        from_line += self._ends[-2] if len(self._ends) > 1 else 0
        if self._drawn is not None:
            self._drawn = {index: line for index, line in self._drawn.items() if index < from_line}


class BlockLines(Sequence[RenderedLine]):
    """The lines of some blocks, drawn when they are looked at."""

    def __init__(self, blocks: Sequence[Block], ends: Sequence[int], width: int, theme: RenderTheme | None) -> None:
        self._blocks = blocks
        self._ends = ends
        self._width = width
        self._theme = theme

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> RenderedLine: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RenderedLine]: ...
    def __getitem__(self, index: int | slice) -> RenderedLine | Sequence[RenderedLine]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        assert self._theme is not None
        number = bisect_right(self._ends, index)
        before = self._ends[number - 1] if number else 0
        return self._blocks[number].line(index - before, self._width, self._theme)


def plain_block(text: str) -> Block:
    """Text that has not been parsed yet."""
    return Block([TextLeaf(NO_PREFIX, NO_PREFIX, [[(line, PLAIN)] for line in text.split("\n")])])
