"""Opening the store's file: private, in WAL mode, of a version we know; a damaged one is kept aside.

`open_for_writing` and `open_for_reading` are all there is. Both raise `sqlite3.Error` or `OSError` for what may pass (a
full disk, a lock) and `NewerStore` for a file of a later oi-tui.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from oi_tui.engine.errors import EngineError
from oi_tui.engine.private_files import make_private_folder
from oi_tui.engine.store import schema

LOCK_PATIENCE = 2.0
"""Seconds to wait for another process that writes, before a write counts as failed (and is tried again)."""

FILE_NAME = "conversations.db"


class NewerStore(EngineError):
    """The file was written by a later version of oi-tui."""

    code = "store"


def is_damage(error: BaseException) -> bool:
    """Whether an error says that the file itself is broken, which no waiting mends."""
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_fault_of_statement(error: BaseException) -> bool:
    """Whether the statement was wrong, not the file or the disk."""
    code = getattr(error, "sqlite_errorcode", None)
    return not isinstance(error, sqlite3.OperationalError | OSError) or (
        code is not None and code & 0xFF == sqlite3.SQLITE_ERROR
    )


def open_for_writing(path: Path, *, on_aside: Callable[[Path], object] = lambda _: None) -> sqlite3.Connection:
    """The one writing connection of this process. Creates, migrates (after a copy), and replaces a damaged file, which
    is kept beside it: `on_aside` is told where."""
    make_private_folder(path.parent)
    with contextlib.suppress(OSError):
        path.parent.chmod(0o700)
    try:
        return _opened(path)
    except sqlite3.DatabaseError as error:
        if not (is_damage(error) or is_fault_of_statement(error)):  # broken, or with tables that are not ours
            raise
        on_aside(put_aside(path))
        return _opened(path)


def open_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that cannot change anything. May be used by one thread at a time."""
    connection = sqlite3.connect(path, timeout=LOCK_PATIENCE, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA query_only = 1")
    return connection


def put_aside(path: Path) -> Path:
    """Rename a damaged file and what belongs to it; nothing is thrown away."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.stem}-damaged-{stamp}{path.suffix}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.stem}-damaged-{stamp}-{number}{path.suffix}")
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.replace(f"{path}{suffix}", f"{aside}{suffix}")
    return aside


def _opened(path: Path) -> sqlite3.Connection:
    _make_private(path)
    connection = sqlite3.connect(path, timeout=LOCK_PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        version = schema.version_of(connection)
        if version > schema.VERSION:
            raise NewerStore(
                f"The conversations in {path} were stored by a newer oi-tui; they can be read here, nothing is added.",
                "Update oi-tui to store conversations again.",
            )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA foreign_keys = 1")
        connection.execute("PRAGMA journal_size_limit = 8388608")
        if version == 0:
            _create(connection)
        elif version < schema.VERSION:
            back_up(connection, path.with_name(f"{path.stem}-version-{version}{path.suffix}"))
            schema.migrate(connection)
        connection.execute("SELECT number FROM conversations LIMIT 1").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection) -> None:
    """Two instances may start at once: the second finds the tables made."""
    try:
        schema.create(connection)
    except sqlite3.OperationalError:
        if connection.in_transaction:
            connection.rollback()
        if schema.version_of(connection) == 0:
            raise


def _make_private(path: Path) -> None:
    """0600 from the first byte on, whatever the umask; SQLite gives its side files the mode of the main one."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0), 0o600)
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(handle, 0o600)
    finally:
        os.close(handle)


def back_up(connection: sqlite3.Connection, target: Path) -> None:
    """A complete copy of the file, 0600. An older copy of the same version is replaced."""
    target.unlink(missing_ok=True)
    _make_private(target)
    copy = sqlite3.connect(target)
    try:
        connection.backup(copy)
    finally:
        copy.close()
