"""The whole output of a run: bounded, live, wrapped or scrolled sideways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.geometry import Offset, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from oi_tui.rendering.lines import RenderedLine, copy_text, cut, restyle
from oi_tui.rendering.terminal_text import TerminalText
from oi_tui.rendering.terminal_view import TerminalView
from oi_tui.rendering.theme import RenderTheme


class OutputPane(ScrollView, can_focus=True):
    """Draws a `TerminalText` line by line; call `update` when something was printed."""

    DEFAULT_CSS = """
    OutputPane {
        width: 1fr;
        height: 1fr;
        padding: 0 1;
        overflow-x: auto;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "wrap", "Wrap", tooltip="Wrap long lines, or scroll sideways.", id="output.wrap"),
        Binding("s", "save", "Save", tooltip="Save the whole text into a file.", id="output.save"),
        Binding("p", "pager", "$PAGER", tooltip="Read the whole text in $PAGER.", id="output.pager"),
        Binding("c", "copy", "Copy", tooltip="Copy all that is kept.", id="output.copy"),
        Binding("j", "scroll_down", show=False, id="output.down"),
        Binding("k", "scroll_up", show=False, id="output.up"),
        Binding("g", "scroll_home", show=False, id="output.top"),
        Binding("G", "scroll_end", show=False, id="output.end"),
        Binding("space", "page_down", show=False, id="output.page"),
    ]

    wraps: reactive[bool] = reactive(True, init=False)
    """Long lines are wrapped; otherwise each is one row, to be scrolled sideways."""

    @dataclass
    class SaveRequested(Message):
        """Save the whole text."""

        pane: OutputPane

    @dataclass
    class PagerRequested(Message):
        """Show the whole text in `$PAGER`."""

        pane: OutputPane

    @dataclass
    class CopyRequested(Message):
        """Copy all that is kept."""

        pane: OutputPane

    def __init__(self, text: TerminalText, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.text = text
        self._view: TerminalView | None = None
        self._theme: RenderTheme | None = None
        self._follows = True

    # -- geometry ----------------------------------------------------------------------------------------------------

    def on_resize(self) -> None:
        self._lay_out()

    def watch_wraps(self) -> None:
        self._lay_out()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._theme = None

    def _lay_out(self) -> None:
        """A new width, or another way to treat long lines: the line at the top stays there."""
        width = self.scrollable_content_region.width
        if not width:
            return
        old, top = self._view, round(self.scroll_y)
        line = old.locate(top)[0] if old is not None and 0 <= top < old.height else None
        self._view = TerminalView(self.text, width, is_wrapped=self.wraps)
        self._follows = self._follows or line is None
        self._resize_virtually()
        self._go_to(self._view.height if self._follows else self._view.row_of(line or 0))

    def update(self) -> None:
        """Something was printed."""
        if self._view is None:
            return
        height = self._view.height
        if self._view.update() is None:
            return
        self._resize_virtually()
        if self._follows:
            self._go_to(self._view.height)
        elif self._view.height < height:
            self._go_to(min(round(self.scroll_y), self._view.height))
        self.refresh()

    def _resize_virtually(self) -> None:
        assert self._view is not None
        width = self.scrollable_content_region.width
        size = Size(width if self.wraps else max(width, self._view.widest), self._view.height)
        if size != self.virtual_size:
            self.set_reactive(Widget.virtual_size, size)
            self._scroll_update(size)

    def _go_to(self, row: int) -> None:
        self.scroll_to(y=row, animate=False, immediate=True)
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._follows = round(new_value) >= self.max_scroll_y

    # -- actions -----------------------------------------------------------------------------------------------------

    def action_wrap(self) -> None:
        self.wraps = not self.wraps

    def action_save(self) -> None:
        self.post_message(self.SaveRequested(self))

    def action_pager(self) -> None:
        self.post_message(self.PagerRequested(self))

    def action_copy(self) -> None:
        self.post_message(self.CopyRequested(self))

    # -- drawing -----------------------------------------------------------------------------------------------------

    @property
    def _render_theme(self) -> RenderTheme:
        if self._theme is None:
            self._theme = RenderTheme.from_variables(self.app.theme_variables)
        return self._theme

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        width = self.scrollable_content_region.width
        base = self.rich_style
        row = y + scroll_y
        if self._view is None or not 0 <= row < self._view.height:
            return Strip.blank(width, base)
        line = self._view.line(row, self._render_theme)
        strip = line.strip
        if (selection := self.text_selection) is not None and (span := selection.get_span(row)) is not None:
            style = self.screen.get_component_rich_style("screen--selection", partial=True)
            start, end = cut(line, span)
            strip = restyle(strip, [(line.start + start, line.start + end)], style)
        strip = strip.apply_offsets(0, row)
        return strip.crop_extend(scroll_x, scroll_x + width, base).apply_style(base)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text under the selection, wrapped lines joined."""
        if self._view is None or not self._view.height:
            return None
        first = 0 if selection.start is None else selection.start.y
        last = self._view.height - 1 if selection.end is None else min(selection.end.y, self._view.height - 1)
        lines: Sequence[RenderedLine] = [self._view.line(row, self._render_theme) for row in range(first, last + 1)]
        shift = Offset(0, first)
        start = None if selection.start is None else selection.start - shift
        end = None if selection.end is None else selection.end - shift
        return copy_text(lines, Selection(start, end)), "\n"
