"""The real worker with the real LiteLLM, against a real server on the loopback."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
import threading
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from oi_tui.engine import errors
from oi_tui.engine.errors import ModelError
from oi_tui.engine.llm.attempts import RequestAllowance, answer
from oi_tui.engine.llm.base import Delta, ModelRequest
from oi_tui.engine.llm.worker_model import WorkerModel
from oi_tui.engine.llm.worker_process import WorkerProcess
from oi_tui.engine.settings import ModelSettings
from tests import openai_replies as r
from tests.engine.llm.asking import KEY, TOOLS, calls_of, collect, request, text_of
from tests.openai_server import OpenAIServer

pytestmark = [pytest.mark.server, pytest.mark.xdist_group("litellm")]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# -- answers


async def test_an_answer_streams_with_its_end_and_its_usage(shared: WorkerModel) -> None:
    async with OpenAIServer(r.text("Hello there, how are you?")) as server:
        deltas = await collect(shared, request(server))
        assert text_of(deltas) == "Hello there, how are you?"
        assert [d.finish_reason for d in deltas if d.finish_reason] == ["stop"]
        usage = next(d.usage for d in deltas if d.usage)
        assert usage.prompt_tokens > 0 and usage.completion_tokens > 0 and not usage.estimated and usage.cost is None
        (sent,) = server.requests
        assert sent.key == KEY and sent.body["temperature"] == 0.0 and sent.body["stream"] is True
        assert sent.body["model"] == "test" and "max_tokens" not in sent.body
        assert server.problems == []


async def test_settings_reach_the_endpoint(shared: WorkerModel) -> None:
    async with OpenAIServer(r.text("ok")) as server:
        await collect(shared, request(server, model="anything", temperature=0.7, max_tokens=12, tools=True))
        body = server.requests[0].body
        assert (body["model"], body["temperature"], body["max_tokens"]) == ("anything", 0.7, 12)
        assert body["tools"] == TOOLS and server.problems == []


async def test_without_a_key_a_dummy_is_sent_and_never_the_one_of_openai(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with OpenAIServer(r.text("ok"), r.Failure(401)) as server, WorkerModel() as model:
        await collect(model, request(server, api_key=None))
        assert server.requests[0].key == "dummy"
        with pytest.raises(errors.AuthenticationFailed, match="OPENAI_API_KEY is sent to its own provider only"):
            await collect(model, request(server, api_key=None))


async def test_a_known_model_has_a_price(shared: WorkerModel) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 400}}
    async with OpenAIServer(r.Answer(r.text("ok").deltas, usage=usage)) as server:
        asked = request(server, model="gpt-4o")
        capabilities = await shared.capabilities(asked.settings)
        counted = next(d.usage for d in await collect(shared, asked) if d.usage)
    assert capabilities.supports_functions and capabilities.supports_vision
    assert capabilities.input_price and capabilities.output_price and capabilities.context_window == 128_000
    assert counted.cached_tokens == 400
    most = 1000 * capabilities.input_price + 100 * capabilities.output_price
    assert counted.cost is not None and 0 < counted.cost < most


@pytest.mark.parametrize("split", [(), (1,), (13, 14, 15), (30,)])
async def test_tool_calls_arrive_whole_however_they_are_cut(shared: WorkerModel, split: tuple[int, ...]) -> None:
    code = 'print("né 🙂 \\n", "\\ud83d")'
    async with OpenAIServer(r.tool_call(code, say="Let me see.", split=split)) as server:
        deltas = await collect(shared, request(server, tools=True))
    assert text_of(deltas) == "Let me see."
    assert calls_of(deltas) == {0: ("execute", r.execute_arguments(code))}
    assert [d.finish_reason for d in deltas if d.finish_reason] == ["tool_calls"]


async def test_parallel_and_legacy_calls(shared: WorkerModel) -> None:
    arguments = [r.execute_arguments("1"), r.execute_arguments("2")]
    async with OpenAIServer(r.tool_calls(arguments), r.legacy_function_call("3")) as server:
        parallel = await collect(shared, request(server, tools=True))
        assert calls_of(parallel) == {0: ("execute", arguments[0]), 1: ("execute", arguments[1])}
        legacy = await collect(shared, request(server, tools=True))
        assert calls_of(legacy) == {0: ("execute", r.execute_arguments("3"))}


async def test_thinking_is_kept_apart(shared: WorkerModel) -> None:
    async with OpenAIServer(r.reasoning("First I think.", "Then I answer.")) as server:
        deltas = await collect(shared, request(server))
    assert "".join(d.reasoning for d in deltas) == "First I think." and text_of(deltas) == "Then I answer."


@pytest.mark.parametrize("reply", [r.whole("All at once."), r.no_finish_reason("All at once."), r.cut("All at once.")])
async def test_unusual_but_whole_answers_are_answers(shared: WorkerModel, reply: r.Reply) -> None:
    async with OpenAIServer(reply) as server:
        assert text_of(await collect(shared, request(server))) == "All at once."


async def test_a_whole_answer_may_be_a_call(shared: WorkerModel) -> None:
    reply = r.Answer(r.tool_call("1").deltas, "tool_calls", whole=True)
    async with OpenAIServer(reply) as server:
        calls = calls_of(await collect(shared, request(server, tools=True)))
    assert list(calls.values()) == [("execute", r.execute_arguments("1"))]


async def test_code_whose_end_never_came_is_not_taken_for_whole(shared: WorkerModel) -> None:
    half = r.Answer(r.truncated_tool_call("print('long')", keep=30).deltas, None, then="close")
    async with OpenAIServer(r.cut("```python\nimport shutil"), half) as server:
        for _ in range(2):
            with pytest.raises(errors.StreamBroken):
                await collect(shared, request(server, tools=True))


# -- faults

FAULTS: dict[str, tuple[r.Reply, type[ModelError], str]] = {
    "401": (r.Failure(401), errors.AuthenticationFailed, "does not accept the API key"),
    "403": (r.Failure(403), errors.PermissionDenied, "does not allow this key"),
    "404": (r.Failure(404), errors.ModelNotFound, "It offers test-model."),
    "429": (r.rate_limited("7"), errors.RateLimited, "limits requests"),
    "quota": (r.out_of_quota(), errors.QuotaExceeded, "no credit or quota"),
    "500": (r.Failure(500), errors.ServiceUnavailable, "a problem of its own (500)"),
    "529": (r.Failure(529), errors.ServiceUnavailable, "is overloaded (529)"),
    "html": (r.Failure(200, raw=b"<html>login</html>"), errors.RequestRejected, "a web page instead of an answer"),
    "garbage": (r.Failure(200, raw=b"what?"), errors.RequestRejected, "something unreadable: what?"),
    "overflow": (r.context_overflow(8192, 9000), errors.ContextTooLong, "(8,192 tokens)"),
    "hang": (r.Hang(), errors.ConnectionFailed, "did not answer within 1 s"),
    "no-tools": (r.Failure(400, "gemma does not support tools"), errors.ToolsUnsupported, "takes no tools"),
    "stall": (r.stall("Once"), errors.StreamStalled, "sent nothing more for 1 s"),
    "reset": (r.reset("Once"), errors.StreamBroken, "broke in the middle"),
    "reset at once": (r.Answer([], then="reset"), errors.ConnectionFailed, "closed the connection without an answer"),
    "invalid json": (r.invalid_json("Once"), errors.StreamBroken, "something unreadable in the middle"),
    "error event": (r.Answer(r.text("Once").deltas, then="error"), errors.StreamBroken, "broke off the answer"),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_is_one_clear_line_and_one_request(shared: WorkerModel, name: str) -> None:
    reply, kind, words = FAULTS[name]
    received: list[Delta] = []
    async with OpenAIServer(reply) as server:
        with pytest.raises(ModelError) as caught:
            limit = 1.0 if name in ("hang", "stall") else 30.0
            async for delta in shared.stream(request(server, idle_timeout=limit)):
                received.append(delta)
        posts = [request for request in server.requests if request.method == "POST"]
    assert type(caught.value) is kind and words in str(caught.value)
    assert "\n" not in str(caught.value) and "Traceback" not in str(caught.value)
    assert len(posts) == 1, "every retry is ours"
    assert text_of(received) in ("", "Once")


async def test_retry_after_is_passed_on(shared: WorkerModel) -> None:
    async with OpenAIServer(r.rate_limited("7")) as server:
        with pytest.raises(errors.RateLimited) as caught:
            await collect(shared, request(server))
    assert caught.value.retry_after == 7


async def test_nothing_listening_is_said_at_once(shared: WorkerModel) -> None:
    async with OpenAIServer(r.text("x")) as server:
        asked = request(server)
    with pytest.raises(
        errors.ConnectionFailed, match=r"Nothing answers at 127\.0\.0\.1:\d+ .* Is the server running\?"
    ):
        await collect(shared, asked)


async def test_no_model_and_unknown_models(shared: WorkerModel) -> None:
    with pytest.raises(errors.NoModel):
        await collect(shared, ModelRequest([{"role": "user", "content": "x"}], ModelSettings()))
    with pytest.raises(errors.ModelNotFound, match="Which provider foobar-7b belongs to"):
        await collect(shared, ModelRequest([{"role": "user", "content": "x"}], ModelSettings(model="foobar-7b")))


async def test_a_server_that_does_not_know_stream_options_is_asked_without(shared: WorkerModel) -> None:
    def script(got: Any) -> r.Reply:
        return r.Failure(400, "Unknown field: stream_options") if "stream_options" in got.body else r.text("ok")

    async def no_pause(seconds: float) -> None:
        return

    async with OpenAIServer(script) as server:
        stream = answer(shared, request(server), RequestAllowance(), sleep=no_pause)
        assert text_of([delta async for delta in stream]) == "ok"
        assert len(server.requests) == 2


@pytest.mark.parametrize("reply", [r.echo_key(401), r.echo_key(500), r.echo_key(400)])
async def test_a_key_that_the_server_says_back_is_not_shown(shared: WorkerModel, reply: r.Reply) -> None:
    async with OpenAIServer(reply) as server:
        with pytest.raises(ModelError) as caught:
            await collect(shared, request(server))
    assert KEY not in str(caught.value) and "[key removed]" in str(caught.value)


async def test_a_key_in_the_answer_is_not_shown(shared: WorkerModel) -> None:
    async with OpenAIServer(r.echo_key_in_answer()) as server:
        text = text_of(await collect(shared, request(server)))
    assert text in (f"Your key is {p}[key removed], thank you." for p in ("", "s", "sk", "sk-"))


async def test_the_notice_comes_while_waiting_and_the_answer_after_it(shared: WorkerModel) -> None:
    await shared.warm()
    gate = asyncio.Event()
    async with OpenAIServer(r.Gate(gate, r.text("Sorry."))) as server:
        stream = shared.stream(request(server, connect_notice=0.05))
        first = await anext(stream)
        assert first.notice == ("waiting", f"No answer from {server.url[7:-3]} yet; still waiting.")
        gate.set()
        assert text_of([delta async for delta in stream]) == "Sorry."


# -- stopping


@pytest.mark.parametrize("reply", [r.Hang(), r.stall("Once")])
async def test_stopping_closes_the_connection(shared: WorkerModel, reply: r.Reply) -> None:
    async with OpenAIServer(reply) as server:
        task = asyncio.create_task(collect(shared, request(server)))
        await server.wait_until(lambda s: s.requests)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await server.wait_until(lambda s: s.requests[0].closed_by_client_at, timeout=5)
        pid = shared.pid
        server.use(r.text("Next."))
        assert text_of(await collect(shared, request(server))) == "Next."
        assert shared.pid == pid, "the worker did not have to be killed for it"


async def test_leaving_in_the_middle_of_a_flood_closes_the_connection(shared: WorkerModel) -> None:
    async with OpenAIServer(r.Flood(1_000_000)) as server:
        async with aclosing(shared.stream(request(server))) as deltas:
            async for _ in deltas:
                break
        await server.wait_until(lambda s: s.requests[0].closed_by_client_at, timeout=5)


async def test_a_worker_that_does_not_obey_is_killed_and_the_connection_closes(shared: WorkerModel) -> None:
    async with OpenAIServer(r.stall("Once"), r.text("Next.")) as server:
        stream = shared.stream(request(server))
        await anext(stream)
        pid = shared.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        await stream.aclose()
        await server.wait_until(lambda s: s.requests[0].closed_by_client_at)
        await until(lambda: shared.pid != pid)
        assert text_of(await collect(shared, request(server))) == "Next."


# -- the process


async def test_a_killed_worker_is_reported_and_the_next_request_works(shared: WorkerModel) -> None:
    async with OpenAIServer(r.stall("Once"), r.text("Next.")) as server:
        stream = shared.stream(request(server))
        assert (await anext(stream)).text
        pid = shared.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(errors.WorkerDied, match=r"ended unexpectedly \(signal SIGKILL\)"):
            async for _ in stream:
                pass
        assert text_of(await collect(shared, request(server))) == "Next."
        assert shared.pid not in (None, pid)
        assert not Path(f"/proc/{pid}").exists(), "no zombie"


async def test_closing_ends_the_worker_also_while_it_loads() -> None:
    for wait in (True, False):
        model = WorkerModel()
        warming = asyncio.create_task(model.warm())
        if wait:
            await warming
        await until(lambda model=model: model.pid)
        pid = model.pid
        assert pid is not None
        await model.aclose()
        await warming
        assert not Path(f"/proc/{pid}").exists()
        await model.aclose()
        with pytest.raises(errors.WorkerDied):
            await collect(model, ModelRequest([], ModelSettings(model="x")))


async def test_the_worker_dies_with_its_parent(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import asyncio, sys
        from oi_tui.engine.llm.worker_model import WorkerModel

        async def main():
            model = WorkerModel()
            await model.warm()
            print(model.pid, flush=True)
            await asyncio.Event().wait()

        asyncio.run(main())
    """)
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    assert parent.stdout is not None
    pid = int(await asyncio.wait_for(parent.stdout.readline(), 60))
    assert is_running(pid)
    parent.kill()
    await parent.wait()
    await until(lambda: not is_running(pid))


