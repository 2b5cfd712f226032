"""A conversation that streams and runs for ever, to be killed: `python -m tests.engine.store.killed_program FOLDER`.

Says on standard output what is acknowledged: `sent N` (the model was asked), `text N LENGTH` (so much of answer N
was shown), `done N` (turn N is over).
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

from oi_tui.engine.approval import Answerer, ApprovedCode, no_answer
from oi_tui.engine.llm.base import Delta
from oi_tui.engine.lmc import Chunk
from oi_tui.engine.store.store import Store
from tests.engine.store.desk import PICTURE, StoredDesk

PIECE = "0123456789 "


class SlowModel:
    """Writes an answer word by word, with code in the middle of every other request."""

    def __init__(self) -> None:
        self.turn = 0

    async def warm(self) -> None: ...

    async def aclose(self) -> None: ...

    async def capabilities(self, settings: object) -> object:
        from oi_tui.engine.llm.base import Capabilities

        return Capabilities()

    async def stream(self, request: object) -> AsyncIterator[Delta]:
        self.turn += 1
        say(f"sent {self.turn}")
        for _ in range(60 if self.turn % 7 == 0 else 6):
            await asyncio.sleep(0.004)
            yield Delta(text=PIECE)
        if self.turn % 2:
            yield Delta(text="\n```python\nrun()\n```\n")


def printing_slowly(code: ApprovedCode, answer: Answerer) -> AsyncIterator[Chunk]:
    async def steps() -> AsyncIterator[Chunk]:
        for number in range(5):
            await asyncio.sleep(0.003)
            yield Chunk("computer", "console", "output", f"line {number}\n", id=code.id)
        yield Chunk("computer", "image", "base64.png", PICTURE, id=code.id)

    return steps()


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


async def main(folder: str) -> None:
    store = Store(Path(folder))
    desk = StoredDesk(store, script=printing_slowly)
    desk.session._dialogue.model = SlowModel()  # type: ignore[assignment]
    say(f"id {desk.session.conversation}")
    for number in range(1, 10_000):
        shown: dict[str, int] = {}
        async with aclosing(
            desk.session.respond(f"request {number}", approve=desk.approve, answer=no_answer)
        ) as chunks:
            async for chunk in chunks:
                if chunk.type == "message" and chunk.text and chunk.id:
                    shown[chunk.id] = shown.get(chunk.id, 0) + len(chunk.text)
                    say(f"text {chunk.id} {shown[chunk.id]}")
        say(f"done {number}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
