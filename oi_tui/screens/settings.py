"""Settings: what is set, where it came from, and changing it in place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Label, OptionList
from textual.widgets.option_list import Option

from oi_tui.engine.errors import SettingsError
from oi_tui.engine.profile_saving import save_default
from oi_tui.engine.settings import Settings
from oi_tui.engine.settings_sources import checked, explain, schema, value_of, with_values
from oi_tui.rendering.sanitise import sanitise_line
from oi_tui.styles import STYLES

_ELSEWHERE = {
    "llm.api_key": "A key is typed in Choose model, so that it is kept safely.",
    "auto_run": "Shift+Tab changes when code asks before it runs.",
}
"""Settings that are changed in a better place."""

Apply = Callable[[Settings], Awaitable[None]]


class SettingsScreen(ModalScreen[None]):
    """Enter edits a setting; Enter again uses it from now on and saves it in the default profile."""

    CSS_PATH = STYLES / "dialogues.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", tooltip="Back.", id="settings.back"),
    ]
    AUTO_FOCUS = "#rows"

    def __init__(self, settings: Settings, apply: Apply) -> None:
        super().__init__(classes="dialogue")
        self._settings = settings
        self._apply = apply
        self._names: list[str] = []
        self._editing = ""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialogue-box -tall") as box:
            box.border_title = "Settings"
            box.border_subtitle = "enter changes · esc closes"
            yield OptionList(id="rows", markup=False, compact=True)
            with Horizontal(id="edit-row", classes="form-row"):
                yield Label("", id="edit-name", classes="form-name", markup=False)
                yield Input(id="edit-value", compact=True)
            yield Label("", id="outcome", markup=False)

    def on_mount(self) -> None:
        self.query_one("#edit-value", Input).cursor_blink = False
        self.query_one("#edit-row").display = False

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._show)

    def _show(self) -> None:
        rows = self.query_one("#rows", OptionList)
        highlighted = rows.highlighted
        explained = explain(self._settings)
        self._names = [name for name, _, _ in explained]
        width = max(30, rows.content_size.width - 2)
        rows.set_options([Option(_row(row, width)) for row in explained])
        rows.highlighted = highlighted if highlighted is not None else 0

    @on(OptionList.OptionSelected)
    def _edit(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        name = self._names[event.option_index]
        if name in _ELSEWHERE:
            self._say(_ELSEWHERE[name])
            return
        self._editing = name
        spec = schema()[name]
        self._say(" · ".join(spec.choices) if spec.choices else "")
        self.query_one("#edit-name", Label).update(name.removeprefix("llm."))
        line = self.query_one("#edit-value", Input)
        line.value = _written(value_of(self._settings, name))
        self.query_one("#edit-row").display = True
        line.focus()

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        try:
            value = checked(self._editing, event.value)
        except SettingsError as error:
            self._say(str(error), "problem")
            return
        self._change(self._editing, value)

    @work(exclusive=True, group="change", exit_on_error=False)
    async def _change(self, name: str, value: Any) -> None:
        self._settings = with_values(self._settings, {name: value}, "changed here")
        await self._apply(self._settings)
        try:
            path = await asyncio.to_thread(save_default, {name: value})
            self._say(f"Saved in {path}.", "good")
        except SettingsError as error:
            self._say(f"Used for this session only: {error}", "problem")
        self._show()
        self._stop_editing()

    def action_back(self) -> None:
        if self._editing:
            self._say("")
            self._stop_editing()
        else:
            self.dismiss()

    def _stop_editing(self) -> None:
        self._editing = ""
        self.query_one("#edit-row").display = False
        self.query_one("#rows").focus()

    def _say(self, text: str, kind: str = "") -> None:
        outcome = self.query_one("#outcome", Label)
        outcome.update(sanitise_line(text, 300))
        outcome.set_classes(f"-{kind}" if kind else "")


def _row(row: tuple[str, str, str], width: int) -> Content:
    name, value, origin = row
    first = min(36, width // 3)
    room = max(8, width - first - 20)
    label = Content(sanitise_line(name, first - 2))
    shown = Content(sanitise_line(value, room))
    return Content.assemble(
        label,
        " " * max(1, first - label.cell_length),
        shown,
        " " * max(2, room + 2 - shown.cell_length),
        (sanitise_line(origin, 18), "$text-quiet"),
    )


def _written(value: Any) -> str:
    """A value as one types it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return str(value)
