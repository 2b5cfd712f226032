"""The column of blocks: laid out near the viewport only, drawn line by line, scrolled without jumps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from oi_tui.rendering.lines import copy_text, cut, restyle
from oi_tui.widgets.block import Block, Line
from oi_tui.widgets.block_theme import BlockTheme
from oi_tui.widgets.flow import Flow

COLUMN = 104
"""The widest the column of blocks gets: about a hundred columns of text and their frame."""
ROOMY_HEIGHT = 28
"""Rows of a terminal from which on there is an empty line between all blocks."""
EXACT_SCREENS = 8
"""How far scrolling by lines is exact, in viewports."""
KEPT_SCREENS = 4
"""Blocks further away than this many viewports give back the memory of their drawn form."""


class Canvas(ScrollView, can_focus=False):
    """Draws blocks and knows where they are.

    While it follows the tail the last line stays in view. Otherwise the line at the top of the viewport stays where it
    is, whatever is added, measured or folded elsewhere.
    """

    DEFAULT_CSS = """
    Canvas {
        width: 1fr;
        height: 1fr;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
    }
    """

    @dataclass
    class TailChanged(Message):
        """Whether the tail is in view, and how many lines have come since it was left."""

        following: bool
        new_lines: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.is_following = True
        self.cursor: Block | None = None
        """The block that is marked at its left."""
        self.highlighter: Highlighter | None = None
        self._flow = Flow()
        self._anchor = (0, 0)  # the block at the top of the view, and which of its lines
        self._theme: BlockTheme | None = None
        self._is_settling = False
        self._seen_heights: dict[int, int] = {}  # id(block) → its height when the tail was left
        self._told_tail = (True, 0)
        self._brush: _Brush | None = None  # while painting
        self._dirty: dict[int, Block] | None = None  # in a batch: what has changed

    @property
    def blocks(self) -> Sequence[Block]:
        """All blocks, from the top."""
        return self._flow.blocks

    def index(self, block: Block) -> int:
        """Where a block is. Raises `ValueError` if it is not there."""
        return self._flow.index(block)

    # -- blocks ------------------------------------------------------------------------------------------------------

    @contextmanager
    def changes(self) -> Iterator[None]:
        """Several changes, drawn and measured once, at the end."""
        if self._dirty is not None:
            yield
            return
        self._dirty = {}
        try:
            yield
        finally:
            dirty, self._dirty = self._dirty, None
            for block in dirty.values():
                self._note_changed(block)
            if dirty:
                self.settle()

    def add(self, block: Block, *, after: Block | None = None) -> None:
        """Append a block, or put it behind another."""
        index = len(self.blocks) if after is None else self.index(after) + 1
        self._flow.insert(index, block)
        if not self.is_following:
            self._seen_heights.setdefault(id(block), 0)
            if index <= self._anchor[0]:
                self._anchor = (self._anchor[0] + 1, self._anchor[1])
        self.redraw(block)

    def load(self, blocks: Sequence[Block]) -> None:
        """Show these blocks, the end of the last one first."""
        self.clear()
        self._flow.load(blocks)
        self.follow()

    def take_out(self, block: Block) -> None:
        """Take a block out. What is read stays where it is."""
        index = self.index(block)
        self._flow.take_out(index)
        self._seen_heights.pop(id(block), None)
        if self._dirty:
            self._dirty.pop(id(block), None)
        anchor, line = self._anchor
        if index < anchor:
            self._anchor = (anchor - 1, line)
        elif index == anchor:
            self._anchor = (anchor, 0)
        self.settle()

    def clear(self) -> None:
        """Take everything out and follow the tail."""
        self._flow.clear()
        self._seen_heights.clear()
        self._anchor = (0, 0)
        self.cursor = None
        self.is_following = True
        self.settle()

    def redraw(self, block: Block) -> None:
        """A block has changed: its height may have, too. One that is not here any more is left alone."""
        if self._dirty is not None:
            self._dirty[id(block)] = block
            return
        self._note_changed(block)
        self.settle()

    def _note_changed(self, block: Block) -> None:
        try:
            index = self.index(block)
        except ValueError:
            return  # the conversation was replaced while something still happened to its block
        if not self.is_following and id(block) not in self._seen_heights:
            self._seen_heights[id(block)] = self._flow.height(index)
        if self._flow.can_measure and self.rows:
            self._flow.measure(index)

    # -- geometry ----------------------------------------------------------------------------------------------------

    @property
    def column(self) -> int:
        """The width of the column of blocks, in cells. One column on its left belongs to the block cursor."""
        return max(1, min(COLUMN, self.scrollable_content_region.width - 2))

    @property
    def margin(self) -> int:
        """Where the column begins."""
        return max(1, (self.scrollable_content_region.width - self.column) // 2)

    @property
    def rows(self) -> int:
        return self.scrollable_content_region.height

    @property
    def theme(self) -> BlockTheme:
        if self._theme is None:
            self._theme = BlockTheme.from_variables(self.app.theme_variables, ansi=self.app.current_theme.ansi)
        return self._theme

    def region_of(self, block: Block) -> Region:
        """Where the block is drawn, relative to the top left of this widget. Measures it."""
        index = self.index(block)
        height, gap = self._flow.measure(index), self._flow.gap(index)
        top = self._flow.top(index) + gap - round(self.scroll_y)
        return Region(self.margin, top, self.column, height - gap)

    def block_at(self, y: int) -> tuple[Block, int] | None:
        """The block drawn at this row of the widget and the line of it; None between blocks."""
        return self._flow.line_at(y + round(self.scroll_y))

    def visible_blocks(self) -> Sequence[Block]:
        """The blocks of which something is in view."""
        top = round(self.scroll_y)
        return self._flow.between(top, top + self.rows - 1)

    def settle(self) -> None:
        """Bring the heights near the viewport, the virtual size and the scroll position into agreement."""
        if not self.is_mounted or not self.rows or self._is_settling:
            return
        self._is_settling = True
        try:
            if not self._flow.can_measure:
                self._flow.change_look(self.column, self.theme, is_dense=self._is_dense)
            if self.blocks:
                self._measure_around_viewport()
            total = self._flow.total
            y = limit = max(0, total - self.rows)
            if not self.is_following and self.blocks:
                y = min(self._flow.top(self._anchor[0]) + self._anchor[1], limit)
            self._set_geometry(Size(self.scrollable_content_region.width, total), y)
        finally:
            self._is_settling = False
        self._tell_tail()

    def _measure_around_viewport(self) -> None:
        last = len(self.blocks) - 1
        if self.is_following:
            self._anchor = (last, 0)
            self._flow.measure_from(last, -1, self.rows * 2)
            return
        index = min(self._anchor[0], last)
        height = self._flow.measure(index)
        line = min(self._anchor[1], height - 1)
        self._anchor = (index, line)
        self._flow.measure_from(index + 1, 1, self.rows * 2 - (height - line))
        self._flow.measure_from(index - 1, -1, self.rows)

    def _set_geometry(self, size: Size, y: int) -> None:
        if size != self.virtual_size:
            # Not through the reactive: that would lay out the whole screen for every frame of a stream.
            self.set_reactive(Widget.virtual_size, size)
            self._scroll_update(size)
        self.set_reactive(Widget.scroll_target_y, y)
        if round(self.scroll_y) != y:
            self.scroll_y = y
        self.refresh()
        kept = self.rows * KEPT_SCREENS
        self._flow.release_all_but(y - kept, y + self.rows + kept)

    @property
    def _is_dense(self) -> bool:
        return self.app.size.height < ROOMY_HEIGHT

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._theme = None
        self._change_look()

    def on_resize(self) -> None:
        self._change_look()

    def on_show(self) -> None:
        self._change_look()

    def _change_look(self) -> None:
        """Width, density or colours have changed: what is read stays in place."""
        if not self.is_mounted or not self.rows:
            return
        if not self.blocks:
            self._flow.change_look(self.column, self.theme, is_dense=self._is_dense)
            return
        index = min(self._anchor[0], len(self.blocks) - 1)
        part = self._anchor[1] / max(1, self._flow.height(index))
        self._flow.change_look(self.column, self.theme, is_dense=self._is_dense)
        self._anchor = (index, round(part * self._flow.measure(index)))
        self.settle()

    # -- scrolling ---------------------------------------------------------------------------------------------------

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._is_settling or not self.blocks:
            return
        self._anchor = self._flow.locate(round(new_value))
        self._set_following(round(new_value) >= max(0, self._flow.total - self.rows))
        self.settle()

    def follow(self) -> None:
        """Go to the tail and stay there."""
        self._set_following(True)
        self.settle()

    def scroll_lines(self, lines: int) -> None:
        """Scroll by lines, negative is up. Exact over a few screens, whatever was only estimated before."""
        if self.blocks and self.rows:
            reach = min(abs(lines), self.rows * EXACT_SCREENS) + self.rows * 2
            index = min(self._anchor[0], len(self.blocks) - 1)
            self._flow.measure_from(index, 1 if lines > 0 else -1, reach)
            self.settle()
        self.scroll_to(y=round(self.scroll_y) + lines, animate=False)

    def scroll_to_top(self) -> None:
        """To the first line."""
        self.scroll_to(y=0, animate=False)

    def put_at_top(self, block: Block, line: int = 0) -> None:
        """Scroll until this line of the block is the first one in view."""
        self.scroll_lines(self.region_of(block).y + line)

    def show_whole(self, block: Block) -> None:
        """Bring a new block into view for someone who follows the tail: from its top, if it is longer than the view."""
        if self.is_following and self.region_of(block).height > self.rows:
            self.put_at_top(block)

    def expand_all(self, expanded: bool) -> None:
        """Show everything of every block, or only the essential."""
        for block in self.blocks:
            block.expand(expanded)
        self._change_look()

    def show_block(self, block: Block, line: int = 0, *, margin: int = 0) -> None:
        """Scroll as little as possible so that this line of the block is in view, `margin` lines from the edge."""
        region = self.region_of(block)
        y = region.y + line
        if y - margin < 0:
            self.scroll_lines(y - margin)
        elif y + margin >= self.rows:
            self.scroll_lines(y + margin - self.rows + 1)

    def _set_following(self, following: bool) -> None:
        if following:
            self._seen_heights.clear()
        self.is_following = following

    @property
    def new_lines(self) -> int:
        """How many lines have come since the tail was left."""
        if self.is_following or not self._seen_heights:
            return 0
        return sum(
            max(0, self._flow.height(index) - self._seen_heights[id(block)])
            for index, block in enumerate(self.blocks)
            if id(block) in self._seen_heights
        )

    def _tell_tail(self) -> None:
        told = (self.is_following, self.new_lines)
        if told != self._told_tail:
            self._told_tail = told
            self.post_message(self.TailChanged(*told))

    # -- drawing -----------------------------------------------------------------------------------------------------

    def render_lines(self, crop: Region) -> list[Strip]:
        self._brush = _Brush(self)
        try:
            return super().render_lines(crop)
        finally:
            self._brush = None

    def render_line(self, y: int) -> Strip:
        brush = self._brush or _Brush(self)
        row = y + brush.scroll_y
        line, block, number = self._line_at(row)
        if line is None:
            return brush.blank
        strip = line.strip
        if block is not None and self.highlighter is not None and line.text:
            strip = self.highlighter.highlight(block, block.lines(self.column, self.theme), number, strip)
        margin = brush.marked if block is not None and block is self.cursor else brush.margin
        strip = Strip([margin, *strip]).apply_style(brush.base).adjust_cell_length(brush.width, brush.base)
        if (selection := self.text_selection) is not None:
            strip = self._draw_selection(strip, line, row, selection)
        # Offsets are what the mouse asks for; on painted lines they would only cost time.
        return strip if self._brush is not None else strip.apply_offsets(-self.margin, row)

    def _line_at(self, row: int) -> tuple[Line | None, Block | None, int]:
        """The line drawn in a row, the block it belongs to and which of its lines it is."""
        if not 0 <= row < self._flow.total:
            return None, None, 0
        if (found := self._flow.line_at(row)) is None:
            return _GAP, None, 0
        block, number = found
        lines = block.lines(self.column, self.theme)
        if number >= len(lines):
            return None, None, 0
        # In the last row the run bar may lie over a block that goes on below: what is there is not read yet.
        if self._brush is not None and (row < self._brush.last_row or number == len(lines) - 1):
            block.painted(number)
        return lines[number], block, number

    # -- selection ---------------------------------------------------------------------------------------------------

    def _draw_selection(self, strip: Strip, line: Line, row: int, selection: Selection) -> Strip:
        if line.text is None or (span := selection.get_span(row)) is None:
            return strip
        start, end = cut(line, span)
        shift = self.margin + line.start
        style: Style = self.screen.get_component_rich_style("screen--selection", partial=True)
        return restyle(strip, [(shift + start, shift + end)], style)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text under the selection: source text without rails, wrapped lines joined."""
        if not self.blocks:
            return None
        first = 0 if selection.start is None else max(0, selection.start.y)
        last = self._flow.total - 1 if selection.end is None else min(selection.end.y, self._flow.total - 1)
        lines: list[Line] = []
        for row in range(first, last + 1):
            line, block, _ = self._line_at(row)
            lines.append(_EMPTY if line is None or (block is None and not lines) else line)
        shift = Offset(0, first)
        moved = Selection(selection.start and selection.start - shift, selection.end and selection.end - shift)
        text = copy_text(lines, moved).strip("\n")
        return (text, "\n") if text else None


class _Brush:
    """What all lines of one painting have in common; asking the widget for each line would cost more than drawing."""

    def __init__(self, canvas: Canvas) -> None:
        self.width = canvas.scrollable_content_region.width
        self.scroll_y = round(canvas.scroll_y)
        self.last_row = self.scroll_y + (canvas.rows - 1 if canvas.rows > 2 else canvas.rows)
        self.base = canvas.rich_style
        self.blank = Strip.blank(self.width, self.base)
        margin = canvas.margin
        self.margin = Segment(" " * margin, None)
        self.marked = Segment(" " * (margin - 1) + "▌", canvas.theme.accent)


class Highlighter(Protocol):
    """Marks search hits in lines as they are drawn."""

    def highlight(self, block: Block, lines: Sequence[Line], number: int, strip: Strip) -> Strip:
        """The strip of `lines[number]` with marks."""


_EMPTY = Line(Strip([]))
_GAP = Line(Strip([]), "")
