"""LiteLLM as the worker uses it: one request in, pieces of an answer out, one typed error if it fails.

The `litellm` module is handed in, because only `worker` imports it. LiteLLM finds the provider, the address, the key
and the form of the request. Answers in OpenAI's form are then read from the response itself: LiteLLM's wrapper loses
answers that a server does not stream, invents finish reasons, and takes ten times as long. Other providers' answers go
through the wrapper.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import asdict, replace
from importlib.util import find_spec
from typing import Any

import httpx
import openai

from oi_tui.engine.errors import ModelError, ModelNotFound, RequestRejected
from oi_tui.engine.llm import fault_signs as signs
from oi_tui.engine.llm import faults
from oi_tui.engine.llm.answer_stream import AnswerStream, Ending, ResponseStream, WrappedStream
from oi_tui.engine.llm.base import Usage
from oi_tui.engine.llm.capabilities import capabilities_of, cost_of, entry_of, names_like
from oi_tui.engine.llm.targets import Target, find_target
from oi_tui.engine.llm.wire_chunks import pieces_of, usage_of
from oi_tui.engine.llm.worker_protocol import Line, Piece, settings_from_wire, usage_to_wire
from oi_tui.engine.redaction import redact
from oi_tui.engine.settings import ModelSettings

CONNECT = 20.0
"""Seconds for the connection itself."""

OFFER_LIMIT = 2.0
"""Seconds a server may take to say which models it has, when the one asked for is unknown."""

OLLAMA_BASE = "http://localhost:11434"

_PRIME_ANSWER = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


class Gateway:
    """Requests through LiteLLM."""

    def __init__(self, litellm: Any) -> None:
        self._litellm = litellm
        self._without_usage: set[str] = set()
        litellm.suppress_debug_info = True
        litellm.telemetry = False
        litellm.drop_params = True
        litellm.modify_params = True
        litellm.num_retries = 0
        litellm.disable_token_counter = True
        litellm.disable_hf_tokenizer_download = True
        litellm.REPEATED_STREAMING_CHUNK_LIMIT = 10**9  # otherwise 100 equal tokens in a row are an error
        # LiteLLM looks for MCP servers among the tools, and needs a package for it that it does not depend on.
        self._has_mcp_handler = find_spec("litellm.responses.mcp.chat_completions_handler") is not None
        self._providers = frozenset(str(getattr(p, "value", p)) for p in litellm.provider_list)

    def capabilities(self, line: Line) -> Line:
        """What the local model map says about the model of these settings."""
        return asdict(capabilities_of(self._target(settings_from_wire(line["settings"])), self._litellm.model_cost))

    async def prime(self) -> None:
        """Load what the first request needs, with an answer that never leaves this process."""
        transport = httpx.MockTransport(
            lambda _: httpx.Response(200, headers={"content-type": "text/event-stream"}, content=_PRIME_ANSWER)
        )
        self._litellm.aclient_session = session = httpx.AsyncClient(transport=transport)
        settings = {"model": "openai/prime", "api_base": "http://prime.invalid/v1", "api_key": "prime"}
        try:
            async for _ in self.answer({"settings": settings, "messages": [{"role": "user", "content": "x"}]}, bool):
                pass
        except ModelError:
            return  # the first real request will say what is wrong
        finally:
            self._litellm.aclient_session = None
            await session.aclose()

    async def answer(self, line: Line, on_open: Callable[[], object]) -> AsyncGenerator[Piece, None]:
        """The pieces of one answer. `on_open` is called when the endpoint has accepted the request.

        Raises `ModelError`, with keys taken out of its words.
        """
        settings = settings_from_wire(line["settings"])
        target = self._target(settings)
        began = False
        try:
            stream = await self._open(target, settings, line)
            on_open()
            async with aclosing(self._read(stream, target, settings)) as pieces:
                async for piece in pieces:
                    began = began or piece[0] in "trc"
                    yield piece
        except ModelError as error:
            raise await self._final(error, target, settings) from None
        except asyncio.CancelledError:
            raise
        except Exception as error:  # litellm and its providers raise anything; `explain` names what it can
            endpoint = target.endpoint(settings, names_like(target, self._litellm.model_cost))
            raise await self._final(faults.explain(error, endpoint, began=began), target, settings) from None

    def _target(self, settings: ModelSettings) -> Target:
        models = self._litellm.model_cost
        return find_target(settings, providers=self._providers, models=models, environment=os.environ)

    async def _open(self, target: Target, settings: ModelSettings, line: Line) -> Any:
        try:
            async with asyncio.timeout(settings.idle_timeout):
                return await self._litellm.acompletion(**self._parameters(target, settings, line))
        except TimeoutError:
            raise faults.too_slow(target.endpoint(settings), began=False) from None

    def _parameters(self, target: Target, settings: ModelSettings, line: Line) -> dict[str, Any]:
        # Our own clock counts; LiteLLM's goes off a little later, in case something in it cannot be cancelled.
        timeout = httpx.Timeout(settings.idle_timeout + 5, connect=min(CONNECT, settings.idle_timeout + 5))
        parameters: dict[str, Any] = {
            "model": target.model,
            "messages": line["messages"],
            "stream": True,
            "timeout": timeout,
            "max_retries": 0,
            "num_retries": 0,
            "drop_params": True,
            "_skip_mcp_handler": True,  # otherwise a request with tools imports a package that is no dependency
        }
        if self._has_mcp_handler and line.get("tools"):
            parameters["_skip_mcp_handler"] = True
        if target.host not in self._without_usage:
            parameters["stream_options"] = {"include_usage": True}
        optional = {
            "api_base": target.api_base,
            "api_key": target.api_key,
            "api_version": settings.api_version,
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
            "tools": line.get("tools") or None,
            "allowed_openai_params": ["tools"]
            if line.get("tools")
            else None,  # else drop_params may drop them in silence
        }
        if target.provider == "ollama_chat":
            optional["num_ctx"] = settings.context_window  # Ollama cuts conversations silently at a small default
        return parameters | {name: value for name, value in optional.items() if value is not None}

    async def _read(self, stream: Any, target: Target, settings: ModelSettings) -> AsyncGenerator[Piece, None]:
        endpoint = target.endpoint(settings)
        raw = getattr(stream, "completion_stream", None)
        answer: AnswerStream
        if isinstance(raw, openai.AsyncStream):
            answer = ResponseStream(raw.response, endpoint)
        else:
            answer = WrappedStream(stream, endpoint)
        ending = Ending()
        counted: Line | None = None
        async with aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                for piece in pieces_of(chunk):
                    ending.note(piece)
                    yield piece
                counted = usage_of(chunk) or counted
        if counted is not None:
            yield ["u", usage_to_wire(self._priced(counted, target))]
        if ending.is_cut(answer):
            raise faults.cut_off(endpoint)

    def _priced(self, counted: Line, target: Target) -> Usage:
        """The provider's count with its cost: what the provider says it is, or by the local price map."""
        usage = Usage(**counted)
        if usage.cost is not None:
            return usage
        return replace(usage, cost=cost_of(usage, entry_of(target, self._litellm.model_cost)))

    async def _final(self, error: ModelError, target: Target, settings: ModelSettings) -> ModelError:
        """The error as it is told: keys taken out, the endpoint's own models named, one trap avoided next time."""
        if isinstance(error, ModelNotFound) and signs.is_about_model(error.what):
            error = ModelNotFound(error.what, await _offer_hint(target) or error.hint)
        if isinstance(error, RequestRejected) and "stream_options" in error.what:
            self._without_usage.add(target.host)
            error = RequestRejected(f"{target.host} does not take stream_options.", "Asking without.", retryable=True)
        keys = [key for key in (settings.api_key, target.api_key) if key]
        error.what, error.hint = redact(error.what, keys), redact(error.hint, keys)
        return error


async def _offer_hint(target: Target) -> str:
    """The models that the user's own server offers, for a hint; empty if it does not say so quickly."""
    is_ollama = target.provider == "ollama_chat"
    if not is_ollama and not (target.provider == "openai" and target.is_custom):
        return ""
    base = target.api_base or os.environ.get("OLLAMA_API_BASE") or OLLAMA_BASE
    headers = {"Authorization": f"Bearer {target.api_key}"} if target.api_key else {}
    try:
        async with asyncio.timeout(OFFER_LIMIT), httpx.AsyncClient(timeout=OFFER_LIMIT) as client:
            answer = await client.get(f"{base}/api/tags" if is_ollama else f"{base}/models", headers=headers)
            listed = answer.json()["models" if is_ollama else "data"]
            offered = [str(model["name" if is_ollama else "id"]) for model in listed]
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError, KeyError, TypeError):
        return ""
    wanted = target.model.partition("/")[2]
    if near := faults.nearest(wanted, offered):
        return signs.one_line(f"Did you mean {' or '.join(near)}?")
    if is_ollama:
        has = f"It has {', '.join(offered[:5])}; get" if offered else "Get"
        return signs.one_line(f"{has} this one with: ollama pull {wanted}")
    return signs.one_line(f"It offers {', '.join(offered[:5])}.") if offered else ""
