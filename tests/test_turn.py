"""Stories of the bridge: what crosses it, in which order, how often, and how a turn ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from textual.message import Message

from oi_tui.engine.approval import CodeProposal, Decision, InputCancelled
from oi_tui.engine.lmc import Chunk, notice
from oi_tui.messages import ApprovalRequested, ChunksReceived, InputRequested, TurnEnd, TurnEnded, TurnStarted
from oi_tui.turn import BACKLOG_LIMIT, FRAME_LIMIT, FrameBuffer, Turn
from tests.fakes import Ask, Code, FakeSession


class Screen:
    """Takes messages like a screen. `is_slow` leaves frames unhandled until `draw` is called."""

    def __init__(self, on_approval: Callable[[ApprovalRequested], Any] | None = None, is_slow: bool = False) -> None:
        self.messages: list[Message] = []
        self.changed = asyncio.Event()
        self.is_slow = is_slow
        self._on_approval = on_approval

    def post(self, message: Message) -> None:
        self.messages.append(message)
        self.changed.set()
        if isinstance(message, ChunksReceived) and not self.is_slow:
            message.handled.set()
        if isinstance(message, ApprovalRequested) and self._on_approval is not None:
            self._on_approval(message)

    async def until(self, kind: type[Message], count: int = 1) -> Any:
        """Wait for the count-th message of a kind."""
        while len(found := [m for m in self.messages if isinstance(m, kind)]) < count:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 10)
        return found[count - 1]

    @property
    def chunks(self) -> list[Chunk]:
        return [chunk for m in self.messages if isinstance(m, ChunksReceived) for chunk in m.chunks]

    @property
    def frames(self) -> list[ChunksReceived]:
        return [m for m in self.messages if isinstance(m, ChunksReceived)]

    def text(self, kind: str = "message") -> str:
        return "".join(chunk.text for chunk in self.chunks if chunk.type == kind)


def turn(session: FakeSession, screen: Screen, text: str = "go") -> Turn:
    return Turn(session, lambda approve, answer: session.respond(text, approve=approve, answer=answer), screen.post)


def run(message: ApprovalRequested) -> None:
    message.reply.set_result(Decision.run())


async def test_an_answer_arrives_whole_and_the_turn_says_that_it_is_done() -> None:
    session, screen = FakeSession(["Hello *there*."]), Screen()
    assert await turn(session, screen).run() is TurnEnd.DONE
    assert isinstance(screen.messages[0], TurnStarted)
    assert screen.text() == "Hello *there*."
    assert isinstance(screen.messages[-1], TurnEnded)
    assert [c.start or c.end for c in screen.chunks] == [True, False, True]


async def test_many_small_pieces_become_few_frames() -> None:
    pieces = [Chunk("assistant", "message", content=f"{n} ", id="m") for n in range(5000)]
    screen = Screen()
    await turn(FakeSession([*pieces]), screen).run()
    assert screen.text() == "".join(piece.text for piece in pieces)
    assert len(screen.frames) < 500


async def test_the_first_piece_is_sent_at_once() -> None:
    gate = asyncio.Event()
    screen = Screen()
    session = FakeSession([Chunk("assistant", "message", content="Now", id="m"), gate])
    task = asyncio.create_task(turn(session, screen).run())
    await screen.until(ChunksReceived)
    assert screen.text() == "Now"
    gate.set()
    await task


async def test_a_huge_delta_is_cut_into_frames() -> None:
    text = "ab" * (FRAME_LIMIT * 2)
    screen = Screen()
    await turn(FakeSession([text]), screen).run()
    assert screen.text() == text
    assert max(sum(len(c.text) for c in frame.chunks) for frame in screen.frames) <= FRAME_LIMIT


async def test_a_slow_screen_makes_the_engine_wait() -> None:
    produced = 0
    step = 10_000

    async def flood(approve: Any, answer: Any) -> AsyncGenerator[Chunk, None]:
        nonlocal produced
        while True:
            produced += step
            yield Chunk("computer", "console", "output", "x" * step, id="c")

    screen = Screen(is_slow=True)
    task = asyncio.create_task(Turn(FakeSession(), flood, screen.post).run())
    frame = await screen.until(ChunksReceived)
    for _ in range(50):
        await asyncio.sleep(0)
    assert produced <= BACKLOG_LIMIT + 2 * step
    frame.handled.set()
    await screen.until(ChunksReceived, 2)
    task.cancel()
    assert await task is TurnEnd.STOPPED


async def test_code_is_on_the_screen_before_it_is_asked_for() -> None:
    session = FakeSession([Code("print(1)", results=("1\n",))])
    screen = Screen(on_approval=run)
    assert await turn(session, screen).run() is TurnEnd.DONE
    kinds = [type(m).__name__ for m in screen.messages]
    asked = kinds.index("ApprovalRequested")
    before = [c for m in screen.messages[:asked] if isinstance(m, ChunksReceived) for c in m.chunks]
    assert "".join(c.text for c in before if c.type == "code") == "print(1)"
    assert before[-1].type == "confirmation"
    assert screen.text("console") == "1\n"


async def test_the_edited_code_travels_in_the_decision() -> None:
    session = FakeSession([Code("print(1)")])
    screen = Screen(on_approval=lambda m: m.reply.set_result(Decision.run("print(2)")))
    await turn(session, screen).run()
    assert session.decisions == [Decision.run("print(2)")]


async def test_code_that_the_user_allowed_before_is_not_asked_for() -> None:
    session, screen = FakeSession([Code("print(1)")]), Screen()

    def allows(proposal: CodeProposal) -> bool:
        return proposal.code == "print(1)"

    await Turn(
        session, lambda approve, answer: session.respond("go", approve=approve, answer=answer), screen.post, allows
    ).run()
    assert not [m for m in screen.messages if isinstance(m, ApprovalRequested)]
    assert session.decisions == [Decision.run()]


async def test_input_is_asked_and_answered() -> None:
    session, screen = FakeSession([Code("input()", results=(Ask("Name? "),))]), Screen(on_approval=run)
    task = asyncio.create_task(turn(session, screen).run())
    asked = await screen.until(InputRequested)
    assert asked.request.prompt == "Name? "
    asked.reply.set_result("Ada")
    assert await task is TurnEnd.DONE
    assert session.answers == ["Ada"]


async def test_refusing_to_answer_reaches_the_code() -> None:
    session, screen = FakeSession([Code("input()", results=(Ask("Name? "),))]), Screen(on_approval=run)
    task = asyncio.create_task(turn(session, screen).run())
    (await screen.until(InputRequested)).reply.set_exception(InputCancelled())
    await task
    assert not session.answers and "KeyboardInterrupt" in screen.text("console")


async def test_stopping_while_the_model_writes_ends_the_turn_after_its_cleanup() -> None:
    session, screen = FakeSession(["Well", asyncio.Event()]), Screen()
    the_turn = turn(session, screen)
    task = asyncio.create_task(the_turn.run())
    await screen.until(ChunksReceived)
    await the_turn.stop()
    assert await task is TurnEnd.STOPPED
    assert session.cancelled == 1 and session.interrupted == 0
    assert screen.messages[-1] == TurnEnded(TurnEnd.STOPPED) or screen.messages[-1].reason is TurnEnd.STOPPED  # type: ignore[attr-defined]


async def test_stopping_while_code_waits_leaves_nobody_waiting() -> None:
    session, screen = FakeSession([Code("print(1)")]), Screen()
    the_turn = turn(session, screen)
    task = asyncio.create_task(the_turn.run())
    asked = await screen.until(ApprovalRequested)
    await the_turn.stop()
    assert await task is TurnEnd.STOPPED
    assert asked.reply.cancelled()
    assert not session.decisions


async def test_stopping_running_code_interrupts_it_and_the_second_time_kills_it() -> None:
    session, screen = FakeSession([Code("loop()", results=(asyncio.Event(),))]), Screen(on_approval=run)
    session.interrupt = _deaf(session)  # type: ignore[method-assign]
    the_turn = turn(session, screen)
    task = asyncio.create_task(the_turn.run())
    while not the_turn.is_running_code:
        await screen.until(ChunksReceived, len(screen.frames) + 1)
    await the_turn.stop()
    assert (session.interrupted, session.killed) == (1, 0)
    await the_turn.stop()
    assert (session.interrupted, session.killed) == (1, 1)
    assert await task is TurnEnd.STOPPED
    assert "KeyboardInterrupt" in screen.text("console")


def _deaf(session: FakeSession) -> Callable[[], Any]:
    async def interrupt() -> None:
        session.interrupted += 1

    return interrupt


async def test_cancelling_twice_still_waits_for_the_cleanup() -> None:
    cleaned = asyncio.Event()
    may_end = asyncio.Event()

    async def stubborn(approve: Any, answer: Any) -> AsyncGenerator[Chunk, None]:
        try:
            yield Chunk("assistant", "message", content="a", id="m")
            await asyncio.Event().wait()
        finally:
            await may_end.wait()
            cleaned.set()

    screen = Screen()
    the_turn = Turn(FakeSession(), stubborn, screen.post)
    task = asyncio.create_task(the_turn.run())
    await screen.until(ChunksReceived)
    the_turn.cancel()
    the_turn.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    may_end.set()
    assert await task is TurnEnd.STOPPED
    assert cleaned.is_set()


async def test_what_stopping_cost_is_shown_after_a_turn_that_was_cancelled() -> None:
    session, screen = FakeSession(["Hello.", asyncio.Event()]), Screen()
    the_turn = turn(session, screen)
    task = asyncio.create_task(the_turn.run())
    await screen.until(ChunksReceived)
    session.notices.append(notice("kernel", "The kernel was ended."))
    the_turn.cancel()
    assert await task is TurnEnd.STOPPED
    assert screen.text("notice") == "The kernel was ended." and session.notices == []


async def test_an_error_of_the_model_is_a_failed_turn_and_one_of_ours_is_raised() -> None:
    screen = Screen()
    session = FakeSession([Chunk("server", "error", "connection", "Refused.")], [ValueError("a bug")])
    assert await turn(session, screen).run() is TurnEnd.FAILED
    with pytest.raises(ValueError, match="a bug"):
        await turn(session, screen).run()
    assert screen.messages[-1].reason is TurnEnd.FAILED  # type: ignore[attr-defined]


def test_active_lines_replace_each_other_and_texts_of_two_messages_stay_apart() -> None:
    buffer = FrameBuffer()
    for line in range(100):
        buffer.add(Chunk("computer", "console", "active_line", line, id="c"))
    for message in ("a", "b"):
        buffer.add(Chunk("assistant", "message", content="one ", id=message))
        buffer.add(Chunk("assistant", "message", content="two", id=message))
    taken = buffer.take(1000)
    assert [(c.content, c.id) for c in taken] == [(99, "c"), ("one two", "a"), ("one two", "b")]
    assert not buffer and buffer.size == 0


def test_a_frame_ends_at_a_question_and_after_its_limit() -> None:
    buffer = FrameBuffer()
    question = TurnStarted()
    buffer.add(Chunk("assistant", "code", "python", "123456", id="c"))
    buffer.add(question)
    buffer.add(Chunk("assistant", "code", "python", "789", id="c"))
    assert [c.text for c in buffer.take(4)] == ["1234"]  # type: ignore[union-attr]
    assert [c.text for c in buffer.take(4)] == ["56"]  # type: ignore[union-attr]
    assert buffer.take(4) is question
    assert [c.text for c in buffer.take(4)] == ["789"]  # type: ignore[union-attr]
    assert not buffer
