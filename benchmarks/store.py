"""The store, on 10,000 conversations of 50 messages, and one of 2,000."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from textual.widgets import Input

from benchmarks.rows import Row
from oi_tui.app import OiApp
from oi_tui.engine.history import CodeFate
from oi_tui.engine.lmc import Chunk, Message
from oi_tui.engine.settings import ModelSettings, Settings
from oi_tui.engine.store.adding import add
from oi_tui.engine.store.open_interpreter import files_in, import_all
from oi_tui.engine.store.recorded_session import RecordedSession
from oi_tui.engine.store.sessions import StoredSessions
from oi_tui.engine.store.store import Store
from oi_tui.screens.conversations import ConversationsScreen
from tests.engine.store.desk import StoredDesk

CONVERSATIONS = 10_000
MESSAGES = 50
LONG = 2_000
_WORDS = (
    "sales month report file table read write plot figure value mean data frame column row index server error time "
    "photo rename folder list size model answer question chart group sum count date price order customer"
).split()


def messages(count: int, chance: random.Random) -> list[Message]:
    """A conversation of text, code and output."""
    out: list[Message] = []
    while len(out) < count:
        code = Message(
            "assistant", "code", f"df.groupby('{_text(chance, 2)}').sum()", "python", meta={"state": CodeFate.RUN}
        )
        out += [
            Message("user", "message", _text(chance, 9)),
            Message("assistant", "message", _text(chance, 30)),
            code,
            Message("computer", "console", _text(chance, 12), "output", meta={"code_id": code.id}),
            Message("assistant", "message", _text(chance, 20)),
        ]
    return out[:count]


def _text(chance: random.Random, count: int) -> str:
    return " ".join(chance.choices(_WORDS, k=count))


def fill(store: Store) -> str:
    """The long conversation's id."""
    chance = random.Random(7)
    for number in range(CONVERSATIONS):
        add(store, messages(MESSAGES, chance), model="openai/gpt-5", created=1_700_000_000.0 + number)
        if number % 500 == 499:
            store.flush()
    add(store, [Message("user", "message", "find this"), Message("computer", "console", "quetzalcoatl", "output")])
    long, done = add(store, messages(LONG, chance), title="long", model="openai/gpt-5")
    done.result()
    store.flush()
    return long


def median_ms(work: Callable[[], Any], times: int = 15) -> float:
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken) * 1000


async def rows() -> AsyncIterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "conversations"
        store = Store(path)
        begin = time.perf_counter()
        long = await asyncio.to_thread(fill, store)
        yield Row.plain(
            "store: filling it, messages a second", CONVERSATIONS * MESSAGES / (time.perf_counter() - begin), "/s"
        )
        yield Row.plain("store: the file, per message", store.path.stat().st_size / CONVERSATIONS / MESSAGES, "B")
        yield Row.at_most("store: newest 50 of 10,000", median_ms(lambda: store.listing(limit=50)), "ms", 5)
        yield Row.at_most("store: all 10,000", median_ms(store.listing), "ms", 150)
        for words in ("quetzalcoatl", "sales", "sa", "price customer"):
            yield Row.at_most(f"store: search “{words}”", median_ms(lambda words=words: store.search(words)), "ms", 25)
        yield Row.at_most("store: load 2,000 messages", median_ms(lambda: store.load(long), 5), "ms", 150)
        async for row in screen_rows(store, long):
            yield row
        yield append_row(Store(path))
        yield await asyncio.to_thread(import_row, Path(folder))
        store.close()


async def screen_rows(store: Store, long: str) -> AsyncIterator[Row]:
    """What the user waits for, paint included."""

    class Sessions(StoredSessions):
        def open(self, settings: Settings, stored: Any = None) -> RecordedSession:
            return StoredDesk(store, stored=stored).session

    app = OiApp(Settings(llm=ModelSettings(model="fake")), make_session=Sessions(store))
    async with app.run_test(size=(120, 40)) as pilot:
        while app.session is None or not app.opened.is_set():
            await pilot.pause(0.02)
        await pilot.pause(0.5)
        begin = time.perf_counter()
        app.action_conversations()
        while not isinstance(app.screen, ConversationsScreen) or not app.screen.query("ConversationBrowser"):
            await asyncio.sleep(0)
        screen = app.screen
        while not screen.browser.entries:
            await asyncio.sleep(0)
        await painted(screen)
        yield Row.at_most("screen: list of 10,000 open and painted", (time.perf_counter() - begin) * 1000, "ms", 100)
        while len(screen.browser.entries) < CONVERSATIONS:
            await asyncio.sleep(0.01)
        taken = []
        for word in ("s", "sa", "sal", "sale", "sales", "sales ", "sales r", "sales re"):
            begin = time.perf_counter()
            screen.query_one(Input).value = word
            await painted(screen)
            taken.append(time.perf_counter() - begin)
        yield Row.at_most("screen: filter key, slowest of 8", max(taken) * 1000, "ms", 60)
        screen.action_back()
        screen.action_toggle_search()
        taken = []
        for word in ("quetzal", "sales", "price cust", "fold", "server err"):
            old = screen.browser.entries
            begin = time.perf_counter()
            screen.query_one(Input).value = word
            while screen.browser.entries is old:
                await asyncio.sleep(0)
            await painted(screen)
            taken.append(time.perf_counter() - begin)
        yield Row.at_most("screen: full-text search, slowest of 5", max(taken) * 1000, "ms", 50)
        screen.dismiss(None)
        await pilot.pause(0.2)
        stored = store.load(long)
        begin = time.perf_counter()
        stored = store.load(long)
        session = StoredDesk(store, stored=stored).session
        app.chat.attach(session)
        await painted(app.screen)
        yield Row.at_most("screen: resume 2,000 messages", (time.perf_counter() - begin) * 1000, "ms", 300)


async def painted(screen: Any) -> None:
    """Wait for the next frame."""
    done = asyncio.Event()
    screen.call_after_refresh(done.set)
    await done.wait()


def append_row(store: Store) -> Row:
    """What recording costs the thread of the screen, for each chunk of a long conversation."""

    class Desk:
        history: Any

    from oi_tui.engine.history import History
    from oi_tui.engine.store.recorder import Recorder

    history = History(messages(LONG, random.Random(3)))
    recorder = Recorder(store, history=lambda: history)
    recorder.sync()
    pieces = [Chunk("assistant", "message", None, "word ", id="m") for _ in range(2000)]
    recorder.see(Chunk("assistant", "message", start=True, id="m"))
    begin = time.perf_counter()
    for piece in pieces:
        recorder.see(piece)
    for number in range(20):
        history.add(Message("assistant", "message", f"{number}"))
        recorder.see(Chunk("assistant", "message", end=True, id="m"))
    taken = (time.perf_counter() - begin) * 1e6 / (len(pieces) + 20)
    with suppress(Exception):
        store.close()
    return Row.at_most("recorder: a chunk, on the screen's thread", taken, "µs", 100)


def import_row(folder: Path) -> Row:
    source = folder / "open-interpreter"
    source.mkdir()
    chance = random.Random(5)
    for number in range(300):
        wire = [m.to_dict() for m in messages(MESSAGES, chance)]
        (source / f"{number}.json").write_text(json.dumps(wire))
    target = Store(folder / "imported")
    begin = time.perf_counter()
    report = import_all(target, files_in(source))
    rate = report.messages / (time.perf_counter() - begin)
    target.close()
    return Row.plain("import: messages a second", rate, "/s")
