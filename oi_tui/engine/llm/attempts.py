"""An answer, in as many attempts as it is worth: what is tried again, after which pause, and when it is given up.

At most `TRIES` requests for one answer, at most `RequestAllowance.limit` since the user last did something. A request
is repeated only while nothing of its answer was shown, so no text appears twice.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from oi_tui.engine.errors import EmptyAnswer, ModelError, TooManyRequests
from oi_tui.engine.llm.base import ChatModel, Delta, ModelRequest, Usage
from oi_tui.engine.llm.spending import Tally, within_budget

TRIES = 4
EMPTY_TRIES = 2
"""An answer of nothing at all is asked for once more; a model that says nothing twice has nothing to say."""
SLOW = 30.0
"""Seconds. A request that failed only after so long is repeated once: four times the wait would help nobody."""
LONGEST_PAUSE = 60.0
"""Seconds that an endpoint may ask to wait; when it asks for more, the request is given up."""
SHORTEST_PAUSE = 0.25

Sleep = Callable[[float], Awaitable[object]]


@dataclass(slots=True)
class RequestAllowance:
    """How many requests may still be made without the user doing anything. One per turn; reset by approved code."""

    limit: int = 6
    used: int = 0

    def take(self) -> None:
        """Count a request. Raises `TooManyRequests` when there is none left."""
        if self.used >= self.limit:
            what = f"The model was asked {self.limit} times without getting anywhere."
            raise TooManyRequests(what, "Say how to go on, or try again.")
        self.used += 1

    @property
    def is_used_up(self) -> bool:
        return self.used >= self.limit

    def reset(self) -> None:
        """The user did something: approved code ran, or words were sent."""
        self.used = 0


async def answer(
    model: ChatModel,
    request: ModelRequest,
    allowance: RequestAllowance,
    *,
    spent: float = 0.0,
    on_stopped: Callable[[Usage], object] | None = None,
    sleep: Sleep = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
    chance: Callable[[], float] = random.random,
) -> AsyncGenerator[Delta, None]:
    """The deltas of one answer, with notices while waiting, and its usage: counted, or estimated and marked so.

    `spent` is what the session has cost so far, in US dollars; with `max_budget` set, a request that could pass it is
    not made (see `spending.within_budget`). `on_stopped` gets the estimated usage of an answer that the caller stops
    before the provider has counted. Raises `ModelError` once trying again is over. The rest is for tests.
    """
    capabilities = await model.capabilities(request.settings)
    request, warning = within_budget(request, capabilities, spent)
    if warning is not None:
        yield warning
    attempts = _Attempts(clock)
    while True:
        allowance.take()
        attempts.begin()
        tally = Tally(request, capabilities)
        try:
            async with aclosing(model.stream(request)) as deltas:
                async for delta in deltas:
                    tally.note(delta)
                    yield delta
            if tally.is_empty:
                raise _nothing(tally)
            if (usage := tally.missing_usage()) is not None:
                yield Delta(usage=usage)
            return
        except ModelError as error:
            failed = error
        except (asyncio.CancelledError, GeneratorExit):
            if on_stopped is not None and tally.has_begun and (usage := tally.missing_usage()) is not None:
                on_stopped(usage)
            raise
        is_empty = isinstance(failed, EmptyAnswer)
        if (tally.has_begun or is_empty) and (usage := tally.missing_usage()) is not None:
            yield Delta(usage=usage)
        pause = attempts.pause_after(failed, chance())
        if pause is None or allowance.is_used_up or (tally.has_begun and not is_empty):
            raise _final(failed) from None
        async for notice in _count_down(failed, pause, sleep):
            yield notice


class _Attempts:
    """The attempts at one answer so far."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = 0.0
        self._tries = self._empty = self._slow = 0

    def begin(self) -> None:
        self._tries += 1
        self._began = self._clock()

    def pause_after(self, error: ModelError, chance: float) -> float | None:
        """Seconds to wait before the next attempt; None to give up. 1, 2, 4 s, a quarter more or less."""
        self._empty += isinstance(error, EmptyAnswer)
        self._slow += self._clock() - self._began >= SLOW
        if not error.retryable or self._tries >= TRIES or self._empty >= EMPTY_TRIES or self._slow >= 2:
            return None
        if error.retry_after is not None:
            return max(SHORTEST_PAUSE, error.retry_after) if error.retry_after <= LONGEST_PAUSE else None
        return float(2 ** (self._tries - 1)) * (0.75 + 0.5 * chance)


def _nothing(tally: Tally) -> EmptyAnswer:
    if tally.finish_reason == "length":
        return EmptyAnswer(
            "The model reached its output limit before it answered.", "Raise max_tokens.", retryable=False
        )
    if tally.finish_reason == "content_filter":
        return EmptyAnswer(
            "The provider's content filter held the answer back.", "Say it differently.", retryable=False
        )
    return EmptyAnswer("The model answered with nothing.", "Try again, or say it differently.")


def _final(error: ModelError) -> ModelError:
    """The error as it is shown when trying is over: one that asks for a long pause says until when."""
    if error.retry_after is None or error.retry_after <= LONGEST_PAUSE:
        return error
    until = time.strftime("%H:%M", time.localtime(time.time() + error.retry_after))
    error.hint = f"It can be asked again in {_duration(error.retry_after)} (at {until})."
    return error


async def _count_down(error: ModelError, pause: float, sleep: Sleep) -> AsyncGenerator[Delta, None]:
    """Wait, saying every second how long it will still take."""
    what = error.what.partition(" It says:")[0]
    while pause > 0:
        seconds = max(1, round(pause))
        yield Delta(notice=("retry", f"{what} Trying again in {seconds} s."))
        step = pause - (seconds - 1) if seconds > 1 else pause
        await sleep(step)
        pause -= step


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 120 else f"{round(minutes / 60)} h"
