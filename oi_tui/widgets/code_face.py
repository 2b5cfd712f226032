"""How a code block is drawn: title, warning, code, output, closing edge, and the lines its widgets cover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oi_tui.engine.hidden_text import summary
from oi_tui.rendering.lines import wrap
from oi_tui.rendering.sanitise import sanitise_line
from oi_tui.widgets.block import Line, Slot, Stack
from oi_tui.widgets.block_theme import BlockTheme
from oi_tui.widgets.code_lines import CodeLines, Marks
from oi_tui.widgets.code_state import CodeState
from oi_tui.widgets.diff_lines import added_lines, diff_lines
from oi_tui.widgets.frame import Part, blank_framed, edge, framed_words, grouped, inner_width

if TYPE_CHECKING:
    from oi_tui.widgets.code_block import CodeBlock

SLOW_RUN = 2.0
"""Seconds after which the time of each line is shown without being asked for."""
LONGEST_WHOLE = 20
"""Lines of code, and of output, that are shown whole when the run is over."""
_WINDOW = 16
"""Lines of long code shown around the line that runs or failed."""
_WIDE_TITLE = 64
"""Cells from which on the title has room for whole sentences."""
_HANGING = 2
"""Cells by which the second line of a warning is indented."""
_HEAD, _TAIL = 12, 4
"""Lines of long code shown otherwise."""


class CodeFace:
    """One drawing of a code block, at one width. `slots`, `code_top` and `code_rows` are known after `lay_out`."""

    def __init__(self, block: CodeBlock, code: CodeLines, width: int, theme: BlockTheme) -> None:
        self.width = width
        self.slots: dict[str, Slot] = {}
        self.code_top = 0
        self.code_rows = 0
        self.shows_code = False
        """The whole code is drawn, as code."""
        self.leaves_out = False
        """Something is not shown."""
        self.fold_lines: set[int] = set()
        """Lines that stand for what is not shown."""
        self._block = block
        self._code = code
        self._theme = theme
        is_active = block.state.is_pending or block.state is CodeState.RUNNING
        self._rail = theme.rail_active if is_active else theme.rail
        self._parts: list[Sequence[Line]] = []

    @property
    def code_bottom(self) -> int:
        """The first line after the code; `code_top` where the code is not drawn whole."""
        return self.code_top + (self.code_rows if self.shows_code else 0)

    def lay_out(self) -> Sequence[Line]:
        """The lines of the block."""
        self._parts = [[self._title()]]
        if not self._block.is_folded:
            self._warn()
            self.code_top = self._line
            self._draw_code()
            self._draw_output()
        self.slots["bar"] = Slot(self._line, 1)
        self._parts.append([edge(self.width, "╰╯", self._closing(), (), self._rail)])
        return Stack(self._parts)

    @property
    def _line(self) -> int:
        return sum(len(part) for part in self._parts)

    # -- frame -------------------------------------------------------------------------------------------------------

    def _title(self) -> Line:
        block, theme = self._block, self._theme
        state = block.state.value
        if block.state is CodeState.RUNNING or (block.state.is_over and block.elapsed >= SLOW_RUN):
            state += f" {_clock(block.elapsed)}"
        left: list[Part] = [
            (sanitise_line(block.language, 20) or "output", theme.text),
            (state, theme.of_state(block.state)),
            (_lines(block.line_count), theme.quiet),
        ]
        if block.state is not CodeState.WRITING:
            left.append((block.short_digest, theme.quiet))
        right: list[Part] = []
        if block.is_own:
            right.append(("yours", theme.quiet))
        elif block.is_edited:
            added, removed = block.edit_counts
            words = "edited by you" if self.width >= _WIDE_TITLE else "edited"
            right.append((f"{words} +{added} −{removed}", theme.accent))
        return edge(self.width, "╭╮", left, right, self._rail)

    def _closing(self) -> Sequence[Part]:
        remark = self._block.remark
        return [(sanitise_line(remark, 200), self._theme.quiet)] if remark else ()

    def _warn(self) -> None:
        if self._block.findings:
            words = f"! {summary(self._block.findings)}"
            cuts = wrap(words, inner_width(self.width) - _HANGING)
            rows = [("  " if index else "") + words[start:end] for index, (start, end) in enumerate(cuts)]
            style, rail = self._theme.caution, self._rail
            self._parts.append([framed_words([(row, style)], self.width, rail) for row in rows])

    def _left_out(self, count: int) -> Line:
        self.leaves_out = True
        self.fold_lines.add(self._line)
        words = [(f"⋯ {_lines(count)} more", self._theme.quiet), ("   space shows them", self._theme.faint)]
        return framed_words(words, self.width, self._rail)

    # -- code --------------------------------------------------------------------------------------------------------

    def _draw_code(self) -> None:
        block = self._block
        if block.editor_rows:
            self.slots["editor"] = Slot(self.code_top, block.editor_rows, indent=1)
            self._parts.append([blank_framed(self.width, self._rail)] * block.editor_rows)
            return
        if block.shows_diff:
            self._parts.append(diff_lines(block.original, block.code, self.width, self._theme, self._rail))
            return
        marks = self._marks()
        done = 0
        for first, last in self._ranges():
            if first > done:
                self._parts.append([self._left_out(first - done)])
            self._parts.append(self._code.draw(self.width, self._theme, self._rail, marks, first, last))
            done = last
        if (rest := block.line_count - done) > 0:
            self._parts.append([self._left_out(rest)])
        self.code_rows = self._code.row_count(self.width)
        self.shows_code = self._line - self.code_top == self.code_rows

    def _marks(self) -> Marks:
        block = self._block
        times = block.line_times if block.shows_times or block.elapsed >= SLOW_RUN else {}
        added = added_lines(block.original, block.code) if block.is_edited else frozenset()
        return Marks(block.active_line, block.active_statement, block.error_line, added, times)

    def _ranges(self) -> list[tuple[int, int]]:
        """The lines of code that are drawn, as ranges. Code that waits is always whole."""
        block, count = self._block, self._block.line_count
        may_shorten = block.state.is_over or block.state is CodeState.RUNNING
        if block.is_expanded or count <= LONGEST_WHOLE or not may_shorten:
            return [(0, count)]
        around = block.active_line if block.state is CodeState.RUNNING else block.error_line
        if around is None:
            return [(0, _HEAD), (count - _TAIL, count)]
        first = max(0, min(around - 1 - _WINDOW // 2, count - _WINDOW))
        return [(first, min(count, first + _WINDOW))]

    # -- output ------------------------------------------------------------------------------------------------------

    def _draw_output(self) -> None:
        block, theme = self._block, self._theme
        if block.output:
            count = block.output.line_count
            right = [(_lines(count), theme.quiet)] if count > LONGEST_WHOLE else []
            self._parts.append([edge(self.width, "├┤", [("output", theme.quiet)], right, self._rail)])
            shown = block.output.draw(
                self.width,
                theme,
                self._rail,
                whole=block.is_expanded,
                tail_only=block.state is CodeState.RUNNING,
            )
            self.leaves_out = self.leaves_out or block.output.leaves_out
            self._parts += shown
        if block.has_input:
            self.slots["input"] = Slot(self._line, 1)
            self._parts.append([edge(self.width, "├┤", [("input", theme.waiting)], (), self._rail)])


def _lines(count: int) -> str:
    return f"{grouped(count)} line{'s' if count != 1 else ''}"


def _clock(seconds: float) -> str:
    """ "00:12", or "1:02:03"."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
