"""Text for the width of a terminal: rows that fit, and prose wrapped by words as it streams in."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from typing import TextIO

Width = Callable[[], int | None]
"""The columns that may be used now; None where lines have no end, as in pipes."""

NARROWEST = 20
_TAB = 8
_SGR = re.compile(r"\x1b\[[0-9;:]*m")
_PIECES = re.compile(r"\x1b\[[0-9;:]*m|.", re.DOTALL)
_RESET = "\x1b[0m"
_WORDS = re.compile(r"\n|[^\S\n]+|[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff60]|\S")
_MARKER = re.compile(r"(?:[-*+]|\d{1,3}[.)])$")


def width_of(stream: TextIO) -> Width:
    """The width of the terminal behind a stream, asked for anew each time. One column is left free for doubt."""

    def width() -> int | None:
        try:
            columns = os.get_terminal_size(stream.fileno()).columns
        except (OSError, ValueError):
            return None
        return max(NARROWEST, columns - 1) if columns else None

    return width if stream.isatty() else lambda: None


@cache
def _cells(character: str) -> int:
    from rich.cells import cell_len

    return cell_len(character)


def cells(text: str) -> int:
    """Columns of a text without tabs and sequences."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def fold(text: str, column: int, width: int, *, start: int) -> tuple[list[str], int]:
    """A line cut into rows: the first begins at `column`, the others at `start`. Also: where the last one ends.

    Colours go on in the next row, and are reset at the end of each that has any.
    """
    if text.isascii() and text.isprintable() and column + len(text) <= width:
        return [text], column + len(text)
    rows, row, style = [], "", ""
    for piece in _PIECES.findall(text):
        if len(piece) > 1:
            style += piece
            row += piece
            continue
        size = _TAB - column % _TAB if piece == "\t" else _cells(piece)
        if column + size > width and size:
            rows.append(row + (_RESET if style else ""))
            row, column = style, start
            size = _TAB - column % _TAB if piece == "\t" else size
        row += piece
        column += size
    return [*rows, row], column


class WordWrap:
    """Prose as it arrives, with line ends between words. Fenced code and words that are too long are left alone."""

    def __init__(self, width: Width) -> None:
        self._width = width
        self._word = ""
        self._space = ""
        self._column = 0
        self._indent = 0
        self._is_line_empty = True
        self._is_fenced = False

    def feed(self, text: str) -> str:
        """What can be shown of the text so far: all but a word that may go on."""
        width = self._width()
        if width is None:
            return self._flush() + text
        shown = []
        for piece in _WORDS.findall(text):
            if piece == "\n":
                shown.append(self._place(width) + self._space + "\n")
                self._begin_line()
            elif piece.isspace():
                shown.append(self._place(width))
                self._space += piece
            elif piece > "\u2e7f" and len(piece.encode("utf-8", "replace")) == 3 and _cells(piece) == 2:
                shown.append(self._place(width))
                self._word = piece
            else:
                self._word += piece
                if len(self._word) > width:
                    shown.append(self._place(width))
        return "".join(shown)

    def close(self) -> str:
        """The rest. The next text begins a line."""
        rest = self._flush()
        self._begin_line()
        self._is_fenced = False
        return rest

    def _flush(self) -> str:
        width = self._width()
        return ("" if width is None else self._place(width)) + self._take()

    def _place(self, width: int) -> str:
        """The word that is complete now, on this line or on the next."""
        word, space = self._word, self._space
        if not word:
            return ""
        if self._is_line_empty:
            self._indent = cells(space)
            if word.startswith(("```", "~~~")):
                self._is_fenced = not self._is_fenced
            elif _MARKER.match(word):
                self._indent += cells(word) + 1
        size = cells(word)
        fits = self._column + cells(space) + size <= width
        if fits or self._is_fenced or self._is_line_empty or self._column <= self._indent or not space + word.strip():
            self._column += cells(space) + size
            return self._take()
        if not space and not _cells(word[0]) == 2:
            self._column += size
            return self._take()
        self._take()
        indent = " " * min(self._indent, width // 2)
        self._column = len(indent) + size
        return f"\n{indent}{word}"

    def _take(self) -> str:
        taken, self._word, self._space = self._space + self._word, "", ""
        self._is_line_empty = self._is_line_empty and not taken.strip()
        return taken

    def _begin_line(self) -> None:
        self._word = self._space = ""
        self._column = self._indent = 0
        self._is_line_empty = True
