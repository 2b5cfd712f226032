"""What a scripted OpenAI-compatible server answers: good answers, odd ones, and every fault worth promising about.

A `Reply` knows how to answer one request. A *script* decides which reply a request gets: a sequence of replies (the
last one is repeated) or a function from the request to a reply. Nothing here depends on pytest.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

STAMP = "\x1e"
"""Ends each token of `stamped`, so that a reader can tell them apart."""


class Request(Protocol):
    """What a script may look at: the parsed body and the headers (lower-case names)."""

    body: dict[str, Any]
    headers: Mapping[str, str]


class Exchange(Protocol):
    """One request being answered; implemented by the server."""

    request: Request

    async def start(self, status: int, headers: Mapping[str, str], *, chunked: bool) -> None: ...
    async def send(self, data: bytes) -> None: ...
    async def finish(self) -> None: ...
    def mark_first_delta(self) -> None: ...
    def reset(self) -> None: ...


class Reply(ABC):
    """Answers one request."""

    @abstractmethod
    async def __call__(self, exchange: Exchange, /) -> None: ...


Script = Sequence[Reply] | Callable[[Request], Reply]
Delta = dict[str, Any]


def pieces(text: str, size: int = 4) -> list[str]:
    """The text in pieces of `size` characters."""
    return [text[i : i + size] for i in range(0, len(text), size)]


@dataclass(frozen=True)
class Answer(Reply):
    """A model's answer: deltas, then whatever comes after them.

    `then`: "done" ends properly; "close" ends the body without finish reason or [DONE]; "reset" breaks the connection;
    "stall" sends nothing more until the client goes; "bad_json" sends a broken event; "error" sends an error event, as
    providers do when they fail after the headers. `pause` is in seconds between deltas. `whole` ignores `stream`.
    """

    deltas: Sequence[Delta]
    finish_reason: str | None = "stop"
    then: Literal["done", "close", "reset", "stall", "bad_json", "error"] = "done"
    pause: float = 0.0
    usage: Mapping[str, Any] | Literal["count", "omit"] = "count"
    whole: bool = False
    sse_done: bool = True

    async def __call__(self, exchange: Exchange) -> None:
        if self.whole or not exchange.request.body.get("stream"):
            await self._send_whole(exchange)
        else:
            await self._send_stream(exchange)

    async def _send_stream(self, exchange: Exchange) -> None:
        body = exchange.request.body
        await exchange.start(200, {"Content-Type": "text/event-stream"}, chunked=True)
        for delta in self.deltas:
            exchange.mark_first_delta()
            await exchange.send(event(chunk(body, delta)))
            if self.pause:
                await asyncio.sleep(self.pause)
        await self._send_rest(exchange)

    async def _send_rest(self, exchange: Exchange) -> None:
        body = exchange.request.body
        if self.then == "stall":
            await asyncio.Event().wait()
        if self.then == "reset":
            exchange.reset()
            return
        if self.then == "bad_json":
            await exchange.send(b'data: {"id": "chatcmpl-1", "choices": [{"delta": {"con\n\n')
        elif self.then == "error":
            await exchange.send(event({"error": {"message": "The server had an error", "type": "server_error"}}))
        elif self.then == "done":
            if self.finish_reason is not None:
                await exchange.send(event(chunk(body, {}, self.finish_reason)))
            if (body.get("stream_options") or {}).get("include_usage") and self.usage != "omit":
                await exchange.send(event(chunk(body, None, usage=self._usage(body))))
            if self.sse_done:
                await exchange.send(b"data: [DONE]\n\n")
        await exchange.finish()

    async def _send_whole(self, exchange: Exchange) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": None}
        calls: dict[int, dict[str, Any]] = {}
        for delta in self.deltas:
            for key in ("content", "reasoning_content"):
                if delta.get(key) is not None:
                    message[key] = (message.get(key) or "") + delta[key]
            for call in delta.get("tool_calls", ()):
                known = calls.setdefault(call.get("index", 0), {"type": "function", "function": {"arguments": ""}})
                known.update({k: v for k, v in call.items() if k in ("id",)})
                known["function"]["name"] = call["function"].get("name") or known["function"].get("name")
                known["function"]["arguments"] += call["function"].get("arguments") or ""
        if calls:
            message["tool_calls"] = list(calls.values())
        body = exchange.request.body
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason or "stop"}
        whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": int(time.time()), "model": body["model"]}
        payload = whole | {"choices": [choice]} | ({"usage": self._usage(body)} if self.usage != "omit" else {})
        exchange.mark_first_delta()
        await send_json(exchange, 200, payload)

    def _usage(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if isinstance(self.usage, Mapping):
            return self.usage
        prompt = max(1, len(json.dumps(body["messages"])) // 4)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": len(self.deltas),
            "total_tokens": prompt + len(self.deltas),
        }


@dataclass(frozen=True)
class Failure(Reply):
    """An HTTP error. With `message` None the usual words of OpenAI for that status."""

    status: int
    message: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    """A body that is not JSON, such as a proxy's HTML page."""

    async def __call__(self, exchange: Exchange) -> None:
        if self.raw is not None:
            await send_body(exchange, self.status, self.raw, {"Content-Type": "text/html", **self.headers})
            return
        message = self.message or _WORDS.get(self.status, "Something went wrong.")
        message = message.replace("{model}", str(exchange.request.body.get("model")))
        message = message.replace("{key}", exchange.request.headers.get("authorization", "").removeprefix("Bearer "))
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": self.code}
        await send_json(exchange, self.status, {"error": error}, self.headers)


