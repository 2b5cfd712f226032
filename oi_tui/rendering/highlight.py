"""Syntax highlighting of code while it is written and edited.

A `Highlighter` holds lines and knows how each is to look. It reads again only what a change can have affected, a piece
at a time: nothing it does takes longer than about 20 ms, however long the code is. Lines that have not been read yet
look plain; `advance` reads on, for callers that have a moment.
"""

from __future__ import annotations

from collections.abc import Sequence

from pygments.token import Token

from oi_tui.rendering.lexing import START, Boundary, Stack, TokenType, can_resume, lex, lexer_for
from oi_tui.rendering.lines import PLAIN, Run

STEP = 8192
"""Characters read at a time: about 10 ms."""
MARGIN = 10
"""Lines before a change that are read again: what is written may close a comment that was opened there."""
_LONGEST_LINE = 4000
"""A longer line stays plain."""
_LOOKAHEAD = 32_768
"""A string or comment that is longer than this may be taken for something else."""
_NEAR = 300


class Highlighter:
    """The lines of some code and how they look. Lines count from 0; text is taken as it is, `\\n` ends a line."""

    def __init__(self, language: str | None, text: str = "") -> None:
        self.language = language
        self._lexer = lexer_for(language)
        self._lines: list[str] = text.split("\n")
        self._runs: list[list[Run] | None] = [None] * len(self._lines)
        self._stacks: list[Stack | None] = [START, *([None] * len(self._lines))]  # before each line
        self._frontier = 0  # lines before it are right
        self._kept = (0, 0)  # lines that are right as well if the state before the first of them is what it was

    @property
    def line_count(self) -> int:
        return len(self._lines)

    def line(self, line: int) -> str:
        """The text of a line."""
        return self._lines[line]

    def append(self, text: str) -> None:
        """More code at the end. Costs what it adds."""
        first, *others = text.split("\n")
        last = len(self._lines) - 1
        self._lines[last] += first
        self._lines += others
        self._runs[last] = None
        self._runs += [None] * len(others)
        self._stacks += [None] * len(others)
        self._kept = (0, 0)
        self._go_back_to(last)

    def replace(self, text: str) -> None:
        """Other code: what it has in common with the old at its beginning and end is not read again."""
        old, new = self._lines, text.split("\n")
        shorter = min(len(old), len(new))
        before = next((index for index in range(shorter) if old[index] != new[index]), shorter)
        if before == len(old) == len(new):
            return
        most = shorter - before
        after = next((index for index in range(most) if old[-1 - index] != new[-1 - index]), most)
        old_end, new_end = len(old) - after, len(new) - after
        right_until = self._kept[1] or self._frontier
        right_from = max(old_end, self._kept[0])
        self._lines = new
        self._runs[before:old_end] = [None] * (new_end - before)
        self._stacks[before + 1 : old_end + 1] = [None] * (new_end - before)
        shift = new_end - old_end
        self._kept = (right_from + shift, right_until + shift) if right_until > right_from else (0, 0)
        self._go_back_to(before)

    def finish(self) -> None:
        """The code is complete: read it all once more, in steps, in case an early guess was wrong."""
        if len(self._lines) > MARGIN:
            self._kept = (0, 0)
            self._frontier = 0

    def runs(self, line: int) -> Sequence[Run]:
        """A line as runs whose texts make up the line."""
        for _ in range(4):
            if line < self._frontier or line - self._frontier > _NEAR or not self.advance():
                break
        runs = self._runs[line]
        return runs if runs is not None else [(self._lines[line], PLAIN)]

    def spans(self, line: int) -> list[tuple[int, int, TokenType]]:
        """The same as (start, end, token)."""
        spans = []
        place = 0
        for text, meaning in self.runs(line):
            if meaning and isinstance(token := meaning[0], TokenType):
                spans.append((place, place + len(text), token))
            place += len(text)
        return spans

    def advance(self, characters: int = STEP) -> bool:
        """Read on, about this many characters. True while something is left to be read."""
        while characters > 0 and self._frontier < len(self._lines):
            start = self._frontier
            self._read(characters)
            characters -= sum(map(len, self._lines[start : self._frontier])) + 1
        return self._frontier < len(self._lines)

    # -- reading -----------------------------------------------------------------------------------------------------

    def _go_back_to(self, line: int) -> None:
        """Everything from this line on is to be read again, from a place before it where the state is known."""
        if self._lexer is None or can_resume(self._lexer):
            line = max(0, line - MARGIN)
        while self._stacks[line] is None:
            line -= 1
        self._frontier = min(self._frontier, line)

    def _read(self, characters: int) -> None:
        start = self._frontier
        stack = self._stacks[start] or START
        if self._lexer is None or len(self._lines[start]) > _LONGEST_LINE:
            self._runs[start] = [(self._lines[start], PLAIN)]
            self._stacks[start + 1] = stack
            self._frontier = start + 1
            return
        goal, end = self._extent(start, characters)
        text = "\n".join(self._lines[start:end]) + "\n"
        reader = _LineReader(self._lines, self._runs, self._stacks, start)
        boundary = Boundary()
        for place, token, value in lex(self._lexer, text, stack, boundary):
            if place == boundary.place and boundary.stack is not None and self._arrives(reader, boundary, goal):
                return
            reader.take(place, token, value, text)
        reader.take(len(text), Token.Text, "", text)
        self._frontier = end
        if self._stacks[end] is None or not can_resume(self._lexer):
            self._stacks[end] = boundary.stack if boundary.place == len(text) and boundary.stack else START

    def _extent(self, start: int, characters: int) -> tuple[int, int]:
        """The line to stop at if the state is known there, and the end of what the lexer may see."""
        lookahead = _LOOKAHEAD if self._lexer is not None and can_resume(self._lexer) else 0
        goal = end = start
        while end < len(self._lines) and len(self._lines[end]) <= _LONGEST_LINE:
            characters -= len(self._lines[end]) + 1
            end += 1
            if characters > 0:
                goal = end
            elif characters <= -lookahead:
                break
        return max(goal, start + 1), end

    def _arrives(self, reader: _LineReader, boundary: Boundary, goal: int) -> bool:
        """Note the state at the beginning of a line. True if reading can stop here."""
        line = reader.line
        first, last = self._kept
        if first and line >= first and self._stacks[line] == boundary.stack and self._runs[line] is not None:
            self._frontier, self._kept = max(line, last), (0, 0)
            return True
        self._stacks[line] = boundary.stack
        if line >= goal:
            self._frontier = line
            return True
        return False


class _LineReader:
    """Sorts tokens into lines. What the lexer leaves out is kept as plain text, what it says twice is not."""

    def __init__(self, lines: list[str], runs: list[list[Run] | None], stacks: list[Stack | None], start: int) -> None:
        self.line = start
        self._lines = lines
        self._runs = runs
        self._stacks = stacks
        self._current: list[Run] = []
        self._place = 0

    def take(self, place: int, token: TokenType, value: str, text: str) -> None:
        if place > self._place:
            self._add(text[self._place : place], Token.Text)
        elif place < self._place:
            value = value[self._place - place :]
        self._add(value, token)

    def _add(self, value: str, token: TokenType) -> None:
        self._place += len(value)
        first, *others = value.split("\n")
        if first:
            self._put(first, token)
        for part in others:
            self._runs[self.line] = self._current
            self.line += 1
            self._current = []
            if part:
                self._put(part, token)

    def _put(self, part: str, token: TokenType) -> None:
        if self._current and self._current[-1][1] == (token,):
            part = self._current.pop()[0] + part
        self._current.append((part, (token,)))
