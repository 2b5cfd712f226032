"""One execution: it listens to the kernel and turns what it hears into chunks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any

from oi_tui.engine.approval import Answerer, ApprovedCode, InputCancelled, InputEnded, InputRequest
from oi_tui.engine.errors import KernelDied
from oi_tui.engine.languages.active_line import Lines, first_line
from oi_tui.engine.languages.chunk_queue import ChunkQueue
from oi_tui.engine.languages.kernel_channels import Channel
from oi_tui.engine.languages.kernel_displays import Displays
from oi_tui.engine.languages.kernel_messages import KernelMessage
from oi_tui.engine.languages.kernel_output import payload_text, traceback_text
from oi_tui.engine.languages.running_kernel import MIME, RunningKernel
from oi_tui.engine.lmc import Chunk

EARLIER = "[from earlier code]\n"
LOOK_EVERY = 1 / 30
"""Seconds between two looks at the active line and at the kernel's health."""
REPLY_GRACE = 1.0
"""Seconds after `idle` until a reply is given up: an interrupt at the wrong moment can lose it."""
IDLE_GRACE = 5.0
"""Seconds of silence after the reply until `idle` is given up: a kernel that is not ours may drop it."""
LAST_WORDS = 0.05
"""Seconds of silence after which a dead kernel has nothing more to say."""
PROMPT_DELAY = 0.01
"""Seconds that a question waits for the output before it, which comes on another channel."""


