"""The seam between the loop and a programming language."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol, runtime_checkable

from oi_tui.engine.approval import Answerer, ApprovedCode
from oi_tui.engine.lmc import Chunk

MASKED = "••••••"
"""What is shown in place of a secret value."""


class Language(Protocol):
    """Runs code of one language and keeps its state between runs.

    `run` yields `computer` chunks without flags: console output, active lines (an int while running, None once at the
    end), images, rich `code`. Every chunk's id is `code.id`. Cancelling or closing the iterator interrupts the code
    and waits, at most ten seconds, until the language is usable again. Faults of the language itself (not of the
    code) raise `LanguageError`; notices for the user are yielded (`lmc.notice`).
    """

    name: str
    """Canonical, lower case: what the model and the profile call it."""
    aliases: tuple[str, ...]
    file_extension: str
    """Without the dot."""

    @property
    def description(self) -> str:
        """What runs the code, for people: "Python 3.12.3, /usr/bin/python3"."""

    @property
    def is_running(self) -> bool:
        """True while code runs."""

    async def warm(self) -> None:
        """Make the next run fast. May be called any number of times; never raises for a broken runtime."""

    def run(self, code: ApprovedCode, *, answer: Answerer) -> AsyncGenerator[Chunk, None]:
        """Run approved code. The caller has checked the digest."""

    async def interrupt(self) -> None:
        """Stop the running code and keep the state. No effect when nothing runs."""

    async def restart(self) -> None:
        """End the process and its children, losing the state. The next run starts a new one."""

    async def aclose(self) -> None:
        """End everything the language started. Idempotent."""


@runtime_checkable
class TellsLater(Protocol):
    """A language that may have something to tell when none of its runs is there to yield it."""

    def take_notices(self) -> list[Chunk]:
        """Notices that nobody has seen yet, each once; a run begins with what is left. After a run that was cancelled:
        whether its state was lost."""


@runtime_checkable
class KnowsProblem(Protocol):
    """A language that can say before it is used that it cannot be."""

    def problem(self) -> str:
        """Why the next run cannot begin, in one line with what to do; empty when nothing is known. May block for a
        moment: call it in a thread."""
