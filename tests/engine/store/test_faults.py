"""Disks that are full, files that are damaged, homes that cannot be written: nothing is lost, work goes on."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oi_tui.engine.store import schema, writer
from oi_tui.engine.store.database import FILE_NAME, open_for_writing
from oi_tui.engine.store.store import Store, StoreError
from oi_tui.engine.store.writer import StorageThread
from tests.engine.store.desk import PICTURE, StoredDesk, everything, python


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "RETRY_INTERVAL", 0.02)


class Disk:
    """Lets the n-th call to SQLite fail, and the `times` - 1 after it."""

    def __init__(self, first: int, error: BaseException, times: int = 2) -> None:
        self.first, self.error, self.times = first, error, times
        self.calls = 0
        self.failed = 0

    def open(self, path: Path, **more: Any) -> Any:
        self.count()
        return Failing(open_for_writing(path, **more), self)

    def count(self) -> None:
        self.calls += 1
        if self.first <= self.calls < self.first + self.times:
            self.failed += 1
            raise self.error


class Failing:
    def __init__(self, connection: sqlite3.Connection, disk: Disk) -> None:
        self._connection, self._disk = connection, disk

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._connection, name)
        if name not in ("execute", "executemany", "executescript"):
            return value

        def call(*arguments: Any) -> Any:
            if not str(arguments[0]).startswith("ROLLBACK"):
                self._disk.count()
            return value(*arguments)

        return call


def full() -> sqlite3.OperationalError:
    return _coded(sqlite3.OperationalError("database or disk is full"), sqlite3.SQLITE_FULL)


def broken() -> sqlite3.OperationalError:
    return _coded(sqlite3.OperationalError("disk I/O error"), sqlite3.SQLITE_IOERR)


def read_only() -> sqlite3.OperationalError:
    return _coded(sqlite3.OperationalError("attempt to write a readonly database"), sqlite3.SQLITE_READONLY)


def _coded(error: Any, code: int) -> Any:
    error.sqlite_errorcode = code
    return error


def with_disk(store: Store, disk: Disk) -> list[str]:
    """Put the disk under the store; what is said about it."""
    told: list[str] = []
    store.thread = StorageThread(store.path, on_fault=told.append, open_database=disk.open)
    return told


@pytest.mark.parametrize("error", [full, broken, read_only])
async def test_whichever_call_fails_nothing_is_lost_and_saving_resumes(tmp_path: Path, error: Any) -> None:
    counted = Disk(0, full(), 0)
    store = Store(tmp_path / "counting")
    with_disk(store, counted)
    desk = StoredDesk(store, python("plot()"), "Done.", script=everything)
    await desk.ask("draw")
    wanted = [m.text for m in (await desk.loaded()).messages]
    store.close()
    assert counted.calls > 30
    for first in range(1, counted.calls, 3):
        store = Store(tmp_path / f"{first}")
        disk = Disk(first, error())
        told = with_disk(store, disk)
        desk = StoredDesk(store, python("plot()"), "Done.", script=everything)
        await desk.ask("draw")
        assert [m.text for m in (await desk.loaded()).messages] == wanted, f"call {first}"
        if disk.failed:
            assert "cannot be saved" in told[0] and told[-1] == ""
        store.close()


async def test_the_user_is_told_in_the_conversation_and_goes_on(store: Store) -> None:
    disk = Disk(1, full(), 10_000)
    with_disk(store, disk)
    desk = StoredDesk(store, "One.", "Two.")
    async with asyncio.timeout(20):
        while True:
            chunks = await desk.ask("hello")
            said = [chunk.text for chunk in chunks if chunk.format == "store"]
            if said:
                break
    assert "the disk is full" in said[0]
    assert desk.session.messages[1]["content"] == "One."
    disk.times = 0
    chunks = await desk.ask("more")
    async with asyncio.timeout(20):
        while store.fault:
            await asyncio.sleep(0.02)
    loaded = await desk.loaded()
    assert [m.text for m in loaded.messages] == [m["content"] for m in desk.session.messages]


async def test_pictures_that_cannot_be_written_are_written_later(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from oi_tui.engine.store import records

    real, left = records._write_once, [3]

    def failing(path: Path, data: bytes) -> None:
        if left[0]:
            left[0] -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, data)

    monkeypatch.setattr(records, "_write_once", failing)
    desk = StoredDesk(store, python("plot()"), "Done.", script=everything)
    await desk.ask("draw")
    assert [m.text for m in (await desk.loaded()).messages if m.type == "image"] == [PICTURE, PICTURE]


async def test_a_home_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    told: list[str] = []
    store = Store(tmp_path / "file" / "conversations", on_fault=told.append)
    desk = StoredDesk(store, python("x"), "Done.")
    chunks = await desk.ask("hello")
    assert desk.session.messages[-1]["content"] == "Done."
    async with asyncio.timeout(10):
        while not told:
            await asyncio.sleep(0.01)
    assert "cannot be saved" in told[0]
    assert chunks
    await desk.session.aclose()
    store.close(0.1)


async def test_a_damaged_file_is_kept_aside_and_a_new_one_begun(tmp_path: Path) -> None:
    folder = tmp_path / "conversations"
    folder.mkdir()
    (folder / FILE_NAME).write_bytes(b"SQLite format 3\x00" + os.urandom(5000))
    told: list[str] = []
    store = Store(folder, on_fault=told.append)
    desk = StoredDesk(store, "Fine.")
    await desk.ask("hello")
    assert [m.text for m in (await desk.loaded()).messages] == ["hello", "Fine."]
    (aside,) = folder.glob("*-damaged-*.db")
    assert aside.stat().st_size == 5016
    assert str(aside) in told[0]
    store.close()


async def test_a_file_that_breaks_while_it_is_used_loses_nothing_of_this_conversation(store: Store) -> None:
    desk = StoredDesk(store, "One.", "Two.")
    await desk.ask("first")
    store.flush(10)

    def corrupt(connection: sqlite3.Connection) -> None:
        raise _coded(sqlite3.DatabaseError("database disk image is malformed"), sqlite3.SQLITE_CORRUPT)

    failed = [False]

    def once(connection: sqlite3.Connection) -> None:
        if not failed[0]:
            failed[0] = True
            corrupt(connection)

    store.thread.submit(once)
    store.flush(10)
    assert store.thread.generation == 1
    await desk.ask("second")
    assert [m.text for m in (await desk.loaded()).messages] == ["first", "One.", "second", "Two."]


async def test_a_damaged_record_costs_itself(store: Store) -> None:
    for words in ("one", "two"):
        desk = StoredDesk(store, "Look.", "More.")
        await desk.ask(words)
        await desk.ask("again")
    store.flush(10)
    raw = sqlite3.connect(store.path)
    raw.execute("UPDATE messages SET meta = '{broken' WHERE content = 'Look.' AND conversation = 2")
    raw.execute("UPDATE messages SET content = x'ff00' WHERE content = 'More.' AND conversation = 2")
    raw.commit()
    raw.close()
    newest, oldest = store.listing()
    damaged = store.load(newest.id)
    assert ([m.text for m in damaged.messages], damaged.damaged) == (["two", "again"], 2)
    assert store.load(oldest.id).damaged == 0
    assert len(store.load(oldest.id).messages) == 4


async def test_a_newer_store_is_read_and_left_alone(store: Store) -> None:
    desk = StoredDesk(store, "Fine.")
    await desk.ask("hello")
    store.close()
    raw = sqlite3.connect(store.path)
    raw.execute("PRAGMA user_version = 99")
    raw.close()
    before = store.path.read_bytes()
    again = Store(store.folder)
    assert [c.title for c in again.listing()] == ["hello"]
    other = StoredDesk(again, "And here?", stored=again.load(desk.session.conversation))
    chunks = await other.ask("more")
    said = [chunk.text for chunk in [*chunks, *await other.ask("and more")] if chunk.format == "store"]
    assert "newer oi-tui" in said[0]
    assert store.path.read_bytes() == before
    await other.session.aclose()
    again.close()


def test_an_older_store_is_copied_and_brought_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / FILE_NAME
    connection = open_for_writing(path)
    connection.execute("INSERT INTO conversations (id, created, changed, touched) VALUES ('abc', 1, 1, 1)")
    connection.close()
    monkeypatch.setattr(schema, "VERSION", 2)
    monkeypatch.setattr(schema, "MIGRATIONS", {1: "ALTER TABLE conversations ADD COLUMN mood TEXT;"})
    connection = open_for_writing(path)
    assert schema.version_of(connection) == 2
    assert connection.execute("SELECT id, mood FROM conversations").fetchall() == [("abc", None)]
    connection.close()
    copy = sqlite3.connect(tmp_path / "conversations-version-1.db")
    assert schema.version_of(copy) == 1
    assert copy.execute("SELECT id FROM conversations").fetchall() == [("abc",)]
    copy.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / FILE_NAME
    open_for_writing(path).close()
    monkeypatch.setattr(schema, "VERSION", 2)
    monkeypatch.setattr(schema, "MIGRATIONS", {1: "CREATE TABLE half (x); SELECT no_such_function();"})
    connection = sqlite3.connect(path, isolation_level=None)
    with pytest.raises(sqlite3.Error):
        schema.migrate(connection)
    assert schema.version_of(connection) == 1
    assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'half'").fetchall() == []
    connection.close()


def test_names_from_a_damaged_file_lead_nowhere(store: Store) -> None:
    with pytest.raises((ValueError, StoreError)):
        store.load("../../etc")


@contextlib.contextmanager
def small_disk(path: Path) -> Iterator[Path]:
    path.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=768k", "tmpfs", str(path)], capture_output=True)
    if done.returncode:
        pytest.skip("a small disk needs the right to mount one")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
async def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store = Store(disk / "conversations")
        desk = StoredDesk(store, "Before.", *["x" * 60_000] * 12, "After.")
        await desk.ask("hello")
        assert store.flush(10)
        filler = disk / "filler"
        with contextlib.suppress(OSError), open(filler, "wb") as file:
            while True:
                file.write(b"\0" * 4096)
                file.flush()
        said: list[str] = []
        for _ in range(12):
            said += [chunk.text for chunk in await desk.ask("go on") if chunk.format == "store"]
        assert "the disk is full" in said[0]
        assert len(desk.session.messages) == 26, "the conversation went on"
        raw = sqlite3.connect(f"file:{store.path}?mode=ro", uri=True)
        assert raw.execute("SELECT content FROM messages ORDER BY position").fetchone()[0] == "hello"
        raw.close()
        desk.session.history.truncate_to(4)
        filler.unlink()
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        await desk.ask("thanks")
        assert [m.text for m in (await desk.loaded()).messages] == [m["content"] for m in desk.session.messages]
        assert store.fault == ""
        await desk.session.aclose()
        store.close()
