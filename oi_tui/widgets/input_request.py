"""The field under a running block that answers what its code asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from oi_tui.engine.approval import InputRequest
from oi_tui.rendering.sanitise import sanitise_line

QUIET_TIME = 0.5
"""Seconds during which Enter is ignored after the field has taken the focus by itself."""


class AnswerField(Input):
    """The line being typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", tooltip="Do not answer: interrupts the code.", id="input.cancel"),
        Binding("enter", "submit", "Answer", tooltip="Send this line to the code.", id="input.submit"),
    ]

    class Cancelled(Message):
        """The user refuses to answer."""

    def on_hide(self, event: events.Hide) -> None:
        """Out of view is not gone: the focus stays."""
        event.prevent_default()

    def action_cancel(self) -> None:
        self.post_message(self.Cancelled())


class InputRequestField(Horizontal):
    """ "├ input: Overwrite report.xlsx? [y/N] ▏ ──┤": masked where the code asks for a password."""

    DEFAULT_CSS = """
    InputRequestField {
        height: 1;
        & > Static { width: auto; max-width: 60%; color: $state-waiting; }
        & > .input-request--rail { color: $rail-active; }
        & > AnswerField {
            width: 1fr;
            border: none;
            height: 1;
            padding: 0;
            background: $line-cursor;
            &:focus { border: none; background: $line-active; }
        }
    }
    """

    @dataclass
    class Closed(Message):
        """The user is done with it; the subclasses say how."""

        field: InputRequestField

        @property
        def control(self) -> InputRequestField:
            return self.field

    @dataclass
    class Answered(Closed):
        """With Enter."""

        text: str

    class Refused(Closed):
        """With Esc: there will be no answer."""

    def __init__(self, request: InputRequest, *, clock: Callable[[], float] = monotonic, id: str | None = None) -> None:
        super().__init__(id=id)
        self.request = request
        self._clock = clock
        self._armed_at = 0.0

    def compose(self) -> ComposeResult:
        kind = "password" if self.request.password else "input"
        prompt = sanitise_line(self.request.prompt.strip().rpartition("\n")[2], 200)
        yield Static(Content("├ "), classes="input-request--rail", markup=False)
        yield Static(Content(f"{kind}: {prompt} "), markup=False)
        yield AnswerField(password=self.request.password, compact=True)
        yield Static(Content(" ┤"), classes="input-request--rail", markup=False)

    @property
    def field(self) -> AnswerField:
        return self.query_one(AnswerField)

    def take_focus(self) -> None:
        """Take the focus although nobody asked for it: Enter is ignored for a moment."""
        self._armed_at = self._clock() + QUIET_TIME
        self.field.focus(scroll_visible=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._clock() >= self._armed_at:
            self.post_message(self.Answered(self, event.value))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()

    def on_answer_field_cancelled(self, event: AnswerField.Cancelled) -> None:
        event.stop()
        self.post_message(self.Refused(self))
