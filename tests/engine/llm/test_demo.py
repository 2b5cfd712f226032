"""The embedded demo answers from the request alone, in tool mode and in text mode, and says what it is."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import pytest

from oi_tui.engine.history import CodeFate
from oi_tui.engine.llm.base import ChatModel, ModelRequest
from oi_tui.engine.llm.demo import DemoModel
from oi_tui.engine.llm.demo_arithmetic import expression_in
from oi_tui.engine.llm.demo_scenes import ABILITIES, LABEL
from oi_tui.engine.llm.openai_messages import to_openai
from oi_tui.engine.llm.tool_calls import execute_tool
from oi_tui.engine.lmc import Message
from oi_tui.engine.settings import LOOP_MESSAGE, Settings

MODES = pytest.mark.parametrize("tools", [True, False], ids=["tools", "text"])


class Talk:
    """A conversation with the demo, whose requests are made as the engine makes them."""

    def __init__(self, *, tools: bool) -> None:
        self.tools = tools
        self.messages: list[Message] = []
        self.model: ChatModel = DemoModel(pace=0)

    async def ask(self, words: str | None = None) -> tuple[str, str | None]:
        """The demo's next answer: its words, and its code."""
        if words is not None:
            self.messages.append(Message("user", "message", words))
        settings = Settings()
        sent = to_openai(
            self.messages, system="Be helpful.", tool_mode=self.tools, settings=settings, supports_vision=False
        )
        request = ModelRequest(sent, settings.llm, (execute_tool(["python"]),) if self.tools else ())
        text, arguments, finish = "", "", None
        async for delta in self.model.stream(request):
            text += delta.text
            arguments += "".join(call.arguments for call in delta.tool_calls)
            finish = delta.finish_reason or finish
        assert finish == ("tool_calls" if arguments else "stop")
        code = json.loads(arguments)["code"] if arguments else None
        if not self.tools and "```python\n" in text:
            text, _, fenced = text.partition("```python\n")
            code = fenced.rpartition("\n```")[0]
        text = text.strip()
        if text:
            self.messages.append(Message("assistant", "message", text))
        if code is not None:
            self.messages.append(Message("assistant", "code", code, "python", meta={"state": CodeFate.PENDING}))
        return text, code

    def decided(self, **meta: Any) -> None:
        self.messages[-1] = self.messages[-1].with_meta(**meta)

    def ran(self, output: str, **meta: Any) -> None:
        self.decided(state=CodeFate.RUN, **meta)
        code_id = self.messages[-1].id
        self.messages.append(Message("computer", "console", output, "output", meta={"code_id": code_id}))

    def execute(self, namespace: dict[str, Any]) -> None:
        """Really run the last code, as a kernel would, in `namespace`."""
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(str(self.messages[-1].content), "<demo>", "exec"), namespace)
        except Exception as error:
            line = f"Traceback (most recent call last)\n{type(error).__name__}: {error}"
            printed.write(f"----\n{type(error).__name__}   {line}\n")
        self.ran(printed.getvalue())


@MODES
async def test_arithmetic_is_computed_and_the_result_read_from_the_output(tools: bool) -> None:
    talk = Talk(tools=tools)
    text, code = await talk.ask("what is 2380*3875?")
    assert LABEL in text
    assert code == "result = 2380 * 3875\nprint(result)"
    talk.execute({})
    assert await talk.ask() == ("2380 * 3875 = 9222500", None)
    text, code = await talk.ask("and 15% of 80?")
    assert LABEL not in text
    assert code is not None and "15 / 100 * 80" in code
    talk.ran("another number: 12.0\n")
    assert (await talk.ask())[0].endswith("12.0")


@pytest.mark.parametrize(
    ("request_", "expression"),
    [
        ("What's 34/24?", "34 / 24"),
        ("2,380 × 3,875", "2380 * 3875"),
        ("12 plus 30 times 2", "12 + 30 * 2"),
        ("7 squared", "7 ** 2"),
        ("2^10", "2 ** 10"),
        ("(3+4)*5 please", "(3 + 4) * 5"),
        ("hello", None),
        ("it was on 2024-01-05", None),
        ("1; import os", None),
        ("__import__('os').system('x')", None),
        ("(" * 500 + "1+1", None),
    ],
)
def test_only_arithmetic_is_taken_for_arithmetic(request_: str, expression: str | None) -> None:
    assert expression_in(request_) == expression


