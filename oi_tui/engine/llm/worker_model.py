"""LiteLLM behind the seam: a `ChatModel` whose work is done by the worker process."""

from __future__ import annotations

import asyncio
import itertools
import signal
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Self

from oi_tui.engine.errors import ModelError, NoModel, WorkerDied
from oi_tui.engine.llm.base import Capabilities, Delta, ModelRequest
from oi_tui.engine.llm.secret_filter import SecretFilter
from oi_tui.engine.llm.targets import host_of
from oi_tui.engine.llm.worker_process import Channel, WorkerProcess
from oi_tui.engine.llm.worker_protocol import (
    capabilities_from_wire,
    deltas_from_pieces,
    encode,
    fault_from_wire,
    settings_to_wire,
)
from oi_tui.engine.redaction import redact
from oi_tui.engine.settings import ModelSettings

START_LIMIT = 120.0
"""Seconds a worker may take to load, on the slowest disk."""

SILENCE_LIMIT = 30.0
"""Seconds without any sign of life from a loaded worker that has a request; it gives one every two."""


class WorkerModel:
    """Any model LiteLLM reaches. The worker is started when needed, and again after it died.

    Not bound to an event loop: one worker may serve several, one after the other.
    """

    def __init__(self, *, start: Callable[[], WorkerProcess] = WorkerProcess) -> None:
        self._start = start
        self._worker: WorkerProcess | None = None
        self._lock = threading.Lock()
        self._is_closed = False
        self._numbers = itertools.count(1)
        self._known: dict[tuple[str | None, str | None], Capabilities] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    @property
    def pid(self) -> int | None:
        """The worker's process id, while there is a worker."""
        return self._worker.pid if self._worker is not None and self._worker.is_alive else None

    @property
    def diagnostics(self) -> str:
        """What the worker printed lately, for bug reports; without keys."""
        return redact(self._worker.diagnostics) if self._worker is not None else ""

    async def warm(self) -> None:
        """Start the worker and wait until LiteLLM is loaded. A worker that cannot start is reported when it is used."""
        with suppress(ModelError, TimeoutError):
            worker = await self._running()
            number = next(self._numbers)
            channel = worker.open(number)
            try:
                while not worker.is_ready.is_set():
                    await channel.next(START_LIMIT)
            finally:
                worker.forget(number, cancel=False)

    async def capabilities(self, settings: ModelSettings) -> Capabilities:
        """What LiteLLM's local map says; nothing is known when the worker cannot say. Asks no network."""
        if not (settings.model or "").strip():
            return Capabilities()
        name = (settings.model, settings.api_base)
        if name not in self._known:
            with suppress(ModelError, TimeoutError):
                self._known[name] = await self._ask_capabilities(settings)
        return self._known.get(name, Capabilities())

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """One attempt at an answer; see `ChatModel`."""
        settings = request.settings
        if not (settings.model or "").strip():
            hint = "Choose one: --model NAME, or “Choose model” on the screen (^P). --profile demo needs none."
            raise NoModel("No model is configured.", hint)
        number = next(self._numbers)
        line = {"do": "request", "id": number, "settings": settings_to_wire(settings)}
        line |= {"messages": list(request.messages), "tools": list(request.tools)}
        encoded = await asyncio.to_thread(encode, line)
        worker = await self._running()
        waiting = _Waiting(worker, worker.open(number), settings)
        secrets = SecretFilter(settings.api_key)
        worker.post(encoded)
        is_over = False
        try:
            while not is_over:
                try:
                    deltas = await waiting.next()
                except ModelError:
                    is_over = True
                    for delta in secrets.flush():
                        yield delta
                    raise
                is_over = deltas is None
                for delta in secrets.flush() if deltas is None else secrets.feed(deltas):
                    yield delta
                if waiting.owes_acknowledgement:
                    worker.post(encode({"do": "ack", "id": number}))
        finally:
            worker.forget(number, cancel=not is_over)

    async def aclose(self) -> None:
        """End the worker, by force if it takes longer than half a second."""
        worker = await asyncio.to_thread(self._take_worker)
        if worker is None:
            return
        worker.close()
        if not await asyncio.to_thread(worker.wait, 0.5):
            worker.kill()
            await asyncio.to_thread(worker.wait, 0.5)

    async def _ask_capabilities(self, settings: ModelSettings) -> Capabilities:
        worker = await self._running()
        number = next(self._numbers)
        channel = worker.open(number)
        try:
            worker.post(encode({"do": "capabilities", "id": number, "settings": settings_to_wire(settings)}))
            while True:
                line = await channel.next(START_LIMIT)
                if line["is"] == "capabilities":
                    return capabilities_from_wire(line)
                if line["is"] == "died":
                    raise _death(worker)
        finally:
            worker.forget(number, cancel=False)

    async def _running(self) -> WorkerProcess:
        return await asyncio.to_thread(self._ensure_worker)

    def _ensure_worker(self) -> WorkerProcess:
        with self._lock:
            if self._is_closed:
                raise WorkerDied("The model worker has been closed.", retryable=False)
            if self._worker is None or not self._worker.is_alive:
                try:
                    self._worker = self._start()
                except OSError as error:
                    raise ModelError(f"The process that talks to the model cannot start: {error.strerror}.") from None
            return self._worker

    def _take_worker(self) -> WorkerProcess | None:
        with self._lock:
            self._is_closed = True
            worker, self._worker = self._worker, None
            return worker


