"""What any full-screen program needs: colours, keys, copying, a size to work in, and a calm end.

Knows nothing of conversations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual import events, work
from textual.app import App
from textual.binding import Binding, BindingType
from textual.command import CommandPalette, SearchIcon
from textual.filter import Monochrome, NoColor
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from oi_tui import keymap, leaving
from oi_tui.commands import AppCommands, ThemeNames
from oi_tui.notifications import Notifier
from oi_tui.screens.too_small import TooSmall, is_too_small
from oi_tui.styles import STYLES, themes

if TYPE_CHECKING:
    from textual.driver import Driver
    from textual.theme import Theme

Result = TypeVar("Result")

_QUIT_WINDOW = 2.0
"""Seconds in which the second ^C must come to quit."""


class Window(App[None]):
    """The base of the app. `theme` is the name of the theme to begin with, None or "auto" for what suits."""

    AUTO_FOCUS = None
    COMMANDS: ClassVar = {AppCommands}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-middle"), (170, "-wide")]  # noqa: RUF012 - as in App
    VERTICAL_BREAKPOINTS = [(0, "-short"), (28, "-high")]  # noqa: RUF012
    ESCAPE_TO_MINIMIZE = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "ctrl+p", "command_palette", "commands", tooltip="All commands, by name.", id="app.commands", priority=True
        ),
        Binding("ctrl+q", "quit", "quit", show=False, tooltip="Quit.", id="app.quit", priority=True),
        Binding("ctrl+c", "quit_on_second", "", show=False, tooltip="Twice: quit.", id="app.interrupt"),
    ]

    def __init__(self, theme: str | None = None, *, driver_class: type[Driver] | None = None) -> None:
        super().__init__(driver_class=driver_class)
        self.keys = keymap.UserKeys({})
        """The user's own keys, and what is wrong with them."""
        self.failure: Exception | None = None
        """What ended the app, if it did not end by itself."""
        self.on_leaving: Callable[[int], None] = lambda status: None
        """Called with the exit status as soon as it is certain that the app will end."""
        self.notifier = Notifier(self.write_to_terminal)
        self._quit_asked_at = -1e9
        if self.no_color:
            # Textual chooses by its default theme, and would draw the ANSI theme black on black.
            self._filters = [line_filter for line_filter in self._filters if not isinstance(line_filter, Monochrome)]
            self._filters.append(NoColor())
        for our_theme in themes.OUR_THEMES:
            self.register_theme(our_theme)
        self._begin_with_theme(theme if theme and theme in self.available_themes else themes.theme_for_terminal())
        self._saved_theme = self.theme
        if (path := keymap.keymap_path()).exists():
            self.keys = keymap.read_keymap(path)
            self.set_keymap(dict(self.keys.keymap))

    def on_mount(self) -> None:
        self.theme_changed_signal.subscribe(self, self._theme_changed)
        self.app_resume_signal.subscribe(self, lambda _app: self.refresh(layout=True))

    # -- looks -------------------------------------------------------------------------------------------------------

    def _begin_with_theme(self, name: str) -> None:
        """Set the first theme. Assigning it would make the stylesheets be read a second time before the first frame."""
        self.set_reactive(App.theme, name)
        is_dark = self.current_theme.dark
        for name, is_set in ((f"-theme-{self.theme}", True), ("-dark-mode", is_dark), ("-light-mode", not is_dark)):
            self.set_class(is_set, name, update=False)
        self._refresh_truecolor_filter(self.ansi_theme)
        self.stylesheet.set_variables(self.get_css_variables())

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.tokens_for(self.current_theme)

    def get_key_display(self, binding: Binding) -> str:
        return binding.key_display or keymap.display(binding.key)

    def _theme_changed(self, theme: Theme) -> None:
        if theme.name != self._saved_theme:
            self._saved_theme = theme.name
            self.save({"theme": theme.name})

    def on_resize(self, event: events.Resize) -> None:
        if is_too_small(event.size):
            self.open_once(TooSmall)
        elif isinstance(self.screen, TooSmall):
            self.pop_screen()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        # Nothing can be done on what cannot be seen.
        return action.startswith("quit") or not any(isinstance(top, TooSmall) for top in self.screen_stack[-1:])

    def open_once(
        self, kind: type[Screen[Result]], *arguments: Any, then: Callable[[Result | None], None] | None = None
    ) -> None:
        """Open a screen of this kind, made with these arguments, unless one is open already."""
        if not any(isinstance(screen, kind) for screen in self.screen_stack):
            self.push_screen(kind(*arguments), then)

    def on_app_focus(self) -> None:
        self.notifier.focus_changed(True)

    def on_app_blur(self) -> None:
        self.notifier.focus_changed(False)

    # -- keys and commands -------------------------------------------------------------------------------------------

    def key_problems(self) -> list[str]:
        """What is wrong with the user's keymap, in words. Keys with two meanings keep their usual one."""
        if not self.keys.keymap and not self.keys.problems:
            return []
        entries = keymap.catalogue()
        self.set_keymap(keymap.without_conflicts(self.keys.keymap, entries))
        return [*self.keys.problems, *keymap.check(self.keys.keymap, entries)]

    def action_key_sheet(self) -> None:
        from oi_tui.screens.help import KeySheet

        entries = keymap.with_keymap(keymap.catalogue(), self.keys.keymap)
        self.open_once(KeySheet, entries, self.key_problems(), str(keymap.keymap_path()))

    def action_command_palette(self) -> None:
        self.open_once(Palette)

    def search_themes(self) -> None:
        self.push_screen(Palette(providers=[ThemeNames], placeholder="Which colours?"))

    def action_save_screen(self) -> None:
        self.notify(f"Saved {self.save_screenshot(path='.')}", markup=False)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy on behalf of the user, and say which way it went."""
        self._clipboard = text
        self._copy(text)

    @work(exclusive=True, group="copy", exit_on_error=False)
    async def _copy(self, text: str) -> None:
        from oi_tui import clipboard

        self.notify(await clipboard.copy(text, self.write_to_terminal), markup=False, timeout=3)

    def write_to_terminal(self, data: str) -> None:
        """Send a sequence to the terminal, past the screen. Nothing happens where there is no terminal."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(data)

    @work(group="save", exit_on_error=False)
    async def save(self, changes: Mapping[str, Any]) -> None:
        """Write settings into the default profile; say so if that fails."""
        from oi_tui.engine.errors import SettingsError
        from oi_tui.engine.profile_saving import save_default

        try:
            await asyncio.to_thread(save_default, changes)
        except SettingsError as error:
            self.notify(str(error), severity="warning", markup=False)

    # -- the end -----------------------------------------------------------------------------------------------------

    @property
    def what_runs(self) -> str:
        """What quitting would end, in words; empty if nothing."""
        return ""

    def leave(self, status: int) -> None:
        """End the app in an orderly way, whatever it does, without asking."""
        self.exit(return_code=status)

    async def action_quit(self) -> None:
        from oi_tui.screens.quit_guard import QuitGuard

        if not self.what_runs:
            self.leave(0)
        else:
            self.open_once(QuitGuard, self.what_runs, then=self._quit_answered)

    def _quit_answered(self, quits: bool | None) -> None:
        if quits:
            self.leave(0)

    async def action_quit_on_second(self) -> None:
        now = monotonic()
        if now - self._quit_asked_at <= _QUIT_WINDOW:
            await self.action_quit()
        else:
            self._quit_asked_at = now
            self.notify("^C again quits", timeout=_QUIT_WINDOW, markup=False)

    def exit(self, result: None = None, return_code: int = 0, message: Any = None) -> None:
        self.on_leaving(return_code)
        super().exit(result, return_code, message)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A fault in something that went on in the background: it ends, the app goes on."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            path = leaving.log_error(event.worker.error)
            text = f"A fault of oi-tui ({event.worker.name}). Details: {path or 'could not be written'}"
            self.notify(text, severity="error", markup=False)

    def _handle_exception(self, error: Exception) -> None:
        # Textual prints a traceback with the values of variables over the restored terminal: neither is for the user.
        if self._exit and not self.is_headless:
            leaving.log_error(error)  # torn down in the middle of something; why it ends is known already
            return
        if self.failure is None:
            self.failure = error
            self.on_leaving(1)
        super()._handle_exception(error)

    def _print_error_renderables(self) -> None:
        if self.is_headless:
            super()._print_error_renderables()


class Palette(CommandPalette):
    """The palette of Textual without its magnifying glass, which some terminals draw two cells wide and some one."""

    CSS_PATH = STYLES / "palette.tcss"

    def on_mount(self) -> None:
        self.query_one(SearchIcon).icon = "❯"
