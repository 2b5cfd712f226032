"""The command palette: everything the app can do here and now, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.dom import DOMNode

from oi_tui.keymap import display


@dataclass(frozen=True, slots=True)
class Command:
    """One entry. `action` is run in the namespace of `node`."""

    title: str
    help: str
    action: str
    node: DOMNode


# Actions of the app that have no key of their own, or deserve a better name than fits into the key bar.
_APP_COMMANDS = (
    ("Choose model", "Find, type and test a model; use it from now on", "choose_model"),
    ("Theme", "Choose the colours", "change_theme"),
    ("Settings", "What is set, where it came from, and how to change it", "settings"),
    ("Save screen as SVG", "A picture of the screen in the current folder", "save_screen"),
    ("Suspend", "Back to the shell; fg comes back here", "suspend_process"),
)


class AppCommands(Provider):
    """Commands of the app and of every active binding that has an id."""

    async def discover(self) -> Hits:
        for command in self._commands():
            yield DiscoveryHit(command.title, self._runner(command), help=command.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in self._commands():
            score = max(matcher.match(command.title), matcher.match(command.help) * 0.5)
            if score > 0:
                yield Hit(score, matcher.highlight(command.title), self._runner(command), help=command.help)

    def _runner(self, command: Command):  # type: ignore[no-untyped-def]
        async def run() -> None:
            await self.app.run_action(command.action, command.node)

        return run

    def _commands(self) -> list[Command]:
        found: dict[str, Command] = {}
        for title, help_text, action in _APP_COMMANDS:
            if self.app.check_action(action, ()):
                found[title] = Command(title, help_text, action, self.app)
        for node, binding in self._bindings():
            title = (binding.tooltip or binding.description).rstrip(".")
            hint = display(binding.key)
            found.setdefault(title, Command(title, hint, binding.action, node))
        return sorted(found.values(), key=lambda command: command.title)

    def _bindings(self) -> Iterator[tuple[DOMNode, Binding]]:
        for node, binding, enabled, _tooltip in self.screen.active_bindings.values():
            if binding.id and enabled and not binding.system and binding.action != "command_palette":
                yield node, binding
