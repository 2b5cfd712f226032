"""A program in a real pseudo-terminal: what it writes, what it is typed, and in what state it leaves the terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from typing import Any, Self

PATIENCE = 60.0
_MODE = re.compile(rb"\x1b\[\?(\d+)([hl])")
_ON_BY_DEFAULT = frozenset({b"7", b"25"})
"""Line wrapping and the cursor: the only modes that a terminal has on before anybody touches it."""


class PtyProgram:
    """Runs a command as the leader of its own terminal. A context manager that leaves nothing behind."""

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str] | None = None, *, size: tuple[int, int] = (80, 24)
    ) -> None:
        self.output = b""
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            try:
                os.environ.update({"TERM": "xterm-256color", **(environ or {})})
                os.execvp(command[0], command)
            finally:
                os._exit(127)
        self._before = self._attributes()
        self._status: int | None = None
        self.resize(*size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGCONT)
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.hang_up()

    def resize(self, columns: int, lines: int) -> None:
        ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def read(self, seconds: float = 0.0) -> bytes:
        """What comes within this time, or as soon as something has come."""
        if self._terminal >= 0 and select.select([self._terminal], [], [], seconds)[0]:
            with contextlib.suppress(OSError):
                new = os.read(self._terminal, 1 << 16)
                self.output += new
                return new
        return b""

    def expect(self, text: str, *, after: int = 0) -> int:
        """Wait until `text` was written; returns the position behind it."""
        wanted = text.encode()
        deadline = time.monotonic() + PATIENCE
        while (found := self.output.find(wanted, after)) < 0:
            if time.monotonic() > deadline or (self._ended() and not self.read(0.1)):
                raise AssertionError(f"{text!r} was not written; the end was {self.output[-600:]!r}")
            self.read(0.05)
        return found + len(wanted)

    def wait(self) -> int:
        """Wait for the end; returns the exit status, negative for a signal that was not handled."""
        deadline = time.monotonic() + PATIENCE
        while not self._ended():
            if time.monotonic() > deadline:
                raise AssertionError(f"it did not end; the last it wrote was {self.output[-600:]!r}")
            self.read(0.02)
        while self.read(0.05):
            pass
        assert self._status is not None
        return self._status

    def _ended(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status is not None

    def wait_for_stop(self) -> None:
        """Wait until the process is stopped, as by ^Z."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                while self.read(0.05):
                    pass
                return
        raise AssertionError("it did not stop")

    def hang_up(self) -> None:
        """Close the terminal, as closing its window does."""
        if self._terminal >= 0:
            os.close(self._terminal)
            self._terminal = -1

    def _attributes(self) -> list[Any]:
        return termios.tcgetattr(self._terminal)

    @property
    def is_cooked(self) -> bool:
        """The line discipline is as it was."""
        return self._attributes() == self._before

    @property
    def modes_left_on(self) -> list[str]:
        """Private modes that were changed and not put back."""
        last = dict(_MODE.findall(self.output))
        return [mode.decode() for mode, state in last.items() if (state == b"h") != (mode in _ON_BY_DEFAULT)]

    @property
    def keyboard_pushes(self) -> int:
        """How many more times the kitty keyboard protocol was pushed than popped."""
        return len(re.findall(rb"\x1b\[>\d+u", self.output)) - len(re.findall(rb"\x1b\[<\d*u", self.output))

    @property
    def last_words(self) -> str:
        """What was written after the alternate screen was left for the last time."""
        return self.output.rpartition(b"\x1b[23;0t")[2].decode(errors="replace").strip()
