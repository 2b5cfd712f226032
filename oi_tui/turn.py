"""The bridge between engine and screen, and the only place that knows both.

Below it values are pulled through an async iterator; above it they are pushed as messages. Chunks are joined into
frames: the first few at once, then at most thirty per second, none larger than the screen takes without a hitch. A
frame is sent when the screen has dealt with the one before, so a slow terminal slows the stream and never fills the
memory.

Requests for approval and input travel in the same queue as the chunks, so a question is never on the screen before the
code it is about.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from time import monotonic
from typing import Protocol

from textual.message import Message

from oi_tui.engine.approval import Answerer, Approver, CodeProposal, Decision, InputRequest
from oi_tui.engine.lmc import Chunk
from oi_tui.messages import ApprovalRequested, ChunksReceived, InputRequested, TurnEnd, TurnEnded, TurnStarted

FRAME_INTERVAL = 1 / 30
"""Seconds between frames."""
FRAME_BURST = 3
"""Frames that may follow each other at once after a pause: what begins, its first words, and perhaps its end."""
WORDLESS_WAIT = 0.015
"""Seconds that a frame without any words waits for some. Drawing costs more than that, and would delay what comes."""
FRAME_LIMIT = 64 * 1024
"""Characters in one frame. A frame of this size takes a few tens of milliseconds to lay out and draw."""
BACKLOG_LIMIT = 1024 * 1024
"""Characters waiting for the screen before the engine is made to wait."""
KILL_WINDOW = 3.0
"""A second interrupt within this many seconds ends the language instead."""

_TEXTUAL_TYPES = frozenset({"message", "reasoning", "code", "console"})


class SupportsTurns(Protocol):
    """What the bridge needs of a session."""

    async def interrupt(self) -> None: ...

    async def kill(self) -> None: ...

    def take_notices(self) -> list[Chunk]: ...


Chunks = Callable[[Approver, Answerer], AsyncGenerator[Chunk, None]]
"""Starts a turn: `lambda approve, answer: session.respond(text, approve=approve, answer=answer)`."""


class Turn:
    """One turn, from the user's message to the cleaned-up end."""

    def __init__(
        self,
        session: SupportsTurns,
        chunks: Chunks,
        post: Callable[[Message], object],
        allows: Callable[[CodeProposal], bool] = lambda _: False,
    ) -> None:
        self._session = session
        self._chunks = chunks
        self._post = post
        self._allows = allows
        self._frames = FrameBuffer()
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self._running_code: str | None = None
        self._interrupted_at: float | None = None
        self._is_stopped = False
        self._is_cancelled = False
        self._failed = False

    @property
    def is_running_code(self) -> bool:
        """True between the approval of a block and the end of its output."""
        return self._running_code is not None

    async def run(self) -> TurnEnd:
        """Drive the turn to its end and say how it ended. Cancelling stops it: the model's stream is closed, running
        code interrupted, and this returns when that is done. Unexpected errors are raised after `TurnEnded`."""
        self._post(TurnStarted())
        self._reader = asyncio.create_task(self._read(), name="turn")
        end = TurnEnd.STOPPED
        try:
            await self._send_frames()
            await self._reader
            end = TurnEnd.STOPPED if self._is_stopped else TurnEnd.FAILED if self._failed else TurnEnd.DONE
        except asyncio.CancelledError:
            await self._wind_up()
        except BaseException:
            end = TurnEnd.FAILED
            raise
        finally:
            self._reader.cancel()
            self._post(TurnEnded(end))
        return end

    async def stop(self) -> None:
        """What Esc means: interrupt running code and keep its state; once more within three seconds, end it and lose
        the state; while the model writes or code waits, end the turn."""
        if not self.is_running_code:
            self.cancel()
            return
        now = monotonic()
        again = self._interrupted_at is not None and now - self._interrupted_at < KILL_WINDOW
        self._interrupted_at = None if again else now
        self._is_stopped = True
        await (self._session.kill() if again else self._session.interrupt())

    def cancel(self) -> None:
        """End the turn now, whatever it does. Calling it again changes nothing."""
        if not self._is_cancelled and self._reader is not None:
            self._reader.cancel()
        self._is_stopped = self._is_cancelled = True

    # -- pulled ------------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            async with aclosing(self._chunks(self._approve, self._answer)) as chunks:
                async for chunk in chunks:
                    self._observe(chunk)
                    self._put(chunk)
                    if self._frames.size > BACKLOG_LIMIT:
                        self._room.clear()
                        await self._room.wait()
        except asyncio.CancelledError:
            if not self._is_cancelled:
                raise
            for told in self._session.take_notices():  # what the turn could not say any more
                self._put(told)
        finally:
            self._reading_is_over()

    def _reading_is_over(self) -> None:
        self._running_code = None
        self._arrived.set()

    def _observe(self, chunk: Chunk) -> None:
        if chunk.type == "console" and chunk.start:
            self._running_code = chunk.id
        elif chunk.type == "console" and chunk.end:
            self._running_code = None
        elif chunk.type == "decision":
            self._interrupted_at = None
        elif chunk.type == "error":
            self._failed = True

    def _put(self, item: Chunk | Message) -> None:
        self._frames.add(item)
        self._arrived.set()

    async def _approve(self, proposal: CodeProposal) -> Decision:
        if self._allows(proposal):
            return Decision.run()
        reply: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._put(ApprovalRequested(proposal, reply))
        return await reply

    async def _answer(self, request: InputRequest) -> str:
        reply: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._put(InputRequested(request, reply))
        return await reply

    # -- pushed ------------------------------------------------------------------------------------------------------

    async def _send_frames(self) -> None:
        assert self._reader is not None
        due = 0.0
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._frames:
                if self._frames.is_wordless:
                    await self._wait_for_words()
                due = max(due, monotonic() - (FRAME_BURST - 1) * FRAME_INTERVAL) + FRAME_INTERVAL
                await self._send(self._frames.take(FRAME_LIMIT))
                self._room.set()
                behind = self._frames.size > FRAME_LIMIT
                await asyncio.sleep(0 if behind else max(0.0, due - monotonic()))
            if self._reader.done():
                return

    async def _wait_for_words(self) -> None:
        assert self._reader is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WORDLESS_WAIT):
                while self._frames.is_wordless and not self._reader.done():
                    self._arrived.clear()
                    await self._arrived.wait()

    async def _send(self, frame: list[Chunk] | Message) -> None:
        if isinstance(frame, Message):
            self._post(frame)
            return
        received = ChunksReceived(frame)
        self._post(received)
        await received.handled.wait()

    async def _wind_up(self) -> None:
        """Wait for the engine's own cleanup. What arrives meanwhile is shown as far as it can be."""
        assert self._reader is not None
        self.cancel()
        await asyncio.wait({self._reader})
        while self._frames:
            frame = self._frames.take(FRAME_LIMIT)
            if not isinstance(frame, Message):
                self._post(ChunksReceived(frame))


