"""The recorder: sees every chunk of a turn go by, and hands what is new to the storage thread.

Finished messages are taken from the session's history, by comparing it with what was stored; so whatever the engine
changes there (a decision, an edit, a message dropped) is stored too. Text that streams is saved as it is, at least once
a second. Nothing here waits for the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from oi_tui.engine.approval import edit_diff
from oi_tui.engine.history import History
from oi_tui.engine.lmc import Chunk, Message, new_id
from oi_tui.engine.store import writing
from oi_tui.engine.store.checkpoint import Unfinished
from oi_tui.engine.store.places import folder_of
from oi_tui.engine.store.reading import StoredConversation
from oi_tui.engine.store.records import Record, to_record, without_keys
from oi_tui.engine.store.store import Store, new_conversation_id
from oi_tui.engine.store.writing import Change, Event

CHECKPOINT = 0.5
"""Seconds after which streamed text is saved."""
_PASSING_NOTICES = frozenset({"retry", "waiting", "store"})
_OPENING = 200


class Recorder:
    """Keeps one conversation. `history`, `keys` (secrets) and `about` (model, kernel) are asked for when needed."""

    def __init__(
        self,
        store: Store,
        *,
        history: Callable[[], History],
        keys: Callable[[], Sequence[str]] = tuple,
        about: Callable[[], tuple[str, str]] = lambda: ("", ""),
        conversation: str | None = None,
    ) -> None:
        self.id = conversation or new_conversation_id()
        self._store = store
        self._history = history
        self._keys = keys
        self._about = about
        self._begin(self.id)

    def _begin(self, conversation: str) -> None:
        self.id = conversation
        self._stored: dict[str, tuple[int, Message]] = {}
        self._sizes: dict[str, int] = {}
        self._extra: dict[str, dict[str, Any]] = {}
        self._changed: set[str] = set()
        self._events: list[Event] = []
        self._open: Unfinished | None = None
        self._sent: list[dict[str, Any]] = []  # what the user sent and the engine has not taken yet
        self._timer: asyncio.TimerHandle | None = None
        self._started: dict[str, float] = {}
        self._created = time.time()
        self._prompt_tokens = self._completion_tokens = 0
        self._cost: float | None = None
        self._generation = self._store.thread.generation
        self._last: Future[Any] | None = None
        self._is_lost = False
        self._parent: str | None = None

    @property
    def folder(self) -> Path:
        """The conversation's folder."""
        return folder_of(self._store.folder, self.id)

    @property
    def created(self) -> float:
        """When the conversation began."""
        return self._created

    @property
    def is_empty(self) -> bool:
        """Nothing was stored yet."""
        return self._last is None

    def resume(self, stored: StoredConversation) -> None:
        """Go on with a conversation that was loaded."""
        self._begin(stored.info.id)
        self._created = stored.info.created
        self._prompt_tokens, self._completion_tokens = stored.info.prompt_tokens, stored.info.completion_tokens
        self._cost = stored.info.cost
        for position, message in enumerate(stored.messages):
            self._stored[message.id] = (position, message)
            self._sizes[message.id] = len(message.text)
        self._changed = set(stored.unsaved)

    def start_anew(self) -> None:
        """What comes now is another conversation. Call `sync` before the history is emptied."""
        self._stop_timer()
        self._begin(new_conversation_id())

    # -- what goes by ------------------------------------------------------------------------------------------------

    def sent(self, messages: Sequence[Mapping[str, Any]]) -> Future[Any]:
        """The user sent something. The future is done when it is on the disk."""
        known = [
            {"role": "user", "type": "message", "format": None, "recipient": None, "meta": {}, **m} for m in messages
        ]
        self._sent = [{"id": new_id(), **m} for m in known]
        self.sync()  # what the user did to the history between two turns
        opening = next((str(m["content"]) for m in self._sent if m["type"] == "message"), "")
        return self._hand_over(self._change(opening=opening), durable=True)

    def see(self, chunk: Chunk) -> None:
        """One chunk of the turn."""
        if chunk.type in ("notice", "usage", "error", "decision"):
            self._event(chunk)
            if chunk.type in ("error", "decision"):
                self.sync()
            return
        if chunk.start:
            self._open = Unfinished(chunk)
            if chunk.type == "console" and chunk.id:
                self._started.setdefault(chunk.id, time.monotonic())
        elif chunk.end:
            self._open = None
            if chunk.type == "console" and chunk.id:
                self._run_ended(chunk.id)
            self.sync()
        elif chunk.is_ephemeral:
            self._measured(chunk)
        elif self._open is not None:
            self._open.add(chunk.text)
            self._checkpoint_soon()

    def turn_ended(self) -> Future[Any] | None:
        """The turn is over, however it ended: store what it came to."""
        for code_id in list(self._started):
            self._run_ended(code_id)
        self._open = None
        self._sent = []
        self.sync()
        return self._last

    def _run_ended(self, code_id: str) -> None:
        if (started := self._started.pop(code_id, None)) is not None:
            self._note(code_id, seconds=round(time.monotonic() - started, 3))
        self._extra.get(code_id, {}).pop("running", None)

    def _measured(self, chunk: Chunk) -> None:
        if chunk.id is None:
            return
        if chunk.format == "clear_output" and self._open is not None:
            self._open.clear()
        elif chunk.format == "line_times" and isinstance(chunk.content, Mapping):
            self._note(chunk.id, line_times=dict(chunk.content))
        elif chunk.format == "error_line" and isinstance(chunk.content, int):
            self._note(chunk.id, error_line=chunk.content)

    def _note(self, message_id: str, **extra: Any) -> None:
        self._extra.setdefault(message_id, {}).update(extra)
        self._changed.add(message_id)

    def _event(self, chunk: Chunk) -> None:
        last = self._history().last
        after = last.id if last is not None else None
        match chunk.type, chunk.content:
            case ("notice" | "error") as kind, str(text):
                if chunk.format not in _PASSING_NOTICES and text:
                    content = {"format": chunk.format or kind, "text": text, "code_id": chunk.id}
                    self._events.append(Event(kind, content, after))
            case "usage", Mapping() as usage:
                self._prompt_tokens += int(usage.get("prompt_tokens") or 0)
                self._completion_tokens += int(usage.get("completion_tokens") or 0)
                if usage.get("cost") is not None:
                    self._cost = (self._cost or 0.0) + float(usage["cost"])
                self._events.append(Event("usage", dict(usage), after))
            case "decision", Mapping() as decision:
                self._decided(dict(decision), chunk.id, after)

    def _decided(self, decision: dict[str, Any], code_id: str | None, after: str | None) -> None:
        message = self._history().get(code_id or "")
        original = message.meta.get("original") if message is not None else None
        code = str(decision.pop("code", ""))
        if isinstance(original, str):
            decision["diff"] = edit_diff(original, code)
        self._events.append(Event("decision", decision, after))
        if decision.get("verdict") == "run" and code_id:
            self._started[code_id] = time.monotonic()
            self._note(code_id, running=True)
        elif (note := decision.get("note")) and str(note).strip():
            self._sent = [_user_message(str(note))]

    # -- handing over ------------------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Hand over what is new in the history."""
        self._stop_timer()
        if self._is_lost or self._generation != self._store.thread.generation:
            self._write_all_again()
        messages = list(self._history())
        fresh: list[tuple[int, Message]] = []
        for position, message in enumerate(messages):
            known = self._stored.get(message.id)
            if known is None or known[1] is not message or known[0] != position or message.id in self._changed:
                fresh.append((position, message))
        gone = self._gone(messages)
        if not (fresh or gone or self._events):
            return
        self._taken({message.text for _, message in fresh if message.role == "user"})
        keys = self._keys()
        records = [to_record(message, position, self._extra.get(message.id, {}), keys) for position, message in fresh]
        for (position, message), record in zip(fresh, records, strict=True):
            self._stored[message.id] = (position, message)
            self._sizes[message.id] = record.size
        self._changed.clear()
        self._hand_over(self._change(records, gone), durable=True)

    def _gone(self, messages: Sequence[Message]) -> list[str]:
        """Messages that are in the store and no longer in the history. Before anything the user said is dropped, all
        of it is kept as a branch."""
        gone = self._stored.keys() - {message.id for message in messages}
        if any(self._stored[message_id][1].role == "user" for message_id in gone):
            self._store.fork(self.id, title="", archived=True)
        for message_id in gone:
            del self._stored[message_id]
            self._sizes.pop(message_id, None)
            self._extra.pop(message_id, None)
        return sorted(gone)

    def _taken(self, texts: set[str]) -> None:
        """The engine has these words of the user in its history now."""
        self._sent = [message for message in self._sent if message["content"] not in texts]

    def _write_all_again(self) -> None:
        """The file is a new one, or something could not be written: all there is goes in once more."""
        self._generation = self._store.thread.generation
        self._is_lost = False
        self._stored.clear()

    def _change(
        self, records: Sequence[Record] = (), gone: Sequence[str] = (), *, opening: str | None = None
    ) -> Change:
        keys = self._keys()
        model, kernel = self._about()
        events, self._events = self._events, []
        first = next((m.text for m in self._history() if m.role == "user" and m.type == "message"), None)
        words = without_keys(" ".join((first or opening or self._first_sent()).split())[:_OPENING], keys)
        return Change(
            self.id,
            self._created,
            records,
            gone,
            [Event(e.kind, without_keys(e.content, keys), e.after, e.at) for e in events],
            opening=words,
            model=model,
            kernel=kernel,
            messages=len(self._stored) + len(self._sent),
            size=sum(self._sizes.values()),
            prompt_tokens=self._prompt_tokens,
            completion_tokens=self._completion_tokens,
            cost=self._cost,
            unfinished=without_keys(self._unfinished(), keys),
        )

    def _first_sent(self) -> str:
        return next((str(m["content"]) for m in self._sent if m["type"] == "message"), "")

    def _unfinished(self) -> list[dict[str, Any]]:
        streamed = [self._open.message()] if self._open is not None and not self._open.is_empty else []
        return [*self._sent, *streamed]

    def _hand_over(self, change: Change, *, durable: bool) -> Future[Any]:
        job = writing.apply(change, self.folder, self._keys())
        self._last = self._store.thread.submit(job, durable=durable)
        self._last.add_done_callback(self._written)
        return self._last

    def _written(self, done: Future[Any]) -> None:
        if not done.cancelled() and done.exception() is not None:
            self._is_lost = True

    # -- streamed text -----------------------------------------------------------------------------------------------

    def _checkpoint_soon(self) -> None:
        if self._timer is None:
            with contextlib.suppress(RuntimeError):  # no loop: a program that feeds chunks by hand
                self._timer = asyncio.get_running_loop().call_later(CHECKPOINT, self._checkpoint)

    def _checkpoint(self) -> None:
        self._timer = None
        if self._open is None or self._open.is_empty:
            return
        change, folder = self._change(), self.folder
        job = writing.apply(change, folder, self._keys())
        # Several that wait for a slow disk are one; those with events of their own are not.
        key = None if change.events else ("checkpoint", self.id)
        self._store.thread.submit(job, key=key)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _user_message(text: str) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": "user", "type": "message", "format": None, "recipient": None, "meta": {}}
    return {"id": new_id(), "content": text, **wire}
