"""One call of a completions function in a thread, read from an event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

AHEAD = 64
"""Chunks a function may be ahead of whoever reads its answer."""


class Call:
    """Calls the function at once. The thread is a daemon: a function that never returns does not keep the program."""

    END: ClassVar[object] = object()
    """What `next` returns when the answer is over."""

    def __init__(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
        self._function = function
        self._arguments = arguments
        self._loop = asyncio.get_running_loop()
        self._items: deque[tuple[str, Any]] = deque()
        self._arrived = asyncio.Event()
        self._ahead = threading.Semaphore(AHEAD)
        self._is_stopped = False
        self._source: AsyncGenerator[Any, None] | None = None
        self._pending: asyncio.Task[Any] | None = None
        threading.Thread(target=self._run, name="completions", daemon=True).start()

    async def next(self) -> Any:
        """The next chunk, or `END`. Raises what the function raised. May be cancelled and called again."""
        while True:
            if self._source is not None:
                return await self._next_of_source()
            while not self._items:
                self._arrived.clear()
                await self._arrived.wait()
            kind, value = self._items.popleft()
            if kind == "async":
                self._source = _chunks_of(value)
                continue
            if kind == "error":
                raise value
            self._ahead.release()
            return self.END if kind == "end" else value

    async def stop(self) -> None:
        """No more is wanted: a plain function is closed at its next chunk, an asynchronous one now."""
        self._is_stopped = True
        self._ahead.release()
        if self._pending is not None:
            self._pending.cancel()
            await asyncio.wait({self._pending}, timeout=1)
        elif self._source is not None:
            await self._source.aclose()

    async def _next_of_source(self) -> Any:
        """The step of an async generator survives a timeout of the one who waits for it."""
        assert self._source is not None
        if self._pending is None:
            self._pending = asyncio.ensure_future(anext(self._source, self.END))
        chunk = await asyncio.shield(self._pending)
        self._pending = None
        return chunk

    # -- in the thread

    def _run(self) -> None:
        try:
            answer = self._function(**self._arguments)
            if inspect.isawaitable(answer) or hasattr(answer, "__aiter__"):
                self._push("async", answer)
                return
            self._push_all(_parts(answer))
            self._push("end", None)
        except BaseException as error:  # whatever user code raises, SystemExit included, belongs to the one who asked
            self._push("error", error if isinstance(error, Exception) else RuntimeError(repr(error)))

    def _push_all(self, parts: Iterable[Any]) -> None:
        try:
            for part in parts:
                self._ahead.acquire()
                if self._is_stopped:
                    return
                self._push("chunk", part)
        finally:
            if hasattr(parts, "close"):
                parts.close()

    def _push(self, kind: str, value: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits for this any more
            self._loop.call_soon_threadsafe(self._take, kind, value)

    def _take(self, kind: str, value: Any) -> None:
        self._items.append((kind, value))
        self._arrived.set()


def _parts(answer: Any) -> Iterable[Any]:
    """An answer as an iterable of chunks: one whole answer is one chunk."""
    if answer is None:
        raise TypeError("it returned None instead of chunks")
    if isinstance(answer, str | Mapping) or not hasattr(answer, "__iter__") or hasattr(answer, "choices"):
        return [answer]
    chunks: Iterable[Any] = answer
    return chunks


async def _chunks_of(answer: Any) -> AsyncGenerator[Any, None]:
    """The chunks of an async iterator, or of what a coroutine returns."""
    if inspect.isawaitable(answer):
        answer = await answer
    if hasattr(answer, "__aiter__"):
        try:
            async for chunk in answer:
                yield chunk
        finally:
            if hasattr(answer, "aclose"):
                await answer.aclose()
    else:
        for chunk in _parts(answer):
            yield chunk
