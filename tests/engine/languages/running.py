"""What tests of languages need to run code: an approval, an answerer, a place to collect chunks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

from oi_tui.engine.approval import Answerer, ApprovedCode, CodeProposal, Decision, InputRequest, no_answer
from oi_tui.engine.languages.base import Language
from oi_tui.engine.lmc import Chunk

LIMIT = 60.0
"""Seconds after which what a test waits for will not happen any more."""


def approved(code: str, *, language: str = "python", id: str = "c0de") -> ApprovedCode:
    return CodeProposal(id, language, code).approve(Decision.run())


class Ran(list[Chunk]):
    """The chunks of a run, and what a test wants to know of them."""

    @property
    def output(self) -> str:
        """The console text that the user sees."""
        return "".join(c.text for c in self if c.format == "output" and c.recipient is None)

    @property
    def for_model(self) -> str:
        """The console text that the model sees instead of HTML."""
        return "".join(c.text for c in self if c.format == "output" and c.recipient == "assistant")

    @property
    def images(self) -> list[Chunk]:
        return [c for c in self if c.type == "image"]

    @property
    def notices(self) -> list[str]:
        return [c.text for c in self if c.type == "notice"]

    @property
    def lines(self) -> list[int]:
        """The active lines in order, without the end."""
        return [c.content for c in self if c.format == "active_line" and isinstance(c.content, int)]

    def contents(self, format: str) -> list[object]:
        return [c.content for c in self if c.format == format]


async def run(language: Language, code: str, *, answer: Answerer = no_answer, into: Ran | None = None) -> Ran:
    """Run code to its end. With `into` the chunks can be seen while they come."""
    ran = Ran() if into is None else into
    async with asyncio.timeout(LIMIT), aclosing(language.run(approved(code), answer=answer)) as chunks:
        async for chunk in chunks:
            ran.append(chunk)
    return ran


class Running:
    """Code that runs in the background of a test."""

    def __init__(self, language: Language, code: str, *, answer: Answerer = no_answer) -> None:
        self.ran = Ran()
        self.task = asyncio.create_task(run(language, code, answer=answer, into=self.ran))

    async def prints(self, text: str) -> None:
        """Until the code has printed this."""
        await until(lambda: text in self.ran.output or self.task.done())
        assert text in self.ran.output, self.ran

    async def end(self) -> Ran:
        return await self.task


async def until(condition: Callable[[], bool], limit: float = LIMIT) -> None:
    """Wait on a condition, generously."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.005)


class Answers:
    """An answerer that has its answers ready and remembers the questions."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.requests: list[InputRequest] = []

    async def __call__(self, request: InputRequest) -> str:
        self.requests.append(request)
        return self._answers.pop(0)


async def collect(chunks: AsyncIterator[Chunk]) -> Ran:
    return Ran([chunk async for chunk in chunks])
