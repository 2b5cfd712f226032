"""What a program printed, as the lines a terminal would show.

`TerminalText` applies what progress bars are made of: carriage return, backspace, tabs, the short cursor movements and
erasing. It keeps the newest lines only, in bounded memory, whatever is printed: many lines, one endless line, a million
updates of one bar. Its cost is that of the new text. `oi_tui.rendering.terminal_view` lays the lines out.
"""

from __future__ import annotations

import re
from weakref import WeakSet

from oi_tui.rendering import sgr
from oi_tui.rendering.sanitise import Sanitiser, show_bidi
from oi_tui.rendering.sgr import DEFAULT, StyledText
from oi_tui.rendering.terminal_rows import (
    CellRow,
    FixedRow,
    RawRow,
    Row,
    expand,
    expand_pieces,
    length_of,
    without_overwritten,
)

MAX_LINES = 10_000
MAX_CHARS = 8 << 20
"""All kept lines together; at four bytes for a character 32 MiB."""
LONGEST_LINE = 1 << 16
"""A longer line is kept as several that are joined again when copied."""
REACH = 64
"""How far up a program may move, in lines."""
_LONGEST_EDITED = 1 << 13

_EDIT = re.compile(r"[\r\x08]|\x1b\[[0-9]*[A-GJK]")
# The spinners of a flood. Sequences are stepped over: their last letter is not a character on the line.
_TYPED_OVER = re.compile(r"(\x1b\[[0-9;:]*[A-Za-z])|[^\n\r\x08\x1b\t]\x08(?=[^\n\r\x08\x1b\t])")
_TYPED_OVER_PLAIN = re.compile(r"[^\n\r\x08\t]\x08(?=[^\n\r\x08\t])")
_LINE_END = re.compile(r"\r+\n")
_TOKEN = re.compile(r"[\n\r\x08]|\x1b\[([0-9;:]*)([A-GJKm])|[^\n\r\x08\x1b]+")


class Changes:
    """The first line that is new or different since it was last asked for."""

    def __init__(self) -> None:
        self._first: int | None = None

    def note(self, number: int) -> None:
        self._first = number if self._first is None else min(self._first, number)

    def take(self) -> int | None:
        """Everything from this line on may have changed; None if nothing has. Lines before it may be gone."""
        first, self._first = self._first, None
        return first


