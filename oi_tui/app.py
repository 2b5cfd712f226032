"""The full-screen application: what can be done with it, and how it is run. Thin, and stays thin.

Three layers: `Window` is what any full-screen program needs, `Workspace` the conversation that is open, and this what
the user can ask for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.binding import Binding, BindingType

from oi_tui import garbage, keymap, leaving
from oi_tui._version import __version__
from oi_tui.engine.errors import EngineError
from oi_tui.engine.settings import Settings
from oi_tui.reconfigure import use_model, use_settings
from oi_tui.workspace import Workspace

if TYPE_CHECKING:
    from textual.driver import Driver

    from oi_tui.engine.session import Session
    from oi_tui.screens.conversations import Choice as ConversationChoice
    from oi_tui.screens.welcome import Choice
    from oi_tui.widgets.top_bar import TopBar


class OiApp(Workspace):
    """The program."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "help", "help", show=False, tooltip="Help.", id="app.help", priority=True),
        Binding("ctrl+t", "panel", "panel", tooltip="Variables, images, files and runs.", id="app.panel"),
        Binding("ctrl+n", "new", "new", show=False, tooltip="Start a new conversation.", id="app.new"),
        Binding("ctrl+s,f3", "conversations", "chats", tooltip="All conversations.", id="app.conversations"),
        Binding("f8", "rebuild", "again", show=False, tooltip="Run this conversation's code again.", id="app.rebuild"),
        Binding("ctrl+y", "copy", "copy", show=False, tooltip="Copy the selection, or the block.", id="app.copy"),
    ]

    def __init__(
        self,
        settings: Settings,
        *,
        make_session: Callable[[Settings], Session] | None = None,
        driver_class: type[Driver] | None = None,
        browse: bool = False,
    ) -> None:
        """`browse`: begin with the list of conversations. For the rest see `Workspace`."""
        super().__init__(settings, make_session=make_session, driver_class=driver_class)
        self._browses = browse

    def session_opened(self) -> None:
        if self._browses:
            self.action_conversations()
        elif not self.settings.llm.model:
            self.action_choose_model()

    # -- conversations -----------------------------------------------------------------------------------------------

    @work(exclusive=True, group="session", exit_on_error=False)
    async def action_new(self) -> None:
        """A new conversation with a new kernel; the draft in the prompt stays."""
        old = self.session
        if old is None or self.make_session is None or self.what_runs:
            self.notify("Stop the turn first: Esc.", timeout=3, markup=False)
            return
        await self.change_to(self.make_session(old.settings))

    def action_conversations(self) -> None:
        from oi_tui.screens.conversations import ConversationsScreen

        if self.sessions is None:
            self.notify("Conversations are not stored here.", markup=False)
        elif not isinstance(self.screen, ConversationsScreen):
            current = getattr(self.session, "conversation", None)
            self.push_screen(ConversationsScreen(self.sessions.store, current=current), self._conversation_chosen)

    def _conversation_chosen(self, choice: ConversationChoice | None) -> None:
        if choice is not None:
            self._resume(choice)

    @work(exclusive=True, group="session", exit_on_error=False)
    async def _resume(self, choice: ConversationChoice) -> None:
        """Leave this conversation for another one."""
        if choice.conversation == getattr(self.session, "conversation", None):
            self.chat.show_message(choice.message or "")
            return
        if self.session is None or self.sessions is None or self.what_runs:
            self.notify("Stop the turn first: Esc.", timeout=3, markup=False)
            return
        try:
            stored = await asyncio.to_thread(self.sessions.store.load, choice.conversation)
        except EngineError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        await self.change_to(self.sessions.open(self.session.settings, stored), choice.message)

    def action_rebuild(self) -> None:
        """Offer to run the code of a stored conversation again."""
        from oi_tui.engine.rebuild import past_runs
        from oi_tui.screens.rebuild import RebuildScreen

        if self.session is None or self.what_runs:
            self.notify("Stop the turn first: Esc.", timeout=3, markup=False)
            return
        if not (runs := past_runs(self.session.history)):
            self.notify("No code has run in this conversation.", markup=False)
            return
        self.push_screen(RebuildScreen(runs), lambda yes: self.chat.run_again(runs) if yes else None)

    # -- model and settings ------------------------------------------------------------------------------------------

    def action_choose_model(self) -> None:
        from oi_tui.screens.welcome import WelcomeScreen

        self.open_once(WelcomeScreen, self.settings.llm, then=self._model_chosen)

    def _model_chosen(self, choice: Choice | None) -> None:
        if choice is not None:
            self._use_model(choice)

    @work(exclusive=True, group="model", exit_on_error=False)
    async def _use_model(self, choice: Choice) -> None:
        await self.ready.wait()
        assert self.session is not None
        await use_model(self.session, choice)
        self.chat.attach(self.session)
        if choice.note:
            self.notify(choice.note, markup=False)
        await self.session.prewarm()

    def action_settings(self) -> None:
        from oi_tui.screens.settings import SettingsScreen

        self.open_once(SettingsScreen, self.settings, self._use_settings)

    async def _use_settings(self, settings: Settings) -> None:
        await self.ready.wait()
        assert self.session is not None
        if settings.theme in self.available_themes:
            self.theme = settings.theme
        await use_settings(self.session, settings)
        self.chat.attach(self.session)

    async def on_top_bar_part_clicked(self, event: TopBar.PartClicked) -> None:
        match event.part:
            case "mode":
                await self.run_action("screen.mode")
            case "model":
                self.action_choose_model()
            case "kernel":
                self.action_panel()

    # -- commands ----------------------------------------------------------------------------------------------------

    def action_help(self) -> None:
        from oi_tui.screens.help import HelpScreen

        if isinstance(self.screen, HelpScreen):
            self.screen.dismiss()
        else:
            self.open_once(HelpScreen, self._facts())

    def _facts(self) -> dict[str, str]:
        return {
            "model": self.settings.llm.model or "none chosen",
            "code": self._what_runs_code(),
            "keys": str(keymap.keymap_path()),
            "profile": self.settings.profile or "default",
            "version": __version__,
        }

    def _what_runs_code(self) -> str:
        languages = self.session.languages if self.session is not None else None
        return languages.python.description if languages is not None else "not started yet"

    def action_copy(self) -> None:
        """Copy what is selected in the prompt or on the screen, else the block with the cursor."""
        text = getattr(self.screen.focused, "selected_text", "") or self.screen.get_selected_text()
        if text:
            self.copy_to_clipboard(text)
        elif self.screen is self._chat and self.chat.transcript.cursor is not None:
            self.chat.transcript.action_copy()
        else:
            self.notify("Nothing is selected.", timeout=2, markup=False)


