"""The full-screen application: themes, keys, screens and one session, put together. Thin, and stays thin.

The first frame needs the conversation's screen and nothing else. After it: the session (in a thread, because of its
imports), the model's worker and a warm kernel, the check of the user's keys.

What the app asks of `ChatScreen`: `attach(session)` once there is one; `what_runs`, words for what would be ended by
quitting, or "" ; `composer`. `TurnEnded`, `ApprovalRequested` and `InputRequested` bubble up to the app, which tells a
user who looks elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on, work
from textual.app import App
from textual.binding import Binding, BindingType
from textual.command import CommandPalette, SearchIcon
from textual.screen import Screen

from oi_tui import keymap, leaving
from oi_tui._version import __version__
from oi_tui.commands import AppCommands
from oi_tui.engine.private_files import data_folder
from oi_tui.engine.settings import Settings
from oi_tui.inspector import Inspector
from oi_tui.messages import ApprovalRequested, InputRequested, TurnEnd, TurnEnded, TurnStarted
from oi_tui.notifications import Notifier
from oi_tui.prompt_history import PromptHistory
from oi_tui.rendering.sanitise import sanitise_line
from oi_tui.screens.chat import ChatScreen
from oi_tui.screens.quit_guard import QuitGuard
from oi_tui.screens.too_small import TooSmall, is_too_small
from oi_tui.styles import STYLES, themes
from oi_tui.widgets.side_panel import SidePanel
from oi_tui.widgets.top_bar import TopBar

if TYPE_CHECKING:
    from textual.driver import Driver
    from textual.theme import Theme

    from oi_tui.engine.session import Session
    from oi_tui.screens.welcome import Choice

_QUIT_WINDOW = 2.0
"""Seconds in which the second ^C must come to quit."""


class OiApp(App[None]):
    """One window, one conversation at a time."""

    TITLE = "oi-tui"
    CSS_PATH: ClassVar = [STYLES / name for name in ("app.tcss", "chat.tcss", "dialogues.tcss")]
    AUTO_FOCUS = None
    COMMANDS: ClassVar = {AppCommands}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-middle"), (170, "-wide")]  # noqa: RUF012 - as in App
    VERTICAL_BREAKPOINTS = [(0, "-short"), (28, "-high")]  # noqa: RUF012
    ESCAPE_TO_MINIMIZE = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "ctrl+p", "command_palette", "commands", tooltip="All commands, by name.", id="app.commands", priority=True
        ),
        Binding("f1", "help", "help", show=False, tooltip="Help.", id="app.help", priority=True),
        Binding("ctrl+t", "panel", "panel", tooltip="Variables, images, files and runs.", id="app.panel"),
        Binding("ctrl+n", "new", "new", show=False, tooltip="Start a new conversation.", id="app.new"),
        Binding("ctrl+y", "copy", "copy", show=False, tooltip="Copy the selection, or the block.", id="app.copy"),
        Binding("ctrl+q", "quit", "quit", show=False, tooltip="Quit.", id="app.quit", priority=True),
        Binding("ctrl+c", "quit_on_second", "quit", show=False, tooltip="Twice: quit.", id="app.interrupt"),
    ]

    def __init__(
        self,
        settings: Settings,
        *,
        make_session: Callable[[Settings], Session] | None = None,
        driver_class: type[Driver] | None = None,
    ) -> None:
        super().__init__(driver_class=driver_class)
        self.settings = settings
        self.session: Session | None = None
        self.keys = keymap.UserKeys({})
        self._make_session = make_session
        self._notifier = Notifier(self._write_to_terminal)
        self._inspector = Inspector()
        self._quit_asked_at = -1e9
        self.failure: Exception | None = None
        """What ended the app, if it did not end by itself."""
        self.on_leaving: Callable[[int], None] = lambda status: None
        for theme in themes.OUR_THEMES:
            self.register_theme(theme)
        self.theme = self._first_theme()
        if (path := keymap.keymap_path()).exists():
            self.keys = keymap.read_keymap(path)
            self.set_keymap(dict(self.keys.keymap))

    # -- looks -------------------------------------------------------------------------------------------------------

    def _first_theme(self) -> str:
        chosen = self.settings.theme
        if chosen and chosen != themes.AUTO and chosen in self.available_themes:
            return chosen
        return themes.theme_for_terminal()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.tokens_for(self.current_theme)

    def get_key_display(self, binding: Binding) -> str:
        return binding.key_display or keymap.display(binding.key)

    def _theme_chosen(self, theme: Theme) -> None:
        if theme.name != self.settings.theme:
            self.settings = replace(self.settings, theme=theme.name)
            self._save({"theme": theme.name})

    # -- start -------------------------------------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[Any]:
        return ChatScreen()

    @property
    def chat(self) -> ChatScreen:
        """The conversation's screen, whatever lies above it."""
        screen = self.screen_stack[0]
        assert isinstance(screen, ChatScreen)
        return screen

    def on_mount(self) -> None:
        self.theme_changed_signal.subscribe(self, self._theme_chosen)
        self.app_resume_signal.subscribe(self, lambda _app: self.refresh(layout=True))
        self.call_after_refresh(self._after_first_frame)

    def _after_first_frame(self) -> None:
        self._notifier.set_title("")
        if self.settings.conversation_history:
            self.chat.composer.history = PromptHistory(data_folder() / "prompt_history.jsonl")
        self._open_session()
        if not self.settings.llm.model:
            self.action_choose_model()
        for note in (*self.settings.notes, *self.key_problems()):
            self.notify(note, severity="warning", markup=False, timeout=12)

    @work(exclusive=True, group="session")
    async def _open_session(self) -> None:
        if self._make_session is None:
            module = await asyncio.to_thread(importlib.import_module, "oi_tui.engine.session")
            self._make_session = module.Session
            magic = await asyncio.to_thread(importlib.import_module, "oi_tui.engine.magic")
            self.chat.composer.commands = [(name, command.summary) for name, command in magic.COMMANDS.items()]
        self.session = self._make_session(self.settings)
        self.chat.attach(self.session)
        await self.session.prewarm()

    def key_problems(self) -> list[str]:
        """What is wrong with the user's keymap, in words."""
        if not self.keys.keymap and not self.keys.problems:
            return []
        return [*self.keys.problems, *keymap.check(self.keys.keymap, keymap.catalogue())]

    # -- the end -----------------------------------------------------------------------------------------------------

    def leave(self, status: int) -> None:
        """End the app in an orderly way, whatever it does, without asking."""
        self.exit(return_code=status)

    async def action_quit(self) -> None:
        what_runs = self.chat.what_runs
        if not what_runs:
            self.leave(0)
        elif not isinstance(self.screen, QuitGuard):
            self.push_screen(QuitGuard(what_runs), self._quit_answered)

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

    async def on_unmount(self) -> None:
        if self.session is not None:
            await self.session.aclose()

    def _handle_exception(self, error: Exception) -> None:
        # Textual prints a traceback with the values of variables over the restored terminal: neither is for the user.
        if self.failure is None:
            self.failure = error
            self.on_leaving(1)
        super()._handle_exception(error)

    def _print_error_renderables(self) -> None:
        if self.is_headless:
            super()._print_error_renderables()

    # -- size --------------------------------------------------------------------------------------------------------

    def on_resize(self, event: events.Resize) -> None:
        covered = isinstance(self.screen, TooSmall)
        if is_too_small(event.size) and not covered:
            self.push_screen(TooSmall())
        elif covered and not is_too_small(event.size):
            self.pop_screen()

    # -- telling a user who looks elsewhere ---------------------------------------------------------------------------

    def on_app_focus(self) -> None:
        self._notifier.focus_changed(True)

    def on_app_blur(self) -> None:
        self._notifier.focus_changed(False)

    @on(ApprovalRequested)
    @on(InputRequested)
    def _waits(self) -> None:
        self._notifier.notify("waits for you")

    @on(TurnEnded)
    def _turn_ended(self, event: TurnEnded) -> None:
        self._update_panel()
        self._notifier.notify("failed" if event.reason is TurnEnd.FAILED else "done")

    @on(TurnStarted)
    def _turn_started(self) -> None:
        """The first request names the conversation, and the window."""
        bar = self.chat.query_one(TopBar)
        if not bar.heading and self.session is not None:
            requests = (message.text for message in self.session.history if message.role == "user")
            bar.heading = next(requests, "").strip()[:200].partition("\n")[0]
            self._notifier.set_title(bar.heading)

    # -- commands ----------------------------------------------------------------------------------------------------

    def action_command_palette(self) -> None:
        if not any(isinstance(screen, CommandPalette) for screen in self.screen_stack):
            self.push_screen(Palette())

    def action_key_sheet(self) -> None:
        from oi_tui.screens.help import KeySheet

        entries = keymap.with_keymap(keymap.catalogue(), self.keys.keymap)
        self.push_screen(KeySheet(entries, self.key_problems(), file=str(keymap.keymap_path())))

    def action_help(self) -> None:
        from oi_tui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self._facts()))

    def _facts(self) -> dict[str, str]:
        settings = self.session.settings if self.session else self.settings
        return {
            "model": settings.llm.model or "none chosen",
            "code": self.session.languages.python.description if self.session else "starting",
            "keys": str(keymap.keymap_path()),
            "profile": settings.profile or "default",
            "version": __version__,
        }

    def action_choose_model(self) -> None:
        from oi_tui.screens.welcome import WelcomeScreen

        settings = self.session.settings if self.session else self.settings
        if not isinstance(self.screen, WelcomeScreen):
            self.push_screen(WelcomeScreen(settings.llm), self._model_chosen)

    def _model_chosen(self, choice: Choice | None) -> None:
        if choice is not None:
            self._use_model(choice)

    @work(exclusive=True, group="model", exit_on_error=False)
    async def _use_model(self, choice: Choice) -> None:
        await self.workers.wait_for_complete([worker for worker in self.workers if worker.group == "session"])
        assert self.session is not None
        changes = {"model": choice.model, "api_base": choice.api_base}
        same_place = choice.api_base == self.session.settings.llm.api_base
        if choice.api_key or not same_place:
            changes["api_key"] = choice.api_key
        await self.session.configure_llm(**changes)
        self.settings = self.session.settings
        self.chat.attach(self.session)
        if choice.note:
            self.notify(choice.note, markup=False)
        await self.session.prewarm()

    def action_settings(self) -> None:
        from oi_tui.screens.settings import SettingsScreen

        settings = self.session.settings if self.session else self.settings
        self.push_screen(SettingsScreen(settings, self._use_settings))

    async def _use_settings(self, settings: Settings) -> None:
        if settings.theme and settings.theme in self.available_themes:
            self.theme = settings.theme
        self.settings = settings
        if self.session is not None:
            llm = {field.name: getattr(settings.llm, field.name) for field in fields(settings.llm)}
            top = {field.name: getattr(settings, field.name) for field in fields(settings) if field.name != "llm"}
            self.session.configure(**top)
            await self.session.configure_llm(**llm)
            self.chat.attach(self.session)

    def action_copy(self) -> None:
        """Copy what is selected in the prompt or on the screen, else the block with the cursor."""
        text = getattr(self.screen.focused, "selected_text", "") or self.screen.get_selected_text()
        if text:
            self.copy_to_clipboard(text)
        elif self.screen is self.chat and self.chat.transcript.cursor is not None:
            self.chat.transcript.action_copy()
        else:
            self.notify("Nothing is selected.", timeout=2, markup=False)

    @work(exclusive=True, group="session")
    async def action_new(self) -> None:
        """A new conversation with a new kernel; the draft in the prompt stays."""
        if self.session is None or self.chat.what_runs:
            self.notify("Stop the turn first: Esc.", timeout=3, markup=False)
            return
        old, self.session = self.session, None
        self.session = type(old)(old.settings)
        self.chat.attach(self.session)
        self.chat.query_one(TopBar).heading = ""
        self._notifier.set_title("")
        self._inspector = Inspector()
        await old.aclose()
        await self.session.prewarm()

    # -- the panel at the side ---------------------------------------------------------------------------------------

    async def action_panel(self) -> None:
        panel = await self._panel()
        panel.open(not panel.is_open)
        self._update_panel()

    async def _panel(self) -> SidePanel:
        panels = self.chat.query(SidePanel)
        if not panels:
            await self.chat.query_one("#conversation").mount(SidePanel())
        return self.chat.query_one(SidePanel)

    @work(exclusive=True, group="panel", exit_on_error=False)
    async def _update_panel(self) -> None:
        for panel in self.chat.query(SidePanel):
            if panel.is_open:
                panel.sections = await self._inspector.sections(self.chat.transcript.canvas.blocks, self.session)

    @on(SidePanel.RowChosen)
    def _row_chosen(self, event: SidePanel.RowChosen) -> None:
        if (block := self._inspector.block(event.key)) is not None:
            self.chat.transcript.point_at(block)

    @on(SidePanel.Left)
    def _panel_left(self) -> None:
        self.chat.composer.focus()

    # -- copying -----------------------------------------------------------------------------------------------------

    def copy_to_clipboard(self, text: str) -> None:
        self._clipboard = text
        self._copy(text)

    @work(exclusive=True, group="copy", exit_on_error=False)
    async def _copy(self, text: str) -> None:
        from oi_tui import clipboard

        self.notify(await clipboard.copy(text, self._write_to_terminal), markup=False, timeout=3)

    def action_save_screen(self) -> None:
        path = self.save_screenshot(path=".")
        self.notify(f"Saved {path}", markup=False)

    @work(group="save", exit_on_error=False)
    async def _save(self, changes: dict[str, Any]) -> None:
        from oi_tui.engine.errors import SettingsError
        from oi_tui.engine.profile_saving import save_default

        try:
            await asyncio.to_thread(save_default, changes)
        except SettingsError as error:
            self.notify(str(error), severity="warning", markup=False)

    def _write_to_terminal(self, data: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(data)


class Palette(CommandPalette):
    """The palette of Textual without its magnifying glass, which some terminals draw two cells wide and some one."""

    def on_mount(self) -> None:
        self.query_one(SearchIcon).icon = "❯"


def run_app(settings: Settings) -> int:
    """Run the full screen until it is left. Returns the exit status: 0 done, 1 failed, 128 + n for signal n.

    For a process that ends afterwards: what cannot be closed in time ends with the process, four seconds later.
    """
    if reason := leaving.unfit_terminal():
        leaving.say(reason)
        return 2
    if os.name != "posix":
        app = OiApp(settings)
        app.run()
        return app.return_code or 0
    from oi_tui.terminal_driver import TerminalDriver

    app = OiApp(settings, driver_class=TerminalDriver)
    with leaving.Exit(ask=partial(_leave_from_any_thread, app), restore=TerminalDriver.restore_current) as ending:
        app.on_leaving = ending.left
        TerminalDriver.on_gone = staticmethod(ending.terminal_gone)
        try:
            app.run()
        except Exception as error:
            app.failure = app.failure or error
        TerminalDriver.restore_current()
        return _say_why(app, ending)


def _leave_from_any_thread(app: OiApp, status: int) -> None:
    if (loop := app._loop) is not None:
        with contextlib.suppress(RuntimeError):  # the loop has just been closed
            loop.call_soon_threadsafe(app.leave, status)


def _say_why(app: OiApp, ending: leaving.Exit) -> int:
    """The last words on the restored terminal, and the exit status."""
    if app.failure is not None:
        from oi_tui.engine.redaction import redact

        keys = [app.settings.llm.api_key] if app.settings.llm.api_key else []
        path = leaving.log_error(app.failure, keys=keys)
        what = sanitise_line(redact(f"{type(app.failure).__name__}: {app.failure}", keys), 160)
        leaving.say(f"a fault of oi-tui ended it: {what}. Details: {path or 'could not be written'}")
        return 1
    if ending.reason:
        leaving.say(ending.reason)
        return ending.status
    return app.return_code or 0
