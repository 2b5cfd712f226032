"""What is read: the list of conversations, words in them, and one conversation whole."""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from oi_tui.engine.approval import digest_of
from oi_tui.engine.history import CodeFate
from oi_tui.engine.lmc import Message
from oi_tui.engine.store.records import to_message

_INFO = (
    "id, title, opening, created, changed, touched, model, kernel, parent, archived, messages, size, prompt_tokens, "
    "completion_tokens, cost"
)
_LINE = 240
_LARGEST_SEARCHED = 2_000_000


class ConversationInfo(NamedTuple):
    """A conversation as the list shows it. Times in seconds since 1970, `size` in bytes."""

    id: str
    given_title: str
    opening: str
    created: float
    changed: float
    touched: int
    model: str
    kernel: str
    parent: str | None
    archived: int
    messages: int
    size: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None

    @property
    def title(self) -> str:
        """What the user called it, or how it begins."""
        return self.given_title or self.opening or "(empty)"


class Hit(NamedTuple):
    """A message that holds the words that were looked for, and the line they stand in."""

    conversation: ConversationInfo
    message: str
    role: str
    type: str
    line: str


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """One conversation. `messages` is the history; `shown` has what was said about it (errors, notices) in between."""

    info: ConversationInfo
    messages: tuple[Message, ...]
    shown: tuple[Message, ...]
    unsaved: frozenset[str] = frozenset()
    """Messages that are otherwise than stored: what was unfinished when the program ended is settled by loading."""
    damaged: int = 0
    """How many messages could not be read."""


def listing(
    connection: sqlite3.Connection, *, archived: bool | None = False, limit: int = -1
) -> list[ConversationInfo]:
    """Conversations, the one that was written to last first. `archived` None: all of them."""
    which = "" if archived is None else f"AND archived = {int(archived)}"
    rows = connection.execute(
        f"SELECT {_INFO} FROM conversations WHERE deleted = 0 {which} ORDER BY touched DESC LIMIT ?", (limit,)
    )
    return [ConversationInfo._make(row) for row in rows]


def info(connection: sqlite3.Connection, conversation: str) -> ConversationInfo | None:
    """One conversation by its id, deleted or not."""
    row = connection.execute(f"SELECT {_INFO} FROM conversations WHERE id = ?", (conversation,)).fetchone()
    return ConversationInfo._make(row) if row else None


def with_prefix(connection: sqlite3.Connection, prefix: str) -> list[ConversationInfo]:
    """Conversations whose id begins so; two at most."""
    if not re.fullmatch(r"[0-9a-f]+", prefix):
        return []
    rows = connection.execute(
        f"SELECT {_INFO} FROM conversations WHERE deleted = 0 AND id >= ? AND id < ? LIMIT 2", (prefix, prefix + "g")
    )
    return [ConversationInfo._make(row) for row in rows]


def preview(
    connection: sqlite3.Connection, conversation: str, *, around: str | None = None, limit: int = 20
) -> list[tuple[str, str, str, str]]:
    """(id, role, type, text) of some messages: from the beginning, or from a little before message `around`."""
    rows = connection.execute(
        """
        SELECT m.id, m.role, m.type, CASE WHEN m.kind = 'text' THEN substr(m.content, 1, 2000) ELSE '' END
        FROM messages m JOIN conversations c ON c.number = m.conversation
        WHERE c.id = ? AND m.type IN ('message', 'code', 'console', 'image') AND m.position >= coalesce(
            (SELECT position - 1 FROM messages WHERE conversation = c.number AND id = ?), 0)
        ORDER BY m.position LIMIT ?
        """,
        (conversation, around, limit),
    )
    return [(row[0], row[1], row[2], row[3]) for row in rows]


# -- words ------------------------------------------------------------------------------------------------------------


def search(connection: sqlite3.Connection, words: str, limit: int = 100) -> list[Hit]:
    """Messages that hold all of these words, newest first; the last word may be a beginning."""
    found = _by_index(connection, words, limit)
    if not found and _needs_scan(words):
        found = _by_scan(connection, words, limit)
    parts = _parts(words)
    return [Hit(ConversationInfo._make(row[4:]), row[0], row[1], row[2], matching_line(row[3], parts)) for row in found]


_HIT = "m.id, m.role, m.type, substr(m.content, 1, 2000000), " + ", ".join(f"c.{name}" for name in _INFO.split(", "))


def _by_index(connection: sqlite3.Connection, words: str, limit: int) -> list[Any]:
    parts = _parts(words)
    if not parts:
        return []
    query = " ".join(f'"{part}"' for part in parts) + ("*" if not words[-1:].isspace() else "")
    return connection.execute(
        f"SELECT {_HIT} FROM words JOIN messages m ON m.key = words.rowid "
        "JOIN conversations c ON c.number = m.conversation WHERE words MATCH ? AND c.deleted = 0 "
        "ORDER BY words.rowid DESC LIMIT ?",
        (query, limit),
    ).fetchall()


def _needs_scan(words: str) -> bool:
    """Scripts without spaces are one long word to the index."""
    return any(unicodedata.category(character) == "Lo" for character in words)


def _by_scan(connection: sqlite3.Connection, words: str, limit: int) -> list[Any]:
    return connection.execute(
        f"SELECT {_HIT} FROM messages m JOIN conversations c ON c.number = m.conversation "
        "WHERE m.kind = 'text' AND instr(m.content, ?) AND c.deleted = 0 ORDER BY m.key DESC LIMIT ?",
        (words.strip(), limit),
    ).fetchall()