class KernelRun:
    """Runs one piece of code. `chunks` yields what comes of it; `finished` is set when the kernel is done with it."""

    def __init__(self, kernel: RunningKernel, code: ApprovedCode, answer: Answerer) -> None:
        self.finished = asyncio.Event()
        self.was_ended = False
        """True if it did not stop when it was told to, and its kernel was ended."""
        self.cwd = ""
        """The kernel's working directory after the run; empty if it did not say."""
        self._kernel = kernel
        self._code = code
        self._answer = answer
        self._asking: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._request_id = ""
        self._replied = self._idle = self._is_stopping = False
        self._is_in_line = self._heard_earlier = False
        self._lines = Lines(0, 0)
        self._line_times: Mapping[str, float] = {}
        self._error_line: int | None = None
        self._loop = asyncio.get_running_loop()
        self._last_heard = self._loop.time()
        self._queue = ChunkQueue(code.id, on_full=self._hold_back)
        self._displays = Displays(self._queue, code.id)

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Start the code and yield everything until it has ended. Raises what `fail` was given."""
        self._kernel.listener = self
        self._print_earlier(self._kernel.take_late_output())
        if (line := first_line(self._code.code)) is not None:
            self._lines = Lines(line, line)
            self._queue.line("active_line", line)
        self._request_id = self._kernel.execute(self._code.code)
        watching = asyncio.create_task(self._watch())
        try:
            while batch := await self._queue.take():
                for item in batch:
                    if isinstance(item, InputRequest):
                        self._asking = asyncio.create_task(self._ask(item))
                    else:
                        yield item
            for chunk in self._last_chunks():
                yield chunk
        finally:
            watching.cancel()
            self._stop_asking()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """The code is being stopped: read on whether or not somebody takes the chunks, and ask nothing any more."""
        self._is_stopping = True
        self._queue.overflow()
        self._stop_asking()

    def say(self, told: Chunk) -> None:
        """Have this chunk come between those of the code."""
        self._queue.put(told)

    def end(self) -> None:
        """End the run, whatever the kernel does: it is going to be ended because it did not stop."""
        if not self.finished.is_set():
            self.was_ended = True
            self._complete()

    def fail(self, error: BaseException) -> None:
        """End the run with this error, whatever the kernel does. No effect when it has ended."""
        if not self.finished.is_set():
            self._failure = error
            self._complete()

    def leave(self) -> None:
        """Listen no more, whether or not it has ended."""
        self._stop_listening()
        self._kernel.channels.resume()

    def _stop_listening(self) -> None:
        if self._kernel.listener is self:
            self._kernel.listener = None

    # What the kernel says --------------------------------------------------------------------------------------

    def on_message(self, channel: Channel, message: KernelMessage) -> None:
        self._last_heard = self._loop.time()
        ours = message.parent == self._request_id
        content = message.content
        if channel == "stdin" and message.type == "input_request":
            request = InputRequest(self._code.id, str(content.get("prompt", "")), bool(content.get("password")))
            self._loop.call_later(PROMPT_DELAY, self._queue.put, request)
        elif channel == "shell":
            if ours and message.type == "execute_reply":
                self._on_reply(content)
        elif message.type == "stream":
            self._displays.before_output()
            is_earlier = not ours and self._kernel.has_run(message.parent)
            (self._print_earlier if is_earlier else self._print)(str(content.get("text", "")))
        elif message.type in ("display_data", "execute_result", "update_display_data"):
            self._on_display(message)
        elif message.type == "clear_output":
            self._displays.clear(wait=bool(content.get("wait")))
        elif message.type == "error" and ours:
            self._displays.before_output()
            self._queue.text(traceback_text(content))
        elif message.type == "status" and ours and content.get("execution_state") == "idle":
            self._idle = True
            self._complete_if_done()

    def _print(self, text: str) -> None:
        if text:
            self._queue.text(text)
            self._is_in_line = not text.endswith("\n")

    def _print_earlier(self, text: str) -> None:
        """Print what threads and programs of earlier code say now. Once per run it is said whose words they are."""
        if text and not self._heard_earlier:
            self._heard_earlier = True
            text = ("\n" if self._is_in_line else "") + EARLIER + text
        self._print(text)

    def _on_reply(self, content: Mapping[str, Any]) -> None:
        for payload in content.get("payload") or ():
            self._queue.text(payload_text(payload))
            if isinstance(payload, Mapping) and payload.get("source") == "ask_exit":
                self._kernel.is_ending = True
        self._replied = True
        self._complete_if_done()

    def _on_display(self, message: KernelMessage) -> None:
        data = message.content.get("data") or {}
        if (report := data.get(MIME)) is not None:
            self._line_times = report.get("line_times") or {}
            self._error_line = report.get("error_line")
            self.cwd = report.get("cwd") or ""
            return
        transient = message.content.get("transient") or {}
        self._displays.show(data, str(transient.get("display_id") or ""), message.type == "update_display_data")

    # How it ends -----------------------------------------------------------------------------------------------

    def _complete_if_done(self) -> None:
        if self._idle and self._replied:
            self._complete()

    def _complete(self) -> None:
        if not self.finished.is_set():
            self._displays.finish()
            self.finished.set()
            self._queue.finish()
            self._stop_listening()  # what comes later belongs to nobody, and must not keep the run from ending

    def _last_chunks(self) -> Iterator[Chunk]:
        if self._line_times:
            yield Chunk("computer", "console", "line_times", self._line_times, id=self._code.id)
        if self._error_line is not None and not self._is_stopping:  # asyncio calls an interrupt an error
            yield Chunk("computer", "console", "error_line", self._error_line, id=self._code.id)
        yield Chunk("computer", "console", "active_line", None, id=self._code.id)

    async def _watch(self) -> None:
        """What nobody tells us: where the code is, that a message was lost, that the kernel died."""
        while not self.finished.is_set():
            await asyncio.sleep(LOOK_EVERY)
            self._look_at_line()
            self._displays.show_what_stands()
            silent = self._loop.time() - self._last_heard
            if self._kernel.died.is_set():
                if silent > LAST_WORDS and not self._kernel.channels.is_paused:
                    self._queue.text(_crash_report(self._kernel.process.raw_output))
                    self.fail(died(self._kernel))
            elif self._idle and silent > REPLY_GRACE:
                self._complete()
            elif self._replied and silent > IDLE_GRACE and not self._kernel.channels.is_paused:
                self._complete()

    def _look_at_line(self) -> None:
        if self._kernel.active_line is None:
            return
        lines = self._kernel.active_line.read()
        if not lines.inner or lines == self._lines:
            return
        if lines.inner != self._lines.inner:
            self._queue.line("active_line", lines.inner)
        if (lines.statement != lines.inner) or (self._lines.statement != self._lines.inner):
            self._queue.line("active_statement", lines.statement if lines.statement != lines.inner else None)
        self._lines = lines

    def _hold_back(self, full: bool) -> None:
        if full:
            self._kernel.channels.pause()
        else:
            self._kernel.channels.resume()

    # Questions to the user -------------------------------------------------------------------------------------

    async def _ask(self, request: InputRequest) -> None:
        try:
            value = await self._answer(request)
        except InputEnded:
            self._queue.text(request.prompt + "\n")
            self._kernel.end_input()
        except InputCancelled:
            self._kernel.interrupt()
        except Exception as error:
            # The front end's fault: the run ends with it, and the code, which goes on waiting, is stopped.
            self._failure = error
            self._queue.finish()
        else:
            self._queue.text(request.prompt + ("" if request.password else value) + "\n")
            if request.password and value:
                self._kernel.secrets.add(value)
            self._kernel.answer_input(value)

    def _stop_asking(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None


def died(kernel: RunningKernel) -> KernelDied:
    """What to tell the user about a kernel that ended by itself."""
    what = f"The kernel {kernel.process.status}."
    return KernelDied(what, "Its variables are gone; the next run starts a new one.")


def _crash_report(raw: str) -> str:
    """What the interpreter said as it crashed; empty if it said nothing."""
    start = raw.rfind("Fatal Python error")
    return raw[start:].rstrip() + "\n" if start >= 0 else ""