@dataclass(frozen=True)
class Raw(Reply):
    """A streamed body of exactly these bytes, for the forms of other providers. `then` as in `Answer`."""

    parts: Sequence[bytes]
    content_type: str = "text/event-stream"
    then: Literal["done", "stall", "reset"] = "done"

    async def __call__(self, exchange: Exchange) -> None:
        await exchange.start(200, {"Content-Type": self.content_type}, chunked=True)
        for part in self.parts:
            exchange.mark_first_delta()
            await exchange.send(part)
        if self.then == "stall":
            await asyncio.Event().wait()
        elif self.then == "reset":
            exchange.reset()
        else:
            await exchange.finish()


@dataclass(frozen=True)
class Hang(Reply):
    """Accepts the request and never answers, not even headers."""

    async def __call__(self, exchange: Exchange) -> None:
        await asyncio.Event().wait()


@dataclass(frozen=True)
class Slow(Reply):
    """Another reply, after a while. `seconds` before the headers."""

    seconds: float
    reply: Reply

    async def __call__(self, exchange: Exchange) -> None:
        await asyncio.sleep(self.seconds)
        await self.reply(exchange)


@dataclass(frozen=True)
class Gate(Reply):
    """Another reply, once `event` is set: a test decides when."""

    event: asyncio.Event
    reply: Reply

    async def __call__(self, exchange: Exchange) -> None:
        await self.event.wait()
        await self.reply(exchange)


@dataclass(frozen=True)
class Flood(Reply):
    """`tokens` tokens as fast as the socket takes them, or `rate` per second. `stamped`: each token is the
    monotonic time in nanoseconds at which it was sent, followed by `STAMP`."""

    tokens: int
    rate: float | None = None
    stamped: bool = False
    token: str = "token "

    async def __call__(self, exchange: Exchange) -> None:
        body = exchange.request.body
        await exchange.start(200, {"Content-Type": "text/event-stream"}, chunked=True)
        before, after = event(chunk(body, {"content": "\x00"})).split(b"\\u0000")
        begin = time.monotonic()
        for number in range(self.tokens):
            if self.rate:
                await asyncio.sleep(max(0.0, begin + number / self.rate - time.monotonic()))
            word = f"{time.monotonic_ns()}\\u001e" if self.stamped else self.token
            exchange.mark_first_delta()
            await exchange.send(before + word.encode() + after)
        await exchange.send(event(chunk(body, {}, "stop")))
        if (body.get("stream_options") or {}).get("include_usage"):
            usage = {"prompt_tokens": 10, "completion_tokens": self.tokens, "total_tokens": self.tokens + 10}
            await exchange.send(event(chunk(body, None, usage=usage)))
        await exchange.send(b"data: [DONE]\n\n")
        await exchange.finish()


_WORDS = {
    400: "Invalid request.",
    401: "Incorrect API key provided: {key}. You can find your API key at https://platform.openai.com/account/api-keys.",
    403: "Project does not have access to model `{model}`.",
    404: "The model `{model}` does not exist or you do not have access to it.",
    429: "Rate limit reached for {model} on requests per min. Please try again later.",
    500: "The server had an error while processing your request. Sorry about that!",
    503: "The engine is currently overloaded, please try again later.",
    529: "Overloaded",
}


def text(content: str, *, size: int = 4, pause: float = 0.0) -> Answer:
    return Answer([{"role": "assistant", "content": ""}, *({"content": p} for p in pieces(content, size))], pause=pause)


