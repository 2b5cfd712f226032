"""Sessions for front ends: stored ones, or plain ones where the user wants nothing stored."""

from __future__ import annotations

from collections.abc import Sequence

from oi_tui.engine.history import History
from oi_tui.engine.lmc import Message
from oi_tui.engine.session import Session
from oi_tui.engine.settings import Settings
from oi_tui.engine.store.adding import add
from oi_tui.engine.store.reading import ConversationInfo, StoredConversation
from oi_tui.engine.store.recorded_session import RecordedSession
from oi_tui.engine.store.store import LAST, Store, StoreError


class StoredSessions:
    """Makes sessions that share one store. Call it with settings, as one would call `Session`."""

    def __init__(self, store: Store | None = None) -> None:
        self.store = store or Store()
        self._next: StoredConversation | None = None

    def resume(self, name: str) -> None:
        """The next session goes on with this conversation: "last", an id, or how one begins. Raises `StoreError`."""
        found = self.store.find(name)
        if found is None and name == LAST:
            raise StoreError("There is no conversation yet.")
        if found is None:
            raise StoreError(f"There is no conversation {name}.", "oi-tui --conversations lists them.")
        self._next = self.store.load(found.id)

    def take(self, messages: Sequence[Message], *, title: str = "", keep: bool = True) -> None:
        """The next session goes on with these messages; they are stored first, unless nothing is to be kept. Raises
        `StoreError`."""
        if not keep:
            info = ConversationInfo._make(("0" * 16, title, "", 0.0, 0.0, 0, "", "", None, 0, 0, 0, 0, 0, None))
            self._next = StoredConversation(info, tuple(messages), tuple(messages))
            return
        conversation, done = add(self.store, messages, title=title)
        try:
            done.result(10)
        except Exception as error:
            raise StoreError(self.store.fault or f"The conversation could not be stored: {error}.") from None
        self._next = self.store.load(conversation)

    def __call__(self, settings: Settings) -> Session:
        stored, self._next = self._next, None
        return self.open(settings, stored)

    def open(self, settings: Settings, stored: StoredConversation | None = None) -> Session:
        """A new session, or one that goes on with a conversation."""
        if settings.conversation_history:
            return RecordedSession(settings, store=self.store, stored=stored)
        session = Session(settings)
        if stored is not None:
            session._interpreter.history = History(stored.messages)
        return session

    def close(self) -> None:
        """Write what waits. Call it when the last session is closed."""
        self.store.close()