async def test_one_worker_serves_several_event_loops_and_threads_do_not_pile_up() -> None:
    model = WorkerModel()

    async def ask() -> str:
        async with OpenAIServer(r.text("Hello")) as server:
            return text_of(await collect(model, request(server)))

    assert await asyncio.to_thread(asyncio.run, ask()) == "Hello"
    before = threading.active_count()
    for _ in range(3):
        assert await asyncio.to_thread(asyncio.run, ask()) == "Hello"
    assert threading.active_count() <= before + 1
    await model.aclose()
    assert threading.active_count() < before


async def test_a_broken_installation_is_named() -> None:
    command = [sys.executable, "-c", 'import os; os.write(1, b\'{"is":"broken","why":"ImportError: no litellm"}\\n\')']
    async with WorkerModel(start=lambda: WorkerProcess(command)) as model:
        with pytest.raises(ModelError, match=r"LiteLLM cannot be loaded: ImportError: no litellm\."):
            await collect(model, ModelRequest([{"role": "user", "content": "x"}], ModelSettings(model="x")))
        assert (await model.capabilities(ModelSettings(model="x"))).context_window is None


async def test_a_worker_that_cannot_start_is_named() -> None:
    async with WorkerModel(start=lambda: WorkerProcess(["/nonexistent/python"])) as model:
        await model.warm()
        with pytest.raises(ModelError, match="cannot start: No such file"):
            await collect(model, ModelRequest([{"role": "user", "content": "x"}], ModelSettings(model="x")))


