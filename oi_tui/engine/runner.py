"""The only door to execution: code runs when its (id, digest) was approved, once per approval, byte for byte."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from oi_tui.engine.approval import Answerer, ApprovedCode, CodeProposal, Decision, NotApproved, digest_of
from oi_tui.engine.errors import LanguageError
from oi_tui.engine.languages.base import Language
from oi_tui.engine.lmc import Chunk


class Languages(Protocol):
    """What the runner needs of a registry."""

    def get(self, name: str) -> Language | None: ...


class Runner:
    """Runs approved code in its language."""

    def __init__(self, languages: Languages) -> None:
        self._languages = languages
        self._approved: set[tuple[str, str]] = set()
        self.running: Language | None = None

    def approve(self, proposal: CodeProposal, decision: Decision) -> ApprovedCode:
        """Turn the user's decision into the right to run that code once."""
        approved = proposal.approve(decision)
        self._approved.add((approved.id, approved.digest))
        return approved

    async def run(self, approved: ApprovedCode, answer: Answerer) -> AsyncGenerator[Chunk, None]:
        """Run it. Raises `NotApproved` for anything that was not approved, `LanguageError` if it cannot run at all."""
        ticket = (approved.id, approved.digest)
        if ticket not in self._approved or digest_of(approved.code) != approved.digest:
            raise NotApproved(f"code {approved.id} was not approved as it is")
        self._approved.discard(ticket)
        language = self._languages.get(approved.language)
        if language is None:
            raise LanguageError(f"{approved.language} is not available here.")
        self.running = language
        try:
            async with aclosing(language.run(approved, answer=answer)) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            self.running = None
