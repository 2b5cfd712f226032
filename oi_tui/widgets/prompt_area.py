"""The text area that a prompt is typed into. What the keys mean beyond editing is for `Composer` to say."""

from __future__ import annotations

import re
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.widgets import TextArea
from textual.widgets.text_area import Location

from oi_tui.widgets.ordered_keys import run_binding

LONGEST_PASTE_SHOWN = 40
"""Lines. A longer paste is folded into a chip."""
_LONGEST_LINE_SHOWN = 4000
"""Characters of a paste shown as it is; wrapping megabytes would make every key slow."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_CHIP = re.compile(r"\[pasted [\d,]+ (?:lines|characters)(?: #\d+)?\]")

# Ours come first; what is left are the editing keys of every text area, minus those that mean something else here.
_TAKEN = frozenset(
    {"up", "down", "ctrl+c", "super+c", "ctrl+d", "ctrl+y", "pageup", "pagedown", "backspace", "f6", "f7"}
)


def _editing_keys() -> list[BindingType]:
    kept: list[BindingType] = []
    for binding in TextArea.BINDINGS:
        assert isinstance(binding, Binding)
        keys = [key for key in binding.key.split(",") if key not in _TAKEN]
        if keys:
            kept.append(binding.with_key(",".join(keys)))
    return kept


class PromptArea(TextArea, inherit_bindings=False):
    """Multi-line text with folded pastes.

    A long paste becomes a chip, `[pasted 120 lines]`, one thing to the cursor and the delete keys. Enter on it, or a
    click, unfolds it. `full_text` has every chip unfolded.
    """

    DEFAULT_CSS = """
    PromptArea {
        border: none;
        padding: 0;
        height: auto;
        min-height: 1;
        background: transparent;
        scrollbar-size-vertical: 1;
        &:focus { border: none; }
        & .text-area--placeholder { color: $text-faint; }
        & .text-area--cursor-line { background: transparent; }
        & .prompt-area--chip { color: $accent; }
        &:ansi .text-area--placeholder { text-style: dim; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"prompt-area--chip"}

    BINDINGS: ClassVar[list[BindingType]] = [
        *_editing_keys(),
        Binding(
            "ctrl+j,shift+enter,alt+enter",
            "newline",
            "",
            tooltip="Start a new line in the message.",
            id="prompt.newline",
        ),
        Binding("ctrl+c,super+c", "copy", "", tooltip="Copy what is selected.", id="prompt.copy"),
        Binding("ctrl+shift+z,alt+z", "redo", tooltip="Redo.", id="prompt.redo"),
        Binding("backspace", "delete_left", "delete", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, tab_behavior="focus", highlight_cursor_line=False)
        self.cursor_blink = False  # no timer while nothing happens
        self.match_cursor_bracket = False
        self._chips: dict[str, str] = {}

    # -- text --------------------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return not self.document.line_count > 1 and not self.document.get_line(0)

    @property
    def full_text(self) -> str:
        """The text with every chip unfolded."""
        return self._unfold(self.text)

    def fill(self, text: str) -> None:
        """Replace everything, cursor at the end. Long text is folded like a paste; undo brings the old text back."""
        self.replace(self._fold(clean(text)), (0, 0), self.document.end)
        self.move_cursor(self.document.end)

    def adopt(self, other: PromptArea) -> None:
        """Go on where another prompt stopped: text, cursor, folded pastes."""
        self._chips = dict(other._chips)
        self.load_text(other.text)
        self.selection = other.selection

    def _unfold(self, text: str) -> str:
        return _CHIP.sub(lambda found: self._chips.get(found[0], found[0]), text)

    def _fold(self, text: str) -> str:
        """The text, or a chip for it."""
        lines = text.count("\n") + 1
        if lines <= LONGEST_PASTE_SHOWN and len(text) <= _LONGEST_LINE_SHOWN * 2:
            return text
        size = f"{lines:,} lines" if lines > LONGEST_PASTE_SHOWN else f"{len(text):,} characters"
        name, number = f"[pasted {size}]", 1
        while self._chips.get(name, text) != text:
            number += 1
            name = f"[pasted {size} #{number}]"
        self._chips[name] = text
        return name

    def chip_at(self, location: Location) -> tuple[Location, Location] | None:
        """Start and end of the chip whose text lies at or right after this location."""
        row, column = location
        for found in _CHIP.finditer(self.document.get_line(row)):
            if found[0] in self._chips and found.start() <= column < found.end():
                return (row, found.start()), (row, found.end())
        return None

    def unfold_chip(self, location: Location) -> bool:
        """Unfold the chip at a location. False if there is none."""
        chip = self.chip_at(location)
        if chip is None:
            return False
        start, end = chip
        self.replace(self._chips[self.get_text_range(start, end)], start, end)
        self.move_cursor(start)
        return True

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        if "[pasted " in line.plain:
            style = self.get_component_rich_style("prompt-area--chip", partial=True)
            for found in _CHIP.finditer(line.plain):
                if found[0] in self._chips:
                    line.stylize(style, found.start(), found.end())
        return line

    # -- events ------------------------------------------------------------------------------------------------------

    def check_consume_key(self, key: str, character: str | None = None) -> bool:
        if key == "question_mark" and self.is_empty:
            return False
        return super().check_consume_key(key, character)

    async def _on_key(self, event: events.Key) -> None:
        if not await run_binding(self, event) and event.key == "enter":
            event.prevent_default()  # the base class would insert it where a keymap has moved sending elsewhere

    async def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        text = self._fold(clean(event.text))
        if result := self._replace_via_keyboard(text, *self.selection):
            self.move_cursor(result.end_location)

    async def _on_click(self, event: events.Click) -> None:
        self.unfold_chip(self.get_target_document_location(event))

    def on_focus(self) -> None:
        self.notify_style_update()  # the cached cursor line is drawn without its cursor

    def on_blur(self) -> None:
        self.notify_style_update()

    # -- actions -----------------------------------------------------------------------------------------------------

    def action_newline(self) -> None:
        self._replace_via_keyboard("\n", *self.selection)

    def action_delete_left(self) -> None:
        row, column = self.cursor_location
        if self.selection.is_empty and column and (chip := self.chip_at((row, column - 1))):
            self._delete_via_keyboard(*chip)
            return
        super().action_delete_left()

    def action_delete_right(self) -> None:
        if self.selection.is_empty and (chip := self.chip_at(self.cursor_location)):
            self._delete_via_keyboard(*chip)
            return
        super().action_delete_right()

    def get_cursor_left_location(self) -> Location:
        row, column = self.cursor_location
        if column and (chip := self.chip_at((row, column - 1))):
            return chip[0]
        return super().get_cursor_left_location()

    def get_cursor_right_location(self) -> Location:
        chip = self.chip_at(self.cursor_location)
        return chip[1] if chip else super().get_cursor_right_location()


def clean(text: str) -> str:
    """Text as it may stand in a prompt: `\\n` line ends, no control characters but tabs, no halves of characters."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
