"""The storage thread: jobs in, commits out. What cannot be written now waits in memory and is written later.

A job is a function of the connection, safe to repeat. Jobs that wait are written together, in one transaction. A disk
that is full or a file that is locked, read-only or gone fails the whole batch: it is kept, `on_fault` is told, and it
is tried again every second. A job that is wrong in itself costs itself. A damaged file is replaced by a new one.
"""

from __future__ import annotations

import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oi_tui.engine.store.database import NewerStore, is_damage, is_fault_of_statement, open_for_writing, put_aside

Job = Callable[[sqlite3.Connection], Any]

RETRY_INTERVAL = 1.0
"""Seconds between tries while nothing can be written."""

CLOSING_PATIENCE = 3.0
"""Seconds that closing waits for the last writes."""


@dataclass(slots=True, eq=False)
class _Entry:
    job: Job
    key: object
    durable: bool
    done: Future[Any] = field(default_factory=Future)


class StorageThread:
    """Writes to one file. Starts with the first job; every method may be called from any thread."""

    def __init__(
        self,
        path: Path,
        *,
        on_fault: Callable[[str], object] = lambda _: None,
        open_database: Callable[..., sqlite3.Connection] = open_for_writing,
    ) -> None:
        """`on_fault` is told, in this thread, what is wrong in words for people, and "" when it is over."""
        self.fault = ""
        """Why nothing can be written at present; empty while all is well."""
        self.generation = 0
        """Goes up when a damaged file was replaced: whatever was stored before is not in the new one."""
        self._path = path
        self._on_fault = on_fault
        self._open_database = open_database
        self._queue: queue.SimpleQueue[_Entry | None] = queue.SimpleQueue()
        self._waiting: list[_Entry] = []
        self._connection: sqlite3.Connection | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._is_read_only = False

    def submit(self, job: Job, *, key: object = None, durable: bool = False) -> Future[Any]:
        """Hand a job over; returns at once. `durable`: on the disk itself when the future is done. A job with the `key`
        of one that still waits takes its place."""
        entry = _Entry(job, key, durable)
        with self._lock:
            if self._closing.is_set():
                entry.done.set_exception(RuntimeError("the store is closed"))
                return entry.done
            self._queue.put(entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="storage", daemon=True)
                self._thread.start()
        return entry.done

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything handed over so far is written. False if it is not."""
        try:
            self.submit(lambda connection: None, durable=True).result(timeout)
        except Exception:
            return False
        return True

    def close(self, timeout: float = CLOSING_PATIENCE) -> bool:
        """Write what waits and end. False if something could not be written in time. Idempotent."""
        with self._lock:
            self._closing.set()
            thread = self._thread
            self._queue.put(None)
        if thread is None:
            return True
        thread.join(timeout)
        return not thread.is_alive() and not self._waiting

    # -- in the thread -----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            self._collect()
            if self._waiting:
                self._write()
            if self._closing.is_set() and self._queue.empty():
                break
        for entry in self._waiting:
            entry.done.set_exception(OSError(self.fault or "the store was closed"))
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()

    def _collect(self) -> None:
        """Wait for a job, or for the time of the next try; take all that has come."""
        try:
            timeout = RETRY_INTERVAL if self._waiting else None
            self._take(self._queue.get(timeout=timeout))
            while True:
                self._take(self._queue.get_nowait())
        except queue.Empty:
            return

    def _take(self, entry: _Entry | None) -> None:
        if entry is None:
            return
        if entry.key is not None:
            for index, older in enumerate(self._waiting):
                if older.key == entry.key:
                    older.done.set_result(None)
                    del self._waiting[index]
                    break
        self._waiting.append(entry)

    def _write(self) -> None:
        batch = self._waiting
        try:
            connection = self._connected()
            results = self._transact(connection, batch)
        except NewerStore as error:
            self._give_up(error)
        except (sqlite3.Error, OSError) as error:
            self._failed(error)
        else:
            self._waiting = []
            for entry, result in zip(batch, results, strict=True):
                if isinstance(result, Exception):
                    entry.done.set_exception(result)
                else:
                    entry.done.set_result(result)
            self._report("")

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._open_database(self._path, on_aside=self._replaced)
        return self._connection

    def _transact(self, connection: sqlite3.Connection, batch: list[_Entry]) -> list[Any]:
        """All jobs in one transaction; the faulty ones left out. Raises what concerns the file as a whole."""
        durable = any(entry.durable for entry in batch)
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            results = [self._attempt(connection, entry) for entry in batch]
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            raise
        return results

    @staticmethod
    def _attempt(connection: sqlite3.Connection, entry: _Entry) -> Any:
        connection.execute("SAVEPOINT job")
        try:
            result = entry.job(connection)
        except Exception as error:
            if is_damage(error) or not is_fault_of_statement(error):
                raise  # the file, or the disk
            connection.execute("ROLLBACK TO job")
            connection.execute("RELEASE job")
            return error
        connection.execute("RELEASE job")
        return result

    def _failed(self, error: sqlite3.Error | OSError) -> None:
        """Keep what waits, and begin with a fresh connection next time."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
        if is_damage(error):
            with contextlib.suppress(OSError):
                self._replaced(put_aside(self._path))
                return
        self._report(f"Conversations cannot be saved at present: {reason(error)}. It is tried again all the time.")

    def _give_up(self, error: NewerStore) -> None:
        """Nothing will ever be written there: what waits is let go."""
        self._report(str(error))
        self._is_read_only = True
        batch, self._waiting = self._waiting, []
        for entry in batch:
            entry.done.set_exception(error)

    def _replaced(self, aside: Path) -> None:
        self.generation += 1
        self._on_fault(f"The stored conversations could not be read. They were kept as {aside}, and a new file begun.")

    def _report(self, fault: str) -> None:
        if fault != self.fault:
            self.fault = fault
            self._on_fault(fault)


def reason(error: BaseException) -> str:
    """What is wrong, in the words of the system."""
    text = str(error)
    known = {
        "database or disk is full": "the disk is full",
        "database is locked": "another program holds the file",
        "attempt to write a readonly database": "the file is read-only",
        "unable to open database file": "the file cannot be opened",
        "disk I/O error": "the disk reports an error",
    }
    if text in known:
        return known[text]
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return text
