"""Foreign text as lines behind a rail: the output of programs, and code with its line numbers."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from oi_tui.engine.hidden_text import reveal
from oi_tui.plain_width import Width, fold
from oi_tui.rendering.sanitise import sanitise

RAIL = "     | "
"""Stands before every line of output."""
PROGRESS_INTERVAL = 10.0
"""Seconds between two states of a line that overwrites itself."""

_RESET = "\x1b[0m"


class RailedText:
    """Text of a program, line by line behind a rail, and never without it: also rows that the terminal would break.

    Of a line that overwrites itself with carriage returns the first and the last state are shown.
    """

    def __init__(
        self,
        write: Callable[[str], object],
        *,
        clock: Callable[[], float] = time.monotonic,
        width: Width = lambda: None,
    ) -> None:
        self._write = write
        self._clock = clock
        self._width = width
        self._column = 0
        self.is_used = False
        """Whether anything was fed since it was closed."""
        self.is_open = False
        """Whether the cursor is behind a rail and text."""
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

    def break_line(self) -> None:
        """End the line, if one is open, because something else is to be written. What follows has a rail again."""
        if self.is_open or self._held:
            self._end_line()

    def close(self) -> None:
        """End the last line."""
        self.break_line()
        self._held = None
        self.is_used = False

    def _put(self, text: str) -> None:
        if not self.is_open:
            self._column = len(RAIL)
        width = self._width()
        if width is not None:
            rows, self._column = fold(text, self._column, width, start=len(RAIL))
            text = f"\n{RAIL}".join(rows)
        self._write((text if self.is_open else RAIL + text) + (_RESET if "\x1b" in text else ""))
        self.is_open = True

    def _return(self) -> None:
        """What is on the line will be overwritten: from now on, only its newest state is kept."""
        if self._held and self._clock() - self._shown_at >= PROGRESS_INTERVAL:
            self._show_held()
        self._held = ""

    def _show_held(self) -> None:
        if self.is_open:
            self._write("\n")
        self.is_open = False
        self._put(self._held or "")
        self._shown_at = self._clock()

    def _end_line(self) -> None:
        if self._held:
            self._show_held()
        self._held = None
        self._write("\n" if self.is_open else RAIL.rstrip() + "\n")
        self.is_open = False


class CodeLines:
    """One code block as numbered lines, shown as they arrive, with stand-ins for characters that trick the eye."""

    def __init__(self, write: Callable[[str], object], language: str, *, width: Width = lambda: None) -> None:
        self._write = write
        self._width = width
        self.language = language
        self.text = ""
        self._rest = ""
        self.shown: list[str] = []

    def feed(self, text: str) -> None:
        self.text += text
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
        text, width = sanitise(line), self._width()
        if width is not None:
            text = f"\n{RAIL}".join(fold(text, len(RAIL), width, start=len(RAIL))[0])
        self._write(f"{len(self.shown):>4} | {text}\n")


def revealed_lines(code: str, language: str) -> list[str]:
    """The lines of a block as they are to be shown. Reading it whole finds tricks that span lines."""
    lines = reveal(code, language=language).text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines
