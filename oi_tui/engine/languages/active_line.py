"""The active line, read from the small file that `in_kernel.tracker` writes."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import NamedTuple

from oi_tui.engine.languages.in_kernel.tracker import LAYOUT


class Lines(NamedTuple):
    """Where the code is: its statement, and the innermost line of the same block. Both from 1; 0: nowhere."""

    statement: int
    inner: int


class ActiveLineFile:
    """A file of 16 bytes (0600) that the kernel maps and writes to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.ftruncate(fd, LAYOUT.size)
            self._shared = mmap.mmap(fd, LAYOUT.size)
        finally:
            os.close(fd)

    def read(self) -> Lines:
        """A microsecond. A value torn between two writes shows a line that ran a moment ago, no worse."""
        _, statement, inner = LAYOUT.unpack_from(self._shared)
        return Lines(statement, inner)

    def close(self) -> None:
        self._shared.close()


def first_line(code: str) -> int | None:
    """The line that will run first, as well as can be said without running or parsing it; None for empty code."""
    for number, line in enumerate(code.split("\n"), start=1):
        text = line.strip()
        if text and not text.startswith("#"):
            return number
    return None
