"""A session that is stored: the same session, with a recorder listening to its turns."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from pathlib import Path
from typing import Any

from oi_tui.engine.approval import Answerer, Approver
from oi_tui.engine.exporters import render
from oi_tui.engine.exporters.base import Conversation
from oi_tui.engine.history import History
from oi_tui.engine.lmc import Chunk, LmcDict, Message, notice
from oi_tui.engine.private_files import write_private
from oi_tui.engine.redaction import STAND_IN, known_keys
from oi_tui.engine.session import Session
from oi_tui.engine.settings import Settings
from oi_tui.engine.store.open_interpreter import file_name
from oi_tui.engine.store.places import ConversationLock, make_folder
from oi_tui.engine.store.reading import StoredConversation
from oi_tui.engine.store.recorder import Recorder
from oi_tui.engine.store.store import Store, new_conversation_id

PATIENCE = 1.0
"""Seconds that a turn waits for its beginning and its end to be on the disk."""


class RecordedSession(Session):
    """One conversation, kept in a store as it happens.

    With `stored` it goes on with that conversation. If another process has that one open, this becomes a copy of it:
    `note` says so.
    """

    def __init__(
        self, settings: Settings, *, store: Store, stored: StoredConversation | None = None, **parts: Any
    ) -> None:
        self.store = store
        self.note = ""
        self._lock: ConversationLock | None = None
        stored, conversation = self._claim(stored)
        super().__init__(settings, folder=self._folder(conversation), **parts)
        self.recorder = Recorder(
            store,
            history=lambda: self.history,
            keys=lambda: known_keys(self.settings.llm.api_key),
            about=lambda: (self.settings.llm.model or "", self.languages.python.description),
            conversation=conversation,
        )
        self._shown: tuple[Message, ...] = ()
        self._said_fault = ""
        if stored is not None:
            self._interpreter.history = History(stored.messages)
            self.recorder.resume(stored)
            self._shown = stored.shown

    @property
    def shown(self) -> Sequence[Message]:
        return self._shown or super().shown

    @property
    def conversation(self) -> str:
        """The id of the conversation."""
        return self.recorder.id

    def _claim(self, stored: StoredConversation | None) -> tuple[StoredConversation | None, str]:
        """Make this process the only one that writes to the conversation; a copy of it where that cannot be."""
        if stored is None:
            conversation = new_conversation_id()
            with contextlib.suppress(OSError):
                self._lock = ConversationLock.take(make_folder(self.store.folder, conversation))
            return None, conversation
        try:
            self._lock = ConversationLock.take(make_folder(self.store.folder, stored.info.id))
        except OSError:
            return stored, stored.info.id  # a disk that takes no lock takes no messages either: that will be said
        if self._lock is not None:
            return stored, stored.info.id
        copy = self.store.fork(stored.info.id, title=stored.info.given_title)
        self.note = "This conversation is open in another window. You go on in a copy of it; both are kept."
        self.store.flush(PATIENCE)
        with contextlib.suppress(OSError):
            self._lock = ConversationLock.take(make_folder(self.store.folder, copy))
        with contextlib.suppress(Exception):
            stored = self.store.load(copy)
        return stored, copy

    def _folder(self, conversation: str) -> Any:
        """The conversation's folder; None, a temporary one, where it cannot be made."""
        try:
            return make_folder(self.store.folder, conversation)
        except OSError:
            return None

    # -- turns -------------------------------------------------------------------------------------------------------

    def respond(
        self, message: str | Sequence[Mapping[str, Any]] | None, *, approve: Approver, answer: Answerer
    ) -> AsyncGenerator[Chunk, None]:
        """As in `Session`; what happens is stored on the way."""
        sent = [{"content": message}] if isinstance(message, str) else message
        return self._recorded(super().respond(message, approve=approve, answer=answer), sent)

    def run_code(self, language: str, code: str, *, approve: Approver, answer: Answerer) -> AsyncGenerator[Chunk, None]:
        """As in `Session`; what happens is stored on the way."""
        return self._recorded(super().run_code(language, code, approve=approve, answer=answer), None)

    async def _recorded(
        self, chunks: AsyncGenerator[Chunk, None], sent: Sequence[Mapping[str, Any]] | None
    ) -> AsyncGenerator[Chunk, None]:
        recorder = self.recorder
        try:
            async with aclosing(chunks):
                if sent is not None:
                    await self._written(recorder.sent(sent))
                if (said := self._fault()) is not None:
                    yield said
                async for chunk in chunks:
                    recorder.see(chunk)
                    yield chunk
                    if (said := self._fault()) is not None:
                        yield said
        finally:
            last = recorder.turn_ended()
            self._write_json()
        if last is not None:
            await self._written(last)
        if (said := self._fault()) is not None:
            yield said

    async def _written(self, done: Future[Any]) -> None:
        """Wait for the disk, but not for a slow one. What goes wrong is the recorder's to know."""
        if not self.store.fault:
            here = asyncio.wrap_future(done)
            here.add_done_callback(lambda future: future.cancelled() or future.exception())
            await asyncio.wait({here}, timeout=PATIENCE)

    def _fault(self) -> Chunk | None:
        """What the user has to know about the store and does not yet; an empty notice takes an old one away."""
        if self.store.fault == self._said_fault:
            return None
        self._said_fault = self.store.fault
        return notice("store", self._said_fault or "Conversations are saved again.")

    def _write_json(self) -> None:
        """Open Interpreter's file as well, where the settings name one. A disk that fails is told of like any other."""
        name, place = self.settings.conversation_filename, self.settings.conversation_history_path
        if not (name or place) or not len(self.history):
            return
        opening = next((m.text for m in self.history if m.role == "user" and m.type == "message"), "")
        path = Path(place or ".").expanduser() / Path(name or file_name(opening, self.recorder.created)).name
        text = render(Conversation("", list(self.history)), "json")
        for key in known_keys(self.settings.llm.api_key):
            text = text.replace(key, STAND_IN)
        self.store.thread.submit(lambda connection: write_private(path, text), key=("json", path))

    # -- changing it -------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[LmcDict]:
        return [message.to_dict() for message in self.history]

    @messages.setter
    def messages(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self._interpreter.history = History.from_lmc(messages)
        self.recorder.sync()

    async def reset(self) -> None:
        """As in `Session`; what was said is kept, and what comes is a new conversation."""
        self.recorder.sync()
        await super().reset()
        self.recorder.start_anew()
        self._let_go()
        with contextlib.suppress(OSError):
            self._lock = ConversationLock.take(make_folder(self.store.folder, self.conversation))

    def _let_go(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    async def aclose(self) -> None:
        """As in `Session`. The store stays open: it belongs to whoever made it."""
        if self._closed:
            return
        self.recorder.sync()
        await super().aclose()
        self._let_go()
        if self.recorder.is_empty and not len(self.history):
            await asyncio.to_thread(_remove_unused, self.folder)


def _remove_unused(folder: Any) -> None:
    """The folder of a conversation that never began."""
    with contextlib.suppress(OSError):
        (folder / "lock").unlink(missing_ok=True)
        folder.rmdir()
