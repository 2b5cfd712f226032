"""What happens in a conversation is in the store as it happens, and comes back as it was."""

from __future__ import annotations

import asyncio
import os
import stat
from contextlib import aclosing
from pathlib import Path

import pytest

from oi_tui.engine.approval import CodeProposal, Decision, no_answer
from oi_tui.engine.errors import AuthenticationFailed
from oi_tui.engine.history import CodeFate
from oi_tui.engine.llm.base import Delta, Usage
from oi_tui.engine.store.store import Store
from tests.engine.store.desk import PICTURE, StoredDesk, data_of, everything, failing, python
from tests.fakes import printing


async def test_a_turn_with_code_output_and_pictures_comes_back_as_it_was(store: Store) -> None:
    desk = StoredDesk(store, "Let me see.\n" + python("plot()"), "Done.", script=everything)
    await desk.ask("draw it")
    stored = await desk.loaded()
    now = list(desk.session.history)
    assert [(m.id, m.role, m.type, m.format, m.content) for m in stored.messages] == [
        (m.id, m.role, m.type, m.format, m.content) for m in now
    ]
    assert [m.type for m in stored.messages] == ["message", "message", "code", "console", "image", "image", "message"]
    code = stored.messages[2]
    assert code.meta["state"] == CodeFate.RUN
    assert code.meta["digest"] == now[2].meta["digest"]
    assert code.meta["line_times"] == {"1": 0.25}
    assert code.meta["seconds"] >= 0
    assert [m.meta["code_id"] for m in stored.messages[3:6]] == [code.id] * 3
    assert stored.info.title == "draw it"
    assert stored.info.messages == 7


async def test_pictures_are_files_and_the_same_picture_is_one_file(store: Store) -> None:
    desk = StoredDesk(store, python("plot()"), "Done.", script=everything)
    await desk.ask("draw")
    stored = await desk.loaded()
    assert [m.content for m in stored.messages if m.type == "image"] == [PICTURE, PICTURE]
    assert len(list(desk.session.folder.glob("*.png"))) == 1
    assert PICTURE.encode() not in store.path.read_bytes()


async def test_an_edit_is_stored_with_what_the_model_had_written(store: Store) -> None:
    desk = StoredDesk(store, python("1/0"), "Done.", decide=lambda p: Decision.run("1/1"))
    await desk.ask("divide")
    code = next(m for m in (await desk.loaded()).messages if m.type == "code")
    assert code.text == "1/1"
    assert code.meta["original"] == "1/0"
    assert b"@@ -1 +1 @@" in data_of(store)


async def test_an_error_of_the_model_is_shown_again_at_its_place(store: Store) -> None:
    desk = StoredDesk(store, [AuthenticationFailed("The key was refused.", "Choose another.")], "Now it works.")
    await desk.ask("hello")
    await desk.ask("again")
    stored = await desk.loaded()
    assert [(m.role, m.type) for m in stored.shown] == [
        ("user", "message"),
        ("server", "error"),
        ("user", "message"),
        ("assistant", "message"),
    ]
    assert "The key was refused." in stored.shown[1].text
    assert [m.role for m in stored.messages] == ["user", "user", "assistant"]


async def test_a_failed_line_is_remembered(store: Store) -> None:
    desk = StoredDesk(store, python("1/0"), "Oh.", script=failing)
    await desk.ask("divide")
    code = next(m for m in (await desk.loaded()).messages if m.type == "code")
    assert code.meta["error_line"] == 1


async def test_usage_and_cost_add_up_over_the_conversation(store: Store) -> None:
    used = Delta(usage=Usage(prompt_tokens=100, completion_tokens=20, cost=0.5))
    desk = StoredDesk(store, ["One.", used], ["Two.", used])
    await desk.ask("1")
    await desk.ask("2")
    info = (await desk.loaded()).info
    assert (info.prompt_tokens, info.completion_tokens, info.cost) == (200, 40, 1.0)