class FrameBuffer:
    """What waits to be shown, joined: neighbouring pieces of one text become one chunk, active lines replace each
    other. Messages (questions) keep their place between the chunks."""

    def __init__(self) -> None:
        self._entries: deque[Chunk | Message] = deque()
        self._pieces: list[str] = []  # of the last entry, if that is text
        self.size = 0
        """Characters waiting."""

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def is_wordless(self) -> bool:
        """Nothing in it is to be read, and nobody is asked."""
        return not self.size and not any(isinstance(entry, Message) for entry in self._entries)

    def add(self, item: Chunk | Message) -> None:
        last = self._entries[-1] if self._entries else None
        if isinstance(item, Chunk) and isinstance(last, Chunk):
            if self._pieces and _same_text(last, item):
                self._pieces.append(item.text)
                self.size += len(item.text)
                return
            if item.format == last.format == "active_line" and item.id == last.id:
                self._entries[-1] = item
                return
        self._join()
        self._entries.append(item)
        if isinstance(item, Chunk) and _is_text(item):
            self._pieces = [item.text]
            self.size += len(item.text)

    def take(self, limit: int) -> list[Chunk] | Message:
        """The next message, or the next chunks with about `limit` characters at most."""
        self._join()
        if isinstance(self._entries[0], Message):
            return self._entries.popleft()  # type: ignore[return-value]
        frame: list[Chunk] = []
        room = limit
        while self._entries and room > 0:
            entry = self._entries[0]
            if isinstance(entry, Message):
                break
            self._entries.popleft()
            if _is_text(entry):
                if len(entry.text) > room:
                    self._entries.appendleft(replace(entry, content=entry.text[room:]))
                    entry = replace(entry, content=entry.text[:room])
                room -= len(entry.text)
                self.size -= len(entry.text)
            frame.append(entry)
        return frame

    def _join(self) -> None:
        if len(self._pieces) > 1:
            last = self._entries[-1]
            assert isinstance(last, Chunk)
            self._entries[-1] = replace(last, content="".join(self._pieces))
        self._pieces = []


def _is_text(chunk: Chunk) -> bool:
    return isinstance(chunk.content, str) and chunk.type in _TEXTUAL_TYPES and not chunk.is_flag


def _same_text(one: Chunk, other: Chunk) -> bool:
    return (
        _is_text(one)
        and _is_text(other)
        and (one.role, one.type, one.format, one.id, one.recipient)
        == (other.role, other.type, other.format, other.id, other.recipient)
    )
