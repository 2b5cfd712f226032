"""The engine beside a terminal that is read line by line: an event loop in a thread, and turns pulled from it.

Reading a line blocks, so the main thread keeps the terminal and the signals, and the engine lives in a thread of its
own, where kernels are warmed up and streams are read while the user types.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from oi_tui.engine.approval import Answerer, Approver, CodeProposal, Decision, InputCancelled, InputRequest
from oi_tui.engine.lmc import Chunk

Result = TypeVar("Result")
Chunks = Callable[[Approver, Answerer], AsyncGenerator[Chunk, None]]
"""Starts a turn: `lambda approve, answer: session.respond(text, approve=approve, answer=answer)`."""

BACKLOG = 512
"""Chunks that may wait for a slow terminal before the engine is made to wait."""


class EngineThread:
    """An event loop in a thread. `call` runs something there and waits for it."""

    def __init__(self, *, on_fault: Callable[[str], object] = lambda _: None) -> None:
        """`on_fault` is told, in the thread, of faults that nobody waits for."""
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(
            lambda _, context: on_fault(str(context.get("exception") or context["message"]))
        )
        self._thread = threading.Thread(target=self.loop.run_forever, name="engine", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, Result], timeout: float | None = None) -> Result:
        """The result of a coroutine. Raises what it raises, and `TimeoutError` when it takes too long."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout)

    def start(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Begin a coroutine and go on."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def close(self) -> None:
        """Cancel what still runs and end the thread."""
        with contextlib.suppress(TimeoutError):
            self.call(self._cancel_all(), timeout=5)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=5)
        if not self._thread.is_alive():
            self.loop.close()

    @staticmethod
    async def _cancel_all() -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_asyncgens()


@dataclass(slots=True, eq=False)
class Asked:
    """The engine waits for an answer: a `Decision` for a proposal, a text (or `InputCancelled`) for an input."""

    about: CodeProposal | InputRequest
    answer: asyncio.Future[Any]


class Turn:
    """One turn, pulled by the main thread: iterate over it, and `reply` to what is asked."""

    def __init__(self, engine: EngineThread, chunks: Chunks) -> None:
        self._engine = engine
        self._queue: asyncio.Queue[Chunk | Asked | None] = asyncio.Queue()
        self._has_room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.error: Exception | None = None
        """What the turn raised, once it is over."""
        self._waiting: Future[list[Chunk | Asked | None]] | None = None
        self.is_cancelled = False
        engine.start(self._drive(chunks))

    def __iter__(self) -> Iterator[list[Chunk | Asked]]:
        """What has happened since, in batches that are never empty. Ends with the turn; see `error` then."""
        over = False
        while not over:
            batch = self._take()
            over = None in batch
            if happened := [item for item in batch if item is not None]:
                yield happened

    def reply(self, asked: Asked, answer: Decision | str | InputCancelled) -> None:
        """Answer a question of this turn; an exception is raised where the engine waits."""

        def settle() -> None:
            if asked.answer.done():
                return
            if isinstance(answer, InputCancelled):
                asked.answer.set_exception(answer)
            else:
                asked.answer.set_result(answer)

        self._engine.loop.call_soon_threadsafe(settle)

    def cancel(self) -> None:
        """Stop the turn: the model's stream is closed, running code interrupted. Once; safe in a signal handler."""
        if not self.is_cancelled:
            self.is_cancelled = True
            self._engine.loop.call_soon_threadsafe(self._cancel_task)

    def _cancel_task(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _take(self) -> list[Chunk | Asked | None]:
        """The next batch. Interrupted by a signal it can be called again, and nothing is lost."""
        if self._waiting is None:
            self._waiting = self._engine.start(self._next_batch())
        batch = self._waiting.result()
        self._waiting = None
        return batch

    async def _next_batch(self) -> list[Chunk | Asked | None]:
        batch = [await self._queue.get()]
        while not self._queue.empty():
            batch.append(self._queue.get_nowait())
        self._has_room.set()
        return batch

    async def _drive(self, chunks: Chunks) -> None:
        self._task = asyncio.current_task()
        try:
            if self.is_cancelled:
                return
            async with aclosing(chunks(self._ask, self._ask)) as stream:
                async for chunk in stream:
                    self._queue.put_nowait(chunk)
                    while self._queue.qsize() >= BACKLOG:
                        self._has_room.clear()
                        await self._has_room.wait()
        except asyncio.CancelledError:
            return
        except Exception as error:
            self.error = error
        finally:
            self._queue.put_nowait(None)

    async def _ask(self, about: CodeProposal | InputRequest) -> Any:
        asked = Asked(about, asyncio.get_running_loop().create_future())
        self._queue.put_nowait(asked)
        return await asked.answer