@MODES
async def test_an_error_is_seen_and_repaired_with_the_variables_still_there(tools: bool) -> None:
    talk = Talk(tools=tools)
    kernel: dict[str, Any] = {}
    await talk.ask("make an error and repair it")
    talk.execute(kernel)
    text, code = await talk.ask()
    assert "ValueError: could not convert string to float: 'n/a'" in text
    assert code is not None
    talk.execute(kernel)
    assert await talk.ask() == ("Repaired: mean of 4 readings: 12.97.", None)


@MODES
async def test_the_biggest_files_are_those_that_the_code_found(
    tools: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "small.txt").write_bytes(b"x" * 20_000)
    (tmp_path / "huge file.bin").write_bytes(b"x" * 3_000_000)
    monkeypatch.chdir(tmp_path)
    talk = Talk(tools=tools)
    await talk.ask("which are the biggest files here?")
    talk.execute({})
    assert (await talk.ask())[0].startswith("The biggest file here is ./huge file.bin with 3.00 MB.")


@MODES
async def test_declined_code_is_not_reported_as_run(tools: bool) -> None:
    talk = Talk(tools=tools)
    await talk.ask("draw a picture")
    talk.decided(state=CodeFate.DECLINED, note="rather 2+2")
    text, code = await talk.ask("rather 2+2")
    assert text.startswith("You declined the code, so it did not run.")
    assert code == "result = 2 + 2\nprint(result)"


@MODES
@pytest.mark.parametrize(
    "reason",
    [
        "Python is turned off (setting `languages`). Available: shell.",
        "There is no language “python” here. Available: none.",
        "This code was not run.",
    ],
)
async def test_code_that_the_engine_refused_is_no_answer(tools: bool, reason: str) -> None:
    talk = Talk(tools=tools)
    await talk.ask("what is 1+1?")
    talk.decided(state=CodeFate.REFUSED, problem=reason)
    answer, code = await talk.ask()
    assert code is None
    assert "did not run" in answer and reason in answer
    assert "1 + 1 =" not in answer


@MODES
async def test_edited_code_is_said_to_be_the_users(tools: bool) -> None:
    talk = Talk(tools=tools)
    _, original = await talk.ask("what is 2+2?")
    edited = Message("assistant", "code", "print(5)", "python", id=talk.messages[-1].id)
    talk.messages[-1] = edited
    talk.ran("5\n", original=original)
    text, _ = await talk.ask()
    assert text == "You edited the code before it ran, so this comes from your version. It printed 5"


@MODES
async def test_interrupted_code_is_said_to_be_stopped(tools: bool) -> None:
    talk = Talk(tools=tools)
    await talk.ask("run a long loop")
    talk.ran("step  1 of 40: pi is about 3.14\nstep  2 of 40: pi is about 3.15\n", exit="interrupted")
    text, code = await talk.ask("and now?")
    assert "You stopped the code. It had come to: step  2 of 40: pi is about 3.15." in text
    assert code is None


@MODES
@pytest.mark.parametrize("request_", [request for request, _ in ABILITIES])
async def test_everything_it_claims_to_do_it_does_with_code_that_compiles(tools: bool, request_: str) -> None:
    _, code = await Talk(tools=tools).ask(request_)
    assert code is not None
    compile(code, "<demo>", "exec")


@MODES
@pytest.mark.parametrize("request_", ["hello", "write me a novel", "", "🙂" * 10_000])
async def test_anything_else_is_answered_with_what_it_can_do(tools: bool, request_: str) -> None:
    text, code = await Talk(tools=tools).ask(request_)
    assert LABEL in text
    assert all(ability in text for ability, _ in ABILITIES)
    assert code is None


async def test_code_that_printed_nothing_is_not_given_a_result() -> None:
    talk = Talk(tools=True)
    await talk.ask("what is 1+1?")
    talk.ran("")
    assert "no result" in (await talk.ask())[0]


async def test_loop_mode_ends_by_itself() -> None:
    talk = Talk(tools=True)
    await talk.ask("hello")
    assert await talk.ask(LOOP_MESSAGE) == ("The task is done.", None)
