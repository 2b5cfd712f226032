"""Conversations in the app: found, entered, gone on with. Nothing runs on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from oi_tui.app import OiApp
from oi_tui.engine.languages.registry import Registry
from oi_tui.engine.settings import ModelSettings, Settings
from oi_tui.engine.store.reading import StoredConversation
from oi_tui.engine.store.recorded_session import RecordedSession
from oi_tui.engine.store.sessions import StoredSessions
from oi_tui.engine.store.store import Store
from oi_tui.screens.conversations import ConversationsScreen
from oi_tui.screens.rebuild import RebuildScreen
from oi_tui.widgets.code_block import CodeBlock
from oi_tui.widgets.code_state import CodeState
from tests.engine.store.desk import StoredDesk, everything, failing, python
from tests.fakes import FakeLanguage, FakeModel, printing
from tests.widgets.hosts import rows, until


class FakeSessions(StoredSessions):
    """Stored sessions over fakes."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.languages: list[FakeLanguage] = []
        self.answers: list[Any] = ["Fine."]

    def open(self, settings: Settings, stored: StoredConversation | None = None) -> RecordedSession:
        language = FakeLanguage(script=printing("again\n"))
        self.languages.append(language)
        registry = Registry(())
        registry.add(language)
        model = FakeModel(*self.answers)
        return RecordedSession(settings, store=self.store, stored=stored, model=model, languages=registry)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "conversations")


@asynccontextmanager
async def app(
    store: Store, *, resume: str | None = None, size: tuple[int, int] = (120, 40), browse: bool = False
) -> AsyncIterator[tuple[OiApp, Pilot[None], FakeSessions]]:
    sessions = FakeSessions(store)
    if resume is not None:
        sessions.resume(resume)
    running = OiApp(Settings(llm=ModelSettings(model="fake")), make_session=sessions, browse=browse)
    async with running.run_test(size=size) as pilot:
        await until(pilot, lambda: running.session is not None and running.opened.is_set())
        yield running, pilot, sessions


async def talk(store: Store, *answers: Any, words: str = "draw it", **more: Any) -> str:
    """A conversation that somebody had earlier."""
    desk = StoredDesk(store, *answers, **more)
    await desk.ask(words)
    await desk.session.aclose()
    store.flush(10)
    return desk.session.conversation


def blocks(running: OiApp) -> list[Any]:
    return list(running.chat.transcript.canvas.blocks)


async def test_a_resumed_conversation_shows_everything_and_runs_nothing(store: Store) -> None:
    await talk(store, "Let me.\n" + python("plot()"), "Done, it is a line.", script=everything)
    async with app(store, resume="last") as (running, pilot, sessions):
        await until(pilot, lambda: len(blocks(running)) >= 6)
        code = next(block for block in blocks(running) if isinstance(block, CodeBlock))
        assert code.state is CodeState.DONE
        assert code.line_times == {1: 0.25}
        assert "ran plot()" in code.output.text
        await until(pilot, lambda: "The kernel is new" in "\n".join(rows(running)))
        assert sessions.languages[0].ran == []


async def test_a_failed_block_comes_back_failed(store: Store) -> None:
    await talk(store, python("1/0"), "Oh.", script=failing)
    async with app(store, resume="last") as (running, pilot, _):
        await until(pilot, lambda: any(isinstance(block, CodeBlock) for block in blocks(running)))
        code = next(block for block in blocks(running) if isinstance(block, CodeBlock))
        assert code.state is CodeState.FAILED
        assert code.error_line == 1


async def test_the_blocks_that_built_the_state_run_again_after_one_approval(store: Store) -> None:
    await talk(store, python("x = 1"), python("y = 2"), "Both are set.")
    async with app(store, resume="last") as (running, pilot, sessions):
        await until(pilot, lambda: len(blocks(running)) >= 3)
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(running.screen, RebuildScreen))
        assert sessions.languages[0].ran == []
        await pilot.press("y")
        await until(pilot, lambda: len(sessions.languages[0].ran) == 2 and not running.what_runs)
        assert [run.code.strip() for run in sessions.languages[0].ran] == ["x = 1", "y = 2"]


async def test_a_conversation_is_found_by_a_word_that_only_an_output_held(store: Store) -> None:
    wanted = await talk(store, python("f()"), "Done.", words="first", script=printing("the answer is xylophone 7\n"))
    await talk(store, "Nothing here.", words="second")
    async with app(store) as (running, pilot, _):
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(running.screen, ConversationsScreen))
        await pilot.press(*"/xyloph")
        screen = running.screen
        assert isinstance(screen, ConversationsScreen)
        await until(pilot, lambda: len(screen.browser.entries) == 1 and screen.browser.entries[0].line)
        assert screen.browser.entries[0].line == "the answer is xylophone 7"
        await pilot.press("enter")
        await until(pilot, lambda: getattr(running.session, "conversation", "") == wanted)
        await until(pilot, lambda: running.chat.transcript.cursor is not None)
        assert isinstance(running.chat.transcript.cursor, CodeBlock)


async def test_titles_are_filtered_as_one_types(store: Store) -> None:
    for words in ("sales report", "rename photos", "sales of june"):
        await talk(store, "Fine.", words=words)
    async with app(store, browse=True) as (running, pilot, _):
        await until(pilot, lambda: isinstance(running.screen, ConversationsScreen))
        screen = running.screen
        assert isinstance(screen, ConversationsScreen)
        await until(pilot, lambda: len(screen.browser.entries) == 3)
        await pilot.press(*"sales")
        await until(pilot, lambda: len(screen.browser.entries) == 2)
        assert [entry.conversation.title for entry in screen.browser.entries] == ["sales of june", "sales report"]


