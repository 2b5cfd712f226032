"""The store as the rest of the program uses it: one file of conversations, read here and written by its own thread."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from oi_tui.engine.errors import EngineError
from oi_tui.engine.store import reading, schema, writing
from oi_tui.engine.store.database import FILE_NAME, is_damage, open_for_reading
from oi_tui.engine.store.places import folder_of, make_folder, store_folder
from oi_tui.engine.store.reading import ConversationInfo, Hit, StoredConversation
from oi_tui.engine.store.records import link_or_copy
from oi_tui.engine.store.writer import Job, StorageThread

Result = TypeVar("Result")

_MIGRATION_PATIENCE = 60.0
LAST = "last"
"""Names the conversation that was written to last."""


class StoreError(EngineError):
    """The store cannot do what was asked."""

    code = "store"


def new_conversation_id() -> str:
    """Also the name of the conversation's folder."""
    return uuid.uuid4().hex[:16]


class Store:
    """All conversations. Reading methods block for milliseconds and may be called from any thread; writing ones return
    a future. Nothing is created on the disk before the first write."""

    def __init__(self, folder: Path | None = None, *, on_fault: Callable[[str], object] = lambda _: None) -> None:
        """`on_fault` is told, in the storage thread, why nothing can be saved at present, and "" when it can again."""
        self.folder = folder or store_folder()
        self.path = self.folder / FILE_NAME
        self.on_fault = on_fault
        self.said: list[str] = []
        """What was said about the file, for those who listen later."""
        self.thread = StorageThread(self.path, on_fault=self._told)
        self._reader: sqlite3.Connection | None = None
        self._reading = threading.Lock()
        self._generation = 0
        self._deleted: set[str] = set()

    @property
    def fault(self) -> str:
        """Why nothing can be saved at present; empty while all is well."""
        return self.thread.fault

    def _told(self, text: str) -> None:
        if text:
            self.said.append(text)
        self.on_fault(text)

    # -- reading -----------------------------------------------------------------------------------------------------

    def listing(self, *, archived: bool | None = False, limit: int = -1) -> list[ConversationInfo]:
        """Conversations, newest first. Raises `StoreError`."""
        return self._read(lambda c: reading.listing(c, archived=archived, limit=limit), [])

    def search(self, words: str, limit: int = 100) -> list[Hit]:
        """Messages with all of these words, newest first. Raises `StoreError`."""
        return self._read(lambda c: reading.search(c, words, limit), [])

    def find(self, name: str) -> ConversationInfo | None:
        """The conversation that is meant by "last", an id, or the beginning of one. Raises `StoreError`."""
        if name == LAST:
            newest = self.listing(archived=None, limit=1)
            return newest[0] if newest else None
        nothing: list[ConversationInfo] = []
        found = self._read(lambda c: reading.with_prefix(c, name), nothing)
        if len(found) > 1:
            raise StoreError(f"Several conversations begin with {name}.", "Give more digits.")
        return found[0] if found else None

    def origins(self) -> set[str]:
        """Where the conversations that were imported came from."""
        query = "SELECT origin FROM conversations WHERE origin IS NOT NULL"
        nothing: set[str] = set()
        return self._read(lambda c: {str(row[0]) for row in c.execute(query)}, nothing)

    def preview(self, conversation: str, *, around: str | None = None) -> list[tuple[str, str, str, str]]:
        """(id, role, type, text) of some messages, from the beginning or from message `around` on."""
        return self._read(lambda c: reading.preview(c, conversation, around=around), [])

    def load(self, conversation: str) -> StoredConversation:
        """One conversation. Raises `StoreError`."""
        folder = folder_of(self.folder, conversation)
        found = self._read(lambda c: reading.load(c, conversation, folder), None)
        if found is None:
            raise StoreError(f"There is no conversation {conversation}.")
        return found

    def _connected(self) -> sqlite3.Connection | None:
        """The connection for reading, of the file that is there now; None while there is none."""
        if self._reader is not None and self._generation != self.thread.generation:
            self._reader.close()
            self._reader = None
        if self._reader is None:
            if not self.path.exists():
                return None
            self._generation = self.thread.generation
            self._reader = open_for_reading(self.path)
            if 0 < schema.version_of(self._reader) < schema.VERSION:
                self.thread.flush(_MIGRATION_PATIENCE)  # the writing connection brings the file up to date
        return self._reader

    def _read(self, query: Callable[[sqlite3.Connection], Result], nothing: Result) -> Result:
        with self._reading:
            try:
                reader = self._connected()
                return nothing if reader is None else query(reader)
            except (sqlite3.Error, OSError) as error:
                if self._reader is not None:
                    with contextlib.suppress(sqlite3.Error):
                        self._reader.close()
                    self._reader = None
                if is_damage(error):
                    self.thread.submit(writing.rebuilt_index)  # finds out whether it is only the index
                if "no such table" in str(error):
                    return nothing  # not made yet, or not a file of ours: writing will tell
                raise StoreError(f"The conversations cannot be read: {error}.") from error

    # -- writing -----------------------------------------------------------------------------------------------------

    def rename(self, conversation: str, title: str) -> Future[Any]:
        """Give a title; an empty one takes it away."""
        return self._submit(writing.setting(conversation, "title", " ".join(title.split())[:200]))

    def archive(self, conversation: str, archived: bool = True) -> Future[Any]:
        return self._submit(writing.setting(conversation, "archived", int(archived)))

    def delete(self, conversation: str) -> Future[Any]:
        """Out of all lists at once; gone for good when the store is closed."""
        self._deleted.add(conversation)
        return self._submit(writing.setting(conversation, "deleted", 1))

    def undelete(self, conversation: str) -> Future[Any]:
        self._deleted.discard(conversation)
        return self._submit(writing.setting(conversation, "deleted", 0))

    def fork(self, conversation: str, *, until: int | None = None, title: str = "", archived: bool = False) -> str:
        """A new conversation with the messages of this one, or those before position `until`. Returns its id at once;
        what is read afterwards finds it."""
        new = new_conversation_id()
        copy = writing.copy_conversation(conversation, new, title=title, until=until, archived=archived)
        source, target = folder_of(self.folder, conversation), folder_of(self.folder, new)

        def job(connection: sqlite3.Connection) -> None:
            make_folder(self.folder, new)
            for path in source.iterdir() if source.is_dir() else ():
                if path.is_file() and path.name != "lock" and not path.name.startswith(".") and not path.is_symlink():
                    with contextlib.suppress(FileExistsError):
                        if not (target / path.name).exists():
                            link_or_copy(path, target / path.name)
            copy(connection)

        self._submit(job)
        return new

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until what was handed over is written. False if it is not."""
        return self.thread.flush(timeout)

    def _submit(self, job: Job) -> Future[Any]:
        return self.thread.submit(job, durable=True)

    def close(self, timeout: float = 3.0) -> bool:
        """Write what waits, remove what was deleted, and end. False if not everything could be written."""
        if self._deleted:
            self._submit(writing.removal(sorted(self._deleted)))
        written = self.thread.close(timeout)
        if written:
            for conversation in self._deleted:
                shutil.rmtree(folder_of(self.folder, conversation), ignore_errors=True)
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None
        return written

    def sweep(self) -> None:
        """Tidy up after instances that ended in the middle of something. Cheap; call it when nothing else goes on."""
        self.thread.submit(lambda connection: _sweep(connection, self.folder))


def _sweep(connection: sqlite3.Connection, folder: Path) -> None:
    """Remove what was deleted more than a day ago, and folders of conversations that never began."""
    yesterday = time.time() - 86_400
    old = [
        row[0]
        for row in connection.execute("SELECT id FROM conversations WHERE deleted = 1 AND changed < ?", (yesterday,))
    ]
    writing.removal(old)(connection)
    known = {row[0] for row in connection.execute("SELECT id FROM conversations")}
    for name in _old_folders(folder, yesterday):
        if name not in known:
            shutil.rmtree(folder / name, ignore_errors=True)


def _old_folders(folder: Path, before: float) -> Iterable[str]:
    found: list[str] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if len(entry.name) == 16 and entry.is_dir(follow_symlinks=False) and entry.stat().st_mtime < before:
                found.append(entry.name)
    return found
