"""A stored conversation over fakes."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

from oi_tui.engine.approval import Answerer, ApprovedCode, CodeProposal, Decision, no_answer
from oi_tui.engine.languages.registry import Registry
from oi_tui.engine.lmc import Chunk
from oi_tui.engine.settings import Settings
from oi_tui.engine.store.reading import StoredConversation
from oi_tui.engine.store.recorded_session import RecordedSession
from oi_tui.engine.store.store import Store
from tests.fakes import FakeLanguage, FakeModel, printing

PICTURE = base64.b64encode(
    base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
).decode()


def everything(code: ApprovedCode, answer: Answerer) -> AsyncIterator[Chunk]:
    """Prints, draws twice and is timed."""

    async def steps() -> AsyncIterator[Chunk]:
        yield Chunk("computer", "console", "active_line", 1, id=code.id)
        yield Chunk("computer", "console", "output", f"ran {code.code}\n", id=code.id)
        yield Chunk("computer", "image", "base64.png", PICTURE, id=code.id)
        yield Chunk("computer", "image", "base64.png", PICTURE, id=code.id)
        yield Chunk("computer", "console", "line_times", {"1": 0.25}, id=code.id)

    return steps()


def failing(code: ApprovedCode, answer: Answerer) -> AsyncIterator[Chunk]:
    async def steps() -> AsyncIterator[Chunk]:
        yield Chunk("computer", "console", "active_line", 1, id=code.id)
        yield Chunk("computer", "console", "output", "Traceback\nZeroDivisionError: division by zero\n", id=code.id)
        yield Chunk("computer", "console", "error_line", 1, id=code.id)

    return steps()


class StoredDesk:
    """A recorded session over fakes and somebody who answers."""

    def __init__(
        self,
        store: Store,
        *answers: Any,
        script: Callable[..., AsyncIterator[Chunk]] | None = None,
        stored: StoredConversation | None = None,
        decide: Callable[[CodeProposal], Decision] = lambda proposal: Decision.run(),
        **settings: Any,
    ) -> None:
        self.language = FakeLanguage(script=script or printing("42\n"), aliases=("py",))
        registry = Registry(())
        registry.add(self.language)
        registry.add(FakeLanguage("shell", script or printing("bin etc\n"), aliases=("bash",), file_extension="sh"))
        self.model = FakeModel(*answers)
        self.store = store
        self.session = RecordedSession(
            Settings(**settings), store=store, stored=stored, model=self.model, languages=registry
        )
        self.decide = decide
        self.proposals: list[CodeProposal] = []

    async def approve(self, proposal: CodeProposal) -> Decision:
        self.proposals.append(proposal)
        return self.decide(proposal)

    async def ask(self, text: Any) -> list[Chunk]:
        async with aclosing(self.session.respond(text, approve=self.approve, answer=no_answer)) as chunks:
            return [chunk async for chunk in chunks]

    async def loaded(self) -> StoredConversation:
        assert self.store.flush(10)
        return self.store.load(self.session.conversation)


def python(code: str) -> str:
    return f"```python\n{code}\n```\n"


def data_of(store: Store) -> bytes:
    """Every byte that the store has put on the disk."""
    return b"".join(path.read_bytes() for path in Path(store.folder).rglob("*") if path.is_file())
