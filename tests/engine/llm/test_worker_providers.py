"""Providers that do not speak OpenAI's form: LiteLLM translates, and the promises stay the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oi_tui.engine import errors
from oi_tui.engine.errors import ModelError
from oi_tui.engine.llm.base import Delta
from oi_tui.engine.llm.worker_model import WorkerModel
from tests import openai_replies as r
from tests.engine.llm.asking import KEY, TOOLS, calls_of, collect, request, text_of
from tests.openai_server import OpenAIServer

pytestmark = [pytest.mark.server, pytest.mark.xdist_group("litellm")]

CLAUDE = "anthropic/claude-sonnet-4-20250514"


def event(kind: str, **body: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **body})}\n\n".encode()


ANTHROPIC = [
    event(
        "message_start",
        message={
            "id": "m",
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": "claude",
            "stop_reason": None,
            "usage": {"input_tokens": 12, "output_tokens": 1},
        },
    ),
    event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    event("ping"),
    event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hello "}),
    event("content_block_delta", index=0, delta={"type": "text_delta", "text": "there"}),
    event("content_block_stop", index=0),
    event(
        "content_block_start", index=1, content_block={"type": "tool_use", "id": "t1", "name": "execute", "input": {}}
    ),
    event("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": '{"language": "py'}),
    event("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": 'thon", "code": "1"}'}),
    event("content_block_stop", index=1),
    event("message_delta", delta={"stop_reason": "tool_use", "stop_sequence": None}, usage={"output_tokens": 20}),
    event("message_stop"),
]


def ollama(*contents: str, **message: Any) -> r.Raw:
    head = {"model": "llama3", "created_at": "2024-01-01T00:00:00Z"}
    parts = [head | {"message": {"role": "assistant", "content": c, **message}, "done": False} for c in contents]
    last = {"done": True, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 2}
    parts.append(head | {"message": {"role": "assistant", "content": ""}, **last})
    return r.Raw([json.dumps(part).encode() + b"\n" for part in parts], "application/x-ndjson")


async def ask(shared: WorkerModel, server: OpenAIServer, model: str, **settings: Any) -> list[Delta]:
    base = server.url.removesuffix("/v1")
    return await collect(shared, request(server, model=model, api_base=base, tools=True, **settings))


async def test_claude_answers_with_text_and_a_call(shared: WorkerModel) -> None:
    async with OpenAIServer(r.Raw(ANTHROPIC)) as server:
        deltas = await ask(shared, server, CLAUDE)
        assert server.requests[0].headers["x-api-key"] == KEY
    assert text_of(deltas) == "Hello there"
    assert calls_of(deltas) == {0: ("execute", '{"language": "python", "code": "1"}')}
    assert [d.finish_reason for d in deltas if d.finish_reason] == ["tool_calls"]
    usage = next(d.usage for d in deltas if d.usage)
    assert (usage.prompt_tokens, usage.completion_tokens) == (12, 20)


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (r.Raw(ANTHROPIC[:5], then="reset"), errors.StreamBroken, "broke in the middle"),
        (r.Raw(ANTHROPIC[:8]), errors.StreamBroken, "broke in the middle"),
        (r.Raw(ANTHROPIC[:4], then="stall"), errors.StreamStalled, "sent nothing more for 1 s"),
        (
            r.Raw([*ANTHROPIC[:4], event("error", error={"type": "overloaded_error", "message": "Overloaded"})]),
            errors.ServiceUnavailable,
            "It says: Overloaded. Try again",
        ),
        (r.Failure(529), errors.ServiceUnavailable, "is overloaded (529)"),
        (r.rate_limited("5"), errors.RateLimited, "limits requests"),
        (r.Failure(401), errors.AuthenticationFailed, "does not accept the API key"),
        (
            r.Failure(400, "prompt is too long: 210000 tokens > 200000 maximum"),
            errors.ContextTooLong,
            "(200,000 tokens)",
        ),
    ],
    ids=["reset", "half a call", "stall", "error event", "529", "429", "401", "too long"],
)
async def test_faults_of_claude(shared: WorkerModel, reply: r.Reply, kind: type[ModelError], words: str) -> None:
    async with OpenAIServer(reply) as server:
        with pytest.raises(ModelError) as caught:
            await ask(shared, server, CLAUDE, idle_timeout=1.0)
        assert len(server.requests) == 1
    assert type(caught.value) is kind and words in str(caught.value)


async def test_ollama_answers_through_its_chat_api(shared: WorkerModel) -> None:
    call = {"function": {"name": "execute", "arguments": {"language": "python", "code": "1"}}}
    async with OpenAIServer(ollama("Hel", "lo"), ollama("", tool_calls=[call])) as server:
        deltas = await ask(shared, server, "ollama/llama3.1", context_window=9000)
        assert text_of(deltas) == "Hello" and next(d.usage for d in deltas if d.usage).prompt_tokens == 5
        assert server.requests[0].path == "/api/chat"
        assert server.requests[0].body["options"]["num_ctx"] == 9000
        assert server.requests[0].body["options"]["temperature"] == 0
        called = calls_of(await ask(shared, server, "ollama/llama3.1"))
    assert [name for name, _ in called.values()] == ["execute"]
    assert [json.loads(arguments) for _, arguments in called.values()] == [call["function"]["arguments"]]


async def test_a_model_that_ollama_does_not_have(shared: WorkerModel) -> None:
    async with OpenAIServer(r.Failure(404, raw=b'{"error":"model \'nope\' not found"}')) as server:
        with pytest.raises(errors.ModelNotFound, match=r"does not know the model ollama/nope.* ollama pull nope"):
            await ask(shared, server, "ollama/nope")


async def test_azure_gets_its_version(shared: WorkerModel) -> None:
    async with OpenAIServer(r.text("Hello")) as server:
        assert text_of(await ask(shared, server, "azure/mine", api_version="2024-06-01")) == "Hello"
        assert server.requests[0].path == "/openai/deployments/mine/chat/completions?api-version=2024-06-01"


@pytest.mark.parametrize("model", ["groq/x", "mistral/x", "deepseek/x", "openrouter/x/y", "xai/x", "together_ai/x"])
async def test_providers_in_openais_form(shared: WorkerModel, model: str) -> None:
    async with OpenAIServer(r.tool_call("1", say="Hm.")) as server:
        deltas = await collect(shared, request(server, model=model, tools=True))
        assert server.problems == [] and server.requests[0].body["tools"] == TOOLS
    assert text_of(deltas) == "Hm." and calls_of(deltas) == {0: ("execute", r.execute_arguments("1"))}
