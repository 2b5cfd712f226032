"""The model worker as its parent sees it: a child process, two pipes, and one channel per request.

Threads and not asyncio's subprocesses: a worker takes seconds to load, so it has to outlive event loops (the blocking
Python API runs several), and it must die with the program however that ends. Nothing here blocks the event loop:
writing happens in one thread, reading in another, and what is read is bounded by `worker_protocol.WINDOW`.
"""

from __future__ import annotations

import asyncio
import os
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import IO

import oi_tui
from oi_tui.engine.llm.worker_protocol import Line, decode, encode

DIAGNOSTICS = 64 * 1024
"""Bytes of the worker's stderr that are kept, the newest."""

CANCEL_LIMIT = 0.8
"""Seconds a worker has to confirm a cancelled request; then it is killed, which closes the connection as well."""


class Channel:
    """What the worker says about one request. Belongs to the event loop it was made in."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: deque[Line] = deque()
        self._arrived = asyncio.Event()

    def push(self, line: Line) -> None:
        """From any thread."""
        try:
            self._loop.call_soon_threadsafe(self._take, line)
        except RuntimeError:  # the loop is closed: nobody waits for this any more
            return

    async def next(self, timeout: float | None) -> Line:
        """The next line. Raises `TimeoutError` after so many seconds without one."""
        if not self._lines:
            self._arrived.clear()
            async with asyncio.timeout(timeout):
                await self._arrived.wait()
        return self._lines.popleft()

    def _take(self, line: Line) -> None:
        self._lines.append(line)
        self._arrived.set()


class WorkerProcess:
    """One running worker. Thread-safe; ends with its `close`, with the program, or by itself."""

    def __init__(self, command: list[str] | None = None) -> None:
        """Start it. Raises `OSError` when the system cannot."""
        self.is_ready = threading.Event()
        self.why_broken: str | None = None
        self.returncode: int | None = None
        self._channels: dict[int, Channel] = {}
        self._cancelled: dict[int, threading.Timer] = {}
        self._lock = threading.Lock()
        self._diagnostics = bytearray()
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._process = subprocess.Popen(
            command or [sys.executable, "-P", "-m", "oi_tui.engine.llm.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,
            bufsize=-1,
        )
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._threads = [
            threading.Thread(target=self._read, args=(self._process.stdout,), name="worker-read", daemon=True),
            threading.Thread(target=self._drain, args=(self._process.stderr,), name="worker-stderr", daemon=True),
            threading.Thread(target=self._write, args=(self._process.stdin,), name="worker-write", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self.returncode is None

    @property
    def diagnostics(self) -> str:
        """The end of what the worker and its libraries printed, whole words. May hold keys: redact before showing."""
        with self._lock:
            text = self._diagnostics.decode("utf-8", "replace")
            is_cut = len(self._diagnostics) >= DIAGNOSTICS
        return text.lstrip().partition(" ")[2] if is_cut else text  # half a key would not be recognised

    def open(self, number: int) -> Channel:
        """A channel for the request of this number. A dead worker's channel says so at once."""
        channel = Channel()
        with self._lock:
            self._channels[number] = channel
            alive = self.is_alive
        if not alive:
            channel.push({"is": "died"})
        return channel

    def post(self, line: bytes) -> None:
        """Send an encoded line. Never blocks and never fails: a dead worker is noticed by reading."""
        self._outgoing.put(line)

    def forget(self, number: int, *, cancel: bool) -> None:
        """No more of this request; with `cancel` its connection is closed within a second, whatever it takes."""
        with self._lock:
            self._channels.pop(number, None)
            if not cancel or not self.is_alive:
                return
            timer = threading.Timer(CANCEL_LIMIT, self.kill)
            timer.daemon = True
            self._cancelled[number] = timer
        timer.start()
        self.post(encode({"do": "cancel", "id": number}))

    def kill(self) -> None:
        """End it now. A killed worker closes its connections."""
        if self.is_alive:
            self._process.kill()

    def close(self) -> None:
        """Let it end by itself, which takes milliseconds. Does not wait."""
        self._outgoing.put(None)

    def wait(self, timeout: float) -> bool:
        """Wait in the calling thread until it has ended and its pipes are closed. False when it has not."""
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    # -- threads

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            for raw in pipe:
                try:
                    self._dispatch(decode(raw))
                except ValueError:  # not ours: something wrote into the protocol's pipe all the same
                    self._keep(raw)
        self._end()

    def _dispatch(self, line: Line) -> None:
        kind, number = line.get("is"), line.get("id")
        if kind == "ready":
            self.is_ready.set()
        elif kind == "broken":
            self.why_broken = str(line.get("why"))
        with self._lock:
            if kind in ("end", "fault") and (timer := self._cancelled.pop(number or 0, None)) is not None:
                timer.cancel()
            channels = list(self._channels.values()) if number is None else [self._channels.get(number)]
        for channel in channels:
            if channel is not None:
                channel.push(line)

    def _end(self) -> None:
        """The pipe is closed: the worker has ended or is about to. Reaps it, so there is no zombie."""
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        with self._lock:
            self.returncode = code
            channels = list(self._channels.values())
            timers = list(self._cancelled.values())
            self._cancelled.clear()
        for timer in timers:
            timer.cancel()
        self._outgoing.put(None)
        self.is_ready.set()
        for channel in channels:
            channel.push({"is": "died"})

    def _drain(self, pipe: IO[bytes]) -> None:
        with pipe:
            while data := os.read(pipe.fileno(), 65536):
                self._keep(data)

    def _keep(self, data: bytes) -> None:
        with self._lock:
            self._diagnostics += data
            del self._diagnostics[:-DIAGNOSTICS]

    def _write(self, pipe: IO[bytes]) -> None:
        try:
            with pipe:
                while (data := self._outgoing.get()) is not None:
                    pipe.write(data)
                    if self._outgoing.empty():
                        pipe.flush()
        except OSError:  # it has died; the reading thread tells everyone
            return


def _environment() -> dict[str, str]:
    """The environment of the worker: ours, and where to find this package if it is not installed.

    The worker runs with `-P`, so that a `types.py` in the user's folder is not imported.
    """
    environment = dict(os.environ)
    environment.pop("PYTHONWARNINGS", None)
    root = Path(oi_tui.__file__).resolve().parent.parent
    if root.name not in ("site-packages", "dist-packages"):
        paths = [str(root), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return environment
