"""A real pseudo-terminal with a program in it, for tests that type and read as a user does."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

PATIENCE = 60.0
"""Seconds to wait for anything: generous, because nothing is asserted about speed."""

_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
)
_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[=>]")


class PseudoTerminal:
    """Runs a command on a terminal of its own. `text` is what it wrote, without escape sequences and `\\r`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environ: Mapping[str, str] | None = None,
        cwd: str | None = None,
        size: tuple[int, int] = (40, 120),
    ) -> None:
        self._master, slave = pty.openpty()
        termios.tcsetwinsize(slave, size) if hasattr(termios, "tcsetwinsize") else None
        env = {**os.environ, "TERM": "xterm-256color", **(environ or {})}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _TAKE_TERMINAL, *command],
            stdin=slave, stdout=slave, stderr=slave, env=env, cwd=cwd, start_new_session=True, close_fds=True,
        )  # fmt: skip
        self._slave: int | None = slave  # kept open, so that modes can be read after the program has ended
        self.raw = b""
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.hang_up()

    @property
    def text(self) -> str:
        return _SEQUENCES.sub("", self.raw.decode("utf-8", "replace")).replace("\r", "")

    def expect(self, pattern: str) -> str:
        """Wait until something new matches, and return what was written up to there. Fails with all that was."""
        end = time.monotonic() + PATIENCE
        while True:
            text = self.text
            if found := re.compile(pattern).search(text, self._seen):
                before, self._seen = text[self._seen : found.end()], found.end()
                return before
            if not self._read(end):
                raise AssertionError(
                    f"{pattern!r} did not come. After {text[: self._seen]!r} came {text[self._seen :]!r}"
                )

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def line(self, text: str) -> None:
        self.type(text + "\r")

    def wait(self) -> int:
        """The exit status."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            self._read(time.monotonic() + 0.05)
        while self._read(time.monotonic() + 0.05):
            pass
        status = self.process.poll()
        assert status is not None, f"it did not end: {self.text!r}"
        return status

    def is_cooked(self) -> bool:
        """Whether the terminal echoes and reads lines, as a shell expects it."""
        assert self._slave is not None
        flags = termios.tcgetattr(self._slave)[3]
        return bool(flags & termios.ECHO) and bool(flags & termios.ICANON)

    def hang_up(self) -> None:
        """Close the terminal, as closing its window does."""
        if self._slave is not None:
            os.close(self._slave)
            os.close(self._master)
            self._slave = None

    def _read(self, end: float) -> bool:
        """Read what is there or comes until `end`; False when nothing came."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux says EIO when the last program has closed its end
            return False
        self.raw += data
        return bool(data)
