"""Where a parser puts its pieces: neighbours are joined, and white space next to code is dropped."""

from __future__ import annotations

import re
from collections.abc import Iterable

from oi_tui.engine.llm.pieces import CodeEnd, CodeText, Piece, Reasoning, Text

_BLANK_LINES = re.compile(r"(?:[ \t\r]*\n)+")


class PieceOutput:
    """Collects pieces until they are taken.

    White space is held until other text follows it in the same run of prose, so prose neither begins with blank lines
    nor ends with white space, and blank prose between two blocks does not exist.
    """

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._space: list[str] = []
        self._fresh = True
        self._last = "\n"

    @property
    def is_at_word_start(self) -> bool:
        """Whether the text so far ends with white space, or code, or nothing has come."""
        return self._last.isspace()

    def add(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            if isinstance(piece, Text):
                self._add_text(piece.text)
                continue
            self._pieces.append(piece)
            self._space = []
            self._fresh = True
            if isinstance(piece, CodeEnd):
                self._last = "\n"

    def _add_text(self, text: str) -> None:
        if not text:
            return
        self._last = text[-1]
        bare = text.rstrip()
        if bare:
            whole = "".join(self._space) + bare
            if self._fresh and (blank := _BLANK_LINES.match(whole)):
                whole = whole[blank.end() :]
            self._fresh = False
            self._space = []
            self._pieces.append(Text(whole))
        if len(bare) < len(text):
            self._space.append(text[len(bare) :])

    def take(self) -> list[Piece]:
        """The pieces so far. Each is given out once."""
        groups: list[list[Piece]] = []
        for piece in self._pieces:
            if groups and _belongs(groups[-1][0], piece):
                groups[-1].append(piece)
            else:
                groups.append([piece])
        self._pieces = []
        return [_joined(group) for group in groups]


def _belongs(first: Piece, piece: Piece) -> bool:
    if isinstance(first, CodeText):
        return isinstance(piece, CodeText) and piece.key == first.key
    return isinstance(first, Text | Reasoning) and type(piece) is type(first)


def _joined(group: list[Piece]) -> Piece:
    first = group[0]
    if len(group) == 1:
        return first
    text = "".join(piece.text for piece in group if isinstance(piece, Text | Reasoning | CodeText))
    if isinstance(first, CodeText):
        return CodeText(first.key, text)
    return Reasoning(text) if isinstance(first, Reasoning) else Text(text)
