"""What is written, as jobs of the storage thread. Each may be repeated without harm."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oi_tui.engine.private_files import make_private_folder
from oi_tui.engine.store.records import Record, to_json, with_files
from oi_tui.engine.store.writer import Job

NEXT_TOUCH = "(SELECT coalesce(max(touched), 0) + 1 FROM conversations)"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened beside the messages: `kind` is error, notice, decision, usage or kernel."""

    kind: str
    content: Any
    after: str | None
    """Id of the message that was the last one then."""
    at: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True)
class Change:
    """What is new about a conversation. The numbers are of the whole conversation."""

    conversation: str
    created: float
    records: Sequence[Record] = ()
    gone: Sequence[str] = ()
    events: Sequence[Event] = ()
    opening: str = ""
    title: str = ""
    model: str = ""
    kernel: str = ""
    parent: str | None = None
    origin: str | None = None
    messages: int = 0
    size: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    unfinished: Sequence[dict[str, Any]] | None = None
    """Messages that are being written; empty: none any more; None: as before."""
    at: float = field(default_factory=time.time)


def apply(change: Change, folder: Path, keys: Iterable[str]) -> Job:
    """The job that writes a change."""
    keys = tuple(keys)

    def job(connection: sqlite3.Connection) -> None:
        make_private_folder(folder)
        number = _conversation(connection, change)
        for message_id in change.gone:
            connection.execute("DELETE FROM messages WHERE conversation = ? AND id = ?", (number, message_id))
        for record in change.records:
            _put(connection, number, with_files(record, folder, keys), change.at)
        connection.executemany(
            "INSERT INTO events (conversation, after, kind, content, at) VALUES (?, ?, ?, ?, ?)",
            [(number, e.after, e.kind, to_json(e.content), e.at) for e in change.events],
        )
        if change.unfinished is not None:
            set_unfinished(connection, number, change.unfinished)

    return job


def _conversation(connection: sqlite3.Connection, change: Change) -> int:
    """The conversation's row, made or brought up to date."""
    connection.execute(
        f"""
        INSERT INTO conversations (id, title, opening, created, changed, touched, model, kernel, parent, origin,
            messages, size, prompt_tokens, completion_tokens, cost)
        VALUES (?, ?, ?, ?, ?, {NEXT_TOUCH}, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET opening = excluded.opening, changed = excluded.changed,
            touched = CASE WHEN touched = excluded.touched - 1 THEN touched ELSE excluded.touched END,
            model = coalesce(nullif(excluded.model, ''), model), kernel = coalesce(nullif(excluded.kernel, ''), kernel),
            messages = excluded.messages, size = excluded.size, prompt_tokens = excluded.prompt_tokens,
            completion_tokens = excluded.completion_tokens, cost = excluded.cost
        """,
        (
            change.conversation,
            change.title,
            change.opening,
            change.created,
            change.at,
            change.model,
            change.kernel,
            change.parent,
            change.origin,
            change.messages,
            change.size,
            change.prompt_tokens,
            change.completion_tokens,
            change.cost,
        ),
    )
    row = connection.execute("SELECT number FROM conversations WHERE id = ?", (change.conversation,)).fetchone()
    return int(row[0])


def _put(connection: sqlite3.Connection, number: int, record: Record, at: float) -> None:
    connection.execute(
        """
        INSERT INTO messages (conversation, id, position, role, type, format, recipient, content, kind, meta, at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (conversation, id) DO UPDATE SET position = excluded.position, role = excluded.role,
            type = excluded.type, format = excluded.format, recipient = excluded.recipient,
            content = excluded.content, kind = excluded.kind, meta = excluded.meta
        """,
        (
            number,
            record.id,
            record.position,
            record.role,
            record.type,
            record.format,
            record.recipient,
            record.content,
            record.kind,
            to_json(record.meta),
            at,
        ),
    )


def set_unfinished(connection: sqlite3.Connection, number: int, messages: Sequence[dict[str, Any]]) -> None:
    if messages:
        connection.execute("INSERT OR REPLACE INTO unfinished VALUES (?, ?)", (number, to_json(list(messages))))
    else:
        connection.execute("DELETE FROM unfinished WHERE conversation = ?", (number,))


def copy_conversation(source: str, target: str, *, title: str, until: int | None = None, archived: bool = False) -> Job:
    """A conversation under another id, with all its messages or those before position `until`. Files are not copied."""

    def job(connection: sqlite3.Connection) -> None:
        now = time.time()
        connection.execute(
            f"""
            INSERT OR IGNORE INTO conversations (id, title, opening, created, changed, touched, model, kernel, parent,
                archived, messages, size, prompt_tokens, completion_tokens, cost)
            SELECT ?, ?, opening, created, ?, {NEXT_TOUCH}, model, kernel, id, ?, messages, size, prompt_tokens,
                completion_tokens, cost
            FROM conversations WHERE id = ?
            """,
            (target, title, now, archived, source),
        )
        numbers = dict(
            connection.execute("SELECT id, number FROM conversations WHERE id IN (?, ?)", (source, target)).fetchall()
        )
        if source not in numbers or target not in numbers:
            raise ValueError(f"there is no conversation {source}")
        last = 1 << 60 if until is None else until
        columns = "id, position, role, type, format, recipient, content, kind, meta, at"
        connection.execute(
            f"INSERT OR IGNORE INTO messages (conversation, {columns}) SELECT ?, {columns} FROM messages "
            "WHERE conversation = ? AND position < ? ORDER BY position",
            (numbers[target], numbers[source], last),
        )
        connection.execute(
            "INSERT INTO events (conversation, after, kind, content, at) "
            "SELECT ?, after, kind, content, at FROM events WHERE conversation = ? "
            "AND (after IS NULL OR after IN (SELECT id FROM messages WHERE conversation = ?)) "
            "ORDER BY key",
            (numbers[target], numbers[source], numbers[target]),
        )
        if until is None:
            connection.execute(
                "INSERT OR IGNORE INTO unfinished SELECT ?, messages FROM unfinished WHERE conversation = ?",
                (numbers[target], numbers[source]),
            )
        connection.execute(
            "UPDATE conversations SET messages = (SELECT count(*) FROM messages WHERE conversation = number), "
            "size = (SELECT coalesce(sum(length(content)), 0) FROM messages WHERE conversation = number) "
            "WHERE number = ?",
            (numbers[target],),
        )

    return job


def setting(conversation: str, column: str, value: Any) -> Job:
    """Change one column of a conversation: title, archived or deleted."""
    assert column in ("title", "archived", "deleted")

    def job(connection: sqlite3.Connection) -> None:
        connection.execute(f"UPDATE conversations SET {column} = ? WHERE id = ?", (value, conversation))

    return job


def removal(conversations: Sequence[str]) -> Job:
    """Take conversations out for good, with their words in the index."""

    def job(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA secure_delete = FAST")
        for conversation in conversations:
            connection.execute(
                "DELETE FROM messages WHERE conversation = (SELECT number FROM conversations WHERE id = ?)",
                (conversation,),
            )
            connection.execute("DELETE FROM conversations WHERE id = ?", (conversation,))

    return job


def rebuilt_index(connection: sqlite3.Connection) -> None:
    """The job that makes the index of words anew."""
    connection.execute("INSERT INTO words (words) VALUES ('rebuild')")
