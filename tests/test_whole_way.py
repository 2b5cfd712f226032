"""The whole way: the command, the real worker with the real litellm, a loopback server, a real kernel."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from oi_tui.engine.approval import CodeProposal, Decision, digest_of, no_answer
from oi_tui.engine.llm.worker_model import WorkerModel
from oi_tui.engine.lmc import Chunk
from oi_tui.engine.session import Session
from oi_tui.engine.settings import ModelSettings, Settings
from tests import openai_replies as replies
from tests.openai_server import OpenAIServer

pytestmark = [pytest.mark.server, pytest.mark.kernel, pytest.mark.xdist_group("whole_way")]


@dataclass
class Ended:
    """What a command left behind."""

    status: int | None
    stdout: str
    stderr: str

    @property
    def chunks(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stdout.splitlines()]


async def oi_tui(*arguments: str, stdin: bytes | None = None, timeout: float = 60) -> Ended:
    """Run the command without a terminal, to its end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "oi_tui",
        *arguments,
        stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(stdin), timeout)
    except TimeoutError:
        process.kill()
        raise
    return Ended(process.returncode, out.decode(), err.decode())


def joined(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbouring pieces of one text as one."""
    out: list[dict[str, Any]] = []
    for chunk in chunks:
        same = {k: v for k, v in chunk.items() if k != "content"}
        content = chunk.get("content")
        if out and isinstance(content, str) and isinstance(out[-1].get("content"), str):
            if {k: v for k, v in out[-1].items() if k != "content"} == same:
                out[-1] = {**out[-1], "content": out[-1]["content"] + content}
                continue
        out.append(chunk)
    return out


@pytest.mark.parametrize("mode", ["--llm_supports_functions", "--no-llm_supports_functions"])
async def test_the_documented_chunks_in_the_documented_order(mode: str) -> None:
    async with OpenAIServer(replies.conversation()) as server:
        ended = await oi_tui(
            "--json", "-y", "-p", "What's 34/24?", "--model", "openai/test", "--api_base", server.url, mode
        )
        assert server.problems == []
    assert ended.status == 0, ended.stderr
    code = {"role": "assistant", "type": "code", "format": "python"}
    console = {"role": "computer", "type": "console"}
    message = {"role": "assistant", "type": "message"}
    assert joined(ended.chunks) == [
        {**code, "start": True},
        {**code, "content": "34 / 24"},
        {**code, "end": True},
        {**console, "start": True},
        {**console, "format": "active_line", "content": 1},
        {**console, "format": "output", "content": "1.4166666666666667\n"},
        {**console, "format": "active_line", "content": None},
        {**console, "end": True},
        {**message, "start": True},
        {**message, "content": "The result is 1.4166666666666667."},
        {**message, "end": True},
    ]


async def test_without_a_terminal_and_without_y_code_is_shown_and_declined() -> None:
    async with OpenAIServer(replies.conversation("open('made', 'w')")) as server:
        ended = await oi_tui("-p", "make a file", "--model", "openai/test", "--api_base", server.url, "-lsf")
    assert ended.status == 1
    assert "open('made', 'w')" in ended.stdout
    assert "-y" in ended.stderr
    assert not Path("made").exists()


async def test_the_task_can_come_from_standard_input() -> None:
    async with OpenAIServer(replies.text("Hello there.")) as server:
        ended = await oi_tui("--stdin", "--model", "openai/test", "--api_base", server.url, stdin=b"Say hello.\n")
        assert "Say hello." in json.dumps(server.requests[-1].messages)
    assert ended.status == 0
    assert "Hello there." in ended.stdout


async def test_a_key_never_shows_even_if_the_server_says_it_back() -> None:
    key = "sk-do-not-show-0123456789abcdef"
    async with OpenAIServer(replies.echo_key(401)) as server:
        os.environ["OI_TUI_API_KEY"] = key
        try:
            ended = await oi_tui("-p", "hello", "--model", "openai/test", "--api_base", server.url)
        finally:
            del os.environ["OI_TUI_API_KEY"]
        assert server.requests[0].key == key
    assert ended.status == 1
    assert key not in ended.stdout + ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


FAULTS: dict[str, tuple[Callable[[], Any], bool]] = {
    "401": (lambda: replies.Failure(401), False),
    "403": (lambda: replies.Failure(403), False),
    "404": (lambda: replies.Failure(404), False),
    "429 with Retry-After": (lambda: replies.rate_limited("0.2"), True),
    "429, quota": (replies.out_of_quota, False),
    "500": (lambda: replies.Failure(500), True),
    "529": (lambda: replies.Failure(529), True),
    "reset before anything": (replies.reset, True),
    "reset mid-stream": (lambda: replies.reset("The answer is"), False),
    "cut mid-stream": (lambda: replies.cut("Look:\n```python\nprint("), False),
    "stall mid-stream": (lambda: replies.stall("The answer is"), False),
    "silence before the headers": (replies.Hang, True),
    "invalid JSON": (lambda: replies.invalid_json("The answer is"), False),
    "no finish reason": (lambda: replies.no_finish_reason("The answer is 4."), True),
    "empty": (replies.empty, True),
    "not streamed": (lambda: replies.whole("The answer is 4."), True),
    "truncated arguments": (lambda: replies.truncated_tool_call("print('hello world')", keep=30), True),
    "context overflow": (replies.context_overflow, True),
}
"""What goes wrong with the first request (the second is answered), and whether the user gets the answer by itself."""


SILENT = ("stall mid-stream", "silence before the headers")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def worker() -> AsyncIterator[WorkerModel]:
    """One worker for all faults: it has to survive them too."""
    model = WorkerModel()
    await model.warm()
    yield model
    await model.aclose()


async def decline(proposal: CodeProposal) -> Decision:
    raise AssertionError(f"nothing whole was sent, but this was proposed: {proposal.code}")


async def turn(
    session: Session, text: str | None, approve: Callable[[CodeProposal], Awaitable[Decision]]
) -> list[Chunk]:
    async with aclosing(session.respond(text, approve=approve, answer=no_answer)) as chunks:
        return [chunk async for chunk in chunks]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("fault", FAULTS)
async def test_every_fault_ends_in_the_answer_or_in_one_clear_line(
    fault: str, worker: WorkerModel, tmp_path: Path
) -> None:
    broken, recovers = FAULTS[fault]
    async with OpenAIServer(broken(), replies.text("The answer is 4.")) as server:
        llm = ModelSettings(
            model="openai/test",
            api_base=server.url,
            api_key="sk-x",
            supports_functions=True,
            idle_timeout=1.0 if fault in SILENT else 30.0,
        )
        session = Session(Settings(llm=llm), model=worker, folder=tmp_path)
        session.messages = [
            {"role": role, "type": "message", "content": f"{role} said {n}: " + "so it is. " * 100}
            for n in range(6)
            for role in ("user", "assistant")
        ]
        try:
            chunks = await turn(session, "2+2?", decline)
            errors = [chunk.text for chunk in chunks if chunk.type == "error"]
            assert len(server.requests) <= 6
            assert server.problems == []
            said = "".join(
                m["content"] for m in session.messages[12:] if m["role"] == "assistant" and m["type"] == "message"
            )
            if recovers:
                assert errors == []
                assert said == "The answer is 4."
            else:
                assert len(errors) == 1 and "\n" not in errors[0] and "Traceback" not in errors[0]
                assert "The answer is 4." not in said
                await turn(session, None, decline)  # the retry key
                assert session.messages[-1]["content"] == "The answer is 4."
                assert server.problems == []
        finally:
            await session.languages.aclose()


async def test_edited_code_is_what_the_kernel_ran_and_the_model_sees_the_edit(tmp_path: Path) -> None:
    edited = "import hashlib\nprint(hashlib.sha256(In[-1].encode()).hexdigest())"

    async def edit(proposal: CodeProposal) -> Decision:
        return Decision.run(edited)

    async with OpenAIServer(replies.conversation("print('mine')")) as server:
        llm = ModelSettings(model="openai/test", api_base=server.url, api_key="sk-x", supports_functions=True)
        async with Session(Settings(llm=llm), folder=tmp_path) as session:
            chunks = await turn(session, "go", edit)
            output = "".join(chunk.text for chunk in chunks if chunk.format == "output").strip()
        decision: Any = next(chunk.content for chunk in chunks if chunk.type == "decision")
        assert output == decision["digest"] == digest_of(edited)
        result = server.requests[-1].messages[-1]["content"]
        assert "-print('mine')" in result and "+import hashlib" in result
        assert server.problems == []


async def test_ctrl_c_ends_the_command_with_130_and_leaves_no_process(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = f"import os, time; open({str(ready)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    async with OpenAIServer(replies.conversation(code)) as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "oi_tui", "-y", "-p", "go", "--model", "openai/test", "--api_base", server.url,
            "-lsf", stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            async with asyncio.timeout(60):
                while not (ready.exists() and ready.read_text()):
                    await asyncio.sleep(0.05)
            process.send_signal(signal.SIGINT)
            await asyncio.wait_for(process.communicate(), 30)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    assert process.returncode == 130
    kernel = int(ready.read_text())
    async with asyncio.timeout(10):
        while _exists(kernel):
            await asyncio.sleep(0.05)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