async def test_a_file_in_the_users_folder_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("types.py", "json.py", "litellm.py", "openai.py"):
        (tmp_path / name).write_text("raise SystemExit('imported from the working folder')")
    (tmp_path / ".env").write_text("OPENAI_API_KEY=from-dot-env-0123456789\n")
    monkeypatch.chdir(tmp_path)
    async with OpenAIServer(r.text("Hello")) as server, WorkerModel() as model:
        assert text_of(await collect(model, request(server, api_key=None))) == "Hello"
        assert server.requests[0].key == "dummy"


async def test_what_libraries_print_is_kept_for_diagnosis_without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", KEY)
    program = (
        f"import sys; sys.stderr.write('printed {KEY} ' * 9000 + 'the end'); sys.stderr.flush();"
        "sys.stdin.readline(); print('astray', flush=True); sys.stdin.read()"
    )
    async with WorkerModel(start=lambda: WorkerProcess([sys.executable, "-c", program])) as model:
        warming = asyncio.create_task(model.warm())
        await until(lambda: model.diagnostics.endswith("the end"))
        assert set(model.diagnostics.replace("[key removed]", "KEY").split()) == {"printed", "KEY", "the", "end"}
        asking = asyncio.create_task(model.capabilities(ModelSettings(model="x")))
        await until(lambda: "astray" in model.diagnostics)
        await model.aclose()
        await asyncio.gather(warming, asking)


