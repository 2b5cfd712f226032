"""The command palette: everything the app can do here and now, by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial

from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.dom import DOMNode

from oi_tui.keymap import display


@dataclass(frozen=True, slots=True)
class Command:
    """One entry. `action` is run in the namespace of `node`; `key` is how its key is written, if it has one."""

    title: str
    action: str
    node: DOMNode
    key: str = ""
    words: str = ""
    """More words to find it by."""


# Actions of the app that have no key of their own, or deserve a better name than fits into the key bar.
_APP_COMMANDS = (
    ("Choose model", "choose_model", "provider key endpoint ollama test"),
    ("Change theme", "change_theme", "colours dark light"),
    ("Settings", "settings", "options profile configure"),
    ("Save a picture of the screen", "save_screen", "screenshot svg"),
    ("Suspend: back to the shell until fg", "suspend_process", "stop background"),
)
_WIDTH = 64
"""Cells of a row: the key stands at its right end."""


class AppCommands(Provider):
    """Commands of the app and of every active binding that has an id."""

    async def discover(self) -> Hits:
        for command in self._commands():
            yield DiscoveryHit(_row(command, Content(command.title)), self._runner(command), text=command.title)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in self._commands():
            score = max(matcher.match(command.title), matcher.match(f"{command.title} {command.words}") * 0.5)
            if score > 0:
                row = _row(command, matcher.highlight(command.title))
                yield Hit(score, row, self._runner(command), text=command.title)

    def _runner(self, command: Command) -> Callable[[], Awaitable[None]]:
        async def run() -> None:
            await self.app.run_action(command.action, command.node)

        return run

    def _commands(self) -> list[Command]:
        found: dict[str, Command] = {}
        for title, action, words in _APP_COMMANDS:
            if self.app.check_action(action, ()):
                found[title] = Command(title, action, self.app, words=words)
        for node, binding in self._bindings():
            title = (binding.tooltip or binding.description).rstrip(".")
            found.setdefault(title, Command(title, binding.action, node, display(binding.key), binding.description))
        return sorted(found.values(), key=lambda command: command.title)

    def _bindings(self) -> Iterator[tuple[DOMNode, Binding]]:
        """What keys do here and now. Those without a description only move or type."""
        for node, binding, enabled, _tooltip in self.screen.active_bindings.values():
            if binding.id and binding.description and enabled and binding.action != "command_palette":
                yield node, binding


class ThemeNames(Provider):
    """Every theme, ours first."""

    async def discover(self) -> Hits:
        for name, row in self._themes():
            yield DiscoveryHit(row, partial(self._use, name), text=name)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, row in self._themes():
            if (score := matcher.match(name)) > 0:
                yield Hit(score, row, partial(self._use, name), text=name)

    def _use(self, name: str) -> None:
        self.app.theme = name

    def _themes(self) -> list[tuple[str, Content]]:
        available = self.app.available_themes
        names = sorted(available, key=lambda name: (not name.startswith("oi-"), name))
        return [(name, _two_columns(Content(name), "" if name != self.app.theme else "in use")) for name in names]


def _row(command: Command, title: Content) -> Content:
    return _two_columns(title, command.key)


def _two_columns(left: Content, right: str) -> Content:
    gap = max(2, _WIDTH - left.cell_length - Content(right).cell_length)
    return Content.assemble(left, " " * gap, (right, "not bold $text-quiet"))
