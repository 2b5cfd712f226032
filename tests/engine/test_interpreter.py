"""The loop: stories of one turn, told at the two seams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from oi_tui.engine.approval import Answerer, ApprovedCode, CodeProposal, Decision, InputRequest, digest_of, no_answer
from oi_tui.engine.errors import AuthenticationFailed, ContextTooLong, StreamBroken, StreamStalled, ToolsUnsupported
from oi_tui.engine.languages.python_kernel import PythonKernel
from oi_tui.engine.languages.registry import Registry
from oi_tui.engine.llm.base import Capabilities, Delta, ToolCallDelta, Usage
from oi_tui.engine.lmc import Chunk, notice
from oi_tui.engine.session import Session
from oi_tui.engine.settings import Settings
from tests.fakes import FakeLanguage, FakeModel, output, printing

TOOLS = Capabilities(supports_functions=True, context_window=100_000)


def call(code: str, *, language: str = "python", id: str | None = "call_1", index: int | None = 0) -> Delta:
    arguments = json.dumps({"language": language, "code": code})
    return Delta(tool_calls=(ToolCallDelta(index, id, "execute", arguments),))


class Desk:
    """A session over fakes, and someone who answers."""

    def __init__(
        self,
        model: FakeModel,
        folder: Path,
        *,
        language: FakeLanguage | None = None,
        decide: Callable[[CodeProposal], Decision] | None = None,
        **settings: Any,
    ) -> None:
        self.language = language or FakeLanguage(script=printing("42\n"))
        registry = Registry(())
        registry.add(self.language)
        self.model = model
        self.session = Session(Settings(**settings), model=model, languages=registry, folder=folder)
        self.proposals: list[CodeProposal] = []
        self.decide = decide or (lambda proposal: Decision.run())

    async def approve(self, proposal: CodeProposal) -> Decision:
        self.proposals.append(proposal)
        return self.decide(proposal)

    async def ask(self, text: str | None) -> list[Chunk]:
        stream = self.session.respond(text, approve=self.approve, answer=no_answer)
        async with aclosing(stream) as chunks:
            return [chunk async for chunk in chunks]

    def sent(self, request: int = -1) -> list[dict[str, Any]]:
        """The messages of a request, without the system message."""
        return [dict(m) for m in self.model.requests[request].messages if m["role"] != "system"]


@pytest.fixture
def desk(tmp_path: Path) -> Callable[..., Desk]:
    def make(*answers: Any, capabilities: Capabilities = TOOLS, **more: Any) -> Desk:
        return Desk(FakeModel(*answers, capabilities=capabilities), tmp_path, **more)

    return make


def shapes(chunks: list[Chunk]) -> list[str]:
    """What came by, in words, runs of content joined."""
    out: list[str] = []
    for chunk in chunks:
        if not chunk.is_protocol:
            continue
        flag = " start" if chunk.start else " end" if chunk.end else ""
        word = f"{chunk.role}/{chunk.type}{'/' + chunk.format if chunk.format and not flag else ''}{flag}"
        if not out or out[-1] != word:
            out.append(word)
    return out


DOCUMENTED = [
    "assistant/code start",
    "assistant/code/python",
    "assistant/code end",
    "computer/confirmation/execution",
    "computer/console start",
    "computer/console/active_line",
    "computer/console/output",
    "computer/console/active_line",
    "computer/console end",
    "assistant/message start",
    "assistant/message",
    "assistant/message end",
]


async def test_a_turn_in_tool_mode_is_the_documented_one(desk: Callable[..., Desk]) -> None:
    d = desk([call("34 / 24")], "About 1.42.")
    chunks = await d.ask("What's 34/24?")
    assert shapes(chunks) == DOCUMENTED
    assert [m["type"] for m in d.session.messages] == ["message", "code", "console", "message"]


async def test_a_turn_in_text_mode_is_the_same(desk: Callable[..., Desk]) -> None:
    d = desk("```python\n34 / 24\n```\n", "About 1.42.", capabilities=Capabilities(supports_functions=False))
    assert shapes(await d.ask("What's 34/24?")) == DOCUMENTED
    assert d.language.ran[0].code.strip() == "34 / 24"


async def test_confirmation_is_not_sent_when_code_runs_unasked(desk: Callable[..., Desk]) -> None:
    d = desk([call("34 / 24")], "About 1.42.", auto_run=True)
    assert shapes(await d.ask("What's 34/24?")) == [s for s in DOCUMENTED if "confirmation" not in s]
    assert d.proposals == []


async def test_safe_mode_overrules_auto_run(desk: Callable[..., Desk]) -> None:
    d = desk([call("34 / 24")], "Done.", auto_run=True, safe_mode="ask")
    await d.ask("go")
    assert len(d.proposals) == 1


async def test_edited_code_is_what_runs_and_the_model_sees_the_edit(desk: Callable[..., Desk]) -> None:
    d = desk([call("print(1)")], "Done.", decide=lambda p: Decision.run("print(2)"))
    chunks = await d.ask("go")
    assert [c.code for c in d.language.ran] == ["print(2)"]
    decision = next(c.content for c in chunks if c.type == "decision")
    assert decision["digest"] == d.language.ran[0].digest == digest_of("print(2)")
    assert decision["edited"] and (decision["added"], decision["removed"]) == (1, 1)
    tool_call, result = d.sent()[-2:]
    assert json.loads(tool_call["tool_calls"][0]["function"]["arguments"])["code"] == "print(2)"
    assert "-print(1)" in result["content"] and "+print(2)" in result["content"]


async def test_declining_ends_the_turn(desk: Callable[..., Desk]) -> None:
    d = desk([call("rm()")], decide=lambda p: Decision.decline())
    await d.ask("go")
    assert d.language.ran == [] and len(d.model.requests) == 1
    await d.ask("why?")
    assert any(m["role"] == "tool" and "declin" in m["content"].lower() for m in d.sent())


async def test_declining_with_words_sends_the_words(desk: Callable[..., Desk]) -> None:
    d = desk([call("rm()")], "I will use mv.", decide=lambda p: Decision.decline("use mv instead"))
    await d.ask("go")
    assert d.language.ran == []
    assert "use mv instead" in json.dumps(d.sent())
    assert d.session.messages[-1]["content"] == "I will use mv."


async def test_parallel_calls_run_in_order_each_with_its_own_approval(desk: Callable[..., Desk]) -> None:
    both = Delta(tool_calls=call("a", id="x", index=0).tool_calls + call("b", id="y", index=1).tool_calls)
    d = desk([both], "Done.")
    chunks = await d.ask("go")
    assert [c.code for c in d.language.ran] == ["a", "b"]
    assert [m["content"] for m in d.session.messages if m["type"] in ("code", "console")] == ["a", "42\n", "b", "42\n"]
    ids = [chunk.id for chunk in chunks if chunk.type == "console" and chunk.start]
    assert len(set(ids)) == 2


async def test_several_fences_in_one_reply_run_in_order(desk: Callable[..., Desk]) -> None:
    d = desk("First\n```python\na\n```\nthen\n```python\nb\n```\nthat is all", "Done.", capabilities=Capabilities())
    await d.ask("go")
    assert [c.code.strip() for c in d.language.ran] == ["a", "b"]
    assert "".join(m["content"] for m in d.session.messages if m["role"] == "assistant" and m["type"] == "message")


async def test_code_that_printed_nothing_is_a_message_too(desk: Callable[..., Desk]) -> None:
    d = desk([call("x = 1")], "Done.", language=FakeLanguage(script=printing()))
    await d.ask("go")
    consoles = [m for m in d.session.messages if m["type"] == "console"]
    assert [m["content"] for m in consoles] == [""]
    assert d.sent()[-1]["content"].strip()


async def test_output_that_the_code_cleared_is_gone(desk: Callable[..., Desk]) -> None:
    async def progress(code: ApprovedCode, answer: Answerer) -> AsyncIterator[Chunk]:
        for percent in (10, 50, 100):
            yield Chunk("computer", "console", "clear_output", 1, id=code.id)
            yield Chunk("computer", "image", "base64.png", f"P{percent}", id=code.id)
            yield output(f"{percent} %\n", code.id)

    d = desk([call("work()")], "Done.", language=FakeLanguage(script=progress))
    await d.ask("go")
    assert [m["content"] for m in d.session.messages if m["role"] == "computer"] == ["P100", "100 %\n"]


async def test_two_figures_stay_two_and_leave_no_empty_console(desk: Callable[..., Desk]) -> None:
    async def plots(code: ApprovedCode, answer: Answerer) -> AsyncIterator[Chunk]:
        yield Chunk("computer", "console", "active_line", 1, id=code.id)
        for data in ("AAAA", "BBBB"):
            yield Chunk("computer", "image", "base64.png", data, id=code.id)

    d = desk([call("plot()")], "Done.", language=FakeLanguage(script=plots))
    await d.ask("go")
    computer = [(m["type"], m["content"]) for m in d.session.messages if m["role"] == "computer"]
    assert computer == [("image", "AAAA"), ("image", "BBBB")]


async def test_an_unknown_language_is_answered_and_does_not_loop(desk: Callable[..., Desk]) -> None:
    d = desk([call("x", language="cobol")], [call("x", language="cobol")], [call("x", language="cobol")])
    chunks = await d.ask("go")
    assert len(d.model.requests) == 2
    assert d.proposals == []
    assert any(c.type == "notice" and c.format == "repeat" for c in chunks)


async def test_empty_code_is_answered(desk: Callable[..., Desk]) -> None:
    d = desk([call("  \n")], "Sorry.")
    await d.ask("go")
    assert d.proposals == [] and len(d.model.requests) == 2


async def test_unasked_repetition_of_the_same_code_ends(desk: Callable[..., Desk]) -> None:
    d = desk(*[[call("poll()")]] * 20, auto_run=True)
    await d.ask("go")
    assert len(d.language.ran) == 3
    assert len(d.model.requests) <= 6


async def test_loop_mode_goes_on_until_a_breaker(desk: Callable[..., Desk]) -> None:
    d = desk("Thinking.", "Still.", "The task is done.", "never asked", loop=True)
    await d.ask("go")
    assert len(d.model.requests) == 3
    assert d.sent()[-1]["content"].startswith("Go on.")
    assert not any("Go on." in m["content"] for m in d.session.messages)


async def test_loop_mode_has_an_end(desk: Callable[..., Desk]) -> None:
    d = desk(*["Hm."] * 50, loop=True)
    chunks = await d.ask("go")
    assert len(d.model.requests) <= 6
    assert any(c.format == "loop" for c in chunks if c.type == "notice")


async def test_half_received_code_is_never_offered(desk: Callable[..., Desk]) -> None:
    half = Delta(tool_calls=(ToolCallDelta(0, "x", "execute", '{"language": "python", "code": "rm -rf /tm'),))
    d = desk([half, Delta(finish_reason="length")], "I was cut off.")
    chunks = await d.ask("go")
    assert d.proposals == [] and d.language.ran == []
    notice = next(c for c in chunks if c.type == "notice" and c.format == "incomplete" and c.id)
    assert notice.id == next(c.id for c in chunks if c.type == "code")
    assert len(d.model.requests) == 2


async def test_a_stream_that_breaks_keeps_what_came_and_can_be_asked_again(desk: Callable[..., Desk]) -> None:
    d = desk(["The answer is", StreamBroken("The answer broke off.", "Press r to ask again.")], "The answer is 4.")
    chunks = await d.ask("2+2?")
    error = next(c for c in chunks if c.type == "error")
    assert error.content == "The answer broke off. Press r to ask again."
    assert d.session.messages[-1]["content"] == "The answer is"
    assert len(d.model.requests) == 1  # nothing is said twice
    await d.ask(None)
    assert d.sent() == [{"role": "user", "content": "2+2?"}]
    assert d.session.messages[-1]["content"] == "The answer is 4."


async def test_a_wrong_key_is_one_line(desk: Callable[..., Desk]) -> None:
    d = desk([AuthenticationFailed("The key was refused.", "Check OPENAI_API_KEY.")])
    chunks = await d.ask("go")
    assert [c.content for c in chunks if c.type == "error"] == ["The key was refused. Check OPENAI_API_KEY."]
    assert d.session.last_error is not None
    assert d.session.messages == [{"role": "user", "type": "message", "content": "go"}]


async def test_a_conversation_that_is_too_long_is_trimmed_once_and_it_is_said(desk: Callable[..., Desk]) -> None:
    answers: list[Any] = [f"answer {n} " + "word " * 400 for n in range(8)]
    d = desk(*answers, [ContextTooLong("Too long.")], "Short now.")
    for n in range(8):
        await d.ask(f"question {n} " + "word " * 400)
    chunks = await d.ask("last")
    assert any(c.type == "notice" and c.format == "trimmed" and c.content for c in chunks)
    assert len(d.sent(-1)) < len(d.sent(-2))
    assert d.sent(-1)[-1]["content"] == "last"
    assert d.session.messages[-1]["content"] == "Short now."


async def test_a_model_without_tools_is_asked_in_text_mode_from_then_on(desk: Callable[..., Desk]) -> None:
    d = desk([ToolsUnsupported("No tools.")], "```python\n1+1\n```", "It is 42.", "Again.")
    chunks = await d.ask("go")
    assert any(c.format == "text_mode" for c in chunks if c.type == "notice")
    assert [bool(r.tools) for r in d.model.requests] == [True, False, False]
    assert len(d.language.ran) == 1
    await d.ask("again")
    assert not d.model.requests[-1].tools


async def test_a_stall_inside_a_code_block_leaves_it_marked(desk: Callable[..., Desk]) -> None:
    stalled = StreamStalled("Nothing came for 60 s.")
    d = desk(["```python\nrm -r /tm", stalled], capabilities=Capabilities(supports_functions=False))
    chunks = await d.ask("go")
    assert d.proposals == []
    assert any(c.type == "notice" and c.format == "incomplete" and c.id for c in chunks)
    assert [c.content for c in chunks if c.type == "error"] == ["Nothing came for 60 s."]


async def test_usage_is_added_up(desk: Callable[..., Desk]) -> None:
    usage = Usage(10, 5, 0, 0.25)
    d = desk(["one", Delta(usage=usage)], ["two", Delta(usage=usage)])
    await d.ask("a")
    await d.ask("b")
    assert d.session.usage == Usage(20, 10, 0, 0.5)
    assert d.session.context_used == 15


async def test_reasoning_is_kept_apart_and_never_sent_back(desk: Callable[..., Desk]) -> None:
    d = desk([Delta(reasoning="hmm"), "Yes."], "Again yes.")
    await d.ask("a")
    await d.ask("b")
    assert [m["type"] for m in d.session.messages[:3]] == ["message", "reasoning", "message"]
    assert "hmm" not in json.dumps(d.sent())


async def test_thinking_aloud_is_kept_apart_and_its_code_never_offered(desk: Callable[..., Desk]) -> None:
    d = desk("<think>Perhaps\n```python\nrm()\n```\n</think>\nNo need.", capabilities=Capabilities())
    await d.ask("a")
    assert d.proposals == []
    assert [m["type"] for m in d.session.messages] == ["message", "reasoning", "message"]
    assert d.session.messages[-1]["content"] == "No need."


async def test_stopping_closes_the_model_and_keeps_the_text(desk: Callable[..., Desk]) -> None:
    d = desk(["Some of it", asyncio.Event()], "Next.")
    stream = d.session.respond("go", approve=d.approve, answer=no_answer)
    async with aclosing(stream) as chunks:
        async for chunk in chunks:
            if chunk.text == "Some of it":
                break
    assert d.model.closed == 1
    assert d.session.messages[-1]["content"] == "Some of it"
    await d.ask("go on")
    assert {"role": "assistant", "content": "Some of it"} in d.sent()


async def test_stopping_while_code_runs_interrupts_it_and_keeps_the_output(desk: Callable[..., Desk]) -> None:
    async def endless(code: ApprovedCode, answer: Answerer) -> AsyncIterator[Chunk]:
        yield output("started\n", code.id)
        await asyncio.Event().wait()

    d = desk([call("loop()")], "Next.", language=FakeLanguage(script=endless))

    async def turn() -> None:
        async with aclosing(d.session.respond("go", approve=d.approve, answer=no_answer)) as chunks:
            async for chunk in chunks:
                if chunk.text == "started\n":
                    started.set()

    started = asyncio.Event()
    task = asyncio.create_task(turn())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not d.language.is_running
    assert d.session.messages[-1]["content"] == "started\n"
    await d.ask("and now?")
    assert "stopped this code" in json.dumps(d.sent())


async def test_interrupting_ends_the_turn_with_what_the_code_said(desk: Callable[..., Desk]) -> None:
    async def endless(code: ApprovedCode, answer: Answerer) -> AsyncIterator[Chunk]:
        yield output("started\n", code.id)
        await asyncio.Event().wait()

    d = desk([call("loop()")], "never asked", language=FakeLanguage(script=endless))
    async with aclosing(d.session.respond("go", approve=d.approve, answer=no_answer)) as chunks:
        async for chunk in chunks:
            if chunk.text == "started\n":
                await d.session.interrupt()
    assert d.language.interrupted == 1
    assert "KeyboardInterrupt" in d.session.messages[-1]["content"]
    assert len(d.model.requests) == 1


async def test_a_second_turn_waits_for_the_first(desk: Callable[..., Desk]) -> None:
    gate = asyncio.Event()
    d = desk(["one", gate], "two")
    first = asyncio.create_task(d.ask("a"))
    while not d.model.requests:
        await asyncio.sleep(0)
    second = asyncio.create_task(d.ask("b"))
    await asyncio.sleep(0)
    assert len(d.model.requests) == 1
    gate.set()
    await asyncio.gather(first, second)
    assert [m["content"] for m in d.session.messages] == ["a", "one", "b", "two"]


async def test_resuming_runs_nothing_by_itself_even_where_nobody_is_asked(desk: Callable[..., Desk]) -> None:
    d = desk("Done.", auto_run=True, decide=lambda p: Decision.decline())
    d.session.messages = [
        {"role": "user", "type": "message", "content": "go"},
        {"role": "assistant", "type": "code", "format": "python", "content": "rm()"},
    ]
    await d.ask(None)
    assert [p.code for p in d.proposals] == ["rm()"]
    assert d.language.ran == []


async def test_the_users_own_code_needs_no_model_and_the_model_hears_of_it(desk: Callable[..., Desk]) -> None:
    d = desk("I see.")
    async with aclosing(d.session.run_code("python", "1+1", approve=d.approve, answer=no_answer)) as chunks:
        seen = shapes([chunk async for chunk in chunks])
    assert seen[0] == "user/code start" and "computer/console/output" in seen
    assert d.model.requests == []
    await d.ask("what did I do?")
    assert "1+1" in json.dumps(d.sent()) and "42" in json.dumps(d.sent())
    assert all(m["role"] != "assistant" for m in d.sent())


async def test_input_reaches_the_code(desk: Callable[..., Desk], tmp_path: Path) -> None:
    async def asks(code: ApprovedCode, answer: Answerer) -> AsyncIterator[Chunk]:
        name = await answer(InputRequest(code.id, "Name? "))
        yield output(f"hello {name}\n", code.id)

    d = desk([call("input()")], "Done.", language=FakeLanguage(script=asks))

    async def answer(request: InputRequest) -> str:
        return "Ada"

    async with aclosing(d.session.respond("go", approve=d.approve, answer=answer)) as chunks:
        text = "".join([chunk.text async for chunk in chunks])
    assert "hello Ada" in text


async def test_long_output_is_whole_on_disk_and_short_for_the_model(desk: Callable[..., Desk]) -> None:
    lines = [f"line {n}\n" for n in range(200_000)]
    d = desk([call("many()")], "Done.", language=FakeLanguage(script=printing(*lines)), max_output=1000)
    await d.ask("go")
    result = d.sent()[-1]["content"]
    assert "line 0\n" in result and "line 199999" in result and len(result) < 3000
    console = next(m for m in d.session.history if m.type == "console")
    assert Path(console.meta["full_output"]).read_text() == "".join(lines)
    assert console.meta["full_output"] in result


ENDED = "The Python kernel was ended. Its variables are gone."


class Losing(FakeLanguage):
    """Loses its state as a kernel does: with a notice in the run, or with one that waits to be taken."""

    def __init__(self, script: Any) -> None:
        super().__init__(script=script)
        self.left: list[Chunk] = []

    async def interrupt(self) -> None:
        """The script says itself what comes of it."""

    def take_notices(self) -> list[Chunk]:
        left, self.left = self.left, []
        return left


async def test_the_model_reads_that_stopping_the_code_cost_its_variables(desk: Callable[..., Desk]) -> None:
    async def script(code: ApprovedCode, answer: Answerer) -> AsyncIterator[Chunk]:
        yield output("on\n", code.id)
        await d.session.interrupt()
        yield notice("waiting", "Still stopping.")
        yield notice("kernel", ENDED)

    d = desk([call("x")], "I see.", language=Losing(script))
    chunks = await d.ask("go")
    assert ENDED in [c.text for c in chunks if c.type == "notice"]
    assert d.session.take_notices() == []
    await d.ask("And now?")
    result = next(m["content"] for m in d.sent() if m["role"] == "tool")
    assert result.startswith("on\n[The user stopped") and result.endswith(f"[{ENDED}]")
    assert "Still stopping" not in result


@pytest.mark.parametrize("taken", [True, False], ids=["the front end asks", "the front end does not ask"])
async def test_a_loss_in_a_cancelled_turn_is_told_to_the_user_and_the_model(
    desk: Callable[..., Desk], taken: bool
) -> None:
    losing = Losing(printing("on\n"))
    d = desk([call("x")], "I see.", "Yes.", language=losing)
    async with aclosing(d.session.respond("go", approve=d.approve, answer=no_answer)) as stream:
        async for chunk in stream:
            if chunk.text == "on\n":
                losing.left.append(notice("kernel", ENDED))  # what closing the run will come to
                break
    if taken:
        assert [told.text for told in d.session.take_notices()] == [ENDED]
    assert [c.text for c in await d.ask("And now?") if c.type == "notice"] == ([] if taken else [ENDED])
    result = next(m["content"] for m in d.sent() if m["role"] == "tool")
    assert result.startswith("on\n") and result.endswith(f"[{ENDED}]") and result.count(ENDED) == 1
    assert [c for c in await d.ask("Really?") if c.type == "notice"] == []


@pytest.mark.parametrize("by_run", [True, False], ids=["noticed by the run", "noticed before the turn"])
async def test_the_model_reads_of_a_loss_between_two_runs_with_the_next_result(
    desk: Callable[..., Desk], by_run: bool
) -> None:
    async def script(code: ApprovedCode, answer: Answerer) -> AsyncIterator[Chunk]:
        if by_run:
            yield notice("kernel", ENDED)
        yield Chunk("computer", "console", "active_line", 1, id=code.id)
        yield output("NameError\n", code.id)

    losing = Losing(script)
    d = desk([call("x")], "I see.", language=losing)
    d.session.languages.get("python")
    if not by_run:
        losing.left.append(notice("kernel", ENDED))
    chunks = await d.ask("go")
    assert [c.text for c in chunks if c.type == "notice"] == [ENDED]
    result = next(m["content"] for m in d.sent() if m["role"] == "tool")
    assert result == f"[Before this code ran: {ENDED}]\n\nNameError"


async def test_a_kernel_that_cannot_start_is_told_before_the_model_is_asked(
    desk: Callable[..., Desk], tmp_path: Path
) -> None:
    d = desk("Hello.")
    d.session.languages.use_only([PythonKernel("/no/such/python", cwd=tmp_path)])
    asked_when_told = []
    async with aclosing(d.session.respond("Hi", approve=d.approve, answer=no_answer)) as stream:
        async for chunk in stream:
            if chunk.type == "notice" and chunk.format == "kernel":
                assert chunk.text.startswith("There is no /no/such/python.")
                asked_when_told.append(len(d.model.requests))
    assert asked_when_told == [0]
    assert d.session.messages[-1]["content"] == "Hello." and d.session.last_error is None
