"""One run of one block of code, while it goes on: what was seen of it, and when."""

from __future__ import annotations

import asyncio
import time

from oi_tui.engine.approval import ApprovedCode
from oi_tui.engine.lmc import Chunk, notice

_FULL_SCREEN = ("\x1b[?1049h", "\x1b[?47h")
_TAIL = 2000

LINE_PAUSE = 0.03
"""Seconds between two active lines that are passed on; nobody sees more."""


class Run:
    """Book-keeping of a run. The methods return the chunks that their news makes."""

    def __init__(self, code: ApprovedCode) -> None:
        self.code = code
        self.begun = False
        self.ended = False
        self.status = 0
        self.died = ""
        """How the process ended, if the run cost it; for people."""
        self.ended_by_us = ""
        """In which words the process was ended on purpose; for people."""
        self.interrupted = False
        self.stopped_because = ""
        self.fault: BaseException | None = None
        """What the front end's answerer raised: a fault of its own, passed on when the code has ended."""
        self.reading = False
        """The driver says that the code waits for input."""
        self.tail = ""
        """The end of the output so far, at least its last line."""
        self.wrote_something = False
        self.stopping: asyncio.Task[None] | None = None
        self.question: asyncio.Task[str | None] | None = None
        self._ended_event = asyncio.Event()
        self._line: int | None = None
        self._line_since = 0.0
        self._line_shown: int | None = None
        self._line_shown_at = 0.0
        self._times: dict[int, float] = {}
        self._started = self._last_output = self._last_look = time.monotonic()
        self._warned_of_screen = False

    def begin(self) -> None:
        """The code is about to be handed over."""
        self.begun = True
        self._started = self._last_output = time.monotonic()

    # What happens --------------------------------------------------------------------------------------------------

    def output(self, text: str) -> list[Chunk]:
        if not text:
            return []
        self._last_output = time.monotonic()
        self.wrote_something = True
        self.tail = (self.tail + text)[-_TAIL:]
        chunks = [Chunk("computer", "console", "output", text, id=self.code.id)]
        if not self._warned_of_screen and any(mark in text for mark in _FULL_SCREEN):
            self._warned_of_screen = True
            chunks.append(notice("screen", "This program wants the whole screen, which it cannot have here. Stop it."))
        return chunks

    def at_line(self, line: int) -> list[Chunk]:
        """The code is at this line now. The news is passed on at most every `LINE_PAUSE` seconds."""
        if line != self._line and line >= 1:
            self._count_time()
            self._line = line
        return self.line_due()

    def line_due(self) -> list[Chunk]:
        """The present line, if it is news and time for news."""
        now = time.monotonic()
        if self._line is None or self._line == self._line_shown or now - self._line_shown_at < LINE_PAUSE:
            return []
        self._line_shown, self._line_shown_at = self._line, now
        return [Chunk("computer", "console", "active_line", self._line, id=self.code.id)]

    def end(self, status: int) -> list[Chunk]:
        self._count_time()
        self.ended = True
        self.status = status
        self._ended_event.set()
        return []

    def closing(self) -> list[Chunk]:
        """The last words about the run: its status if it is worth a word, time by line, no active line."""
        chunks = []
        if line := self._verdict():
            start = "" if not self.tail or self.tail.endswith("\n") else "\n"
            chunks.append(Chunk("computer", "console", "output", f"{start}{line}\n", id=self.code.id))
        if self._times:
            times = {str(line): round(seconds, 4) for line, seconds in sorted(self._times.items())}
            chunks.append(Chunk("computer", "console", "line_times", times, id=self.code.id))
        chunks.append(Chunk("computer", "console", "active_line", None, id=self.code.id))
        return chunks

    def _verdict(self) -> str:
        if self.stopped_because:
            return self.stopped_because
        if self.interrupted:
            return "interrupted"
        if self.died:
            return self.died
        return f"exit status {self.status}" if self.status else ""

    def close(self) -> None:
        """Whatever happens now is not ours any more."""
        if self.question is not None:
            self.question.cancel()

    # Time ------------------------------------------------------------------------------------------------------------

    @property
    def silence(self) -> float:
        """Seconds since the last output, or since the code was last given input."""
        return time.monotonic() - self._last_output

    def answered(self) -> None:
        self._last_output = time.monotonic()
        self.reading = False
        self.tail = ""

    def may_be_waiting(self) -> bool:
        """Whether it is time to look: soon after the last output, then ever more rarely."""
        now = time.monotonic()
        if now - self._last_look < min(0.5, max(0.05, self.silence / 4)):
            return False
        self._last_look = now
        return True

    def over_limit(self, idle: float | None, total: float | None) -> str:
        """The limit that was passed, in words; empty if none was."""
        if self.interrupted or self.question is not None:
            return ""
        if total is not None and time.monotonic() - self._started > total:
            return f"stopped after {total:g} s (time limit)"
        if idle is not None and self.silence > idle:
            return f"stopped after {idle:g} s without output (idle limit)"
        return ""

    def patience(self, tick: float) -> float:
        """How long to wait for news: short while something may have to be looked at."""
        return tick if self.silence < 1.0 or self._line is not None else 0.1

    async def ends_within(self, seconds: float) -> bool:
        if seconds > 0 and not self.ended:
            try:
                async with asyncio.timeout(seconds):
                    await self._ended_event.wait()
            except TimeoutError:
                pass
        return self.ended

    def _count_time(self) -> None:
        now = time.monotonic()
        if self._line is not None:
            self._times[self._line] = self._times.get(self._line, 0.0) + now - self._line_since
        self._line_since = now
