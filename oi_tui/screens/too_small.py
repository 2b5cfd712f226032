"""What is shown in a terminal that is too small to show anything."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widget import Widget

LEAST = Size(40, 10)


def is_too_small(size: Size) -> bool:
    return size.width < LEAST.width or size.height < LEAST.height


class TooSmall(ModalScreen[None]):
    """Covers the app until the terminal has grown. Everything goes on behind it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "app.quit", show=False)]
    AUTO_FOCUS = None

    def compose(self) -> ComposeResult:
        yield _Message()

    def on_screen_resume(self) -> None:
        if not is_too_small(self.app.size):  # it has grown while something lay above
            self.dismiss()


class _Message(Widget):
    DEFAULT_CSS = "_Message { width: 1fr; height: 1fr; content-align: center middle; text-align: center; }"

    def render(self) -> Content:
        size = self.app.size
        return Content(f"Too small: {size.width}×{size.height}.\n{LEAST.width}×{LEAST.height} is enough.")
