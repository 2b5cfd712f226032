"""The scripted server itself: it refuses what a provider would refuse, and its conversations depend on the request."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from typing import Any

import pytest

from tests import openai_replies as r
from tests.openai_server import OpenAIServer
from tests.openai_validation import InvalidRequest, validate_request

USER = {"role": "user", "content": "Hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "execute", "arguments": '{"code": "1"}'}}
ASKED = {"role": "assistant", "content": "", "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "1"}
TOOLS = [{"type": "function", "function": {"name": "execute", "parameters": {"type": "object"}}}]


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), **more}


@pytest.mark.parametrize(
    "good",
    [
        body(USER),
        body({"role": "system", "content": "x"}, USER, temperature=0, stream=True, stream_options={}),
        body(USER, ASKED, RESULT, tools=TOOLS),
        body(USER, ASKED | {"content": None}, RESULT, USER),
        body({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}),
    ],
)
def test_good_requests_pass(good: dict[str, Any]) -> None:
    validate_request(good)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (body(), "messages is empty"),
        (body(USER, surprise=1), "unrecognized request argument: surprise"),
        (body({"role": "user", "content": " "}), "content is empty"),
        (body({"role": "computer", "content": "x"}), "unknown role"),
        (body({"role": "user", "content": None}), "content is null"),
        (body({"role": "system", "content": "x"}), "no message but the system's"),
        (body(USER, ASKED), "tool calls without a result: c1"),
        (body(USER, ASKED, USER), "tool calls without a result: c1"),
        (body(USER, RESULT), "without a preceding tool call"),
        (body(USER, ASKED, RESULT, RESULT), "without a preceding tool call"),
        (body(USER, ASKED | {"tool_calls": [CALL, CALL]}, RESULT), "two calls have the id"),
        (body(USER, ASKED | {"content": "x", "tool_calls": []}), "empty array"),
        (
            body(USER, ASKED | {"tool_calls": [CALL | {"function": {"name": "execute", "arguments": "{"}}]}, RESULT),
            "arguments are not JSON",
        ),
        (
            body(USER, ASKED | {"tool_calls": [CALL | {"function": {"name": "execute", "arguments": "[]"}}]}, RESULT),
            "not a JSON object",
        ),
        (body(USER, temperature=3), "temperature"),
        (body(USER, max_tokens=0), "bad max_tokens"),
        (body(USER, tools=[]), "tools is an empty array"),
        (body(USER, stream_options={"include_usage": True}), "only allowed with stream"),
        (body({"role": "user", "content": "\ud800"}), "not valid Unicode"),
        (body({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "/tmp/x.png"}}]}), "no data URL"),
    ],
)
def test_bad_requests_are_refused_with_a_reason(bad: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        validate_request(bad)


def post(url: str, content: dict[str, Any]) -> tuple[int, str]:
    data = json.dumps(content).encode()
    asked = urllib.request.Request(f"{url}/chat/completions", data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def test_an_invalid_request_is_answered_with_400_and_noted() -> None:
    async with OpenAIServer(r.text("Hello")) as server:
        assert (await asyncio.to_thread(post, server.url, body(USER)))[0] == 200
        status, words = await asyncio.to_thread(post, server.url, body(USER, ASKED))
    assert status == 400 and "without a result" in words
    assert server.problems == ["tool calls without a result: c1"]


@pytest.mark.parametrize("tools", [True, False])
async def test_a_conversation_runs_code_first_and_answers_then(tools: bool) -> None:
    more = {"tools": TOOLS} if tools else {}
    async with OpenAIServer(r.conversation("34 / 24", "About 1.4.")) as server:
        _, first = await asyncio.to_thread(post, server.url, body(USER, **more))
        message = json.loads(first)["choices"][0]["message"]
        result = RESULT | {"tool_call_id": "call_1"} if tools else {"role": "user", "content": "Code output: 1.4"}
        _, second = await asyncio.to_thread(post, server.url, body(USER, message, result, **more))
        final = json.loads(second)["choices"][0]["message"]
        _, third = await asyncio.to_thread(post, server.url, body(USER, message, result, final, USER, **more))
    assert ("tool_calls" in message) is tools and "34 / 24" in json.dumps(message)
    assert final["content"] == "About 1.4."
    assert "34 / 24" in third, "the next question starts anew"
    assert server.problems == []


async def test_it_runs_as_a_command() -> None:
    command = (sys.executable, "-m", "tests.openai_server", "--script", "text")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        url = (await asyncio.wait_for(process.stdout.readline(), 30)).decode().split()[0]
        status, answer = await asyncio.to_thread(post, url, body(USER))
    finally:
        process.kill()
        await process.communicate()
    assert status == 200 and "Hello from the scripted server." in answer