# -- floods and the network


async def test_ten_thousand_tokens_flat_out_arrive_in_few_deltas(shared: WorkerModel) -> None:
    async with OpenAIServer(r.Flood(10_000)) as server:
        deltas = await collect(shared, request(server))
    assert text_of(deltas) == "token " * 10_000
    assert len(deltas) < 2_000


async def test_a_delta_of_five_megabytes_arrives_in_parts(shared: WorkerModel) -> None:
    huge = "0123456789abcdef" * (5 * 1024 * 64)
    async with OpenAIServer(r.deltas({"content": huge})) as server:
        deltas = await collect(shared, request(server))
    assert text_of(deltas) == huge and max(len(d.text) for d in deltas) <= 256 * 1024


async def test_a_reader_that_stands_still_holds_the_server_back(shared: WorkerModel) -> None:
    async with OpenAIServer(r.Flood(400_000, token="0123456789" * 10)) as server:
        stream = shared.stream(request(server))
        received = len((await anext(stream)).text)
        await asyncio.sleep(1)  # the server could send everything meanwhile
        assert server.requests[0].closed_by_client_at is None
        assert not server.requests[0].finished
        async for delta in stream:
            received += len(delta.text)
            if received > 2_000_000:
                break
        await stream.aclose()


async def test_nothing_is_contacted_but_the_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "connections"
    (tmp_path / "sitecustomize.py").write_text(
        textwrap.dedent(f"""
        import sys

        def watch(event, arguments):
            if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
                with open({str(log)!r}, "a") as out:
                    print(event, arguments[1:] if event in ("socket.connect", "socket.sendto") else arguments, file=out)

        sys.addaudithook(watch)
        """)
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    async with OpenAIServer(r.text("one"), r.Failure(500), r.tool_call("1")) as server, WorkerModel() as model:
        await model.warm()
        assert not log.exists(), "connections before the first request"
        await model.capabilities(ModelSettings(model="ollama/llama3"))
        await model.capabilities(ModelSettings(model="github_copilot/gpt-4o"))
        for name in ("one", "gpt-4o", "two"):
            try:
                await collect(model, request(server, model=name, tools=True))
            except ModelError:
                continue
        lines = log.read_text().splitlines()
        port = server.url.split(":")[2].removesuffix("/v1")
    assert lines and all("127.0.0.1" in line and port in line for line in lines), lines