def run_app(
    settings: Settings, *, make_session: Callable[[Settings], Session] | None = None, browse: bool = False
) -> int:
    """Run the full screen until it is left. Returns the exit status: 0 done, 1 failed, 128 + n for signal n.

    For a process that ends afterwards: what cannot be closed in time ends with the process, four seconds later.
    """
    if reason := leaving.unfit_terminal():
        leaving.say(reason)
        return 2
    if os.name != "posix":
        app = OiApp(settings, make_session=make_session, browse=browse)
        app.run()
        return app.return_code or 0
    from oi_tui.terminal_driver import TerminalDriver

    garbage.hold_back()
    app = OiApp(settings, make_session=make_session, driver_class=TerminalDriver, browse=browse)
    with leaving.Exit(ask=partial(_leave_from_any_thread, app), restore=TerminalDriver.restore_current) as ending:
        app.on_leaving = ending.left
        TerminalDriver.on_gone = staticmethod(ending.terminal_gone)
        try:
            app.run()
        except Exception as error:
            app.failure = app.failure or error
        TerminalDriver.restore_current()
        key = app.settings.llm.api_key
        return leaving.last_words(app.failure, ending, [key] if key else []) or app.return_code or 0


def _leave_from_any_thread(app: OiApp, status: int) -> None:
    if (loop := app._loop) is not None:
        with contextlib.suppress(RuntimeError):  # the loop has just been closed
            loop.call_soon_threadsafe(app.leave, status)