async def test_what_the_user_sends_is_on_the_disk_before_the_model_answers(store: Store) -> None:
    never = asyncio.Event()
    desk = StoredDesk(store, ["I", never])
    async with aclosing(desk.session.respond("remember me", approve=desk.approve, answer=no_answer)) as chunks:
        await anext(chunks)
        assert store.load(desk.session.conversation).messages[0].text == "remember me"


async def test_text_that_streams_is_there_within_a_second(store: Store) -> None:
    never = asyncio.Event()
    desk = StoredDesk(store, ["half an ans", never])
    async with aclosing(desk.session.respond("tell me", approve=desk.approve, answer=no_answer)) as chunks:
        async with asyncio.timeout(10):
            async for chunk in chunks:
                if chunk.text:
                    break
            while len(store.load(desk.session.conversation).messages) < 2:
                await asyncio.sleep(0.02)
        partial = store.load(desk.session.conversation).messages[1]
    assert partial.text == "half an ans"
    assert partial.meta["partial"]


async def test_code_cut_in_the_middle_is_never_offered_when_it_comes_back(store: Store) -> None:
    never = asyncio.Event()
    desk = StoredDesk(store, ["```python\nimport os\nos.remo", never])
    async with aclosing(desk.session.respond("clean up", approve=desk.approve, answer=no_answer)) as chunks:
        async with asyncio.timeout(10):
            async for chunk in chunks:
                if chunk.type == "code" and chunk.text:
                    break
            while len(store.load(desk.session.conversation).messages) < 2:
                await asyncio.sleep(0.02)
        stored = store.load(desk.session.conversation)
    assert stored.messages[-1].meta["state"] == CodeFate.INCOMPLETE


async def test_code_that_waited_waits_again_and_runs_nothing_by_itself(store: Store) -> None:
    waits = asyncio.Event()

    async def approve(proposal: CodeProposal) -> Decision:
        waits.set()
        await asyncio.Event().wait()
        raise AssertionError

    desk = StoredDesk(store, python("rm()"))
    turn = asyncio.create_task(_drain(desk, "go", approve))
    await asyncio.wait_for(waits.wait(), 10)
    store.flush(10)
    stored = store.load(desk.session.conversation)  # as another process would find it now
    turn.cancel()
    await asyncio.gather(turn, return_exceptions=True)
    await desk.session.aclose()
    again = StoredDesk(store, "Fine.", stored=stored, script=printing("x"), auto_run=True)
    assert again.language.ran == []
    pending = again.session.history.pending_code()
    assert pending is not None and pending.text == "rm()"
    await again.ask(None)
    assert [p.code for p in again.proposals] == ["rm()"], "asked for although code runs unasked"


async def _drain(desk: StoredDesk, text: str, approve: object) -> None:
    async with aclosing(desk.session.respond(text, approve=approve, answer=no_answer)) as chunks:  # type: ignore[arg-type]
        async for _ in chunks:
            pass


async def test_undo_keeps_the_old_branch(store: Store) -> None:
    desk = StoredDesk(store, "One.", "Two.", "Other two.")
    await desk.ask("first")
    await desk.ask("second")
    desk.session.history.truncate_to(2)
    await desk.ask("another second")
    assert [m.text for m in (await desk.loaded()).messages] == ["first", "One.", "another second", "Other two."]
    branch = next(c for c in store.listing(archived=True) if c.parent == desk.session.conversation)
    assert [m.text for m in store.load(branch.id).messages] == ["first", "One.", "second", "Two."]


async def test_a_reset_begins_another_conversation_and_keeps_the_first(store: Store) -> None:
    desk = StoredDesk(store, "One.", "Two.")
    await desk.ask("first")
    before = desk.session.conversation
    await desk.session.reset()
    await desk.ask("second")
    assert desk.session.conversation != before
    await desk.loaded()
    assert [c.title for c in store.listing()] == ["second", "first"]