class TerminalText:
    """The newest lines of a program's output. Lines are numbered from 0 over the whole output, for ever."""

    def __init__(self, *, max_lines: int = MAX_LINES, max_chars: int = MAX_CHARS) -> None:
        self._max_lines = max_lines
        self._max_chars = max_chars
        self._sanitiser = Sanitiser(keep_motion=True)
        self._rows: list[Row] = [""]  # finished ones and, last, the one that grows at its end
        self._base = 0  # the number of the first of them
        self._chars = 0
        self._joined: set[int] = set()  # lines that go on in the next one
        self._grown: list[str] = []  # what has been added to the last row and not joined yet
        self._grown_length = 0
        self._state = self._row_state = DEFAULT  # now, and where the growing row began
        self._row = 0  # where the cursor is
        self._column: int | None = None  # None: at the end of the last row, which is not edited
        self._has_returned = False
        self._held_return = False
        self._watched: WeakSet[Changes] = WeakSet()

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def first(self) -> int:
        """The number of the oldest line that is kept."""
        return max(self._base, self.end - self._max_lines)

    @property
    def end(self) -> int:
        """The number after the newest line, which is how many there have been."""
        last = self._last
        return last if not self._grown_length and not length_of(self._rows[-1]) else last + 1

    @property
    def is_empty(self) -> bool:
        return self.end == 0

    def line(self, number: int) -> StyledText:
        """A kept line as pieces of one style each, tabs expanded. Raises `IndexError` for others."""
        return [(show_bidi(text), state) for text, state in self._pieces(number)]

    def plain(self, number: int) -> str:
        """A kept line as text. Raises `IndexError` for others."""
        row = self._row_at(number)
        if isinstance(row, str):
            text = row
        elif isinstance(row, RawRow):
            text = sgr.plain(row.text)
        else:
            text = "".join(row.characters if isinstance(row, CellRow) else [piece for piece, _ in row.pieces])
        return show_bidi(expand(text, 0) if "\t" in text else text)

    def is_joined(self, number: int) -> bool:
        """True if the line was so long that it goes on in the next one."""
        return number in self._joined

    def text(self) -> str:
        """All that is kept, as text."""
        return "".join(
            self.plain(number) + ("" if number in self._joined else "\n") for number in range(self.first, self.end)
        )

    def changes(self) -> Changes:
        """Tells from now on which lines are new or different."""
        changes = Changes()
        self._watched.add(changes)
        return changes

    # -- writing -----------------------------------------------------------------------------------------------------

    def feed(self, text: str) -> None:
        """Print foreign text, cut anywhere."""
        self._print(self._sanitiser.feed(text))

    def close(self) -> None:
        """Print what was held back."""
        self._print(self._sanitiser.close())
        self._held_return = False

    def _print(self, text: str) -> None:
        if self._held_return:
            text, self._held_return = "\r" + text, False
        if text.endswith("\r"):  # perhaps the first half of a line end
            text, self._held_return = text[:-1], True
        if not text:
            return
        if "\r\n" in text:
            text = _LINE_END.sub("\n", text)
        self._note_change(self._row)
        if text.count("\n") > self._max_lines:
            text = self._skip(text)
        if self._column is None and not self._has_returned and _EDIT.search(text) is None:
            self._append_lines(text)
        else:
            self._edit(text)
        self._trim()

    def _skip(self, text: str) -> str:
        """The end of a text that has more lines than are kept. The others are counted, not looked at."""
        place = len(text)
        for _ in range(self._max_lines + 1):
            place = text.rindex("\n", 0, place)
        skipped = text.count("\n", 0, place + 1)
        self._state = self._row_state = sgr.state_after(text[: place + 1], self._state)
        self._base = self._last + skipped
        self._rows = [""]
        self._joined.clear()
        self._grown.clear()
        self._chars = self._grown_length = 0
        self._row, self._column, self._has_returned = self._base, None, False
        return text[place + 1 :]

    def _append_lines(self, text: str) -> None:
        """Text without movements, at the end of everything."""
        first, *others = text.split("\n")
        self._grow(first)
        if len(others) > REACH and len(max(others, key=len)) <= LONGEST_LINE:
            self._end_row()
            self._add_rows(others[:-1])
            self._grow(others[-1])
            return
        for line in others:
            self._end_row()
            if line:
                self._grow(line)

    def _add_rows(self, lines: list[str]) -> None:
        """Many whole lines at once; the last row is empty before and after."""
        self._rows.pop()
        for index in range(max(0, len(self._rows) - REACH), len(self._rows)):
            if isinstance(row := self._rows[index], CellRow):
                self._rows[index] = FixedRow(row.pieces())
        state = self._state
        for line in lines:
            if "\x1b" in line:
                self._rows.append(RawRow(line, state))
                state = sgr.state_after(line, state)
            else:
                self._rows.append(line if state == DEFAULT else RawRow(line, state))
        self._rows.append("")
        self._state = self._row_state = state
        self._chars += sum(map(len, lines))
        self._row = self._last

    def _grow(self, text: str) -> None:
        """Text without line ends, at the end of the last row. What is too long for a row goes on in the next."""
        while self._grown_length + len(text) > LONGEST_LINE:
            room = LONGEST_LINE - self._grown_length
            colour = text.rfind("\x1b", 0, room)
            if colour >= 0 and (found := sgr.SEQUENCE.match(text, colour)) and found.end() > room:
                room = colour  # a sequence is not cut
            self._put(text[:room])
            self._joined.add(self._row)
            self._end_row()
            text = text[room:]
        self._put(text)

    def _put(self, text: str) -> None:
        if text:
            self._grown.append(text)
            self._grown_length += len(text)
            self._chars += len(text)
            if "\x1b" in text:
                self._state = sgr.state_after(text, self._state)

    def _settle_row(self) -> None:
        """Make what has grown a row."""
        if self._grown:
            text = "".join(self._grown)
            self._grown = [text]
            is_plain = "\x1b" not in text and self._row_state == DEFAULT
            self._rows[-1] = text if is_plain else RawRow(text, self._row_state)

    def _end_row(self) -> None:
        """Begin a new row below the last one; the cursor goes there."""
        self._settle_row()
        self._grown.clear()
        self._grown_length = 0
        self._rows.append("")
        self._row = self._last
        self._row_state = self._state
        self._column, self._has_returned = None, False
        out_of_reach = len(self._rows) - 1 - REACH
        if out_of_reach >= 0 and isinstance(row := self._rows[out_of_reach], CellRow):
            self._rows[out_of_reach] = FixedRow(row.pieces())

    def _edit(self, text: str) -> None:
        """Text with movements, piece by piece."""
        if "\x08" in text:
            text = _TYPED_OVER.sub(r"\1", text) if "\x1b" in text else _TYPED_OVER_PLAIN.sub("", text)
        lines = text.split("\n")
        for index, line in enumerate(lines):
            if self._column is None and not self._has_returned and _EDIT.search(line) is None:
                self._grow(line)
            else:
                for token in _TOKEN.finditer(without_overwritten(line)):
                    self._apply(token)
            if index < len(lines) - 1:
                self._line_feed()

    def _apply(self, token: re.Match[str]) -> None:
        command = token[2]
        if command == "m":
            if self._column is None and not self._has_returned:
                self._put(token[0])
            else:
                self._state = self._state.after(token[1])
        elif command is not None:
            self._move(command, int(token[1] or 0))
        elif token[0] == "\r":
            if self._column is None:
                self._has_returned = self._grown_length > 0
            else:
                self._column = 0
        elif token[0] == "\x08":
            if self._begin_edit():
                self._column = max(0, (self._column or 0) - 1)
        else:
            self._write(token[0])

    def _write(self, text: str) -> None:
        if self._column is None and not self._has_returned:
            self._grow(text)
        elif not self._begin_edit() or (self._column or 0) + len(text) > _LONGEST_EDITED:
            self._end_row()  # too long to be edited: what follows goes below
            self._grow(text)
        else:
            cells = self._cells()
            before = len(cells.characters)
            self._column = cells.write(self._column or 0, text, self._state)
            self._chars += len(cells.characters) - before

    def _begin_edit(self) -> bool:
        """Make the row of the cursor one that can be edited. False if it is too long."""
        index = self._row - self._base
        row = self._rows[index]
        if self._column is None:
            if self._grown_length > _LONGEST_EDITED:
                return False
            self._settle_row()
            row = self._rows[index]
            self._grown.clear()
            self._grown_length = 0
        if not isinstance(row, CellRow):
            if length_of(row) > _LONGEST_EDITED:
                return False
            cells = CellRow([], [])
            for text, state in self._pieces(self._row):
                cells.write(len(cells.characters), text, state)
            self._rows[index] = cells
            self._chars += len(cells.characters) - length_of(row)
            row = cells
        if self._column is None:
            self._column = 0 if self._has_returned else len(row.characters)
            self._has_returned = False
        return True

    def _cells(self) -> CellRow:
        row = self._rows[self._row - self._base]
        assert isinstance(row, CellRow)
        return row

    def _line_feed(self) -> None:
        if self._row < self._last:
            self._row += 1
            self._column = 0
            self._note_change(self._row)
        else:
            self._end_row()

    def _move(self, command: str, number: int) -> None:
        distance = max(1, number)
        if command in "ABEF":
            self._move_row(distance if command in "BE" else -distance, to_start=command in "EF")
        elif not self._begin_edit():
            return
        elif command == "C":
            self._column = min((self._column or 0) + distance, _LONGEST_EDITED)
        elif command == "D":
            self._column = max(0, (self._column or 0) - distance)
        elif command == "G":
            self._column = min(distance - 1, _LONGEST_EDITED)
        elif command == "K":
            self._erase(number)
        elif command == "J" and number == 0:
            self._erase(0)
            self._drop_rows_below()

    def _move_row(self, distance: int, *, to_start: bool) -> None:
        if self._column is None and not self._begin_edit():
            return
        self._row = max(self._base, self._last - REACH + 1, min(self._last, self._row + distance))
        self._note_change(self._row)
        if to_start:
            self._column = 0

    def _erase(self, number: int) -> None:
        cells, column = self._cells(), self._column or 0
        before = len(cells.characters)
        if number == 0:
            del cells.characters[column:], cells.states[column:]
        elif number == 2:
            del cells.characters[:], cells.states[:]
        elif number == 1:
            cells.write(0, " " * min(column + 1, before), DEFAULT)
        self._chars += len(cells.characters) - before

    def _drop_rows_below(self) -> None:
        index = self._row - self._base
        self._chars -= sum(map(length_of, self._rows[index + 1 :]))
        del self._rows[index + 1 :]
        self._joined = {number for number in self._joined if number < self._row}

    # -- keeping bounds ----------------------------------------------------------------------------------------------

    def _trim(self) -> None:
        """Forget the oldest lines. Not at every line: that would move the others each time."""
        spare = max(0, len(self._rows) - REACH)
        excess = len(self._rows) - 1 - self._max_lines
        dropped = min(excess, spare) if excess > self._max_lines // 8 else 0
        chars = self._chars - sum(map(length_of, self._rows[:dropped]))
        while chars > self._max_chars and dropped < spare:
            chars -= length_of(self._rows[dropped])
            dropped += 1
        if dropped:
            del self._rows[:dropped]
            self._base += dropped
            self._chars = chars
            self._joined = {number for number in self._joined if number >= self._base}

    @property
    def _last(self) -> int:
        return self._base + len(self._rows) - 1

    def _note_change(self, number: int) -> None:
        for changes in self._watched:
            changes.note(number)

    def _row_at(self, number: int) -> Row:
        if not self._base <= number <= self._last:
            raise IndexError(f"line {number} is not kept")
        if number == self._last:
            self._settle_row()
        return self._rows[number - self._base]

    def _pieces(self, number: int) -> StyledText:
        row = self._row_at(number)
        if isinstance(row, str):
            return expand_pieces([(row, DEFAULT)]) if row else []
        if isinstance(row, RawRow):
            return expand_pieces(sgr.split(row.text, row.state)[0])
        return row.pieces() if isinstance(row, CellRow) else row.pieces
