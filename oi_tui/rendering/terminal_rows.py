"""The rows that terminal text is kept in: as they came, or character by character where a program moves around."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rich.cells import cell_len

from oi_tui.rendering.sgr import DEFAULT, Sgr, StyledText

TAB_SIZE = 8


@dataclass(slots=True)
class RawRow:
    """A line with colours, as it came: taken apart only when it is looked at."""

    text: str
    state: Sgr


@dataclass(slots=True)
class CellRow:
    """A line that the program moves around in: one entry for each character."""

    characters: list[str]
    states: list[Sgr]

    def write(self, column: int, text: str, state: Sgr) -> int:
        """Overwrite from `column` on; returns the column after the text."""
        if "\t" in text:
            missing = max(0, column - len(self.characters))
            text = expand(text, cell_len("".join(self.characters[:column])) + missing)
        if (missing := column - len(self.characters)) > 0:
            self.characters += " " * missing
            self.states += [DEFAULT] * missing
        end = column + len(text)
        self.characters[column:end] = text
        self.states[column:end] = [state] * len(text)
        return end

    def pieces(self) -> StyledText:
        pieces: StyledText = []
        start = 0
        for index in range(1, len(self.characters) + 1):
            if index == len(self.characters) or self.states[index] != self.states[start]:
                pieces.append(("".join(self.characters[start:index]), self.states[start]))
                start = index
        return pieces


@dataclass(slots=True)
class FixedRow:
    """A line that was moved around in and is out of reach now."""

    pieces: StyledText


Row: TypeAlias = str | RawRow | CellRow | FixedRow


def length_of(row: Row) -> int:
    if isinstance(row, str):
        return len(row)
    if isinstance(row, RawRow):
        return len(row.text)
    if isinstance(row, CellRow):
        return len(row.characters)
    return sum(len(text) for text, _ in row.pieces)


def without_overwritten(line: str) -> str:
    """A line without the updates that later ones cover: of a million steps of a bar, the last one."""
    if "\r" not in line or "\x1b" in line or "\x08" in line or "\t" in line:
        return line
    first, *updates = line.split("\r")  # where the first begins is not known here
    kept: list[str] = []
    for update in reversed(updates):
        if not kept or len(update) > len(kept[-1]):
            kept.append(update)
    return "\r".join([first, *reversed(kept)])


def expand(text: str, column: int) -> str:
    """Tabs as blanks up to the next stop, where each character is a cell or not: as terminals do."""
    parts = text.split("\t")
    expanded = [parts[0]]
    column += cell_len(parts[0])
    for part in parts[1:]:
        blanks = TAB_SIZE - column % TAB_SIZE
        expanded += (" " * blanks, part)
        column += blanks + cell_len(part)
    return "".join(expanded)


def expand_pieces(pieces: StyledText) -> StyledText:
    if not any("\t" in text for text, _ in pieces):
        return pieces
    expanded: StyledText = []
    column = 0
    for text, state in pieces:
        text = expand(text, column)
        column += cell_len(text)
        expanded.append((text, state))
    return expanded
