"""A script of model faults through the real worker: each ends in the answer or in one line, with few requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from oi_tui.engine.errors import ModelError
from oi_tui.engine.llm.attempts import RequestAllowance, answer
from oi_tui.engine.llm.base import Delta
from oi_tui.engine.llm.worker_model import WorkerModel
from tests import openai_replies as r
from tests.engine.llm.asking import KEY, request
from tests.openai_server import OpenAIServer

pytestmark = [pytest.mark.server, pytest.mark.xdist_group("litellm")]


async def no_pause(seconds: float) -> None:
    return


async def ask(shared: WorkerModel, server: OpenAIServer, allowance: RequestAllowance) -> tuple[list[Delta], str]:
    deltas: list[Delta] = []
    try:
        async for delta in answer(shared, request(server, idle_timeout=3.0), allowance, sleep=no_pause):
            deltas.append(delta)
    except ModelError as error:
        return deltas, str(error)
    return deltas, ""


def shown(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas)


@pytest.mark.parametrize(
    ("script", "text", "error", "requests"),
    [
        ([r.Failure(500), r.Failure(500), r.text("Hi")], "Hi", "", 3),
        ([r.Failure(500)], "", "a problem of its own (500)", 4),
        ([r.Failure(529), r.text("Hi")], "Hi", "", 2),
        ([r.rate_limited("2"), r.text("Hi")], "Hi", "", 2),
        ([r.rate_limited("600")], "", "It can be asked again in 10 min", 1),
        ([r.out_of_quota()], "", "no credit or quota", 1),
        ([r.Failure(401)], "", "does not accept the API key", 1),
        ([r.context_overflow()], "", "context window", 1),
        ([r.Hang(), r.text("Hi")], "Hi", "", 2),
        ([r.stall("Once upon"), r.text("Once upon a time")], "Once upon", "sent nothing more", 1),
        ([r.reset("Once upon"), r.text("Once upon a time")], "Once upon", "broke in the middle", 1),
        ([r.reset(), r.text("Hi")], "Hi", "", 2),
        ([r.invalid_json("Once upon"), r.text("Hi")], "Once upon", "something unreadable", 1),
        ([r.empty(), r.text("Hi")], "Hi", "", 2),
        ([r.empty()], "", "answered with nothing", 2),
        ([r.whole("Hi")], "Hi", "", 1),
        ([r.no_finish_reason("Hi")], "Hi", "", 1),
        ([r.Failure(502, raw=b"<html>"), r.text("Hi")], "Hi", "", 2),
    ],
    ids="500-500-ok 500s 529-ok 429-ok 429-long quota 401 overflow hang-ok stall reset reset-at-once invalid-json "
    "empty-ok empty whole no-finish html-ok".split(),
)
async def test_each_fault_ends_in_the_answer_or_one_line(
    shared: WorkerModel, script: list[r.Reply], text: str, error: str, requests: int
) -> None:
    async with OpenAIServer(*script) as server:
        allowance = RequestAllowance()
        deltas, line = await ask(shared, server, allowance)
    assert shown(deltas) == text
    assert (error in line) if error else line == ""
    assert "\n" not in line and KEY not in line
    assert len(server.requests) == requests == allowance.used <= 4
    assert server.problems == []


async def test_the_key_is_on_no_command_line_and_in_no_environment(shared: WorkerModel) -> None:
    async with OpenAIServer(r.text("Hi")) as server:
        await ask(shared, server, RequestAllowance())
    assert shared.pid is not None
    for name in ("cmdline", "environ"):
        assert KEY.encode() not in Path(f"/proc/{shared.pid}/{name}").read_bytes()
