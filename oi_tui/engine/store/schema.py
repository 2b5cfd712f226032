"""The tables of the store, their version, and how an older file becomes a present one.

The order of things never depends on the clock: conversations are listed by `touched`, a counter, and messages by their
position. Times are kept for people.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

VERSION = 1
"""Kept in `PRAGMA user_version`. Raise it with every change of the tables, and add the step to `MIGRATIONS`."""

APPLICATION_ID = 0x6F697475
""" "oitu", in `PRAGMA application_id`: tells our files from others."""

TABLES = """
CREATE TABLE conversations (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL DEFAULT '',
    opening TEXT NOT NULL DEFAULT '',
    created REAL NOT NULL,
    changed REAL NOT NULL,
    touched INTEGER NOT NULL,
    model TEXT NOT NULL DEFAULT '',
    kernel TEXT NOT NULL DEFAULT '',
    parent TEXT,
    origin TEXT,
    archived INTEGER NOT NULL DEFAULT 0,
    deleted INTEGER NOT NULL DEFAULT 0,
    messages INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL DEFAULT 0,
    prompt_tokens INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0,
    cost REAL
);
CREATE INDEX conversations_in_order ON conversations (deleted, archived, touched DESC);
CREATE INDEX conversations_by_origin ON conversations (origin) WHERE origin IS NOT NULL;

CREATE TABLE messages (
    key INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    id TEXT NOT NULL,
    position INTEGER NOT NULL,
    role TEXT NOT NULL,
    type TEXT NOT NULL,
    format TEXT,
    recipient TEXT,
    content TEXT NOT NULL,
    kind TEXT NOT NULL DEFAULT 'text',
    meta TEXT NOT NULL DEFAULT '{}',
    at REAL NOT NULL,
    UNIQUE (conversation, id)
);
CREATE INDEX messages_in_order ON messages (conversation, position);

CREATE TABLE unfinished (
    conversation INTEGER PRIMARY KEY REFERENCES conversations (number) ON DELETE CASCADE,
    messages TEXT NOT NULL
);

CREATE TABLE events (
    key INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    after TEXT,
    kind TEXT NOT NULL,
    content TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE INDEX events_in_order ON events (conversation, key);

CREATE VIRTUAL TABLE words USING fts5 (
    content, content='messages', content_rowid='key', tokenize='unicode61 remove_diacritics 2', prefix='2 3'
);
CREATE TRIGGER messages_added AFTER INSERT ON messages WHEN new.kind = 'text' BEGIN
    INSERT INTO words (rowid, content) VALUES (new.key, new.content);
END;
CREATE TRIGGER messages_removed AFTER DELETE ON messages WHEN old.kind = 'text' BEGIN
    INSERT INTO words (words, rowid, content) VALUES ('delete', old.key, old.content);
END;
CREATE TRIGGER messages_changed AFTER UPDATE OF content, kind ON messages
WHEN old.content IS NOT new.content OR old.kind IS NOT new.kind BEGIN
    INSERT INTO words (words, rowid, content) SELECT 'delete', old.key, old.content WHERE old.kind = 'text';
    INSERT INTO words (rowid, content) SELECT new.key, new.content WHERE new.kind = 'text';
END;
"""

MIGRATIONS: Mapping[int, str] = {}
"""By version: what makes a file of this version one of the next."""


def create(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty file, in one transaction."""
    connection.executescript(
        f"BEGIN IMMEDIATE;\n{TABLES}\nPRAGMA application_id = {APPLICATION_ID};\n"
        f"PRAGMA user_version = {VERSION};\nCOMMIT;"
    )


def version_of(connection: sqlite3.Connection) -> int:
    """0 for an empty file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the tables to the present version, each step whole or not at all. Raises `sqlite3.Error`."""
    while (version := version_of(connection)) < VERSION:
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{MIGRATIONS[version]}\nPRAGMA user_version = {version + 1};\nCOMMIT;"
            )
        except sqlite3.Error:
            if connection.in_transaction:
                connection.rollback()
            raise