def deltas(*parts: Delta, finish_reason: str | None = "stop") -> Answer:
    """An answer of exactly these deltas."""
    return Answer(parts, finish_reason)


def execute_arguments(code: str, language: str = "python") -> str:
    """The arguments of a call of `execute`, as models write them."""
    return json.dumps({"language": language, "code": code})


def tool_call(
    code: str, language: str = "python", *, say: str = "", size: int = 7, split: Sequence[int] = ()
) -> Answer:
    """A call of `execute`, its arguments in pieces of `size` characters, or cut at the offsets in `split`."""
    return tool_calls([execute_arguments(code, language)], say=say, size=size, split=split)


def tool_calls(
    arguments: Iterable[str], *, name: str = "execute", say: str = "", size: int = 7, split: Sequence[int] = ()
) -> Answer:
    """Parallel calls with these arguments, streamed one after the other."""
    out: list[Delta] = [{"role": "assistant", "content": None}, *({"content": p} for p in pieces(say))]
    for index, whole in enumerate(arguments):
        cuts = [0, *split, len(whole)]
        parts = [whole[a:b] for a, b in itertools.pairwise(cuts)] if split else pieces(whole, size)
        head = {"index": index, "id": f"call_{index + 1}", "type": "function"}
        out.append({"tool_calls": [head | {"function": {"name": name, "arguments": ""}}]})
        out += [{"tool_calls": [{"index": index, "function": {"arguments": part}}]} for part in parts]
    return Answer(out, "tool_calls")


def legacy_function_call(code: str, language: str = "python") -> Answer:
    """The `function_call` form from before tools."""
    out: list[Delta] = [{"role": "assistant", "content": None, "function_call": {"name": "execute", "arguments": ""}}]
    out += [{"function_call": {"arguments": part}} for part in pieces(execute_arguments(code, language), 7)]
    return Answer(out, "function_call")


def truncated_tool_call(code: str, language: str = "python", *, keep: int) -> Answer:
    """A call whose arguments end after `keep` characters because the model reached its limit."""
    whole = execute_arguments(code, language)[:keep]
    return Answer(tool_calls([whole]).deltas, "length")


def reasoning(thought: str, content: str) -> Answer:
    """Thinking first, in `reasoning_content` as DeepSeek and others send it, then the answer."""
    thoughts = [{"reasoning_content": p} for p in pieces(thought)]
    return Answer([{"role": "assistant", "content": ""}, *thoughts, *({"content": p} for p in pieces(content))])


def empty() -> Answer:
    return Answer([{"role": "assistant", "content": ""}])


def stall(content: str = "") -> Answer:
    return Answer(text(content).deltas, then="stall")


def reset(content: str = "") -> Answer:
    return Answer(text(content).deltas, then="reset")


def cut(content: str = "") -> Answer:
    """The body ends properly as HTTP but without finish reason or [DONE]."""
    return Answer(text(content).deltas, None, then="close")


def invalid_json(content: str = "") -> Answer:
    return Answer(text(content).deltas, then="bad_json")


def no_finish_reason(content: str) -> Answer:
    """[DONE] without a finish reason."""
    return Answer(text(content).deltas, None)


def whole(content: str) -> Answer:
    """A server that ignores `stream`."""
    return Answer(text(content).deltas, whole=True)


def rate_limited(retry_after: str | None = None) -> Failure:
    return Failure(429, code="rate_limit_exceeded", headers={"Retry-After": retry_after} if retry_after else {})


def out_of_quota() -> Failure:
    message = "You exceeded your current quota, please check your plan and billing details."
    return Failure(429, message, code="insufficient_quota")


def context_overflow(limit: int = 8192, got: int = 9000) -> Failure:
    message = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in {got} tokens. "
        "Please reduce the length of the messages."
    )
    return Failure(400, message, code="context_length_exceeded")


def echo_key(status: int = 401) -> Failure:
    return Failure(status, "Bad key: {key}", code="invalid_api_key")


def echo_key_in_answer() -> Callable[[Request], Reply]:
    """An endpoint that says the key back in its answer, cut into small pieces."""
    return lambda request: text(f"Your key is {request.headers.get('authorization', '')[7:]}, thank you.", size=3)


