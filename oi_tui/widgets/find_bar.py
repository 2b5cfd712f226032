"""The line in which words of the conversation are looked for."""

from __future__ import annotations

from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from oi_tui.widgets.finder import Finder


class FindBar(Horizontal):
    """ "find: sales▏      3/12   enter next   esc close". Hidden until `open`."""

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

    class Closed(Message):
        """The search is over."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.finder: Finder | None = None

    def compose(self) -> ComposeResult:
        yield Static("find: ", id="find-label", markup=False)
        yield Input(compact=True, select_on_focus=True)
        yield Static("", id="find-count", markup=False)

    def open(self, finder: Finder) -> None:
        """Show the line and go there."""
        self.finder = finder
        self.add_class("-open")
        self.query_one(Input).focus()
        self._search(self.query_one(Input).value)

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    @work(exclusive=True, exit_on_error=False)
    async def _search(self, query: str) -> None:
        if self.finder is not None:
            await self.finder.search(query)
            self._show_count()

    def _show_count(self) -> None:
        finder = self.finder
        if finder is None or not self.query_one(Input).value:
            count = ""
        else:
            count = f"{finder.position}/{finder.total}" if finder.total else "nothing found"
        self.query_one("#find-count", Static).update(f"  {count}")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._search(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_move(1)

    def action_move(self, step: int) -> None:
        if self.finder is not None:
            self.finder.move(step)
            self._show_count()

    def action_close(self) -> None:
        self.workers.cancel_node(self)
        self.remove_class("-open")
        if self.finder is not None:
            self.finder.clear()
        self.post_message(self.Closed())
