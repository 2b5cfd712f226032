"""What all languages share that are one process in a terminal: running, watching, answering, stopping.

A subclass says how code is handed to its program, whose driver reports:

    version <number>
    ready [<version>]       it takes code now
    line <n>                this line of the code is executed
    image <mime> <file>     a picture lies in the private folder
    reading                 it waits for its user, which cannot be seen from outside
    idle                    it does not wait any more
    end <status>            the code has ended; 0: without an error
"""

from __future__ import annotations

import asyncio
import base64
import os
import signal
from abc import abstractmethod
from collections.abc import AsyncGenerator
from pathlib import Path

from oi_tui.engine.approval import Answerer, ApprovedCode, InputCancelled, InputRequest
from oi_tui.engine.errors import LanguageError
from oi_tui.engine.languages.kept_process import KeptProcess
from oi_tui.engine.languages.place import Place
from oi_tui.engine.languages.process_tree import describe_status
from oi_tui.engine.languages.pty_process import PtyProcess
from oi_tui.engine.languages.run import Run
from oi_tui.engine.languages.terminal import last_line
from oi_tui.engine.languages.terminal_input import SURE, Waiting, waiting_for_input
from oi_tui.engine.lmc import Chunk

TICK = 0.03
"""Seconds between two looks at a line that is sampled, and at whether the code waits for input."""

_STOP_STEPS = (
    (0.0, "interrupt"),
    (0.2, "close input"),
    (0.5, "interrupt"),
    (1.3, "terminate what it runs"),
    (1.5, "kill what it runs"),
)
"""Seconds to wait for the code to end, and what is done if it has not. A second after the last its process is ended."""

DRIVERS = Path(__file__).with_name("drivers")
"""The programs that run blocks inside the runtimes."""

_BIG_IMAGE = 64 * 1024 * 1024


