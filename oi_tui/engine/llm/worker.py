"""The process that talks to models: `python -m oi_tui.engine.llm.worker`. The only importer of LiteLLM.

It lives apart because importing LiteLLM takes seconds and a couple of hundred megabytes, and because its work would
stall a screen. It reads and writes the lines of `worker_protocol`; what libraries print goes to stderr, never into the
protocol. It ends by itself as soon as its input is closed, so it cannot outlive the program that started it. Nothing is
contacted but the model's endpoint.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from oi_tui.engine.errors import ModelError
from oi_tui.engine.llm.outbox import Outbox
from oi_tui.engine.llm.worker_protocol import HEARTBEAT, Line, decode, encode, fault_to_wire

ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise the import fetches a price list
    "LITELLM_MODE": "PRODUCTION",  # otherwise it loads any .env above site-packages
    "LITELLM_TELEMETRY": "False",
    "LITELLM_LOCAL_BLOG_POSTS": "True",
    "LITELLM_LOG": "ERROR",
    "DISABLE_HF_TOKENIZER_DOWNLOAD": "True",
    "DISABLE_AIOHTTP_TRANSPORT": "True",  # some versions of it take a broken connection for the end of the answer
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
}
"""Set before the import of LiteLLM."""


class Pipes:
    """The two pipes of the protocol, moved away from the descriptors that libraries write to."""

    def __init__(self) -> None:
        self._out = os.dup(1)
        os.dup2(2, 1)
        self._in: BinaryIO = os.fdopen(os.dup(0), "rb")
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._wake: Callable[[], object] | None = None
        threading.Thread(target=self._read, name="protocol", daemon=True).start()

    def send(self, line: Mapping[str, Any]) -> None:
        """Write one line. Blocks while the program does not read, which holds the endpoint back as well."""
        data = memoryview(encode(line))
        try:
            while data:
                data = data[os.write(self._out, data) :]
        except OSError:
            os._exit(0)

    def listen(self, wake: Callable[[], object]) -> None:
        """Call `wake`, from another thread, whenever lines have arrived; and now for those that came before."""
        self._wake = wake
        wake()

    def arrived(self) -> list[Line]:
        """The lines that have arrived since the last call."""
        lines = []
        with contextlib.suppress(queue.Empty):
            while True:
                lines.append(decode(self._lines.get_nowait()))
        return lines

    @property
    def is_waiting(self) -> bool:
        """Whether something was asked already."""
        return not self._lines.empty()

    def _read(self) -> None:
        for line in self._in:
            self._lines.put(line)
            if self._wake is not None:
                self._wake()
        os._exit(0)  # the program is gone; open connections close with the process


class Worker:
    """Answers the lines that arrive; one task per request."""

    def __init__(self, pipes: Pipes, gateway: Any) -> None:
        self._pipes = pipes
        self._gateway = gateway
        self._is_busy = asyncio.Event()
        self._tasks: dict[int, asyncio.Task[ModelError | None]] = {}
        self._outboxes: dict[int, Outbox] = {}

    async def serve(self) -> None:
        """Until the process ends."""
        loop = asyncio.get_running_loop()
        self._pipes.listen(lambda: loop.call_soon_threadsafe(self._take_lines))
        while True:
            await self._is_busy.wait()
            await asyncio.sleep(HEARTBEAT)
            self._pipes.send({"is": "alive"})

    def _take_lines(self) -> None:
        for line in self._pipes.arrived():
            self._take(line)

    def _take(self, line: Line) -> None:
        number = line.get("id", 0)
        match line.get("do"):
            case "request":
                task = self._tasks[number] = asyncio.create_task(self._answer(number, line))
                self._is_busy.set()
                task.add_done_callback(lambda done: self._finish(number, done))
            case "capabilities":
                self._pipes.send({"is": "capabilities", "id": number, **self._gateway.capabilities(line)})
            case "cancel":
                if number in self._tasks:
                    self._tasks[number].cancel()
                else:
                    self._pipes.send({"is": "end", "id": number})
            case "ack":
                if number in self._outboxes:
                    self._outboxes[number].acknowledge()

    async def _answer(self, number: int, line: Line) -> ModelError | None:
        outbox = Outbox(lambda pieces: self._pipes.send({"is": "pieces", "id": number, "pieces": pieces}))
        self._outboxes[number] = outbox
        fault = None
        pieces = self._gateway.answer(line, lambda: self._pipes.send({"is": "open", "id": number}))
        try:
            async with contextlib.aclosing(pieces):
                async for piece in pieces:
                    outbox.add(piece)
                    await outbox.room()
        except ModelError as error:
            fault = error
        await outbox.drain()
        return fault

    def _finish(self, number: int, task: asyncio.Task[ModelError | None]) -> None:
        """Say that a request is over: answered, failed, or cancelled, also before it began."""
        del self._tasks[number]
        if not self._tasks:
            self._is_busy.clear()
        if (outbox := self._outboxes.pop(number, None)) is not None:
            outbox.discard()
        fault: ModelError | None = None
        if not task.cancelled():
            if (bug := task.exception()) is not None:
                traceback.print_exception(bug)
                fault = ModelError(f"The process that talks to the model has a fault: {type(bug).__name__}.")
            else:
                fault = task.result()
        self._pipes.send(
            {"is": "end", "id": number} if fault is None else {"is": "fault", "id": number, **fault_to_wire(fault)}
        )


def load_gateway() -> Any:
    """Import LiteLLM, quietly, and what is built on it. Takes seconds."""
    import warnings

    warnings.simplefilter("ignore")
    os.environ.update(ENVIRONMENT)
    import litellm

    from oi_tui.engine.llm.gateway import Gateway

    return Gateway(litellm)


async def run(pipes: Pipes, gateway: Any) -> None:
    if not pipes.is_waiting:  # a request that waits already loads the same things itself
        await gateway.prime()
    gc.collect()
    gc.freeze()  # litellm's half million objects need no looking at again
    pipes.send({"is": "ready"})
    await Worker(pipes, gateway).serve()


def main() -> int:
    if hasattr(signal, "SIGINT"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipes = Pipes()
    try:
        gateway = load_gateway()
    except Exception as error:  # a broken installation raises anything; the program has to say what
        pipes.send({"is": "broken", "why": f"{type(error).__name__}: {error}"})
        return 1
    asyncio.run(run(pipes, gateway))
    return 0


if __name__ == "__main__":
    sys.exit(main())
