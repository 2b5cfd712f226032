"""The first frame: what stands around every conversation, and a prompt that takes text.

The conversation's own screen needs Markdown, highlighting and a dozen widgets. It is loaded while this one can already
be typed into, and then takes its place, with what was typed.
"""

from __future__ import annotations

from textual.app import ComposeResult
from textual.screen import Screen

from oi_tui.widgets.composer import Composer
from oi_tui.widgets.key_bar import KeyBar
from oi_tui.widgets.top_bar import TopBar


class OpeningScreen(Screen[None]):
    """Looks like an empty conversation. Messages wait in the prompt's queue."""

    AUTO_FOCUS = "PromptArea"

    def __init__(self) -> None:
        super().__init__()
        self.composer = Composer()

    def compose(self) -> ComposeResult:
        yield TopBar()
        yield self.composer
        yield KeyBar()

    def on_mount(self) -> None:
        self.composer.wait()