async def test_going_on_with_a_conversation_adds_to_it(store: Store) -> None:
    desk = StoredDesk(store, "Let me.\n" + python("plot()"), "Done.", script=everything)
    await desk.ask("draw")
    stored = await desk.loaded()
    await desk.session.aclose()
    again = StoredDesk(store, "More.", stored=stored)
    await again.ask("and more")
    loaded = await again.loaded()
    assert [m.id for m in loaded.messages[:-2]] == [m.id for m in stored.messages]
    assert [m.text for m in loaded.messages[-2:]] == ["and more", "More."]
    assert len(store.listing()) == 1


async def test_two_instances_on_one_conversation_lose_nothing(store: Store) -> None:
    desk = StoredDesk(store, "One.", "First goes on.")
    await desk.ask("hello")
    other_store = Store(store.folder)
    other = StoredDesk(other_store, "Second goes on.", stored=other_store.load(desk.session.conversation))
    assert "another window" in other.session.note
    assert other.session.conversation != desk.session.conversation
    await asyncio.gather(desk.ask("me too"), other.ask("and me"))
    assert [m.text for m in (await desk.loaded()).messages] == ["hello", "One.", "me too", "First goes on."]
    assert [m.text for m in (await other.loaded()).messages] == ["hello", "One.", "and me", "Second goes on."]
    await other.session.aclose()
    other_store.close()


async def test_keys_are_in_no_file(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from oi_tui.engine.settings import ModelSettings

    key, other = "sk-very-secret-key-1234567890", "hunter2hunter2"
    monkeypatch.setenv("MY_PASSWORD", other)
    desk = StoredDesk(
        store,
        f"Your key is {key}.\n" + python(f"print('{key}')"),
        "Done.",
        script=printing(f"{key} {other}\n" + f"{key}\n" * 40_000),
        llm=ModelSettings(api_key=key),
    )
    await desk.ask(f"what is {key}?")
    stored = await desk.loaded()
    assert any(m.meta.get("full_output") for m in stored.messages), "long enough for a file"
    assert key.encode() not in data_of(store)
    assert other.encode() not in data_of(store)
    assert b"[key removed]" in data_of(store)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
async def test_files_are_private_whatever_the_umask(store: Store) -> None:
    old = os.umask(0)
    try:
        desk = StoredDesk(store, python("plot()"), "Done.", script=everything)
        await desk.ask("draw")
        await desk.loaded()
    finally:
        os.umask(old)
    for path in [store.folder, *store.folder.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), f"{path} {mode:o}"


async def test_a_session_that_says_nothing_leaves_nothing(store: Store) -> None:
    desk = StoredDesk(store)
    await desk.session.aclose()
    store.close()
    assert list(store.folder.rglob("*")) == []


async def test_a_clock_that_jumps_reorders_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    desk = StoredDesk(store, "One.", "Two.")
    await desk.ask("first")
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    await desk.ask("second")
    other = StoredDesk(store, "Three.")
    await other.ask("newest by order, oldest by clock")
    assert [m.text for m in (await desk.loaded()).messages] == ["first", "One.", "second", "Two."]
    assert [c.title for c in store.listing()] == ["newest by order, oldest by clock", "first"]


async def test_the_words_of_a_decline_are_not_lost(store: Store) -> None:
    desk = StoredDesk(store, python("rm()"), "I will ask first.", decide=lambda p: Decision.decline("ask me first"))
    await desk.ask("go")
    stored = await desk.loaded()
    assert [m.text for m in stored.messages if m.role == "user"] == ["go", "ask me first"]
    assert next(m for m in stored.messages if m.type == "code").meta["state"] == CodeFate.DECLINED


async def test_a_whole_long_output_belongs_to_the_conversation(store: Store, tmp_path: Path) -> None:
    desk = StoredDesk(store, python("flood()"), "Done.", script=printing("0123456789\n" * 60_000))
    await desk.ask("flood")
    console = next(m for m in (await desk.loaded()).messages if m.type == "console")
    path = Path(console.meta["full_output"])
    assert path.parent == desk.session.folder
    assert path.stat().st_size == 660_000
