"""The blocks that built the state a new kernel does not have: seen as a list, approved as a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Label, Static

from oi_tui.engine.rebuild import PastRun
from oi_tui.rendering.sanitise import sanitise_line
from oi_tui.styles import STYLES

_SIGNS = {"ok": "✓ worked", "failed": "✗ failed", "stopped": "■ stopped"}


class RebuildScreen(ModalScreen[bool]):
    """True: run exactly these blocks, in this order."""

    CSS_PATH = STYLES / "dialogues.tcss"
    DEFAULT_CSS = """
    RebuildScreen #past-runs { height: auto; max-height: 24; margin-bottom: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "run them", id="rebuild.yes"),
        Binding("n,escape", "answer(False)", "not now", id="rebuild.no"),
        Binding("left,right", "app.focus_next", show=False),
    ]
    AUTO_FOCUS = "#not-now"

    def __init__(self, runs: Sequence[PastRun]) -> None:
        super().__init__(classes="dialogue")
        self._runs = runs

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialogue-box") as box:
            box.border_title = "Run again, in order"
            with VerticalScroll(id="past-runs"):
                for number, run in enumerate(self._runs, 1):
                    yield Static(_row(number, run), markup=False)
            yield Label("Exactly this code runs, with today's files.", classes="dialogue-text", markup=False)
            with Horizontal(classes="dialogue-buttons"):
                yield Button("Not now  n", id="not-now", compact=True)
                yield Button("Run them  y", id="run-them", compact=True)

    def action_answer(self, runs: bool) -> None:
        self.dismiss(runs)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.dismiss(event.button.id == "run-them")


def _row(number: int, run: PastRun) -> Content:
    lines = run.code.count("\n") + 1
    return Content.assemble(
        f"{number:>3}  ",
        (f"{sanitise_line(run.language, 12):<10} {_SIGNS.get(run.ended, ''):<10}", "$text-quiet"),
        f" {sanitise_line(run.first_line, 60)}",
        (f"  +{lines - 1} lines" if lines > 1 else "", "$text-quiet"),
    )
