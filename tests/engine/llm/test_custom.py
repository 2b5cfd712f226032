"""A Python function as the model, as the documentation of custom models promises."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import pytest

from oi_tui.engine.errors import ConnectionFailed, ModelError, StreamStalled
from oi_tui.engine.llm.base import Delta, ModelRequest
from oi_tui.engine.llm.choose import choose_model
from oi_tui.engine.llm.custom import CustomModel
from oi_tui.engine.settings import ModelSettings


def request(text: str = "Hi!", **settings: Any) -> ModelRequest:
    return ModelRequest([{"role": "user", "content": text}], ModelSettings(**settings))


async def collect(function: Any, asked: ModelRequest | None = None) -> list[Delta]:
    return [delta async for delta in CustomModel(function).stream(asked or request())]


def said(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas)


def chunk(text: str) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}}]}


async def test_the_documented_example_echoes_character_by_character() -> None:
    def custom_language_model(messages: Any, model: Any, stream: Any, max_tokens: Any) -> Iterator[Any]:
        users_content = messages[-1].get("content")
        for character in users_content:
            yield {"choices": [{"delta": {"content": character}}]}

    assert [delta.text for delta in await collect(custom_language_model)] == ["H", "i", "!"]


async def test_a_function_with_params_gets_everything_that_is_set() -> None:
    seen: dict[str, Any] = {}

    def completions(**params: Any) -> list[Any]:
        seen.update(params)
        return [chunk("ok")]

    await collect(completions, request(model="mine", temperature=0.0, max_tokens=5))
    assert seen.pop("messages") == [{"role": "user", "content": "Hi!"}]
    assert seen == {"model": "mine", "stream": True, "temperature": 0.0, "max_tokens": 5}


async def test_what_the_function_does_to_the_messages_stays_with_it() -> None:
    asked = request()

    def completions(messages: list[Any]) -> list[Any]:
        messages[0]["content"] = "changed"
        messages.append({})
        return [chunk("ok")]

    await collect(completions, asked)
    assert asked.messages == [{"role": "user", "content": "Hi!"}]


@pytest.mark.parametrize(
    "answer",
    [
        "Hello",
        ["Hel", "lo"],
        [chunk("Hel"), chunk("lo")],
        (chunk(c) for c in "Hello"),
        {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]},
        SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content="Hello"), finish_reason="stop")]),
        [SimpleNamespace(choices=[SimpleNamespace(delta=SimpleNamespace(content="Hello"), finish_reason=None)])],
    ],
    ids=["text", "texts", "chunks", "generator", "whole", "object", "objects"],
)
async def test_any_form_of_answer_is_read(answer: Any) -> None:
    assert said(await collect(lambda **_: answer)) == "Hello"


async def test_asynchronous_functions_work_as_well() -> None:
    async def generator(**_: Any) -> AsyncIterator[Any]:
        for character in "Hello":
            await asyncio.sleep(0)
            yield chunk(character)

    async def coroutine(**_: Any) -> list[Any]:
        return [chunk("Hel"), chunk("lo")]

    async def coroutine_of_generator(**_: Any) -> AsyncIterator[Any]:
        return generator()

    for function in (generator, coroutine, coroutine_of_generator):
        assert said(await collect(function)) == "Hello"


async def test_tool_calls_come_as_objects_or_dictionaries() -> None:
    function = SimpleNamespace(name="execute", arguments='{"code": "1"}')
    as_object = {"choices": [{"delta": {"tool_calls": [SimpleNamespace(index=0, id="c", function=function)]}}]}
    legacy = {"choices": [{"delta": {"function_call": {"name": "execute", "arguments": '{"code": "1"}'}}}]}
    for answer in (as_object, legacy):
        (delta,) = await collect(lambda answer=answer, **_: [answer])
        assert delta.tool_calls[0].name == "execute" and delta.tool_calls[0].arguments == '{"code": "1"}'


async def test_what_the_function_raises_is_one_line_without_keys() -> None:
    def completions(**_: Any) -> Any:
        yield chunk("half")
        raise ValueError("no luck\nwith sk-secret-0123456789")

    deltas: list[Delta] = []
    with pytest.raises(ModelError) as caught:
        async for delta in CustomModel(completions).stream(request(api_key="sk-secret-0123456789")):
            deltas.append(delta)
    assert said(deltas) == "half"
    assert "ValueError: no luck with [key removed]" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("answer", [None, 5, [7], [{"nonsense": 1}], [[]]])
async def test_nonsense_is_named(answer: Any) -> None:
    with pytest.raises(ModelError):
        await collect(lambda **_: answer)


async def test_a_function_that_wants_something_else_says_what() -> None:
    def completions(messages: Any, colour: str) -> list[Any]:
        return []

    with pytest.raises(ModelError, match="colour"):
        await collect(completions)


async def test_stopping_closes_the_generator() -> None:
    closed = threading.Event()

    def completions(**_: Any) -> Iterator[Any]:
        try:
            while True:
                yield chunk("again ")
        finally:
            closed.set()

    async with aclosing(CustomModel(completions).stream(request())) as deltas:
        async for _ in deltas:
            break
    assert await asyncio.to_thread(closed.wait, 20)


async def test_stopping_closes_an_async_generator_that_waits() -> None:
    closed = asyncio.Event()

    async def completions(**_: Any) -> AsyncIterator[Any]:
        try:
            yield chunk("one")
            await asyncio.Event().wait()
        finally:
            closed.set()

    stream = CustomModel(completions).stream(request())
    assert (await anext(stream)).text == "one"
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await stream.aclose()
    assert closed.is_set()


async def test_a_fast_function_waits_for_a_slow_reader() -> None:
    made = 0

    def completions(**_: Any) -> Iterator[Any]:
        nonlocal made
        for _ in range(1000):
            made += 1
            yield chunk("x")

    stream = CustomModel(completions).stream(request())
    await anext(stream)
    before = -1
    while made != before:  # until it stands still
        before = made
        await asyncio.sleep(0.05)
    assert made < 200
    assert len([delta async for delta in stream]) == 999


async def test_a_slow_function_is_announced_and_given_up() -> None:
    release = threading.Event()

    def completions(**_: Any) -> Iterator[Any]:
        release.wait(20)
        yield chunk("late")

    stream = CustomModel(completions).stream(request(connect_notice=0.01, idle_timeout=0.1))
    notice = await anext(stream)
    assert notice.notice is not None and notice.notice[0] == "waiting"
    with pytest.raises(ConnectionFailed, match=r"0\.1 s"):
        await anext(stream)
    release.set()


async def test_a_function_that_stalls_in_the_middle_is_given_up() -> None:
    async def completions(**_: Any) -> AsyncIterator[Any]:
        yield chunk("a")
        await asyncio.Event().wait()

    stream = CustomModel(completions).stream(request(idle_timeout=0.1))
    await anext(stream)
    with pytest.raises(StreamStalled):
        await anext(stream)


async def test_a_blocking_function_does_not_block_the_loop() -> None:
    go = threading.Event()

    def completions(**_: Any) -> Iterator[Any]:
        yield chunk("free" if go.wait(20) else "blocked")

    task = asyncio.ensure_future(collect(completions))
    for _ in range(10):
        await asyncio.sleep(0)
    go.set()
    assert said(await task) == "free"


def test_the_settings_choose_it() -> None:
    assert isinstance(choose_model(ModelSettings(model="x", completions=lambda **_: [])), CustomModel)
