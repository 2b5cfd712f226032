"""Foreign text as lines behind a rail: the output of programs, and code with its line numbers."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from oi_tui.engine.hidden_text import reveal
from oi_tui.rendering.sanitise import sanitise

RAIL = "     | "
"""Stands before every line of output."""
PROGRESS_INTERVAL = 10.0
"""Seconds between two states of a line that overwrites itself."""

_RESET = "\x1b[0m"


class RailedText:
    """Text of a program, line by line behind a rail. Carriage returns make no line; see the module's text."""

    def __init__(self, write: Callable[[str], object], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self.is_used = False
        """Whether anything was fed since it was closed."""
        self._is_open = False
        self._held: str | None = None
        self._shown_at = 0.0

    def feed(self, text: str) -> None:
        """The next piece of sanitised text."""
        self.is_used = True
        for piece in re.split(r"(\n|\r)", text):
            if piece == "\n":
                self._end_line()
            elif piece == "\r":
                self._return()
            elif piece and self._held is not None:
                self._held += piece
            elif piece:
                self._put(piece)

    def close(self) -> None:
        """End the last line."""
        if self._is_open or self._held:
            self._end_line()
        self._held = None
        self.is_used = False

    def _put(self, text: str) -> None:
        self._write((text if self._is_open else RAIL + text) + (_RESET if "\x1b" in text else ""))
        self._is_open = True

    def _return(self) -> None:
        """What is on the line will be overwritten: from now on, only its newest state is kept."""
        if self._held and self._clock() - self._shown_at >= PROGRESS_INTERVAL:
            self._show_held()
        self._held = ""

    def _show_held(self) -> None:
        if self._is_open:
            self._write("\n")
        self._is_open = False
        self._put(self._held or "")
        self._shown_at = self._clock()

    def _end_line(self) -> None:
        if self._held:
            self._show_held()
        self._held = None
        self._write("\n" if self._is_open else RAIL.rstrip() + "\n")
        self._is_open = False


class CodeLines:
    """One code block as numbered lines, shown as they arrive, with stand-ins for characters that trick the eye."""

    def __init__(self, write: Callable[[str], object], language: str) -> None:
        self._write = write
        self.language = language
        self._rest = ""
        self.shown: list[str] = []

    def feed(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._line(reveal(line, language=self.language).text)

    def close(self) -> None:
        """Show the last line, which nothing has ended."""
        if self._rest:
            self._line(reveal(self._rest, language=self.language).text)
        self._rest = ""

    def whole(self, code: str) -> None:
        """Show a complete block."""
        for line in revealed_lines(code, self.language):
            self._line(line)

    def _line(self, line: str) -> None:
        self.shown.append(line)
        self._write(f"{len(self.shown):>4} | {sanitise(line)}\n")


def revealed_lines(code: str, language: str) -> list[str]:
    """The lines of a block as they are to be shown. Reading it whole finds tricks that span lines."""
    lines = reveal(code, language=language).text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines
