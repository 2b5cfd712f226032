"""A Python function as the model: `interpreter.llm.completions = my_function`.

The function gets the arguments of a chat completion, those of them it takes, and answers with chunks in OpenAI's form:
as a generator, an async generator, a list, one whole answer, a coroutine of any of these, or plain strings. It runs in
this process, in a thread of its own, so it may block. A function that is stopped in the middle ends at its next chunk;
a thread cannot be ended from outside.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from oi_tui.engine.errors import ConnectionFailed, ModelError, StreamStalled
from oi_tui.engine.llm.base import Capabilities, Delta, ModelRequest, Usage
from oi_tui.engine.llm.custom_call import Call
from oi_tui.engine.llm.fault_signs import one_line
from oi_tui.engine.llm.secret_filter import SecretFilter
from oi_tui.engine.llm.wire_chunks import pieces_of, usage_of
from oi_tui.engine.llm.worker_protocol import deltas_from_pieces
from oi_tui.engine.redaction import redact
from oi_tui.engine.settings import ModelSettings

_log = logging.getLogger(__name__)


class CustomModel:
    """A `ChatModel` that asks a Python function."""

    def __init__(self, completions: Callable[..., Any]) -> None:
        self._completions = completions

    async def warm(self) -> None:
        """Nothing to do."""

    async def capabilities(self, settings: ModelSettings) -> Capabilities:
        """Nothing: what such a model can do is said in the settings (`context_window`, `supports_functions`, …)."""
        return Capabilities()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """One call of the function. Raises `ModelError` for whatever it raises."""
        call = Call(self._completions, _arguments(self._completions, request))
        secrets = SecretFilter(request.settings.api_key)
        waiting = _Waiting(call, request.settings)
        try:
            while (deltas := await waiting.next()) is not None:
                for delta in secrets.feed(deltas):
                    yield delta
        except (ModelError, asyncio.CancelledError, GeneratorExit):
            raise
        except Exception as error:
            _log.debug("the completions function failed", exc_info=True)
            raise _failure(error) from error
        finally:
            await call.stop()
        for delta in secrets.flush():
            yield delta

    async def aclose(self) -> None:
        """Nothing to end."""


class _Waiting:
    """The function's answer as deltas, with the notice and the limit for when there are none."""

    def __init__(self, call: Call, settings: ModelSettings) -> None:
        self._call = call
        self._settings = settings
        self._since = time.monotonic()
        self._began = self._has_told = False

    async def next(self) -> list[Delta] | None:
        """The next deltas; None at the end."""
        while True:
            try:
                async with asyncio.timeout(self._patience()):
                    chunk = await self._call.next()
            except TimeoutError:
                if time.monotonic() - self._since >= self._settings.idle_timeout:
                    raise self._too_slow() from None
                self._has_told = True
                return [Delta(notice=("waiting", "No answer from the completions function yet; still waiting."))]
            if chunk is Call.END:
                return None
            self._began, self._since = True, time.monotonic()
            return _deltas(chunk)

    def _patience(self) -> float:
        patience = self._settings.idle_timeout
        if not (self._began or self._has_told):
            patience = min(patience, self._settings.connect_notice)
        return max(0.0, self._since + patience - time.monotonic())

    def _too_slow(self) -> ModelError:
        seconds = f"{self._settings.idle_timeout:g} s"
        if self._began:
            return StreamStalled(f"The completions function sent nothing more for {seconds}.", "Raise idle_timeout.")
        return ConnectionFailed(f"The completions function did not answer within {seconds}.", "Raise idle_timeout.")


def _arguments(function: Callable[..., Any], request: ModelRequest) -> dict[str, Any]:
    """The arguments of the call: what the function names, or everything that is set if it takes `**params`."""
    settings = request.settings
    offered: dict[str, Any] = {
        "model": settings.model or "custom",
        "messages": copy.deepcopy(list(request.messages)),
        "stream": True,
        "max_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "api_key": settings.api_key,
        "api_base": settings.api_base,
        "api_version": settings.api_version,
        "tools": copy.deepcopy(list(request.tools)) or None,
    }
    is_set = {name: value for name, value in offered.items() if value is not None}
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # built-in callables may have no signature
        return is_set
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return is_set
    named = {n for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    needed = {n for n, p in parameters.items() if p.default is p.empty}
    return {n: value for n, value in offered.items() if n in named and (value is not None or n in needed)}


def _deltas(chunk: Any) -> list[Delta]:
    """What the function gave, as deltas. Raises `ModelError` for what is neither a chunk nor text."""
    value = _plain(chunk)
    if isinstance(value, str):
        return [Delta(text=value)] if value else []
    if not isinstance(value, Mapping) or not ("choices" in value or "usage" in value):
        what = f"The completions function gave something that is no chunk: {one_line(repr(chunk))[:80]}."
        raise ModelError(what, 'A chunk looks like {"choices": [{"delta": {"content": "…"}}]}.')
    deltas = deltas_from_pieces(pieces_of(value))
    if (counted := usage_of(value)) is not None:
        deltas.append(Delta(usage=Usage(**counted)))
    return deltas


def _plain(value: Any) -> Any:
    """Dictionaries and lists, also out of objects with attributes, as SDKs make them."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "model_dump"):
        return _plain(value.model_dump())
    if hasattr(value, "__dict__"):
        return _plain(vars(value))
    return value


def _failure(error: Exception) -> ModelError:
    words = one_line(redact(str(error)))
    what = f"The completions function failed: {type(error).__name__}{f': {words}' if words else ''}."
    return ModelError(what.replace("..", "."), "It belongs to the program that set it.")
