"""The answer of an endpoint as chunks in OpenAI's form, whichever way LiteLLM hands it over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol

import httpx

from oi_tui.engine.llm import faults
from oi_tui.engine.llm.endpoint import Endpoint
from oi_tui.engine.llm.sse import EventReader, Unreadable
from oi_tui.engine.llm.worker_protocol import Piece


class AnswerStream(Protocol):
    """Chunks, and afterwards whether the endpoint said that the answer was over."""

    said_it_is_over: bool
    """The endpoint marked the end, apart from any finish reason."""
    is_delimited: bool
    """The body had an end that a broken connection cannot imitate."""

    def chunks(self) -> AsyncGenerator[Mapping[str, Any], None]:
        """Raises `ModelError` for stalls and unreadable bytes, and whatever the HTTP library raises."""


class ResponseStream:
    """An answer in OpenAI's form, read from the bytes of the response. Any byte counts as a sign of life."""

    def __init__(self, response: httpx.Response, endpoint: Endpoint) -> None:
        self.said_it_is_over = False
        self.is_delimited = "content-length" in response.headers or "transfer-encoding" in response.headers
        self._response = response
        self._endpoint = endpoint
        self._reader = EventReader()

    async def chunks(self) -> AsyncGenerator[Mapping[str, Any], None]:
        parts = self._response.aiter_bytes()
        data: bytes | None = b""
        try:
            while data is not None and not self._reader.is_done:
                data = await _next(parts, self._endpoint)
                for value in self._reader.finish() if data is None else self._reader.feed(data):
                    if isinstance(value, Mapping):
                        if value.get("error"):
                            raise faults.explain_event(value, self._endpoint)
                        yield value
                await asyncio.sleep(0)  # buffered bytes never suspend, and lines and cancellation want their turn
        except Unreadable as problem:
            body = problem.body
            raise (
                faults.unreadable(self._endpoint) if body is None else faults.not_an_answer(body, self._endpoint)
            ) from None
        finally:
            await self._response.aclose()
        self.said_it_is_over = self._reader.is_done or self._reader.is_stream is False


class WrappedStream:
    """Any other provider's answer, as LiteLLM translates it."""

    said_it_is_over = False
    is_delimited = True

    def __init__(self, stream: Any, endpoint: Endpoint) -> None:
        self._stream = stream
        self._endpoint = endpoint

    async def chunks(self) -> AsyncGenerator[Mapping[str, Any], None]:
        try:
            while (chunk := await _next(self._stream, self._endpoint)) is not None:
                value = chunk.model_dump()
                if self._has_invented_its_end():
                    for choice in value.get("choices") or ():
                        choice["finish_reason"] = None
                yield value
                await asyncio.sleep(0)
        finally:
            if hasattr(self._stream, "aclose"):
                await self._stream.aclose()

    def _has_invented_its_end(self) -> bool:
        """LiteLLM says "stop" where the provider said nothing."""
        reasons = ("received_finish_reason", "intermittent_finish_reason")
        return all(getattr(self._stream, name, "unknown") is None for name in reasons)


class Ending:
    """Decides whether an answer is whole when its endpoint does not say so: half code must not be taken for code."""

    def __init__(self) -> None:
        self._has_finish = False
        self._text: list[str] = []
        self._arguments: dict[Any, list[str]] = {}

    def note(self, piece: Piece) -> None:
        match piece:
            case ["f", _]:
                self._has_finish = True
            case ["t", text]:
                self._text.append(text)
            case ["c", index, call_id, _, arguments]:
                self._arguments.setdefault(call_id if index is None else index, []).append(arguments)

    def is_cut(self, answer: AnswerStream) -> bool:
        """Whether the answer ended before it was over, as far as anyone can tell."""
        if self._has_finish or answer.said_it_is_over:
            return False
        if not answer.is_delimited:
            return True
        fences = sum(line.lstrip().startswith("```") for line in "".join(self._text).splitlines())
        return fences % 2 == 1 or not all(_is_json("".join(parts)) for parts in self._arguments.values())


async def _next(parts: Any, endpoint: Endpoint) -> Any:
    """The next item, or None at the end. Raises the typed error when none comes within the idle limit."""
    try:
        async with asyncio.timeout(endpoint.idle_timeout):
            return await anext(parts, None)
    except TimeoutError:
        raise faults.too_slow(endpoint, began=True) from None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