class ProcessLanguage(KeptProcess):
    """A `Language` that is one persistent process. Subclasses are declared by their class variables."""

    aliases: tuple[str, ...] = ()
    file_extension: str

    def __init__(self, *, place: Place | None = None) -> None:
        super().__init__(place=place)
        self._settling: asyncio.Task[None] | None = None
        self._run: Run | None = None
        self._count = 0
        """Blocks so far. Each lies in a file of its own, so that functions can be told apart by their file."""

    # What a subclass says ----------------------------------------------------------------------------------------

    @abstractmethod
    def submit(self, process: PtyProcess, code: Path) -> None:
        """Hand over code, which lies in this file (0600), byte for byte as approved."""

    def sample_line(self, process: PtyProcess, run: Run) -> int | None:
        """The line executed now, for languages whose line is looked up from outside."""
        return None

    def first_line(self, run: Run) -> int | None:
        """The line to show before anything is known, for languages that report lines."""
        return None

    def end_status(self, argument: str) -> int:
        """The status that an `end` event stands for."""
        word = argument.partition(" ")[0]
        return int(word) if word.isdecimal() else 0

    def on_event(self, run: Run, verb: str, argument: str) -> list[Chunk]:
        """An event that only this language knows."""
        return []

    # Language ----------------------------------------------------------------------------------------------------

    @property
    def description(self) -> str:
        return self._version or self.title

    @property
    def is_running(self) -> bool:
        return self._run is not None

    async def run(self, code: ApprovedCode, *, answer: Answerer) -> AsyncGenerator[Chunk, None]:
        if self._run is not None:
            raise LanguageError(f"{self.title} is still busy with other code.", "Wait for it, or stop it first.")
        run = self._run = Run(code)
        try:
            if self._settling is not None:
                await asyncio.shield(self._settling)
            process = await self._ready()
            for told in self.take_notices():
                yield told
            try:
                if not run.interrupted:  # while it started
                    self._submit(process, run)
                    for chunk in run.at_line(self.first_line(run) or 0):
                        yield chunk
                while run.begun:
                    for chunk in self._advance(process, run):
                        yield chunk
                    if run.ended:
                        break
                    self._look(process, run, answer)
                    await process.changed(run.patience(TICK))
            except (asyncio.CancelledError, GeneratorExit):
                await self._settle(process, run)
                raise
            for chunk in run.closing():
                yield chunk
        finally:
            run.close()
            self._run = None
        for told in self.take_notices():
            yield told
        if run.fault is not None:
            raise run.fault

    async def interrupt(self) -> None:
        if self._run is None:
            return
        self._run.interrupted = True
        if self._process is not None and self._run.begun:
            self._begin_stop(self._process, self._run)

    async def restart(self) -> None:
        if self._run is not None:
            self._run.interrupted = True
            self._run.ended_by_us = "was ended"
        elif self._process is not None and self._has_state:
            self._news = [f"{self.title} was ended; {self.state}."]
        await self._end()

    async def aclose(self, *, keep_background: bool = False) -> None:
        """See `Language`. `keep_background`: what the code started in the background lives on, for good."""
        if keep_background and self._process is not None:
            self._process.process.release()
        await self._end()

    # Running -----------------------------------------------------------------------------------------------------

    def _submit(self, process: PtyProcess, run: Run) -> None:
        process.take_events()
        process.listening = True
        self._count += 1
        self._has_state = True
        path = process.folder / f"block-{self._count}.{self.file_extension}"
        try:
            path.write_bytes(_bytes_of(run.code.code))
            path.chmod(0o600)
        except OSError as error:
            raise LanguageError(f"The code could not be written to {path.parent}: {error.strerror}.") from error
        run.begin()
        self.submit(process, path)

    def _advance(self, process: PtyProcess, run: Run) -> list[Chunk]:
        """Everything that has happened since the last call."""
        events = process.take_events()
        dead = process.returncode is not None
        ending = dead or any(line.startswith(("end ", "image ")) for line in events)
        chunks = run.output(process.take_all_output() if ending else process.take_output())
        for line in events:
            verb, _, argument = line.partition(" ")
            chunks += self._on_event(process, run, verb, argument)
        if not run.ended:
            chunks += run.at_line(self.sample_line(process, run) or 0)
        if dead and not run.ended:
            chunks += self._on_death(process, run)
        return chunks

    def _on_event(self, process: PtyProcess, run: Run, verb: str, argument: str) -> list[Chunk]:
        match verb:
            case "line":
                return run.at_line(int(argument)) if argument.isdecimal() else []
            case "image":
                return self._image(process, run, argument)
            case "reading" | "idle":
                run.reading = verb == "reading"
                return []
            case "end":
                process.listening = False
                return run.end(self.end_status(argument))
        return self.on_event(run, verb, argument)

    def _on_death(self, process: PtyProcess, run: Run) -> list[Chunk]:
        status = process.returncode or 0
        how = run.ended_by_us or describe_status(status)
        self._has_died(process, how)
        run.died = f"{self.title} {how}."
        return run.end(status)

    def _image(self, process: PtyProcess, run: Run, argument: str) -> list[Chunk]:
        mime, _, file_name = argument.partition(" ")
        path = process.folder / os.path.basename(file_name)
        try:
            if not 0 < path.stat().st_size <= _BIG_IMAGE:
                return []
            content = base64.b64encode(path.read_bytes()).decode("ascii")
            path.unlink()
        except OSError:
            return []
        run.wrote_something = True
        return [Chunk("computer", "image", f"base64.{mime.removeprefix('image/')}", content, id=run.code.id)]

    def _look(self, process: PtyProcess, run: Run, answer: Answerer) -> None:
        """Ask the user when the code waits for him; act on his answer, and on limits of time."""
        if run.question is not None:
            self._take_answer(process, run)
        elif not run.stopping and run.may_be_waiting():
            if waiting := self._waiting(process, run):
                request = InputRequest(run.code.id, waiting.prompt, waiting.password)
                question = asyncio.create_task(_asked(answer, request))
                question.add_done_callback(lambda _: process.wake())
                run.question = question
        if reason := run.over_limit(self._place.idle_limit, self._place.time_limit):
            run.stopped_because = reason
            self._begin_stop(process, run)

    def _waiting(self, process: PtyProcess, run: Run, least: float = 0.0) -> Waiting | None:
        return waiting_for_input(process.terminal, last_line(run.tail), max(run.silence, least), sure=run.reading)

    def _take_answer(self, process: PtyProcess, run: Run) -> None:
        question = run.question
        if question is None:
            return
        if not question.done():
            if run.may_be_waiting() and not self._waiting(process, run, least=SURE):
                question.cancel()  # the code does not wait for the answer any longer
                run.question = None
            return
        run.question = None
        run.fault = None if question.cancelled() else question.exception()
        text = None if question.cancelled() or run.fault is not None else question.result()
        if text is None:
            self._begin_stop(process, run)
            return
        run.answered()
        process.terminal.type_line(text)

    # Stopping ----------------------------------------------------------------------------------------------------

    def _begin_stop(self, process: PtyProcess, run: Run) -> None:
        run.interrupted = True
        if run.stopping is None:
            run.stopping = asyncio.create_task(self._stop(process, run))

    async def _stop(self, process: PtyProcess, run: Run) -> None:
        """Interrupt, and become firmer until the code has ended. Ends the process itself when nothing else helps."""
        for pause, step in _STOP_STEPS:
            if await run.ends_within(pause) or process.returncode is not None:
                return
            match step:
                case "interrupt":
                    self.send_interrupt(process)
                case "close input":
                    self.close_input(process)
                case "terminate what it runs" if not process.in_foreground:
                    process.signal_foreground(signal.SIGTERM)
                case "kill what it runs" if not process.in_foreground:
                    process.signal_foreground(signal.SIGKILL)
        if await run.ends_within(1.0) or process.returncode is not None:
            return
        run.ended_by_us = "did not stop and was ended"
        await process.process.kill_tree(grace=0)
        process.wake()

    def send_interrupt(self, process: PtyProcess) -> None:
        """Make the running code stop, keeping the state."""
        process.interrupt()

    def close_input(self, process: PtyProcess) -> None:
        """Let a program that still reads read the end: many runtimes do not interrupt a blocking read."""
        if waiting_for_input(process.terminal, "", SURE):
            process.terminal.write(b"\x04")

    async def _settle(self, process: PtyProcess, run: Run) -> None:
        """The consumer left: interrupt the code and wait until the language can be used again."""
        self._settling = asyncio.create_task(self._wind_down(process, run))
        try:
            await asyncio.shield(self._settling)
        finally:
            if self._settling.done():
                self._settling = None

    async def _wind_down(self, process: PtyProcess, run: Run) -> None:
        if run.question is not None:
            run.question.cancel()
            run.question = None
        if not run.ended:
            self._begin_stop(process, run)
        while not run.ended:
            self._advance(process, run)
            if not run.ended:
                await process.changed(0.1)


def _bytes_of(code: str) -> bytes:
    """The code in UTF-8. Half characters, which no text should hold, stay what they are."""
    try:
        return code.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return code.encode("utf-8", "surrogatepass")


async def _asked(answer: Answerer, request: InputRequest) -> str | None:
    try:
        return await answer(request)
    except InputCancelled:
        return None


def first_code_line(text: str, *comment: str) -> int:
    """The number of the first line that holds more than blanks and a comment; 1 if none does."""
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped and not stripped.startswith(comment):
            return number
    return 1
