"""Output of any size in bounded memory: its head, its newest part, and the whole of it in a file."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path
from typing import BinaryIO

HEAD = 32 * 1024
"""Characters kept from the beginning."""

WINDOW = 256 * 1024
"""Characters kept from the end, at least; at most twice as many are held while output arrives."""


class OutputCapture:
    """Collects text as it arrives. Up to `head` + `window` characters it is a string and touches no disk.

    What is longer goes to `path` (created 0600, its folder must exist), completely and in order, and memory holds the
    head and the newest part. A disk that fails costs the file, never the output in memory: `error` says what happened.
    """

    def __init__(self, path: Path, *, head: int = HEAD, window: int = WINDOW) -> None:
        self.path: Path | None = None
        """The file with the whole text; None while everything is in memory, or if it could not be written."""
        self.error: str = ""
        """Why the whole text is not on disk although it should be. For people."""
        self.length = 0
        """Characters fed so far."""
        self._target = path
        self._head_size, self._window_size = head, window
        self._head = ""
        self._tail: deque[str] = deque()
        self._tail_length = 0
        self._file: BinaryIO | None = None

    def feed(self, text: str) -> None:
        """Take in the next piece. Never raises for a disk that fails."""
        if not text:
            return
        self.length += len(text)
        self._spill(text)
        if len(self._head) < self._head_size:
            room = self._head_size - len(self._head)
            self._head += text[:room]
            text = text[room:]
        if text:
            self._tail.append(text)
            self._tail_length += len(text)
            self._trim()

    @property
    def is_whole(self) -> bool:
        """True while `text` is everything that was fed."""
        return len(self._head) + self._tail_length == self.length

    @property
    def omitted(self) -> int:
        """How many characters `text` leaves out."""
        return max(0, self.length - len(self._head) - min(self._tail_length, self._window_size))

    @property
    def text(self) -> str:
        """Everything, or the head and the newest part with a line between them that says what was left out."""
        tail = "".join(self._tail)
        if self.is_whole:
            return self._head + tail
        tail = _from_line_start(tail[-self._window_size :])
        left_out = self.length - len(self._head) - len(tail)
        return f"{self._head}\n[… {left_out:,} characters left out{self._where()} …]\n{tail}"

    def close(self) -> None:
        """Finish the file. `text` stays readable. Idempotent."""
        if self._file is None:
            return
        try:
            self._file.close()
        except OSError as error:
            self._fail(error)
        self._file = None

    def _where(self) -> str:
        if self.path is not None:
            return f"; the whole output is in {self.path}"
        return f"; it could not be saved: {self.error}" if self.error else ""

    def _trim(self) -> None:
        # Only when half of it can go, so that a character is copied twice at most.
        if self._tail_length <= 2 * self._window_size:
            return
        newest = "".join(self._tail)[-self._window_size :]
        self._tail = deque([newest])
        self._tail_length = len(newest)

    def _spill(self, text: str) -> None:
        if self.error or (self._file is None and self.length <= self._head_size + self._window_size):
            return
        try:
            if self._file is None:
                self._file = self._create()
                self.path = self._target
                text = self._head + "".join(self._tail) + text
            self._file.write(text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            self._fail(error)

    def _create(self) -> BinaryIO:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        return os.fdopen(os.open(self._target, flags, 0o600), "wb", buffering=256 * 1024)

    def _fail(self, error: OSError) -> None:
        self.error = error.strerror or type(error).__name__
        self.path = None
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError:
                pass  # it is the same fault again


def _from_line_start(text: str) -> str:
    """Without a first line that was cut; lines longer than a kilobyte may be cut."""
    cut = text.find("\n", 0, 1024)
    return text[cut + 1 :] if cut >= 0 else text
