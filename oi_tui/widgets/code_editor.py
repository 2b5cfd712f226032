"""The editor that opens in place of code that waits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widgets import TextArea

from oi_tui.engine.hidden_text import find_hidden
from oi_tui.rendering.highlight import Highlighter
from oi_tui.rendering.theme import RenderTheme
from oi_tui.widgets.diff_lines import added_lines
from oi_tui.widgets.ordered_keys import run_binding

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_LINE_BREAKS = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""What `str.splitlines`, and so the text area, takes for the end of a line beside \\n."""
_FIRST_STAND_IN = 0xF0000
"""Of the private use plane: one cell wide, and itself a finding wherever it is met."""
_OPENERS = (":", "(", "[", "{", "then", "do", "else")


class CodeEditor(TextArea):
    """Undo, selection, indentation, bracket match and line numbers in the colours of the language.

    Read `code`, not `text`: characters that hide, and line ends that are none for the language, are one private
    character each while they are edited, so that nothing is lost and the cursor stands where it seems to stand.
    """

    DEFAULT_CSS = """
    CodeEditor {
        border: none;
        padding: 0 1 0 1;
        background: $background;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        &:focus { border: none; background: $background; }
        & .text-area--cursor-line { background: $line-cursor; }
        & .text-area--gutter { color: $text-faint; background: $background; }
        & .text-area--cursor-gutter { color: $foreground; background: $line-cursor; text-style: none; }
        & .code-editor--added { color: $diff-added; }
        & .code-editor--hidden { color: $caution; text-style: reverse; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"code-editor--added", "code-editor--hidden"}

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "end", "Done", tooltip="Keep the changes and decide.", id="editor.done"),
        Binding("f5,ctrl+enter", "run", "Run", tooltip="Run exactly this code.", id="editor.run"),
        Binding("ctrl+g", "external_editor", "$EDITOR", tooltip="Go on in $EDITOR.", id="editor.external"),
        Binding("ctrl+r", "revert", "Original", show=False, tooltip="The model's version.", id="editor.revert"),
        Binding("shift+tab", "unindent", "Unindent", show=False, id="editor.unindent"),
    ]

    class Asked(Message):
        """The editor wants something of the block; the subclasses say what."""

    @dataclass
    class Edited(Asked):
        """The text has changed. `rows` is what it needs to be shown whole."""

        editor: CodeEditor
        code: str
        rows: int

    class Ended(Asked):
        """The user is done."""

    class RunRequested(Asked):
        """Run exactly this code."""

    class ExternalEditRequested(Asked):
        """Go on in `$EDITOR`."""

    def __init__(self, code: str, language: str, *, original: str, id: str | None = None) -> None:
        hidden = {finding.char for finding in find_hidden(code, language=language) if finding.kind != "gap"}
        hidden.update(character for character in _LINE_BREAKS if character in code)
        self._to_stand_in = {ord(character): _FIRST_STAND_IN + n for n, character in enumerate(sorted(hidden))}
        self._from_stand_in = {stand_in: character for character, stand_in in self._to_stand_in.items()}
        super().__init__(
            code.translate(self._to_stand_in),
            soft_wrap=True,
            tab_behavior="indent",
            show_line_numbers=True,
            compact=True,
            id=id,
        )
        self.code_language = language
        self._original = original
        self._highlighter = Highlighter(language, code)
        self._added: frozenset[int] = frozenset()
        self._hidden: dict[int, set[int]] = {}
        self._read()

    @property
    def code(self) -> str:
        """The text as it will run."""
        return self.text.translate(self._from_stand_in) if self._from_stand_in else self.text

    def on_hide(self, event: events.Hide) -> None:
        """Out of view is not gone: the focus stays."""
        event.prevent_default()

    # -- actions -----------------------------------------------------------------------------------------------------

    def action_end(self) -> None:
        self.read_only = True
        self.post_message(self.Ended())

    def action_run(self) -> None:
        self.read_only = True
        self.post_message(self.RunRequested())

    def action_external_editor(self) -> None:
        self.read_only = True
        self.post_message(self.ExternalEditRequested())

    def action_revert(self) -> None:
        """Put the model's version back; undo brings the user's again."""
        self.replace(self._original.translate(self._to_stand_in), (0, 0), self.document.end)

    def action_unindent(self) -> None:
        """Take one step of indentation off the selected lines."""
        first, last = sorted((self.selection.start[0], self.selection.end[0]))
        for row in range(first, last + 1):
            line = self.document.get_line(row)
            blanks = len(line) - len(line.lstrip(" "))
            step = blanks % self.indent_width or min(blanks, self.indent_width)
            if step:
                self.delete((row, 0), (row, step))

    async def _on_key(self, event: events.Key) -> None:
        if self.read_only or await run_binding(self, event):
            # After the key that ended editing, what was typed ahead must not become code.
            event.stop()
            event.prevent_default()
            return
        if event.key == "enter" and self.selection.is_empty:
            event.stop()
            event.prevent_default()
            self._break_line()
            return
        if event.key == "tab" and self.selection.start[0] != self.selection.end[0]:
            event.stop()
            event.prevent_default()
            self._indent_selected()
            return
        await super()._on_key(event)

    def _break_line(self) -> None:
        """A new line, indented like this one, one step deeper after an opener."""
        row, column = self.cursor_location
        before = self.document.get_line(row)[:column]
        indent = before[: len(before) - len(before.lstrip())]
        if before.rstrip().endswith(_OPENERS):
            indent += "\t" if indent.startswith("\t") else " " * self.indent_width
        self._replace_via_keyboard("\n" + indent, *self.selection)

    def _indent_selected(self) -> None:
        first, last = sorted((self.selection.start[0], self.selection.end[0]))
        for row in range(first, last + 1):
            if self.document.get_line(row):
                self.insert(" " * self.indent_width, (row, 0), maintain_selection_offset=True)

    def _build_highlight_map(self) -> None:
        # The base class calls this after every change of the text, before anything is drawn.
        super()._build_highlight_map()
        if hasattr(self, "_highlighter"):
            self._highlighter.replace(self.code)
            self._read()

    def _read(self) -> None:
        """Find what the user wrote, and what hides from the eye."""
        code = self.code
        self._added = added_lines(self._original, code)
        self._hidden = {}
        for finding in find_hidden(code, language=self.code_language):
            if finding.kind != "gap":
                self._hidden.setdefault(finding.line - 1, set()).add(finding.column - 1)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self.post_message(self.Edited(self, self.code, self.wrapped_document.height))

    def on_text_area_selection_changed(self, event: TextArea.SelectionChanged) -> None:
        event.stop()

    # -- drawing -----------------------------------------------------------------------------------------------------

    @property
    def gutter_width(self) -> int:
        """Number, blank, sign, blank: as in the code that only is looked at."""
        return len(str(self.document.line_count)) + 3

    def get_line(self, line_index: int) -> Text:
        """The line in its colours. What hides is drawn as a visible cell; the text itself stays as it is."""
        source = self.document.get_line(line_index)
        hidden = self._hidden.get(line_index, set())
        if self._from_stand_in:
            source = source.translate(dict.fromkeys(self._from_stand_in, "�"))
        shown = "".join("�" if i in hidden else character for i, character in enumerate(source)) if hidden else source
        line = Text(_CONTROL.sub("�", shown), end="", no_wrap=True)
        theme = RenderTheme.from_variables(self.app.theme_variables)
        for start, end, token in self._highlighter.spans(line_index):
            line.stylize(theme.style(token), start, end)
        if hidden:
            style = self.get_component_rich_style("code-editor--hidden", partial=True)
            for column in hidden:
                line.stylize(style, column, column + 1)
        return line

    def _render_line(self, y: int) -> Strip:
        strip = super()._render_line(y)
        place = y + self.scroll_offset.y
        lines = self.wrapped_document._offset_to_line_info
        if not self.show_line_numbers or place >= len(lines):
            return strip
        line, section = lines[place]
        gutter, body = strip.divide([self.gutter_width, strip.cell_length])
        style = next(iter(gutter)).style
        number = str(line + 1) if section == 0 else ""
        is_added = section == 0 and line + 1 in self._added
        sign_style = self.get_component_rich_style("code-editor--added", partial=True) if is_added else None
        segments = [
            Segment(f"{number:>{self.gutter_width - 3}} ", style),
            Segment("+ " if is_added else "  ", style + sign_style if style and sign_style else style),
        ]
        return Strip([*segments, *body], strip.cell_length)
