"""Languages of the user's own, as Open Interpreter documents them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from oi_tui.engine.errors import LanguageError
from oi_tui.engine.languages.custom_language import adapt
from oi_tui.engine.languages.html import Html
from oi_tui.engine.languages.registry import Registry
from tests.engine.languages.running import Running, run, until


class Documented:
    """The documented example, with the cloud left out: a class without a constructor, `run` a sync generator."""

    name = "Python"
    system_message = "# Follow this rule: Every Python code block MUST contain at least one print statement."

    def run(self, code: str) -> Iterator[dict[str, Any]]:
        yield {"type": "console", "format": "output", "content": f"ran {code}"}

    def stop(self) -> None: ...

    def terminate(self) -> None: ...


async def test_the_documented_example_replaces_python() -> None:
    registry = Registry()
    await registry.terminate_all()
    registry.use_only([Documented])
    assert registry.names == ("python",)
    assert registry.system_messages() == [Documented.system_message]
    language = registry.get("PYTHON")
    assert language is not None
    assert language is registry.python
    assert (await run(language, "print(1)")).output == "ran print(1)"
    await registry.aclose()


async def test_an_object_with_a_constructor_that_wants_the_computer() -> None:
    class WithComputer(Documented):
        def __init__(self, computer: object) -> None:
            self.computer = computer

        def run(self, code: str) -> Iterator[dict[str, Any]]:
            yield {"type": "console", "format": "output", "content": str(self.computer)}

    assert (await run(adapt(WithComputer, computer="the computer"), "x")).output == "the computer"
    assert (await run(adapt(WithComputer("mine")), "x")).output == "mine"


async def test_all_kinds_of_chunks() -> None:
    class Rich(Documented):
        def run(self, code: str) -> Iterator[Any]:
            yield {"type": "console", "start": True}
            yield {"type": "console", "format": "active_line", "content": "2"}
            yield {"type": "console", "content": "no format"}
            yield {"type": "image", "format": "base64.png", "content": "AAAA"}
            yield {"type": "code", "format": "html", "content": "<p>"}
            yield "bare text"
            yield None
            yield {"type": "console", "end": True}

    ran = await run(adapt(Rich), "x")
    assert ran.lines == [2]
    assert ran.output == "no formatbare text"
    assert [chunk.text for chunk in ran.images] == ["AAAA"]
    assert {chunk.id for chunk in ran} == {"c0de"}
    assert {chunk.role for chunk in ran} == {"computer"}
    assert ran.contents("active_line")[-1] is None


async def test_async_generators_coroutines_and_plain_functions() -> None:
    class Asynchronous(Documented):
        async def run(self, code: str) -> AsyncIterator[dict[str, Any]]:  # type: ignore[override]
            await asyncio.sleep(0)
            yield {"type": "console", "format": "output", "content": "async"}

    class Coroutine(Documented):
        async def run(self, code: str) -> str:  # type: ignore[override]
            return "later"

    class Plain(Documented):
        def run(self, code: str) -> list[dict[str, Any]]:  # type: ignore[override]
            return [{"type": "console", "format": "output", "content": "list"}]

    assert (await run(adapt(Asynchronous), "x")).output == "async"
    assert (await run(adapt(Coroutine), "x")).output == "later"
    assert (await run(adapt(Plain), "x")).output == "list"


async def test_an_error_in_it_is_output_and_the_next_run_works() -> None:
    class Faulty(Documented):
        def run(self, code: str) -> Iterator[dict[str, Any]]:
            yield {"type": "console", "format": "output", "content": "before\n"}
            if code == "fail":
                raise ValueError("no good")

    language = adapt(Faulty)
    assert (await run(language, "fail")).output == "before\nValueError: no good\n"
    assert (await run(language, "work")).output == "before\n"


class Slow(Documented):
    """Runs until it is stopped."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.terminated = 0

    def run(self, code: str) -> Iterator[dict[str, Any]]:
        self.stopped.clear()
        yield {"type": "console", "format": "output", "content": "started\n"}
        self.stopped.wait()
        yield {"type": "console", "format": "output", "content": "stopped\n"}

    def stop(self) -> None:
        self.stopped.set()

    def terminate(self) -> None:
        self.terminated += 1


async def test_a_slow_one_holds_up_nothing_and_can_be_interrupted() -> None:
    language = adapt(Slow)
    running = Running(language, "x")
    await running.prints("started")
    assert language.is_running
    with pytest.raises(LanguageError, match="busy"):
        await run(language, "y")
    await language.interrupt()
    assert (await running.end()).output == "started\nstopped\n"
    assert not language.is_running


async def test_leaving_stops_it() -> None:
    slow = Slow()
    language = adapt(slow)
    running = Running(language, "x")
    await running.prints("started")
    running.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.task
    assert slow.stopped.is_set()
    await language.aclose()
    assert slow.terminated == 1


async def test_a_flood_waits_for_its_reader() -> None:
    made = 0

    class Flood(Documented):
        def run(self, code: str) -> Iterator[dict[str, Any]]:
            nonlocal made
            for _ in range(100_000):
                made += 1
                yield {"type": "console", "format": "output", "content": "x" * 1000}

    from contextlib import aclosing

    from oi_tui.engine.approval import no_answer
    from tests.engine.languages.running import approved

    async with aclosing(adapt(Flood).run(approved("x"), answer=no_answer)) as chunks:
        async for _ in chunks:
            break
        await until(lambda: made >= 60)
        before = made
        time.sleep(0.05)
        assert made - before < 100


@pytest.mark.parametrize("thing", [object(), 5, type("Nameless", (), {"run": lambda self, code: None})])
def test_what_cannot_be_a_language_is_refused_with_a_reason(thing: object) -> None:
    with pytest.raises(LanguageError, match="cannot be a language"):
        Registry().add(thing)


def test_a_name_alone_is_not_enough() -> None:
    with pytest.raises(LanguageError, match="no `run"):
        Registry().add(type("Mute", (), {"name": "mute"}))


def test_a_language_of_the_engine_s_own_form_is_taken_as_it_is() -> None:
    html = Html()
    assert adapt(html) is html
