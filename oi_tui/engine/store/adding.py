"""Conversations that were made elsewhere: put into the store as they are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from oi_tui.engine.lmc import Message
from oi_tui.engine.redaction import known_keys
from oi_tui.engine.store import writing
from oi_tui.engine.store.places import folder_of
from oi_tui.engine.store.records import to_record, without_keys
from oi_tui.engine.store.store import Store, new_conversation_id
from oi_tui.engine.store.writing import Change


def add(
    store: Store,
    messages: Sequence[Message],
    *,
    title: str = "",
    created: float | None = None,
    model: str = "",
    origin: str | None = None,
) -> tuple[str, Future[Any]]:
    """Store a conversation; its id, and a future that is done when it is written. `origin` says where it came from, so
    that it is not added twice."""
    conversation = new_conversation_id()
    keys = known_keys()
    records = [to_record(message, position, {}, keys) for position, message in enumerate(messages)]
    opening = next((m.text for m in messages if m.role == "user" and m.type == "message"), "")
    at = created if created is not None else time.time()
    change = Change(
        conversation,
        at,
        records,
        opening=without_keys(" ".join(opening.split())[:200], keys),
        title=without_keys(" ".join(title.split())[:200], keys),
        model=model,
        origin=origin,
        messages=len(records),
        size=sum(record.size for record in records),
        at=at,
    )
    return conversation, store.thread.submit(writing.apply(change, folder_of(store.folder, conversation), keys))