def _parts(words: str) -> list[str]:
    """The words as the index cuts them."""
    return re.findall(r"\w+", words.replace("_", " "))


def matching_line(text: str, parts: Sequence[str]) -> str:
    """The line with most of the words, around the first of them."""
    folded = [_folded(part) for part in parts]
    best, best_count = "", 0
    for line in text.splitlines():
        low = _folded(line)
        count = sum(part in low for part in folded)
        if count > best_count:
            best, best_count = line, count
            if count == len(folded):
                break
    best = best.strip()
    if len(best) > _LINE:
        at = max(0, min((i for i in (_folded(best).find(part) for part in folded) if i >= 0), default=0) - 40)
        best = ("…" if at else "") + best[at : at + _LINE]
    return best


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFD", text)
    return "".join(c for c in plain if not unicodedata.combining(c)).lower()


# -- a whole conversation ---------------------------------------------------------------------------------------------


def load(connection: sqlite3.Connection, conversation: str, folder: Path) -> StoredConversation | None:
    """Everything of one conversation; None if there is no such one. What cannot be read is left out and counted."""
    found = info(connection, conversation)
    if found is None:
        return None
    number = connection.execute("SELECT number FROM conversations WHERE id = ?", (conversation,)).fetchone()[0]
    messages: list[Message] = []
    damaged = 0
    for row in _rows(connection, "SELECT * FROM messages WHERE conversation = ? ORDER BY position, key", number):
        try:
            messages.append(to_message(row, folder))
        except (ValueError, TypeError, KeyError):
            damaged += 1
    unfinished = _unfinished(connection, number)
    read = {message.id: message for message in messages}
    messages = _settled([*messages, *(message for message in unfinished if message.id not in read)])
    shown = _with_events(connection, number, messages)
    unsaved = frozenset(message.id for message in messages if read.get(message.id) is not message)
    return StoredConversation(found, tuple(messages), tuple(shown), unsaved, damaged)


def _rows(connection: sqlite3.Connection, query: str, number: int) -> Iterator[Mapping[str, Any]]:
    cursor = connection.execute(query, (number,))
    names = [column[0] for column in cursor.description]
    for row in cursor:
        yield dict(zip(names, row, strict=True))


def _unfinished(connection: sqlite3.Connection, number: int) -> list[Message]:
    """What was being written when the program ended."""
    row = connection.execute("SELECT messages FROM unfinished WHERE conversation = ?", (number,)).fetchone()
    if row is None:
        return []
    try:
        return [
            Message(
                wire["role"],
                wire["type"],
                wire["content"],
                wire.get("format"),
                wire.get("recipient"),
                id=wire["id"],
                meta=wire.get("meta", {}),
            )
            for wire in json.loads(row[0])
        ]
    except (ValueError, TypeError, KeyError):
        return []


def _settled(messages: list[Message]) -> list[Message]:
    """Code that waits is asked for again, but only at the end; code that was running when the program ended was
    interrupted. Output stands behind its code."""
    messages = _in_place(messages)
    last = next((m for m in reversed(messages) if m.role != "computer"), None)
    out = []
    for message in messages:
        if message.type == "code" and message.role != "computer":
            state = message.meta.get("state")
            if state == CodeFate.PENDING:
                waits = message is last or _waits_with(message, last, messages)
                changes = {"loaded": True, "digest": digest_of(message.text)} if waits else {"state": CodeFate.SKIPPED}
                message = message.with_meta(**changes)
            elif "running" in message.meta:
                rest = {name: value for name, value in message.meta.items() if name != "running"}
                message = replace(message, meta={"exit": "interrupted", **rest})
        out.append(message)
    return out


def _waits_with(message: Message, last: Message | None, messages: Sequence[Message]) -> bool:
    """Whether only code that waits as well follows."""
    after = messages[messages.index(message) :]
    return last is not None and all(
        m.role == "computer" or (m.type == "code" and m.meta.get("state") == CodeFate.PENDING) for m in after
    )


def _in_place(messages: list[Message]) -> list[Message]:
    """An unfinished output goes behind its code."""
    if not messages or messages[-1].role != "computer":
        return messages
    *rest, last = messages
    code_id = last.meta.get("code_id")
    ends = [i for i, m in enumerate(rest) if m.id == code_id or m.meta.get("code_id") == code_id]
    return [*rest[: ends[-1] + 1], last, *rest[ends[-1] + 1 :]] if ends else messages


def _with_events(connection: sqlite3.Connection, number: int, messages: Sequence[Message]) -> Iterator[Message]:
    """The messages with errors and notices where they appeared."""
    said: dict[str | None, list[Message]] = {}
    for row in _rows(connection, "SELECT * FROM events WHERE conversation = ? ORDER BY key", number):
        if row["kind"] not in ("error", "notice"):
            continue
        try:
            content = json.loads(row["content"])
            message = Message("server", row["kind"], str(content["text"]), str(content["format"]))
        except (ValueError, TypeError, KeyError):
            continue
        if content.get("code_id"):
            message = replace(message, id=str(content["code_id"]))
        said.setdefault(row["after"], []).append(message)
    yield from said.pop(None, [])
    for message in messages:
        yield message
        yield from said.pop(message.id, [])
