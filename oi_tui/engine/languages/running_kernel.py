"""A kernel that is up: its process, its channels, and the small talk of the Jupyter protocol."""

from __future__ import annotations

import ast
import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from oi_tui.engine.errors import KernelDied, KernelStartFailed, LanguageError
from oi_tui.engine.languages.active_line import ActiveLineFile
from oi_tui.engine.languages.environments import CHOOSE, KernelEnvironment, sentence
from oi_tui.engine.languages.kernel_channels import Channel, Channels
from oi_tui.engine.languages.kernel_messages import KernelMessage
from oi_tui.engine.languages.kernel_process import KernelProcess
from oi_tui.engine.languages.kernel_setup import REPORT, setup_code

START_TIMEOUT = 60.0
"""Seconds until a kernel that says nothing is given up."""
_LATE_OUTPUT = 64 * 1024
"""Characters kept of what threads print while no code runs."""
END_OF_INPUT = "\x04"
"""What ipykernel takes as the end of the input."""

MIME = "application/x-oi-tui+json"


class Listener(Protocol):
    """Gets the messages that belong to one execution."""

    def on_message(self, channel: Channel, message: KernelMessage) -> None: ...


class RunningKernel:
    """One kernel. At most one execution at a time; its `Listener` gets every message until it is taken off."""

    def __init__(self, process: KernelProcess) -> None:
        self.process = process
        self.info: Mapping[str, Any] = {}
        """The kernel's own description (`kernel_info_reply`)."""
        self.report: Mapping[str, str] = {}
        """Which parts of our set-up work in it: name to the reason why not, empty if it does."""
        self.listener: Listener | None = None
        self.active_line: ActiveLineFile | None = None
        self.secrets: set[str] = set()
        """What the user typed where the code asked for a password: never shown again."""
        self.is_ending = False
        """True once the code asked the kernel to end (`exit()`)."""
        self._runs: set[str] = set()
        self._late: list[str] = []
        self._late_length = 0
        self._replies: dict[str, asyncio.Future[KernelMessage]] = {}
        self._idles: set[str] = set()
        self._idle_seen = asyncio.Event()
        self.channels = Channels(process.connection, self._receive, can_wait=process.environment.language == "python")

    @classmethod
    async def start(
        cls,
        environment: KernelEnvironment,
        *,
        cwd: Path,
        env: Mapping[str, str],
        timeout: float = START_TIMEOUT,
    ) -> RunningKernel:
        """Start a kernel and wait until it is ready. Raises `KernelStartFailed`; nothing remains then."""
        self = cls(await KernelProcess.start(environment, cwd=cwd, env=env))
        try:
            await self._until_ready(timeout)
        except BaseException:
            await self.end()
            raise
        return self

    @property
    def died(self) -> asyncio.Event:
        return self.process.died

    @property
    def description(self) -> str:
        version = str((self.info.get("language_info") or {}).get("version") or "")
        return self.process.environment.describe(version)

    # Talking to it ---------------------------------------------------------------------------------------------

    def execute(self, code: str) -> str:
        """Run the user's code. Returns the id that its messages have as their parent."""
        self.channels.resume()
        request = self.channels.send(
            "shell",
            "execute_request",
            {
                "code": code,
                "silent": False,
                "store_history": True,
                "user_expressions": {},
                "allow_stdin": True,
                "stop_on_error": False,
            },
        )
        self._runs.add(request)
        return request

    def has_run(self, request: str) -> bool:
        """Whether this is the id of code that `execute` was given."""
        return request in self._runs

    def end_input(self) -> None:
        """Answer a question of the code with the end of its input."""
        self.answer_input(END_OF_INPUT)

    def answer_input(self, value: str) -> None:
        self.channels.send("stdin", "input_reply", {"value": value})

    def interrupt(self) -> None:
        """Ask the running code to stop, as Jupyter does."""
        if self.process.environment.interrupt_mode == "message":
            self.channels.send("control", "interrupt_request", {})
        else:
            self.process.interrupt()

    async def request(self, kind: str, content: Mapping[str, Any], *, timeout: float) -> Mapping[str, Any]:
        """The content of the reply. Raises `TimeoutError`, and `KernelDied` if it ends meanwhile."""
        self.channels.resume()
        message_id = self.channels.send("shell", kind, content)
        reply: asyncio.Future[KernelMessage] = asyncio.get_running_loop().create_future()
        self._replies[message_id] = reply
        death = asyncio.create_task(self.died.wait())
        try:
            await asyncio.wait((reply, death), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if reply.done():
                return reply.result().content
            if self.died.is_set():
                raise KernelDied(f"The kernel {self.process.status}.")
            raise TimeoutError
        finally:
            death.cancel()
            self._replies.pop(message_id, None)

    async def ask(self, expression: str, *, timeout: float = 10.0) -> Mapping[str, Any]:
        """The data bundle of an expression's value, computed silently. Raises `LanguageError`, `TimeoutError`."""
        content = {"code": "", "silent": True, "store_history": False, "user_expressions": {"answer": expression}}
        reply = await self.request("execute_request", {**content, "allow_stdin": False}, timeout=timeout)
        answer = (reply.get("user_expressions") or {}).get("answer") or {}
        if answer.get("status") != "ok":
            raise LanguageError(f"{answer.get('ename', 'Error')}: {answer.get('evalue', 'no answer')}")
        data: Mapping[str, Any] = answer.get("data") or {}
        return data

    def take_late_output(self) -> str:
        """What threads and background programs printed since the last execution ended."""
        text = "".join(self._late)
        self._late.clear()
        self._late_length = 0
        return text

    async def end(self, *, graceful: bool = False) -> None:
        """End it and everything it started. `graceful`: let it run its exit handlers first. Idempotent."""
        if graceful and not self.died.is_set():
            self.channels.send("control", "shutdown_request", {"restart": False})
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self.died.wait()
        await self.process.end(grace=0.3 if graceful else 0.0)
        await self.channels.aclose()
        if self.active_line is not None:
            self.active_line.close()
            self.active_line = None

    # Starting --------------------------------------------------------------------------------------------------

    async def _until_ready(self, timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                await self._shake_hands()
                if (self.info.get("language_info") or {}).get("name") == "python":
                    await self._set_up()
                if self.report.get("publisher", "missing"):
                    self.channels.can_wait = False
                self.take_late_output()  # what start-up files print is not the code's
        except KernelDied:
            raise self.process.start_failure() from None
        except TimeoutError:
            what = self.process.environment.describe()
            last = self.process.raw_output.strip().rpartition("\n")[2][:200]
            said = f" Its last words: {sentence(last)}" if last else ""
            raise KernelStartFailed(
                f"The kernel of {what} was not ready after {timeout:.0f} s.{said}", CHOOSE
            ) from None

    async def _shake_hands(self) -> None:
        """Until requests are answered and what the kernel publishes reaches us: the two connect on their own."""
        while not self._idle_seen.is_set():
            self.info = await self.request("kernel_info_request", {}, timeout=START_TIMEOUT)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await self._idle_seen.wait()

    async def _set_up(self) -> None:
        """Streams, active line, interrupts: see `in_kernel`. A kernel that is not IPython does without."""
        self.active_line = ActiveLineFile(self.process.folder / "line")
        code = setup_code(folder=self.process.folder, active_line=self.active_line.path)
        content = {"code": code, "silent": True, "store_history": False, "allow_stdin": False}
        expressions = {"user_expressions": {"report": REPORT}}
        reply = await self.request("execute_request", {**content, **expressions}, timeout=START_TIMEOUT)
        report = ((reply.get("user_expressions") or {}).get("report") or {}).get("data") or {}
        with contextlib.suppress(ValueError, SyntaxError):
            self.report = ast.literal_eval(report.get("text/plain", "{}"))
        if self.report.get("tracker", "missing"):
            self.active_line.close()
            self.active_line = None

    # Listening -------------------------------------------------------------------------------------------------

    def _receive(self, channel: Channel, message: KernelMessage) -> None:
        reply = self._replies.get(message.parent)
        if channel == "shell" and reply is not None and not reply.done():
            reply.set_result(message)
            return
        if channel == "iopub" and message.type == "status":
            self._idle_seen.set()
        if self.listener is not None:
            self.listener.on_message(channel, message)
        elif channel == "stdin" and message.type == "input_request":
            self.end_input()  # a thread asks while nobody listens
        elif message.type == "stream":
            self._keep_late(str(message.content.get("text", "")))

    def _keep_late(self, text: str) -> None:
        self._late.append(text)
        self._late_length += len(text)
        if self._late_length > 2 * _LATE_OUTPUT:
            newest = "".join(self._late)[-_LATE_OUTPUT:]
            self._late, self._late_length = [newest], len(newest)
            if not self._replies:
                self.channels.pause()  # whoever prints so much in the background waits until somebody reads again
