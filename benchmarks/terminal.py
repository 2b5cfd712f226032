"""A pseudo-terminal with a program in it, as a user sits at one; every byte it writes is stamped with its time.

What is "visible" is what was written and is not part of an escape sequence: the programs measured here redraw whole
lines, so a word that is on the screen has been written as that word.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import signal
import statistics
import struct
import subprocess
import termios
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

PATIENCE = 20.0
"""Seconds to wait for anything."""
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[=>78MDEHc]|[()][0-9A-B])")
_REPLIES = {b"\x1b[?2026$p": b"\x1b[?2026;2$y", b"\x1b[?2048$p": b"\x1b[?2048;0$y", b"\x1b[c": b"\x1b[?62;22c"}
_KEEP = 1 << 20
"""Bytes of what was written that can still be looked through."""


class NotSeen(Exception):
    """What was waited for did not come in time."""


class Terminal:
    """Runs a command as the leader of its own terminal. A context manager that ends it.

    A `mute` terminal answers no query; any other answers those that Textual asks.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        size: tuple[int, int] = (120, 40),
        mute: bool = False,
        cwd: Path | None = None,
    ) -> None:
        self._mute = mute
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._text = b""
        self._cut = b""  # the beginning of a sequence whose end has not come
        self._dropped = 0
        self._stamps: deque[tuple[int, float]] = deque()  # up to which position, when
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self.bytes_written = 0
        """By the program, so far."""
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.started_at = time.monotonic()
        self._process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=dict(environ),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        return self._process.pid

    def end(self, *, at_once: bool = False) -> None:
        """End the program: politely, then by force. `at_once` is for programs whose leaving nobody looks at."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL if at_once else signal.SIGTERM)
        try:
            self._process.wait(8)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(2)
        with contextlib.suppress(OSError):
            os.close(self._master)

    def type(self, keys: str) -> float:
        """Returns when it was typed, in monotonic seconds, as all times here."""
        data, typed_at = keys.encode(), time.monotonic()
        while data:
            data = data[os.write(self._master, data) :]
        return typed_at

    def mark(self) -> int:
        """The position behind all that was written so far."""
        self._take_news()
        return self._dropped + len(self._text)

    async def seen(self, wanted: str, since: int = 0, *, patience: float = PATIENCE) -> float:
        """When this text was there, written behind the position `since`. Raises `NotSeen`."""
        return (await self.found(wanted, since, patience=patience))[0]

    async def found(self, wanted: str, since: int = 0, *, patience: float = PATIENCE) -> tuple[float, int]:
        """When this text was there, and the position behind it. Raises `NotSeen`."""
        target, deadline = wanted.encode(), time.monotonic() + patience
        while True:
            self._news.clear()
            self._take_news()
            at = self._text.find(target, max(0, since - self._dropped))
            if at >= 0:
                end = self._dropped + at + len(target)
                return next(stamp for position, stamp in self._stamps if position >= end), end
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise NotSeen(f"{wanted!r} was not written; the end was {self._text[-1500:]!r}")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), 0.5)

    # -- reading

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # ended; the loop may have ended too
            while data := os.read(self._master, 1 << 16):
                self._waiting.append((time.monotonic(), data))
                self.bytes_written += len(data)
                if not self._mute:
                    for query, reply in _REPLIES.items():
                        if query in data:
                            os.write(self._master, reply)
                self._loop.call_soon_threadsafe(self._news.set)

    def _take_news(self) -> None:
        while self._waiting:
            stamp, data = self._waiting.popleft()
            data = self._cut + data
            start = data.rfind(b"\x1b")
            self._cut = b""
            if start >= 0 and len(data) - start < 4096 and not _SEQUENCE.match(data, start):
                data, self._cut = data[:start], data[start:]
            self._text += _SEQUENCE.sub(b"", data)
            self._stamps.append((self._dropped + len(self._text), stamp))
        if len(self._text) > 2 * _KEEP:
            self._dropped += len(self._text) - _KEEP
            self._text = self._text[-_KEEP:]
            while self._stamps[0][0] <= self._dropped:
                self._stamps.popleft()


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Typist:
    """Types letters that no answer contains in this order, and notes how long each takes to be seen (ms)."""

    LETTERS = "qxzjxqjzzqxjqzjxxzqj"
    WARM_UP = 4
    LINE = 40

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._typed = ""
        self._count = 0
        self.late: list[float] = []

    async def key(self) -> None:
        """Type one letter and wait until it is there."""
        if len(self._typed) == self.LINE:
            self._terminal.type("\x7f" * self.LINE)
            await asyncio.sleep(0.2)
            self._typed = ""
        letter = self.LETTERS[(self._count * 7 + self._count // 20) % 20]
        self._typed += letter
        self._count += 1
        mark = self._terminal.mark()
        typed_at = self._terminal.type(letter)
        seen_at = await self._terminal.seen(self._typed[-12:], mark)
        if len(self._typed) > self.WARM_UP:
            self.late.append((seen_at - typed_at) * 1000)

    async def clear(self) -> None:
        """Take back what is in the prompt."""
        self._terminal.type("\x7f" * len(self._typed))
        self._typed = ""
        await asyncio.sleep(0.1)

    async def until(self, done: asyncio.Future[object] | asyncio.Task[object], pause: float) -> None:
        """Type, with pauses of so many seconds, until something else is done."""
        while not done.done():
            await self.key()
            await asyncio.sleep(pause)


# -- processes


def resident(pid: int) -> float:
    """Resident memory of a process, MB (10^6 bytes), shared pages included."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def proportional(pid: int) -> float:
    """Memory of a process, MB, shared pages divided among those who share them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6


def processor_time(pid: int) -> float:
    """Seconds of processor time that a process has taken, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """A process and everything that descends from it."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(folder.name))
    found = [pid]
    for member in found:
        found += parents.get(member, [])
    return found


def internet_sockets(pid: int) -> tuple[int, int]:
    """TCP and UDP sockets of a process and its descendants: how many are connected, and how many listen."""
    inodes = set()
    for member in family(pid):
        with contextlib.suppress(OSError):
            for descriptor in Path(f"/proc/{member}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if (target := os.readlink(descriptor)).startswith("socket:["):
                        inodes.add(target[8:-1])
    connected = listening = 0
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[9] in inodes:
                    is_listening = fields[3] == "0A"
                    connected, listening = connected + (not is_listening), listening + is_listening
    return connected, listening


# -- statistics


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[-1]
