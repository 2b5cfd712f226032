"""A pseudo-terminal of fixed size: the screen that a program of a language believes it has. POSIX only."""

from __future__ import annotations

import contextlib
import os
import re
import select
import struct
import sys

if sys.platform != "win32":
    import fcntl
    import pty
    import termios

COLUMNS, ROWS = 100, 40

SETTINGS = {
    "TERM": "xterm-256color",
    "COLUMNS": str(COLUMNS),
    "LINES": str(ROWS),
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "",
    "DEBIAN_FRONTEND": "readline",
}
"""Environment that goes with it: colours, but nothing that wants the whole screen or waits for a key to go on."""

_IFLAG, _OFLAG, _LFLAG = 0, 1, 3
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


class Terminal:
    """Both ends of a pseudo-terminal. The program gets `inner`; we read and write the other one.

    Output is not translated: a program's `\\n` arrives as `\\n`. Input is echoed and edited by line until a program
    asks for something else, as on any terminal.
    """

    def __init__(self) -> None:
        self._outer, self.inner = pty.openpty()
        for fd in (self._outer, self.inner):
            os.set_inheritable(fd, False)
        os.set_blocking(self._outer, False)
        fcntl.ioctl(self.inner, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        mode = termios.tcgetattr(self.inner)
        mode[_OFLAG] &= ~termios.OPOST
        termios.tcsetattr(self.inner, termios.TCSANOW, mode)
        self._sane = termios.tcgetattr(self.inner)
        self.path = os.ttyname(self.inner)

    def fileno(self) -> int:
        """The descriptor that becomes readable when the program has written."""
        return self._outer

    def read(self, size: int) -> bytes | None:
        """What the program has written; None when there is nothing now, empty when it can write no more."""
        try:
            return os.read(self._outer, size)
        except BlockingIOError:
            return None
        except OSError:  # EIO: every program has closed its end
            return b""

    def write(self, data: bytes) -> None:
        """Type. Waits while the terminal's buffer is full, a second at most: a program that never reads loses it."""
        while data:
            try:
                data = data[os.write(self._outer, data) :]
            except BlockingIOError:
                if not select.select([], [self._outer], [], 1)[1]:
                    return
            except OSError:
                return

    def type_unseen(self, line: str) -> None:
        """Type one line that is not echoed, whatever was typed before and nobody read is thrown away."""
        with contextlib.suppress(termios.error):
            termios.tcflush(self.inner, termios.TCIFLUSH)
            quiet = [*self._sane]
            quiet[_LFLAG] &= ~(termios.ECHO | termios.ECHONL)
            termios.tcsetattr(self.inner, termios.TCSANOW, quiet)
            self.write(line.encode() + b"\n")
            # Echoing is decided when the line passes the line discipline; looking for input makes it pass now.
            poll = select.poll()
            poll.register(self.inner, select.POLLIN)
            poll.poll(100)
            termios.tcsetattr(self.inner, termios.TCSANOW, self._sane)

    def type_line(self, text: str) -> None:
        """Type a line and Enter. A Ctrl-D (U+0004) at its end is the end of the input."""
        enter = b"\n" if self.edits_lines else b"\r"
        line, end, _ = text.partition("\x04")
        data = line.encode("utf-8", "replace")
        self.write(data + enter * bool(data or not end) + end.encode())

    @property
    def foreground(self) -> int:
        """The process group that has the keyboard; 0 when there is none."""
        try:
            return os.tcgetpgrp(self._outer)
        except OSError:
            return 0

    @property
    def echoes(self) -> bool:
        return bool(self._mode() & termios.ECHO)

    @property
    def edits_lines(self) -> bool:
        """True while the terminal collects whole lines; false when a program reads single keys."""
        return bool(self._mode() & termios.ICANON)

    @property
    def unread(self) -> int:
        """How many typed characters no program has read yet."""
        try:
            return int(struct.unpack("i", fcntl.ioctl(self.inner, termios.FIONREAD, b"\0\0\0\0"))[0])
        except OSError:
            return 0

    def close(self) -> None:
        for fd in (self._outer, self.inner):
            with contextlib.suppress(OSError):
                os.close(fd)
        self._outer = self.inner = -1

    def _mode(self) -> int:
        try:
            return int(termios.tcgetattr(self.inner)[_LFLAG])
        except termios.error:
            return termios.ECHO | termios.ICANON


def last_line(text: str, *, limit: int = 500) -> str:
    """What stands on the terminal's last line after this output, without escape sequences: the prompt, if any."""
    line = _ESCAPES.sub("", text.rpartition("\n")[2])
    return line.rstrip("\r").rpartition("\r")[2][-limit:]