def overflow_above(characters: int, reply: Reply) -> Callable[[Request], Reply]:
    """Refuses conversations above so many characters, answers shorter ones."""

    def script(request: Request) -> Reply:
        size = len(json.dumps(request.body["messages"]))
        return reply if size <= characters else context_overflow(characters // 4, size // 4)

    return script


def answers_code(body: Mapping[str, Any]) -> bool:
    """True when the request brings the output of code: as a tool result, or as the message after a fenced block."""
    messages = body["messages"]
    if messages[-1]["role"] == "tool":
        return True
    said = [m for m in messages[:-1] if m["role"] == "assistant"]
    if messages[-1]["role"] == "assistant":  # code_output_sender="assistant"
        return "```" in str(messages[-1].get("content"))
    after_assistant = len(messages) > 1 and messages[-2]["role"] == "assistant"
    return bool(after_assistant and "```" in str(said[-1].get("content")))


def conversation(
    code: str = "34 / 24",
    answer: str = "The result is 1.4166666666666667.",
    *,
    language: str = "python",
    say: str = "",
    pause: float = 0.0,
) -> Callable[[Request], Reply]:
    """Asks for code first and answers once its output is there; in tool mode when the request has tools."""

    def script(request: Request) -> Reply:
        if answers_code(request.body):
            return text(answer, pause=pause)
        if request.body.get("tools"):
            reply = tool_call(code, language, say=say)
        else:
            reply = text(f"{say}\n\n```{language}\n{code}\n```\n".lstrip())
        return Answer(reply.deltas, reply.finish_reason, pause=pause)

    return script


def event(data: Any) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def chunk(body: Mapping[str, Any], delta: Delta | None, finish: str | None = None, usage: Any = None) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": body.get("model")}
    return head | {"choices": choices} | ({"usage": usage} if usage is not None else {})


async def send_json(exchange: Exchange, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
    body = json.dumps(value).encode()
    await send_body(exchange, status, body, {"Content-Type": "application/json", **(headers or {})})


async def send_body(exchange: Exchange, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    await exchange.start(status, {"Content-Length": str(len(body)), **headers}, chunked=False)
    await exchange.send(body)
    await exchange.finish()


SCRIPTS: dict[str, Callable[[], Script]] = {
    "text": lambda: [text("Hello from the scripted server.")],
    "code": conversation,
    "picture": lambda: conversation("import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()", "A parabola."),
    "input": lambda: conversation("name = input('Your name? ')\nprint('Hello', name)", "You are greeted."),
    "error": lambda: conversation("1 / 0", "That divides by zero."),
    "loop": lambda: conversation(
        "import time\nfor i in range(1000):\n    print(i)\n    time.sleep(0.1)", "That took a while."
    ),
    "parallel": lambda: [tool_calls([execute_arguments("print(1)"), execute_arguments("print(2)")]), text("Both ran.")],
    "legacy": lambda: [legacy_function_call("print(1)"), text("It ran.")],
    "reasoning": lambda: [reasoning("First I think about it. " * 20, "Then I answer.")],
    "401": lambda: [Failure(401, code="invalid_api_key")],
    "403": lambda: [Failure(403)],
    "404": lambda: [Failure(404, code="model_not_found")],
    "429": lambda: [rate_limited("3"), text("The limit is over.")],
    "429-long": lambda: [rate_limited("600")],
    "quota": lambda: [out_of_quota()],
    "500": lambda: [Failure(500), Failure(500), text("Back again.")],
    "500-always": lambda: [Failure(500)],
    "529": lambda: [Failure(529), text("Back again.")],
    "hang": lambda: [Hang()],
    "slow": lambda: [Slow(12, text("Sorry for the wait."))],
    "stall": lambda: [stall("I was about to say")],
    "reset": lambda: [reset("I was about to say")],
    "cut": lambda: [cut("I was about to say")],
    "invalid-json": lambda: [invalid_json("I was about to say")],
    "html": lambda: [Failure(502, raw=b"<html><body><h1>502 Bad Gateway</h1></body></html>")],
    "no-finish": lambda: [no_finish_reason("An answer without a finish reason.")],
    "empty": lambda: [empty()],
    "whole": lambda: [whole("An answer in one piece.")],
    "truncated": lambda: [truncated_tool_call("print('a long program')", keep=30), text("I was cut off.")],
    "overflow": lambda: [context_overflow()],
    "echo-key": lambda: [echo_key()],
    "echo-key-in-answer": echo_key_in_answer,
    "flood-2000": lambda: [Flood(2_000)],
    "flood-10000": lambda: [Flood(10_000)],
    "rate-1000": lambda: [Flood(10_000, rate=1_000)],
    "stamped": lambda: [Flood(200, rate=20, stamped=True)],
}
"""Scripts by name, for `python -m tests.openai_server --script NAME`."""
