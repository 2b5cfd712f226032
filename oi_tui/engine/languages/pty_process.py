"""A program in a terminal of its own, with a private channel beside it.

Its output and what is typed to it go through the terminal. What the program's driver and we have to say to each other
(run this, this is the line, this is the end) goes through two FIFOs in a private folder, so that it can never be
confused with output and is not inherited by what the program starts.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import errno
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from oi_tui.engine.languages.process_tree import Process, spawn
from oi_tui.engine.languages.terminal import Terminal

HIGH_WATER = 256 * 1024
"""Bytes of output held before the program has to wait for us to take them."""

IDLE_KEEP = 64 * 1024
"""Bytes of output of background jobs that are kept while no code runs; older ones are dropped."""

BURST = 0.03
"""Seconds within which a few events are passed on at once, and more of them together."""

_DRAIN_LIMIT = 4 * 1024 * 1024


class PtyProcess:
    """One started program. Belongs to the event loop that started it.

    Output is read as it comes, up to `HIGH_WATER`, then the program waits: memory stays bounded whatever it prints.
    `listening` says whether somebody takes the output; otherwise it is read on, and only the newest part is kept.
    """

    def __init__(self, folder: Path, terminal: Terminal, process: Process, events: int, commands: int) -> None:
        self.folder = folder
        """Private (0700); removed by `close`."""
        self.terminal = terminal
        self.process = process
        self.listening = True
        self._events, self._commands = events, commands
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._output = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._event_bytes = b""
        self._event_lines: list[str] = []
        self._burst_start, self._burst_size = 0.0, 0
        self._paused = False
        self._closed = False
        self._loop.add_reader(terminal.fileno(), self._on_output)
        self._loop.add_reader(events, self._on_event)
        process.on_exit(lambda status: self._news.set())

    @classmethod
    async def start(
        cls, command: Callable[[Path], Sequence[str]], *, env: Mapping[str, str], cwd: Path, title: str
    ) -> Self:
        """Start what `command(folder)` says; FIFOs `events` and `commands` lie in that folder. Raises `OSError`."""
        if sys.platform == "win32":
            raise OSError(errno.ENOSYS, "it cannot be run on Windows yet")
        folder = Path(tempfile.mkdtemp(prefix=f"oi-tui-{title}-"))
        terminal, fifos = None, []
        try:
            argv = command(folder)
            for name in ("events", "commands"):
                os.mkfifo(folder / name, 0o600)
                # Open both ways: the other side may come and go without an end of file, and nobody blocks opening.
                fifos.append(os.open(folder / name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
            terminal = Terminal()
            process = await spawn(argv, env=env, cwd=cwd, pty=terminal.inner, folder=folder)
        except BaseException:
            if terminal is not None:
                terminal.close()
            for fifo in fifos:
                os.close(fifo)
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return cls(folder, terminal, process, *fifos)

    @property
    def returncode(self) -> int | None:
        """None while the program lives; negative: ended by that signal."""
        return self.process.returncode

    @property
    def has_ended(self) -> bool:
        """True as soon as the program is gone, before its status is known."""
        return self.returncode is not None or _is_zombie(self.process.pid)

    async def changed(self, timeout: float | None) -> None:
        """Wait for output, an event or the program's end; at most `timeout` seconds."""
        if not self._news.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._news.wait()
        self._news.clear()

    def wake(self) -> None:
        """Let `changed` return."""
        self._news.set()

    def take_output(self) -> str:
        """What the program printed since the last call. A character cut in two waits for its rest."""
        data = bytes(self._output)
        self._output.clear()
        if self._paused and not self._closed:
            self._paused = False
            self._loop.add_reader(self.terminal.fileno(), self._on_output)
        return self._decoder.decode(data)

    def take_all_output(self) -> str:
        """Like `take_output`, with everything that was written before this call."""
        while not self._closed and len(self._output) < _DRAIN_LIMIT:
            data = self.terminal.read(65536)  # a read that finds nothing has flushed the kernel's queue as well
            if not data:
                break
            self._output += data
        return self.take_output()

    def take_events(self) -> list[str]:
        """The lines that the driver sent since the last call."""
        if not self._closed:
            self._read_events()
        lines, self._event_lines = self._event_lines, []
        return lines

    def send(self, line: str) -> None:
        """One line to the driver."""
        with contextlib.suppress(OSError):
            os.write(self._commands, line.encode() + b"\n")

    def unsend(self) -> None:
        """Take back what the driver has not read."""
        with contextlib.suppress(OSError):
            os.read(self._commands, 65536)

    def signal_foreground(self, signum: int) -> None:
        """Signal whatever has the keyboard: the program itself, or what it runs in the foreground."""
        group = self.terminal.foreground
        if group <= 0:
            self.process.signal(signum)
            return
        try:
            os.killpg(group, signum)
        except PermissionError:  # `sudo`: the terminal itself may still signal it
            if signum == signal.SIGINT:
                self.terminal.write(b"\x03")
        except OSError:
            pass

    @property
    def in_foreground(self) -> bool:
        """True when the program itself has the keyboard, not something it started in a group of its own."""
        return self.terminal.foreground in (0, self.process.pid)

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        self.signal_foreground(signal.SIGINT)

    async def close(self, *, grace: float = 0.3) -> None:
        """End the program and everything it started. Idempotent."""
        self._silence()
        await self.process.kill_tree(grace=grace)
        self.terminal.close()
        await asyncio.to_thread(shutil.rmtree, self.folder, True)

    def _silence(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._news.set()
        self._loop.remove_reader(self.terminal.fileno())
        self._loop.remove_reader(self._events)
        os.close(self._events)
        os.close(self._commands)

    def _on_output(self) -> None:
        # Several reads a turn: the kernel hands out four kilobytes at a time.
        for _ in range(16):
            data = self.terminal.read(65536)
            if data is None:
                break
            if not data:
                self._pause()
                break
            self._output += data
            if not self.listening:
                del self._output[:-IDLE_KEEP]
            elif len(self._output) >= HIGH_WATER:
                self._pause()
                break
        self._news.set()

    def _pause(self) -> None:
        self._paused = True
        self._loop.remove_reader(self.terminal.fileno())

    def _on_event(self) -> None:
        self._read_events()
        # A driver may have more to say than anybody wants to hear: listen to many lines at once, then.
        now = self._loop.time()
        if now - self._burst_start > BURST:
            self._burst_start, self._burst_size = now, 0
        self._burst_size += 1
        if self._burst_size > 4 and not self._closed:
            self._loop.remove_reader(self._events)
            self._loop.call_later(BURST / 2, self._listen_again)

    def _listen_again(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._events, self._on_event)

    def _read_events(self) -> None:
        try:
            data = os.read(self._events, 65536)
        except BlockingIOError:
            return
        *lines, self._event_bytes = (self._event_bytes + data).split(b"\n")
        self._event_lines += [line.decode("utf-8", "replace") for line in lines]
        if not self.listening:
            del self._event_lines[:-100]
        self._news.set()


def _is_zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except FileNotFoundError:
        return os.path.isdir("/proc/self")
    except OSError:
        return False
