"""One persistent process behind a language: started when first needed, replaced when it has ended, ended at the end."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from oi_tui.engine.errors import LanguageError
from oi_tui.engine.languages.place import Place
from oi_tui.engine.languages.process_tree import describe_status
from oi_tui.engine.languages.pty_process import PtyProcess
from oi_tui.engine.languages.terminal import SETTINGS, last_line
from oi_tui.engine.lmc import Chunk, notice


class KeptProcess(ABC):
    """Starts the program that a subclass names, and a new one when that has ended."""

    name: str
    title: str
    start_timeout: ClassVar[float] = 20.0
    """Seconds until a program that does not say it is ready is given up."""
    state: ClassVar[str] = "its variables are gone"
    """What is lost with the process."""

    def __init__(self, *, place: Place | None = None) -> None:
        self._place = place or Place()
        self._process: PtyProcess | None = None
        self._starting: asyncio.Task[PtyProcess] | None = None
        self._version = ""
        self._has_state = False
        """Whether the process has run any code."""
        self._news: list[str] = []
        self._burials: set[asyncio.Task[None]] = set()
        """Processes that ended by themselves and are being cleared up."""

    # What a subclass says ----------------------------------------------------------------------------------------

    @abstractmethod
    def command(self, folder: Path) -> Sequence[str]:
        """The program and its arguments. The FIFOs `events` and `commands` are made in `folder` afterwards."""

    def environment(self) -> dict[str, str]:
        return {**self._place.environment, **SETTINGS}

    def prepare(self, folder: Path) -> None:  # noqa: B027 (most have nothing to prepare)
        """Write what the program needs into its private folder, before it starts."""

    def say_goodbye(self, process: PtyProcess) -> None:
        """Ask the program to leave by itself. It will be told by SIGTERM at once and by SIGKILL soon."""
        return None

    def introduce(self, process: PtyProcess) -> None:
        """Say what has to be said to the started program before it is ready."""
        return None

    # -------------------------------------------------------------------------------------------------------------

    @property
    def cwd(self) -> Path:
        """Where the process works now, as far as is known."""
        return self._place.cwd

    async def warm(self) -> None:
        with contextlib.suppress(LanguageError):
            await self._ready()

    def take_notices(self) -> list[Chunk]:
        """See `TellsLater`: a process that ended with its state while nobody listened."""
        news, self._news = self._news, []
        return [notice("kernel", text) for text in news]

    def background(self) -> list[tuple[int, str]]:
        """What the code left running: pid and command line. Blocks a few milliseconds."""
        return self._process.process.background() if self._process is not None else []

    async def _ready(self) -> PtyProcess:
        """The live process, started if there is none. Several callers share one start."""
        if self._process is not None and self._process.has_ended:
            await self._buried(self._process)
        if self._process is not None:
            return self._process
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(self._started)
        return await asyncio.shield(self._starting)

    def _started(self, task: asyncio.Task[PtyProcess]) -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # whoever waited has seen it

    async def _start(self) -> PtyProcess:
        process = await self._spawn()
        try:
            self.introduce(process)
            await self._until_ready(process)
        except BaseException:
            await process.close(grace=0)
            raise
        process.listening = False
        self._process = process
        self._has_state = False
        return process

    async def _spawn(self) -> PtyProcess:
        def command(folder: Path) -> Sequence[str]:
            self.prepare(folder)
            return self.command(folder)

        try:
            cwd = self.cwd if self.cwd.is_dir() else self._place.cwd
            return await PtyProcess.start(command, env=self.environment(), cwd=cwd, title=self.name)
        except OSError as error:
            what = f"{self.title} could not be started: {error.strerror or error}."
            raise LanguageError(what, "Is it installed?") from error

    async def _until_ready(self, process: PtyProcess) -> None:
        said = ""
        try:
            async with asyncio.timeout(self.start_timeout):
                while True:
                    said = (said + process.take_output())[-4000:]
                    for line in process.take_events():
                        verb, _, argument = line.partition(" ")
                        if verb in ("ready", "version") and argument:
                            self._version = argument
                        if verb in ("ready", "end"):
                            process.take_all_output()  # greetings and the like: not the output of any code
                            return
                    if process.returncode is not None:
                        said += process.take_all_output()
                        raise LanguageError(
                            f"{self.title} could not be started: it {describe_status(process.returncode)}.",
                            _last_words(said),
                        )
                    await process.changed(None)
        except TimeoutError:
            what = f"{self.title} was not ready after {self.start_timeout:.0f} s."
            raise LanguageError(what, _last_words(said)) from None

    async def _buried(self, process: PtyProcess) -> None:
        """The process ended on its own: clear up, and say what is gone."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await process.process.wait()
        if self._process is process:
            self._process = None
            if not self._news and self._has_state:
                self._news.append(f"{self.title} {describe_status(process.returncode or 0)}; {self.state}.")
        await process.close(grace=0.2)

    def _has_died(self, process: PtyProcess, how: str) -> None:
        """The process ended while code ran: clear it up in the background, and remember what to tell."""
        if self._process is process:
            self._process = None
        self._news = [f"{self.title} {how}; {self.state}. The next block starts a new one."]
        self._burials.add(burial := asyncio.create_task(process.close(grace=0.2)))
        burial.add_done_callback(self._burials.discard)

    async def _end(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            with contextlib.suppress(asyncio.CancelledError, LanguageError):
                await self._starting
        process, self._process = self._process, None
        if process is not None:
            self.say_goodbye(process)
            await process.close()
        await asyncio.gather(*self._burials, return_exceptions=True)


def _last_words(text: str) -> str:
    words = last_line(text.rstrip())
    return f"Its last words: {words}" if words else ""
