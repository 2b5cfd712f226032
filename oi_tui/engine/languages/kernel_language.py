"""A language whose code runs in a Jupyter kernel: one kernel per conversation, and a new one when it is lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from oi_tui.engine.approval import Answerer, ApprovedCode
from oi_tui.engine.errors import KernelDied, KernelStartFailed, LanguageError
from oi_tui.engine.languages.environments import KernelEnvironment, examine
from oi_tui.engine.languages.kernel_run import KernelRun, died
from oi_tui.engine.languages.running_kernel import START_TIMEOUT, RunningKernel
from oi_tui.engine.lmc import Chunk, notice

NOT_STARTED = "The code was stopped before it began.\n"
STILL_STOPPING = "Still stopping; the kernel will be ended if it does not react."
GONE = "Its variables are gone."
PATIENCE = (1.5, 3.5)
"""Seconds that code has to stop after the first interrupt and after the second; then its kernel is ended."""


class KernelLanguage:
    """Implements `Language` on a kernel of the given environment.

    `choose` finds the environment; it may be slow, runs in a thread and raises `KernelStartFailed`.
    """

    name = "jupyter"
    aliases: tuple[str, ...] = ()
    file_extension = "txt"
    title = "kernel"
    """How notices call it: "The Python kernel …"."""

    def __init__(
        self,
        choose: Callable[[], KernelEnvironment],
        *,
        cwd: Path,
        env: Mapping[str, str],
        start_timeout: float = START_TIMEOUT,
    ) -> None:
        self.cwd = cwd
        """The working directory: of the next kernel, or of the running one after its last run."""
        self._choose = choose
        self._env = env
        self._start_timeout = start_timeout
        self._start_folder = cwd
        self._kernel: RunningKernel | None = None
        self._starting: asyncio.Task[RunningKernel] | None = None
        self._run: KernelRun | None = None
        self._preparing: asyncio.Event | None = None
        """While a run waits for its kernel; set when it is to be stopped."""
        self._stopping: asyncio.Task[None] | None = None
        self._chores: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()
        self._has_state = False
        self._loss = ""
        """What the next run tells its user about the kernel that was lost."""
        self._failed_start = ""
        self._is_examined = False
        self._closed = False

    @property
    def description(self) -> str:
        return self._kernel.description if self._kernel is not None else self.title

    @property
    def is_running(self) -> bool:
        return self._preparing is not None or (self._run is not None and not self._run.finished.is_set())

    @property
    def pid(self) -> int | None:
        """The kernel's process; None while there is none."""
        return self._kernel.process.pid if self._kernel is not None else None

    async def warm(self) -> None:
        """Start the kernel that the next run will use. A kernel that cannot start says so in that run."""
        if not self._closed:
            with contextlib.suppress(LanguageError):
                await self._ready()

    def problem(self) -> str:
        """See `KnowsProblem`. A start that failed is told once: the next run tries again."""
        if self._kernel is not None or self._is_examined:
            return ""
        failed, self._failed_start = self._failed_start, ""
        if failed:
            return failed
        try:
            found = examine(self._choose(), cwd=self.cwd, env=self._env)
        except KernelStartFailed as error:
            return str(error)
        self._is_examined = found is None
        return str(found or "")

    async def run(self, code: ApprovedCode, *, answer: Answerer) -> AsyncGenerator[Chunk, None]:
        """See `Language.run`. Raises `KernelStartFailed` and `KernelDied`."""
        async with self._lock:
            kernel = await self._ready_unless_stopped()
            if kernel is None:
                yield Chunk("computer", "console", "output", NOT_STARTED, id=code.id)
                yield Chunk("computer", "console", "active_line", None, id=code.id)
                return
            for told in self.take_notices():
                yield told
            self._has_state = True
            self._run = run = KernelRun(kernel, code, answer)
            try:
                async with aclosing(run.chunks()) as chunks:
                    async for chunk in chunks:
                        yield chunk
                if run.was_ended:
                    for told in self.take_notices():
                        yield told
            finally:
                if not run.finished.is_set():
                    await self._stop_run()
                if self._run is run:
                    self._leave(run)

    def take_notices(self) -> list[Chunk]:
        """See `TellsLater`: a kernel that was lost while nobody listened."""
        loss, self._loss = self._loss, ""
        return [notice("kernel", loss)] if loss else []

    async def interrupt(self) -> None:
        """Stop the running code, keep the state. Returns when the kernel is usable again: after five seconds it is a
        new one, without the state, and the run says so. No effect when nothing runs."""
        if self._preparing is not None:
            self._preparing.set()
        elif self.is_running:
            await self._stop_run()

    async def restart(self) -> None:
        """End the kernel and its children. A new one is started in the background."""
        self._lose(f"The {self.title} was restarted: its variables are gone.")
        if self._preparing is not None:
            self._preparing.set()
        error = KernelDied(f"The {self.title} was ended on request.", "Its variables are gone.")
        if self._run is not None:
            self._run.fail(error)
        await self._discard_kernel()
        self._do(self.warm())

    async def aclose(self) -> None:
        """End the kernel, everything it started and everything that is under way here. Idempotent."""
        self._closed = True
        if self._run is not None:
            self._run.fail(KernelDied(f"The {self.title} was ended."))
        kernel = self._kernel
        graceful = kernel is not None and self._has_state and not self.is_running
        await self._discard_kernel(graceful=graceful)
        for chore in self._chores:
            chore.cancel()
        under_way = [task for task in (*self._chores, self._stopping) if task is not None]
        await asyncio.gather(*under_way, return_exceptions=True)

    # The kernel ------------------------------------------------------------------------------------------------

    async def _ready_unless_stopped(self) -> RunningKernel | None:
        """A kernel for a run. None: the user did not want to wait for it; it goes on starting."""
        self._preparing = stopped = asyncio.Event()
        waiting = asyncio.create_task(stopped.wait())
        ready = asyncio.create_task(self._ready())
        try:
            await asyncio.wait((ready, waiting), return_when=asyncio.FIRST_COMPLETED)
            return None if stopped.is_set() else await ready
        finally:
            self._preparing = None
            waiting.cancel()
            ready.cancel()
            await asyncio.gather(waiting, ready, return_exceptions=True)

    async def _ready(self) -> RunningKernel:
        """A kernel that is up and does nothing, starting one if need be."""
        if self._stopping is not None:
            await asyncio.shield(self._stopping)
        return await self._started()

    async def _started(self) -> RunningKernel:
        kernel = self._kernel
        if kernel is not None and kernel.is_ending:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(3):
                    await kernel.died.wait()
            self._lose(f"The code ended the {self.title}: its variables are gone.")
            await self._discard_kernel()
        elif kernel is not None and kernel.died.is_set():
            self._lose(str(died(kernel)))
            await self._discard_kernel()
        while self._kernel is None:
            if self._starting is None:
                self._starting = asyncio.create_task(self._start())
                self._starting.add_done_callback(_look_at_error)
            await self._wait_for_start(self._starting)
        return self._kernel

    async def _wait_for_start(self, starting: asyncio.Task[RunningKernel]) -> None:
        """Raises what the start raised. A start that `restart` broke off is no error."""
        await asyncio.wait((starting,))
        if self._starting is starting:
            self._starting = None
        if not starting.cancelled():
            starting.result()
        elif self._closed:
            raise LanguageError(f"The {self.title} was closed.")

    async def _start(self) -> RunningKernel:
        environment = await asyncio.to_thread(self._choose)
        try:
            kernel = await RunningKernel.start(
                environment, cwd=self._start_folder, env=self._env, timeout=self._start_timeout
            )
        except KernelStartFailed as error:
            self._failed_start, self._is_examined = str(error), False
            raise
        if self._closed:
            await kernel.end()
            raise LanguageError(f"The {self.title} was closed.")
        self._kernel = kernel
        self._failed_start = ""
        self.cwd = self._start_folder
        self._do(self._mourn(kernel))
        return kernel

    async def _mourn(self, kernel: RunningKernel) -> None:
        """When the kernel dies by itself: end what it left and have another one ready."""
        await kernel.died.wait()
        if self._kernel is not kernel:
            return
        if self._run is not None:
            await self._run.finished.wait()
        if self._kernel is not kernel:
            return
        self._lose(f"The {self.title} {kernel.process.status}: its variables are gone.")
        await self._discard_kernel()
        self._do(self.warm())

    async def _discard_kernel(self, *, graceful: bool = False) -> None:
        kernel, self._kernel = self._kernel, None
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
        if kernel is not None:
            await asyncio.shield(kernel.end(graceful=graceful))

    def _lose(self, what: str) -> None:
        """Remember what to tell the user, if there was anything to lose."""
        if self._has_state and not self._loss:
            self._loss = what
        self._has_state = False

    # Stopping --------------------------------------------------------------------------------------------------

    async def _stop_run(self) -> None:
        """Stop the present run; several callers share one attempt, and none of them can break it off."""
        if self._stopping is None and self._run is not None:
            self._stopping = asyncio.create_task(self._stop(self._run))
            self._stopping.add_done_callback(self._stopped)
        if self._stopping is not None:
            await asyncio.shield(self._stopping)

    def _stopped(self, task: asyncio.Task[None]) -> None:
        self._stopping = None
        _look_at_error(task)

    async def _stop(self, run: KernelRun) -> None:
        run.stop()
        for attempt, seconds in enumerate(PATIENCE):
            kernel = self._kernel
            if kernel is None or run.finished.is_set():
                break
            if attempt:
                run.say(notice("waiting", STILL_STOPPING))
            kernel.interrupt()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await run.finished.wait()
        if not run.finished.is_set():
            self._lose(f"The code did not stop when it was interrupted, so the {self.title} was ended. {GONE}")
            run.end()
            await self._discard_kernel()
            with contextlib.suppress(LanguageError):
                await self._started()
        self._leave(run)

    def _leave(self, run: KernelRun) -> None:
        run.leave()
        if run.cwd:
            self.cwd = Path(run.cwd)
        if self._run is run:
            self._run = None

    def _do(self, chore: Coroutine[Any, Any, None]) -> None:
        """Something to do in the background, ended by `aclose`."""
        task = asyncio.create_task(chore)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)


def _look_at_error(task: asyncio.Task[object]) -> None:
    """Errors of a background start are shown by the run that needs the kernel."""
    if not task.cancelled():
        task.exception()
