"""Running code of a conversation again, in order, to get back the variables that a new kernel does not have."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from oi_tui.engine.approval import Answerer, CodeProposal, Decision, digest_of
from oi_tui.engine.history import CodeFate
from oi_tui.engine.lmc import Chunk, Message, notice
from oi_tui.engine.session import Session


@dataclass(frozen=True, slots=True)
class PastRun:
    """A block that ran in an earlier kernel. `ended`: ok, failed or stopped."""

    id: str
    language: str
    code: str
    ended: str

    @property
    def first_line(self) -> str:
        return next((line.strip() for line in self.code.splitlines() if line.strip()), "")


def past_runs(history: Iterable[Message]) -> list[PastRun]:
    """The blocks that ran, oldest first: what built the state that is lost."""
    messages = list(history)
    return [
        PastRun(message.id, message.format or "", message.text, _ended(message, messages))
        for message in messages
        if message.type == "code" and message.role != "computer" and message.meta.get("state") == CodeFate.RUN
    ]


def _ended(code: Message, messages: Sequence[Message]) -> str:
    if code.meta.get("exit"):
        return "stopped"
    if code.meta.get("error_line") is not None:
        return "failed"
    printed = "".join(m.text for m in messages if m.type == "console" and m.meta.get("code_id") == code.id)
    return "failed" if "Traceback (most recent call last)" in printed else "ok"


async def run_again(session: Session, runs: Sequence[PastRun], *, answer: Answerer) -> AsyncGenerator[Chunk, None]:
    """Run exactly these blocks, in order, after the user has approved the list. What worked then and fails now ends it:
    what follows would work on the wrong state."""
    for number, run in enumerate(runs, 1):
        wanted = digest_of(run.code)

        async def approve(proposal: CodeProposal, wanted: str = wanted) -> Decision:
            return Decision.run() if proposal.digest == wanted else Decision.decline()

        failed = False
        async with aclosing(session.run_code(run.language, run.code, approve=approve, answer=answer)) as chunks:
            async for chunk in chunks:
                failed = failed or chunk.format == "error_line" or chunk.type == "error"
                yield chunk
        if failed and run.ended == "ok" and number < len(runs):
            left = len(runs) - number
            yield notice("rebuild", f"This block worked before. The {left} after it were not run again.")
            return
