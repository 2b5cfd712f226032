"""The full-screen application: screens and one session, put together. Thin, and stays thin.

The first frame is a prompt. After it, in this order: the conversation's screen and the session (imported in a thread),
the model's worker and a warm kernel.

What the app asks of `ChatScreen`: `attach(session)` once there is one; `what_runs`, words for what would be ended by
quitting, or "" ; `composer` and `transcript`. `TurnStarted`, `TurnEnded`, `ApprovalRequested` and `InputRequested`
bubble up to the app, which tells a user who looks elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, work
from textual.binding import Binding, BindingType

from oi_tui import garbage, keymap, leaving
from oi_tui._version import __version__
from oi_tui.engine.errors import EngineError, SettingsError
from oi_tui.engine.private_files import data_folder
from oi_tui.engine.settings import Settings
from oi_tui.prompt_history import PromptHistory, save_draft, take_draft
from oi_tui.reconfigure import use_model, use_settings
from oi_tui.screens.opening import OpeningScreen
from oi_tui.styles import STYLES
from oi_tui.widgets.top_bar import TopBar
from oi_tui.window import Window

if TYPE_CHECKING:
    from textual.driver import Driver

    from oi_tui.engine.session import Session
    from oi_tui.engine.store.sessions import StoredSessions
    from oi_tui.inspector import Inspector
    from oi_tui.messages import TurnEnded
    from oi_tui.screens.chat import ChatScreen
    from oi_tui.screens.conversations import Choice as ConversationChoice
    from oi_tui.screens.welcome import Choice
    from oi_tui.widgets.side_panel import SidePanel


class OiApp(Window):
    """One window, one conversation at a time."""

    TITLE = "oi-tui"
    CSS_PATH: ClassVar = [STYLES / name for name in ("app.tcss", "chat.tcss")]

    MODES: ClassVar = {"opening": OpeningScreen}
    DEFAULT_MODE = "opening"

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
        """`make_session`: by default sessions are stored. `browse`: begin with the list of conversations."""
        super().__init__(settings.theme, driver_class=driver_class)
        self._settings = settings
        self.session: Session | None = None
        self._chat: ChatScreen | None = None
        self.opened = asyncio.Event()
        """The conversation's screen is there."""
        self._make_session = make_session
        self._browses = browse
        self.sessions: StoredSessions | None = None
        """Where conversations are stored; None: they are not."""
        self._session_opened = asyncio.Event()
        self.inspector: Inspector | None = None

    @property
    def settings(self) -> Settings:
        """The settings that count now."""
        return self.session.settings if self.session is not None else self._settings

    @property
    def chat(self) -> ChatScreen:
        """The conversation's screen, whatever lies above it. Raises `RuntimeError` before it is loaded."""
        if self._chat is None:
            raise RuntimeError("the conversation is not open yet")
        return self._chat

    @property
    def what_runs(self) -> str:
        return self._chat.what_runs if self._chat is not None else ""

    # -- start and end -----------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        self.call_after_refresh(self._open)

    @work(exclusive=True, group="session", exit_on_error=False)
    async def _open(self) -> None:
        chat = await asyncio.to_thread(importlib.import_module, "oi_tui.screens.chat")
        self.call_later(self._show_conversation, chat.ChatScreen())
        magic = await asyncio.to_thread(importlib.import_module, "oi_tui.engine.magic")
        module = await asyncio.to_thread(importlib.import_module, "oi_tui.engine.store.sessions")
        self._make_session = self._make_session or module.StoredSessions()
        if isinstance(self._make_session, module.StoredSessions):
            self.sessions = self._make_session
            self.sessions.store.on_fault = self._store_said
        self._settings = await self._with_stored_key(self._settings)
        await self.opened.wait()
        self.chat.composer.completer.commands = [(name, command.summary) for name, command in magic.COMMANDS.items()]
        self.session = self._make_session(self._settings)
        self.chat.composer.busy = False
        self._enter(self.session)
        self._session_opened.set()
        if self._browses:
            self.action_conversations()
        garbage.set_aside()
        await self.session.prewarm()

    async def _with_stored_key(self, settings: Settings) -> Settings:
        """The settings with the key the user saved for this endpoint, if they saved one. May ask the keyring."""
        secrets = await asyncio.to_thread(importlib.import_module, "oi_tui.engine.secrets")
        try:
            keyed: Settings = await asyncio.to_thread(secrets.with_stored_key, settings)
        except SettingsError as error:
            self.notify(str(error), severity="warning", markup=False)
            return settings
        return keyed

    async def _show_conversation(self, chat: ChatScreen) -> None:
        """Put the conversation in place of the first frame. Keys pressed meanwhile wait for this to end."""
        opening = self.screen
        if not isinstance(opening, OpeningScreen):  # something lies above it: a terminal too small, the help
            self.set_timer(0.1, lambda: self.call_later(self._show_conversation, chat))
            return
        with self.batch_update():
            self.add_mode("conversation", lambda: chat)
            await self.switch_mode("conversation")
            await self.remove_mode("opening")
            while not chat.query("Transcript Canvas"):  # what lies deeper is mounted later
                await asyncio.sleep(0.001)
                if self._exit:
                    return
            chat.composer.adopt(opening.composer)
            chat.composer.wait()
            chat.composer.focus()
        self._chat = chat
        if self._settings.conversation_history:
            history = PromptHistory(data_folder() / "prompt_history.jsonl")
            for text in chat.composer.queued:
                history.add(text)
            chat.composer.history = history
            if chat.composer.is_empty:
                chat.composer.fill(take_draft())
        self._begin_conversation()
        if not self._settings.llm.model:
            self.action_choose_model()
        for note in (*self._settings.notes, *self.key_problems()):
            self.notify(note, severity="warning", markup=False, timeout=12)
        self.opened.set()

    def _begin_conversation(self) -> None:
        from oi_tui.inspector import Inspector

        self.chat.query_one(TopBar).heading = ""
        self.notifier.set_title("")
        self.inspector = Inspector(self.chat, self.chat.transcript.canvas)
        self._update_panel()

    @work(exclusive=True, group="session", exit_on_error=False)
    async def action_new(self) -> None:
        """A new conversation with a new kernel; the draft in the prompt stays."""
        old = self.session
        if old is None or self._make_session is None or self.what_runs:
            self.notify("Stop the turn first: Esc.", timeout=3, markup=False)
            return
        await self._change_to(self._make_session(old.settings))

    def exit(self, result: None = None, return_code: int = 0, message: Any = None) -> None:
        if self._chat is not None and self.settings.conversation_history:
            save_draft(self._chat.composer.text)
        super().exit(result, return_code, message)

    async def _change_to(self, session: Session, message: str | None = None) -> None:
        old, self.session = self.session, session
        self.chat.attach(session)
        self._begin_conversation()
        self._enter(session, message)
        if old is not None:
            await old.aclose()
        await session.prewarm()

    def _enter(self, session: Session, message: str | None = None) -> None:
        """A session with a conversation in it: say what is to be said about that."""
        from oi_tui.resuming import enter

        self.chat.attach(session)
        if len(session.history):
            enter(self.chat, session, message=message)
            self._name_conversation()

    async def on_unmount(self) -> None:
        if self.session is not None:
            await self.session.aclose()
        if self.sessions is not None:
            await asyncio.to_thread(self.sessions.close)

    # -- conversations -----------------------------------------------------------------------------------------------

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
        await self._change_to(self.sessions.open(self.session.settings, stored), choice.message)

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

    def _store_said(self, text: str) -> None:
        """Called in the storage thread."""
        if text:
            self.notify(text, severity="warning", markup=False, timeout=12)

    # -- what a turn tells -------------------------------------------------------------------------------------------

    def on_turn_started(self) -> None:
        """The first request names the conversation, and the window."""
        self._name_conversation()

    def _name_conversation(self) -> None:
        bar = self.chat.query_one(TopBar)
        if not bar.heading and self.session is not None:
            history = self.session.history
            requests = (message.text for message in history if (message.role, message.type) == ("user", "message"))
            bar.heading = next(requests, "").strip()[:200].partition("\n")[0]
            self.notifier.set_title(bar.heading)

    def on_approval_requested(self) -> None:
        self.notifier.notify("waits for you")

    def on_input_requested(self) -> None:
        self.notifier.notify("waits for you")

    def on_turn_ended(self, event: TurnEnded) -> None:
        self._update_panel()
        self.notifier.notify("failed" if event.reason == "failed" else "done")
        self.set_timer(1, garbage.collect)

    # -- model and settings ------------------------------------------------------------------------------------------

    def action_choose_model(self) -> None:
        from oi_tui.screens.welcome import WelcomeScreen

        self.open_once(WelcomeScreen, self.settings.llm, then=self._model_chosen)

    def _model_chosen(self, choice: Choice | None) -> None:
        if choice is not None:
            self._use_model(choice)

    @work(exclusive=True, group="model", exit_on_error=False)
    async def _use_model(self, choice: Choice) -> None:
        await self._session_opened.wait()
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
        await self._session_opened.wait()
        assert self.session is not None
        if settings.theme in self.available_themes:
            self.theme = settings.theme
        await use_settings(self.session, settings)
        self.chat.attach(self.session)

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

    # -- the panel at the side ---------------------------------------------------------------------------------------

    @work(exclusive=True, group="panel", exit_on_error=False)
    async def action_panel(self) -> None:
        if self.inspector is not None:
            await self.inspector.toggle()
            self._update_panel()

    @work(exclusive=True, group="panel", exit_on_error=False)
    async def _update_panel(self) -> None:
        """Bring the panel, and the variables that can be completed, to the present state."""
        from oi_tui.inspector import variables_of

        if self.inspector is not None:
            await self.inspector.fit()
            variables = await variables_of(self.session)
            self.chat.composer.completer.variables = variables
            await self.inspector.update(variables)

    def on_resize(self, event: events.Resize) -> None:
        self._update_panel()

    def on_side_panel_row_chosen(self, event: SidePanel.RowChosen) -> None:
        if self.inspector is not None and (block := self.inspector.block(event.key)) is not None:
            self.chat.transcript.point_at(block)

    def on_side_panel_left(self) -> None:
        self.chat.composer.focus()


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
