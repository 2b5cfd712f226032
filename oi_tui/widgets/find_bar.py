"""The line in which words of the conversation are looked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Input, Static


class FindBar(Horizontal):
    """ "find: sales▏      3/12   enter next   esc close". Hidden until `open`; set `position` and `total`."""

    DEFAULT_CSS = """
    FindBar {
        display: none;
        height: 1;
        padding: 0 1;
        & > #find-label { width: auto; color: $accent; }
        & > #find-count { width: auto; color: $text-quiet; }
        & > Input {
            width: 1fr;
            height: 1;
            border: none;
            padding: 0;
            background: $background;
            &:focus { border: none; background: $line-cursor; }
        }
        &.-open { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,down,f3", "move(1)", "Next", tooltip="The next hit, downwards.", id="find.next"),
        Binding("shift+enter,up,shift+f3", "move(-1)", "Previous", tooltip="The hit above.", id="find.previous"),
        Binding("escape", "close", "Close", tooltip="Back to where you were.", id="find.close"),
    ]

    position: reactive[int] = reactive(0)
    """Which hit is shown, from 1; 0 if none."""
    total: reactive[int] = reactive(0)
    """How many hits there are."""

    @dataclass
    class Searched(Message):
        """The words have changed."""

        find_bar: FindBar
        query: str

        @property
        def control(self) -> FindBar:
            return self.find_bar

    @dataclass
    class Moved(Message):
        """Show the next hit (1) or the one before (-1)."""

        find_bar: FindBar
        step: int

        @property
        def control(self) -> FindBar:
            return self.find_bar

    class Closed(Message):
        """The search is over."""

    def compose(self) -> ComposeResult:
        yield Static("find: ", id="find-label", markup=False)
        yield Input(compact=True, select_on_focus=True)
        yield Static("", id="find-count", markup=False)

    def open(self) -> None:
        """Show the line and go there."""
        self.add_class("-open")
        self.query_one(Input).focus()
        self._post_query()

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def watch_position(self) -> None:
        self._show_count()

    def watch_total(self) -> None:
        self._show_count()

    def _show_count(self) -> None:
        if not self.is_mounted:
            return
        has_query = bool(self.query_one(Input).value)
        count = f"{self.position}/{self.total}" if self.total else "nothing found" if has_query else ""
        self.query_one("#find-count", Static).update(f"  {count}")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._post_query()
        self._show_count()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_move(1)

    def _post_query(self) -> None:
        self.post_message(self.Searched(self, self.query_one(Input).value))

    def action_move(self, step: int) -> None:
        self.post_message(self.Moved(self, step))

    def action_close(self) -> None:
        self.remove_class("-open")
        self.post_message(self.Closed())
