"""The last row: the keys that act here and now, and what the conversation has cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from oi_tui.widgets.component_style import component_style
from oi_tui.widgets.status_bar import Status

if TYPE_CHECKING:
    from textual.binding import Binding
    from textual.screen import Screen


_SHOWN_ELSEWHERE = ("code.", "input.")
"""Keys that stand on the block they act on."""


class KeyBar(Widget):
    """ "^P commands  ^T panel  ? keys              ctx 12% · $0.03".

    Shows every active binding that has `show=True`, those of the focused widget first, as many as fit. A click on one
    presses its key. Set `status`.
    """

    DEFAULT_CSS = """
    KeyBar {
        dock: bottom;
        height: 1;
        padding: 0 1;
        color: $text-quiet;
        & .key-bar--key { color: $foreground; }
        & .key-bar--quiet { color: $text-quiet; }
        &:ansi .key-bar--quiet { text-style: dim; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"key-bar--key", "key-bar--quiet"}
    ALLOW_SELECT = False

    status: reactive[Status] = reactive(Status())
    _entries: reactive[tuple[tuple[str, str, str], ...]] = reactive(())
    """(key to press, how the key is written, what it does), in order of importance."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._targets: list[tuple[int, int, str]] = []

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)
        self._bindings_changed(self.screen)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        # While the terminal has no focus, nothing has; showing other keys then would only flicker.
        if not screen.app.app_focus or not self.is_attached or screen is not self.screen:
            return
        self._entries = tuple(
            (binding.key, self.app.get_key_display(binding), _lower(binding.description))
            for binding in self._one_per_action(screen)
        )

    @staticmethod
    def _one_per_action(screen: Screen[object]) -> list[Binding]:
        seen: dict[tuple[int, str], Binding] = {}
        for node, binding, enabled, _tooltip in screen.active_bindings.values():
            if binding.show and enabled and not binding.system and not (binding.id or "").startswith(_SHOWN_ELSEWHERE):
                seen.setdefault((id(node), binding.action), binding)
        return list(seen.values())

    def render(self) -> Content:
        quiet, strong = component_style(self, "key-bar--quiet"), component_style(self, "key-bar--key")
        usage = Content.assemble((self.status.usage, quiet))
        room = self.content_size.width - usage.cell_length - 2
        shown: list[Content] = []
        used = 0
        self._targets = []
        for key, display, description in self._entries:
            entry = Content.assemble((display, strong), (f" {description}", quiet))
            if used + entry.cell_length > room:
                break
            self._targets.append((used, used + entry.cell_length, key))
            shown.append(entry)
            used += entry.cell_length + 2
        left = Content("  ").join(shown)
        gap = max(1, self.content_size.width - left.cell_length - usage.cell_length)
        return Content.assemble(left, " " * gap, usage)

    def on_click(self, event: events.Click) -> None:
        event.stop()
        column = event.x - self.styles.padding.left
        for start, end, key in self._targets:
            if start <= column < end:
                self.app.simulate_key(key)
                return


def _lower(description: str) -> str:
    """Without a capital at the start, unless the word is all capitals."""
    return description if description[1:2].isupper() else description[:1].lower() + description[1:]