async def test_rename_delete_undo_archive_and_fork(store: Store) -> None:
    for words in ("one", "two"):
        await talk(store, "Fine.", words=words)
    async with app(store, browse=True) as (running, pilot, _):
        await until(pilot, lambda: isinstance(running.screen, ConversationsScreen))
        screen = running.screen
        assert isinstance(screen, ConversationsScreen)

        def titles() -> list[str]:
            return [entry.conversation.title for entry in screen.browser.entries]

        await until(pilot, lambda: titles() == ["two", "one"])
        await pilot.press("f2")
        screen.query_one(Input).value = "the second"
        await pilot.press("enter")
        await until(pilot, lambda: titles() == ["the second", "one"])
        await pilot.press("delete")
        await until(pilot, lambda: titles() == ["one"])
        await pilot.press("ctrl+z")
        await until(pilot, lambda: titles() == ["the second", "one"])
        await pilot.press("f4")
        await until(pilot, lambda: titles() == ["one"])
        await pilot.press("f5")
        await until(pilot, lambda: titles() == ["the second", "one"])
        await pilot.press("down", "f6")
        await until(pilot, lambda: titles() == ["one (fork)", "the second", "one"])


async def test_nothing_foreign_in_a_title_reaches_the_terminal(store: Store) -> None:
    await talk(store, "Fine.", words="evil \x1b]0;title\x07 \x1b[31mred [/x] \u202e")
    async with app(store, browse=True) as (running, pilot, _):
        await until(pilot, lambda: isinstance(running.screen, ConversationsScreen))
        await until(pilot, lambda: any("evil" in row for row in rows(running)))
        await pilot.pause(0.2)
        assert not any("\x1b" in row or "\x07" in row or "\u202e" in row for row in rows(running))


async def test_an_empty_store_says_so(store: Store) -> None:
    async with app(store, browse=True) as (running, pilot, _):
        await until(pilot, lambda: any("No conversation is stored yet" in row for row in rows(running)))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(running.screen, ConversationsScreen))
    await asyncio.sleep(0)
    assert list(store.folder.rglob("*")) == []


async def test_conversations_of_open_interpreter_are_offered_on_the_first_start(
    store: Store, empty_machine: Path
) -> None:
    folder = empty_machine / ".config" / "open-interpreter" / "conversations"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text("[]")
    async with app(store) as (running, pilot, _):
        await until(pilot, lambda: any("oi-tui import" in note.message for note in running._notifications))


async def test_streamed_and_resumed_are_the_same_blocks(store: Store) -> None:
    """Edits, errors, pictures, a decline and an error of the model, in two languages."""
    from oi_tui.engine.approval import Decision
    from oi_tui.engine.errors import AuthenticationFailed
    from oi_tui.engine.lmc import Message
    from oi_tui.widgets.block_builder import BlockBuilder, BlockList

    decisions = iter([Decision.run("x = 2"), Decision.run(), Decision.run(), Decision.decline()])
    desk = StoredDesk(
        store,
        "First.\n" + python("x = 1"),
        "Then the shell.\n```bash\nls\n```\n",
        python("again()"),
        [AuthenticationFailed("The key was refused.", "Choose another.")],
        "Look:\n" + python("never()"),
        script=everything,
        decide=lambda proposal: next(decisions),
    )
    column = BlockList()
    live = BlockBuilder(column)
    for words in ("one", "two"):
        for chunk in Message("user", "message", words).to_chunks():
            live.feed(chunk)
        for chunk in await desk.ask(words):
            live.feed(chunk)
        live.end_turn(stopped=False)
    replayed = BlockBuilder(BlockList()).replay((await desk.loaded()).shown)
    assert [_looks(block) for block in replayed] == [_looks(block) for block in column]
    assert len(replayed) > 12


def _looks(block: Any) -> tuple[Any, ...]:
    if not isinstance(block, CodeBlock):
        return type(block).__name__, block.source
    return (
        block.language,
        block.code,
        block.state,
        block.original,
        block.short_digest,
        block.output.text,
        block.line_times,
        block.error_line,
        block.remark,
        block.edit_counts,
        round(block.elapsed),
    )


async def test_magic_commands_write_and_read_the_conversation(store: Store, tmp_path: Path, monkeypatch: Any) -> None:
    from oi_tui.engine.magic import run_magic

    monkeypatch.chdir(tmp_path)
    desk = StoredDesk(store, "Look.\n" + python("plot()"), "Done.", script=everything)
    await desk.ask("draw it")
    assert "Saved 7 messages" in (await run_magic(desk.session, "%save_message")).text
    assert (tmp_path / "messages.json").exists()
    assert "Notebook: " in (await run_magic(desk.session, "%jupyter my book")).text
    assert (tmp_path / "my book.ipynb").exists()
    assert "exists" in (await run_magic(desk.session, "%jupyter my book")).text
    assert "Markdown: " in (await run_magic(desk.session, "%markdown notes.md")).text
    before = [(m.role, m.type, m.content) for m in desk.session.history]
    await desk.session.reset()
    result = await run_magic(desk.session, "%load_message")
    assert result.transcript_changed and "Nothing was run" in result.text
    assert [(m.role, m.type, m.content) for m in desk.session.history] == before
    assert "no file" in (await run_magic(desk.session, "%load_message nowhere")).text
