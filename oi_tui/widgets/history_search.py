"""Search in what was typed before (^R)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Label

from oi_tui.completer import Completion
from oi_tui.prompt_history import PromptHistory
from oi_tui.widgets.completion import CompletionList


class HistorySearch(Horizontal):
    """A search line with the newest matches above it. Takes the prompt's place while it is open."""

    DEFAULT_CSS = """
    HistorySearch {
        display: none;
        height: 1;
        &.-open { display: block; }
        & Label { color: $accent; width: auto; padding-right: 1; }
        & Input {
            border: none;
            padding: 0;
            height: 1;
            background: transparent;
            &:focus { border: none; }
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "accept", "take", tooltip="Put it into the prompt.", id="search.take", priority=True),
        Binding("escape,ctrl+c,ctrl+g", "cancel", "back", tooltip="Back to the prompt.", id="search.back"),
        Binding("up,ctrl+r", "move(-1)", "older", tooltip="The match before.", id="search.older"),
        Binding("down,ctrl+s", "move(1)", "newer", show=False, tooltip="The match after.", id="search.newer"),
    ]

    @dataclass
    class Closed(Message):
        """The search is over. `text` is what was chosen, None when it was cancelled."""

        history_search: HistorySearch
        text: str | None

        @property
        def control(self) -> HistorySearch:
            return self.history_search

    def __init__(self) -> None:
        super().__init__()
        self._history = PromptHistory(None)
        self._matches: list[str] = []

    def compose(self) -> ComposeResult:
        yield CompletionList()
        yield Label("search")
        yield Input(compact=True, select_on_focus=False)

    def on_mount(self) -> None:
        self.query_one(Input).cursor_blink = False

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def open(self, history: PromptHistory, words: str) -> None:
        """Search this history, beginning with these words."""
        self._history = history
        self.add_class("-open")
        line = self.query_one(Input)
        with line.prevent(Input.Changed):
            line.value = " ".join(words.split())
            line.cursor_position = len(line.value)
        line.focus()
        self._update()

    @on(Input.Changed)
    def _words_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._update()

    def _update(self) -> None:
        matches = self.query_one(CompletionList)
        found = self._history.search(self.query_one(Input).value, limit=CompletionList.MOST)
        self._matches = found[::-1]  # the newest stands next to the search line
        matches.offer([Completion(text, text) for text in self._matches])
        matches.highlighted = max(0, len(self._matches) - 1)

    @on(CompletionList.Chosen)
    def _clicked(self, event: CompletionList.Chosen) -> None:
        event.stop()
        self._close(event.completion.text)

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        # A click elsewhere ends the search; the terminal losing its focus does not.
        if self.app.app_focus and self.is_open:
            self._close(None)

    def action_accept(self) -> None:
        choice = self.query_one(CompletionList).choice
        self._close(choice.text if choice else None)

    def action_cancel(self) -> None:
        self._close(None)

    def action_move(self, step: int) -> None:
        self.query_one(CompletionList).move(step)

    def _close(self, text: str | None) -> None:
        if self.is_open:
            self.remove_class("-open")
            self.query_one(CompletionList).close()
            self.post_message(self.Closed(self, text))
