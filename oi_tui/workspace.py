"""The conversation that is open: its screen, its session, its panel.

The first frame is a prompt. After it, in this order: the conversation's screen and the session (imported in a thread),
the model's worker and a warm kernel.

What this asks of `ChatScreen`: `attach(session)` once there is one; `what_runs`, words for what would be ended by
quitting, or ""; `composer` and `transcript`. `TurnStarted`, `TurnEnded`, `ApprovalRequested` and `InputRequested`
bubble up to here, and a user who looks elsewhere is told.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, work

from oi_tui import garbage
from oi_tui.engine.errors import SettingsError
from oi_tui.engine.private_files import data_folder
from oi_tui.engine.settings import Settings
from oi_tui.prompt_history import PromptHistory, save_draft, take_draft
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
    from oi_tui.widgets.side_panel import SidePanel


class Workspace(Window):
    """One conversation at a time."""

    TITLE = "oi-tui"
    CSS_PATH: ClassVar = [STYLES / name for name in ("app.tcss", "chat.tcss")]

    MODES: ClassVar = {"opening": OpeningScreen}
    DEFAULT_MODE = "opening"

    def __init__(
        self,
        settings: Settings,
        *,
        make_session: Callable[[Settings], Session] | None = None,
        driver_class: type[Driver] | None = None,
    ) -> None:
        """`make_session`: by default sessions are stored."""
        super().__init__(settings.theme, driver_class=driver_class)
        self._settings = settings
        self.session: Session | None = None
        self._chat: ChatScreen | None = None
        self.opened = asyncio.Event()
        """The conversation's screen is there."""
        self.make_session = make_session
        self.sessions: StoredSessions | None = None
        """Where conversations are stored; None: they are not."""
        self.ready = asyncio.Event()
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
        self.make_session = self.make_session or module.StoredSessions()
        if isinstance(self.make_session, module.StoredSessions):
            self.sessions = self.make_session
            self.sessions.store.on_fault = self._store_said
        self._settings = await self._with_stored_key(self._settings)
        await self.opened.wait()
        self.chat.composer.completer.commands = [(name, command.summary) for name, command in magic.COMMANDS.items()]
        self.session = self.make_session(self._settings)
        self.chat.composer.busy = False
        self._enter(self.session)
        self.ready.set()
        self.session_opened()
        garbage.set_aside()
        await self.session.prewarm()
        if self.sessions is not None and self.settings.conversation_history:
            from oi_tui.resuming import offer_import

            if offer := await offer_import(self.sessions.store):
                self.notify(offer, markup=False, timeout=20)

    def session_opened(self) -> None:
        """The first session is there. For subclasses."""

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
        for note in (*self._settings.notes, *self.key_problems()):
            self.notify(note, severity="warning", markup=False, timeout=12)
        self.opened.set()

    def _begin_conversation(self) -> None:
        from oi_tui.inspector import Inspector

        self.chat.query_one(TopBar).heading = ""
        self.notifier.set_title("")
        self.inspector = Inspector(self.chat, self.chat.transcript.canvas)
        self._update_panel()

    def exit(self, result: None = None, return_code: int = 0, message: Any = None) -> None:
        if self._chat is not None and self.settings.conversation_history:
            save_draft(self._chat.composer.text)
        super().exit(result, return_code, message)

    async def change_to(self, session: Session, message: str | None = None) -> None:
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

    def _store_said(self, text: str) -> None:
        """Called in the storage thread."""
        if text:
            self.notify(text, severity="warning", markup=False, timeout=12)

    # -- what a turn tells -------------------------------------------------------------------------------------------

    def on_turn_started(self) -> None:
        self.set_timer(0.1, self._name_conversation)  # the history has the request a moment later

    def _name_conversation(self) -> None:
        """The first request names the conversation, and the window."""
        bar = next(iter(self.chat.query(TopBar)), None)
        if bar is None:  # the screen is on its way out
            return
        if not bar.heading and self.session is not None:
            history = self.session.history
            requests = (message.text for message in history if (message.role, message.type) == ("user", "message"))
            bar.heading = next(requests, "").strip()[:200].partition("\n")[0]
            self.notifier.set_title(bar.heading)

    def on_approval_requested(self) -> None:
        self._name_conversation()
        self.notifier.notify("waits for you")

    def on_input_requested(self) -> None:
        self.notifier.notify("waits for you")

    def on_turn_ended(self, event: TurnEnded) -> None:
        self._name_conversation()
        self._update_panel()
        self.notifier.notify("failed" if event.reason == "failed" else "done")
        self.set_timer(1, garbage.collect)

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
