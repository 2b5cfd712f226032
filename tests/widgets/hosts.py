"""Small apps around one widget, in our colours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.widget import Widget

from oi_tui.styles import themes


class Host(App[None]):
    """Shows the widgets that `make` returns and remembers every message that reaches the app."""

    CSS = "Screen { background: $background; color: $foreground; }"

    def __init__(self, *make: Callable[[], Widget]) -> None:
        super().__init__()
        self._make = make
        self.seen: list[Message] = []
        for theme in themes.OUR_THEMES:
            self.register_theme(theme)
        self.theme = themes.DARK

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.tokens_for(self.current_theme)

    def compose(self) -> ComposeResult:
        for make in self._make:
            yield make()

    async def on_event(self, event: Any) -> None:
        await super().on_event(event)

    async def _on_message(self, message: Message) -> None:
        self.seen.append(message)
        await super()._on_message(message)

    def of(self, kind: type[Message]) -> list[Any]:
        """The messages of one kind that bubbled up to here."""
        return [message for message in self.seen if isinstance(message, kind)]


async def until(pilot: Pilot[Any], condition: Callable[[], Any], *, what: str = "") -> None:
    """Wait until something is so; fails after a time that is long even for a busy machine."""
    deadline = monotonic() + 40
    while not condition():
        if monotonic() > deadline:
            raise AssertionError(f"never came: {what or condition}")
        await pilot.pause(0.02)


def rows(app: App[Any]) -> list[str]:
    """The text on the screen, row by row."""
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]


def screen_text(app: App[Any]) -> str:
    return "\n".join(rows(app))


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += seconds


@contextmanager
def patched(owner: Any, name: str, value: Any) -> Iterator[None]:
    """An attribute with another value for a while."""
    old = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, old)
