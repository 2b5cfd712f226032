"""What is tried again, after which pause, and when it is given up. No test waits for real."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest

from oi_tui.engine.errors import (
    AuthenticationFailed,
    BudgetExceeded,
    ConnectionFailed,
    EmptyAnswer,
    ModelError,
    RateLimited,
    ServiceUnavailable,
    StreamBroken,
    TooManyRequests,
    WorkerDied,
)
from oi_tui.engine.llm.attempts import RequestAllowance, answer
from oi_tui.engine.llm.base import Capabilities, Delta, ModelRequest, ToolCallDelta, Usage
from oi_tui.engine.settings import ModelSettings
from tests.fakes import FakeModel, Step

DOWN = ServiceUnavailable("The server is down.")
PRICED = Capabilities(input_price=1e-6, output_price=1e-5, max_output_tokens=1000)


class Desk:
    """A model, a clock that only sleeping moves, and what came out."""

    def __init__(self, *answers: str | Sequence[Step], capabilities: Capabilities | None = None) -> None:
        self.model = FakeModel(*answers, capabilities=capabilities)
        self.allowance = RequestAllowance()
        self.now = 0.0
        self.pauses: list[float] = []
        self.deltas: list[Delta] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    async def ask(self, *, spent: float = 0.0, **settings: Any) -> str:
        request = ModelRequest([{"role": "user", "content": "Hi"}], ModelSettings(model="m", **settings))
        stream = answer(
            self.model,
            request,
            self.allowance,
            spent=spent,
            sleep=self.sleep,
            clock=lambda: self.now,
            chance=lambda: 0.5,
        )
        async with aclosing(stream) as deltas:
            async for delta in deltas:
                self.deltas.append(delta)
        return self.text

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.deltas)

    @property
    def notices(self) -> list[str]:
        return [delta.notice[1] for delta in self.deltas if delta.notice and delta.notice[0] == "retry"]

    @property
    def usage(self) -> list[Usage]:
        return [delta.usage for delta in self.deltas if delta.usage]


async def test_a_good_answer_takes_one_request() -> None:
    desk = Desk("Hello")
    assert await desk.ask() == "Hello"
    assert len(desk.model.requests) == 1 and desk.pauses == [] and desk.allowance.used == 1


async def test_three_failures_and_then_an_answer() -> None:
    desk = Desk([DOWN], [DOWN], [DOWN], "Hello")
    assert await desk.ask() == "Hello"
    assert desk.now == pytest.approx(1 + 2 + 4)
    assert desk.notices[0] == "The server is down. Trying again in 1 s."


async def test_after_four_tries_it_is_given_up() -> None:
    desk = Desk(*[[DOWN]] * 9)
    with pytest.raises(ServiceUnavailable):
        await desk.ask()
    assert len(desk.model.requests) == 4


async def test_what_cannot_get_better_is_not_tried_again() -> None:
    for error in (AuthenticationFailed("no"), ConnectionFailed("refused", retryable=False)):
        desk = Desk([error], "Hello")
        with pytest.raises(type(error)):
            await desk.ask()
        assert len(desk.model.requests) == 1


@pytest.mark.parametrize(
    "begun",
    [Delta(text="Once upon"), Delta(reasoning="hm"), Delta(tool_calls=(ToolCallDelta(0, "c", "execute", ""),))],
    ids=["text", "reasoning", "call"],
)
async def test_nothing_appears_twice(begun: Delta) -> None:
    desk = Desk([begun, StreamBroken("cut")], "Once upon a time")
    with pytest.raises(StreamBroken):
        await desk.ask()
    assert len(desk.model.requests) == 1
    assert desk.usage[0].estimated  # what was received has been paid for all the same


async def test_a_role_and_blank_space_are_no_beginning() -> None:
    desk = Desk([Delta(text="\n"), StreamBroken("cut")], "Hello")
    assert (await desk.ask()).strip() == "Hello"


async def test_the_pause_the_server_asks_for_is_kept_and_counted_down() -> None:
    desk = Desk([RateLimited("Too fast (429). It says: slow down.", retry_after=3.4)], "Hello")
    assert await desk.ask() == "Hello"
    assert desk.notices == [f"Too fast (429). Trying again in {n} s." for n in (3, 2, 1)]
    assert desk.now == pytest.approx(3.4)


async def test_a_pause_of_a_minute_is_waited_for_and_a_longer_one_is_not() -> None:
    desk = Desk([RateLimited("Too fast.", retry_after=60)], "Hello")
    assert await desk.ask() == "Hello"
    assert len(desk.notices) == 60

    desk = Desk([RateLimited("Too fast.", retry_after=600)], "Hello")
    with pytest.raises(RateLimited, match=r"Too fast\. It can be asked again in 10 min \(at \d\d:\d\d\)\."):
        await desk.ask()
    assert len(desk.model.requests) == 1 and desk.pauses == []


async def test_retry_after_zero_does_not_hammer() -> None:
    desk = Desk([RateLimited("Too fast.", retry_after=0)], "Hello")
    assert await desk.ask() == "Hello"
    assert desk.now > 0


async def test_an_empty_answer_is_asked_for_once_more() -> None:
    desk = Desk([Delta(finish_reason="stop")], "Hello")
    assert await desk.ask() == "Hello"

    desk = Desk(*[[Delta(finish_reason="stop")]] * 9)
    with pytest.raises(EmptyAnswer, match="answered with nothing"):
        await desk.ask()
    assert len(desk.model.requests) == 2


async def test_thinking_alone_is_an_empty_answer() -> None:
    desk = Desk([Delta(reasoning="hm"), Delta(finish_reason="stop")], "Hello")
    assert await desk.ask() == "Hello"


async def test_thinking_up_to_the_limit_says_so() -> None:
    desk = Desk([Delta(reasoning="hm"), Delta(finish_reason="length")], "Hello")
    with pytest.raises(EmptyAnswer, match=r"output limit before it answered\. Raise max_tokens"):
        await desk.ask()
    assert len(desk.model.requests) == 1


async def test_a_call_without_text_is_an_answer() -> None:
    desk = Desk([Delta(tool_calls=(ToolCallDelta(0, "c", "execute", "{}"),))])
    await desk.ask()
    assert len(desk.model.requests) == 1


async def test_a_request_that_fails_slowly_is_repeated_once_only() -> None:
    desk = Desk()

    class Slow(FakeModel):
        async def stream(self, request: ModelRequest) -> Any:
            self.requests.append(request)
            desk.now += 60
            raise ConnectionFailed("no answer within 60 s")
            yield

    desk.model = Slow()
    with pytest.raises(ConnectionFailed):
        await desk.ask()
    assert len(desk.model.requests) == 2


async def test_six_requests_for_one_message_of_the_user() -> None:
    desk = Desk([DOWN], "a", [DOWN], "b", "c", "d", "e")
    for _ in range(4):
        await desk.ask()
    with pytest.raises(TooManyRequests, match="6 times"):
        await desk.ask()
    assert len(desk.model.requests) == 6
    desk.allowance.reset()
    await desk.ask()


async def test_the_allowance_also_ends_retries_and_tells_the_real_reason() -> None:
    desk = Desk("a", "b", "c", "d", *[[WorkerDied("gone")]] * 9)
    for _ in range(4):
        await desk.ask()
    with pytest.raises(WorkerDied):
        await desk.ask()
    assert len(desk.model.requests) == 6


async def test_what_the_provider_counted_is_passed_on() -> None:
    desk = Desk(["Hi", Delta(usage=Usage(10, 2, cost=0.5))])
    await desk.ask()
    assert desk.usage == [Usage(10, 2, cost=0.5)]


async def test_what_nobody_counted_is_estimated_and_marked() -> None:
    desk = Desk("x" * 400, capabilities=PRICED)
    await desk.ask()
    (usage,) = desk.usage
    assert usage.estimated and usage.completion_tokens == 100 and usage.prompt_tokens > 0
    assert usage.cost == pytest.approx(usage.prompt_tokens * 1e-6 + 100 * 1e-5)


async def test_a_stopped_answer_is_accounted_for() -> None:
    model = FakeModel(["x" * 40, asyncio.Event()])
    request = ModelRequest([{"role": "user", "content": "Hi"}], ModelSettings(model="m"))
    stopped: list[Usage] = []
    stream = answer(model, request, RequestAllowance(), on_stopped=stopped.append)
    await anext(stream)
    await stream.aclose()
    assert model.closed == 1
    assert [usage.completion_tokens for usage in stopped] == [10] and stopped[0].estimated


async def test_stopping_during_a_pause_ends_it() -> None:
    desk = Desk([DOWN], "Hello")
    began = asyncio.Event()

    async def forever(seconds: float) -> None:
        began.set()
        await asyncio.Event().wait()

    desk.sleep = forever  # type: ignore[method-assign]
    task = asyncio.create_task(desk.ask())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(desk.model.requests) == 1


async def test_the_budget_stops_before_the_call_that_could_pass_it() -> None:
    desk = Desk("a", "b", "c", capabilities=PRICED)
    await desk.ask(max_budget=0.02)  # the longest answer costs 0.01
    assert desk.model.requests[0].settings.max_tokens is None
    await desk.ask(max_budget=0.02, spent=0.015)  # half the longest answer: it is asked for that much
    assert 256 <= (desk.model.requests[1].settings.max_tokens or 0) < 500
    with pytest.raises(BudgetExceeded, match=r"budget of \$0\.0200 \(\$0\.0190 spent\)"):
        await desk.ask(max_budget=0.02, spent=0.019)
    assert len(desk.model.requests) == 2


async def test_a_short_answer_may_still_be_affordable() -> None:
    desk = Desk("a", capabilities=PRICED)
    await desk.ask(max_budget=0.02, spent=0.0195, max_tokens=10)
    assert desk.model.requests[0].settings.max_tokens == 10


async def test_a_budget_without_prices_says_that_it_cannot_be_kept() -> None:
    desk = Desk("a")
    await desk.ask(max_budget=1.0)
    notices = [delta.notice for delta in desk.deltas if delta.notice]
    assert notices == [("budget", "The price of m is not known: max_budget ($1.00) cannot be kept.")]
    with pytest.raises(BudgetExceeded):
        await desk.ask(max_budget=1.0, spent=1.0)


async def test_a_free_model_never_passes_the_budget() -> None:
    desk = Desk("a", capabilities=Capabilities(input_price=0.0, output_price=0.0))
    await desk.ask(max_budget=0.01)
    assert desk.model.requests[0].settings.max_tokens is None


async def test_errors_that_are_no_model_errors_stay_what_they_are() -> None:
    desk = Desk([ValueError("a bug")])
    with pytest.raises(ValueError):
        await desk.ask()
    assert issubclass(ModelError, Exception) and len(desk.model.requests) == 1