class _Waiting:
    """One request being waited for: lines in, deltas out, and what to say or do when there are none."""

    def __init__(self, worker: WorkerProcess, channel: Channel, settings: ModelSettings) -> None:
        self._worker = worker
        self._channel = channel
        self._settings = settings
        self._since = self._last_sign = time.monotonic()
        self._is_accepted = self._began = self._has_told = False
        self.owes_acknowledgement = False

    async def next(self) -> list[Delta] | None:
        """The next deltas, or None at the end. Raises `ModelError`."""
        self.owes_acknowledgement = False
        while True:
            try:
                line = await self._channel.next(self._patience())
            except TimeoutError:
                if (told := self._tell()) is not None:
                    return [told]
                continue
            self._last_sign = time.monotonic()
            match line["is"]:
                case "pieces":
                    self._began = self.owes_acknowledgement = True
                    return deltas_from_pieces(line["pieces"])
                case "open":
                    self._is_accepted = True
                case "end":
                    return None
                case "fault":
                    raise fault_from_wire(line)
                case "died":
                    raise _death(self._worker)

    def _silence_limit(self) -> float:
        return SILENCE_LIMIT if self._worker.is_ready.is_set() else START_LIMIT

    def _patience(self) -> float:
        """Seconds until there is something to say or to do."""
        now = time.monotonic()
        patience = self._last_sign + self._silence_limit() - now
        if not self._began and not self._has_told:
            patience = min(patience, self._since + self._settings.connect_notice - now)
        return max(0.0, patience)

    def _tell(self) -> Delta | None:
        now = time.monotonic()
        if now >= self._last_sign + self._silence_limit():
            self._worker.kill()
            raise WorkerDied("The process that talks to the model stopped responding.", "Try again.")
        if self._began or self._has_told or now < self._since + self._settings.connect_notice:
            return None
        self._has_told = True
        host = host_of(self._settings)
        if not self._worker.is_ready.is_set():
            return Delta(notice=("waiting", "LiteLLM is still loading; still waiting."))
        if self._is_accepted:
            return Delta(notice=("waiting", f"{host} has taken the request; no answer yet, still waiting."))
        return Delta(notice=("waiting", f"No answer from {host} yet; still waiting."))


def _death(worker: WorkerProcess) -> ModelError:
    """Why there will be no answer from a worker that has ended."""
    if worker.why_broken is not None:
        what = f"LiteLLM cannot be loaded: {redact(worker.why_broken)}."
        return ModelError(what, "Installing oi-tui again may repair it.")
    code = worker.returncode or 0
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
    return WorkerDied(f"The process that talks to the model ended unexpectedly ({how}).", "Try again.")
