"""The question before quitting while something runs."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Label

from oi_tui.styles import STYLES


class QuitGuard(ModalScreen[bool]):
    """ "Python is running. Quit and end it?" True means quit."""

    CSS_PATH = STYLES / "dialogues.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,ctrl+q", "answer(True)", "quit", id="quit.yes"),
        Binding("n,escape", "answer(False)", "stay", id="quit.no"),
        Binding("left,right", "app.focus_next", show=False),
    ]
    AUTO_FOCUS = "#stay"

    def __init__(self, what_runs: str) -> None:
        super().__init__(classes="dialogue")
        self._what_runs = what_runs

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialogue-box -small"):
            yield Label(self._what_runs, classes="dialogue-text", markup=False)
            yield Label("Quitting ends it.", classes="dialogue-text", markup=False)
            with Horizontal(classes="dialogue-buttons"):
                yield Button("Stay  n", id="stay", compact=True)
                yield Button("Quit  y", id="quit", compact=True)

    def action_answer(self, quits: bool) -> None:
        self.dismiss(quits)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.dismiss(event.button.id == "quit")
