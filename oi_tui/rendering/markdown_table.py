"""Tables: columns as wide as they need to be, narrower where there is no room, numbers at the right."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from oi_tui.rendering.lines import Run, Wrapped, slice_runs, wrap

GAP = 2
_NARROWEST = 3
_NUMBER = re.compile(
    r"[-+−±]?[€$£¥]?\s?\d[\d.,'  _]*(?:[eE][-+]?\d+)?\s?(?:%|‰|[€$£¥]|[a-zA-Zµ°]{1,3})?|[-–—]|n/?a|", re.I
)


@dataclass(frozen=True)
class Table:
    """Cells as runs. The first row is the head; every row has as many cells as the head."""

    rows: tuple[tuple[tuple[Run, ...], ...], ...]
    alignments: tuple[str, ...]
    """"left", "right", "center" or "" for what suits the contents."""
    sources: tuple[str, ...]
    """How each row was written; the second one is the line under the head."""


@dataclass(frozen=True)
class TableLine:
    """A drawn line of a table. `row` counts from 0, the line under the head is None."""

    runs: list[Run]
    row: int | None
    is_last_of_row: bool


def lay_out(table: Table, width: int) -> list[TableLine]:
    """The lines of the table, at most `width` cells wide if that can be."""
    columns = len(table.alignments)
    texts = [["".join(text for text, _ in cell) for cell in row] for row in table.rows]
    room = width - GAP * (columns - 1)
    if room < columns * _NARROWEST:
        return _as_records(table, width)
    widths = _column_widths(texts, room)
    right = [_is_right(table.alignments[column], [row[column] for row in texts[1:]]) for column in range(columns)]
    drawn = [[wrap(text, widths[column]) for column, text in enumerate(row)] for row in texts]
    spaced = any(len(cell) > 1 for row in drawn[1:] for cell in row)
    lines: list[TableLine] = []
    for number, row in enumerate(drawn):
        height = max(len(cell) for cell in row)
        for index in range(height):
            runs: list[Run] = []
            for column, cuts in enumerate(row):
                cell = table.rows[number][column]
                cut = cuts[index] if index < len(cuts) else Wrapped(0, 0)
                runs += _pad(cell, texts[number][column], cut, widths[column], table.alignments[column], right[column])
                runs.append((" " * GAP, ()))
            while runs and not runs[-1][0].strip(" "):
                runs.pop()
            lines.append(TableLine(runs, number, index == height - 1))
        if number == 0:
            lines.append(TableLine([("─" * (sum(widths) + GAP * (columns - 1)), ("rail",))], None, True))
        elif spaced and number < len(drawn) - 1:
            lines[-1] = TableLine(lines[-1].runs, number, False)
            lines.append(TableLine([], number, True))
    return lines


def _column_widths(texts: Sequence[Sequence[str]], room: int) -> list[int]:
    """As wide as the contents; if that is too much the widest columns give way first, down to their longest word."""
    columns = list(zip(*texts, strict=True))
    widths = [max(1, *(cell_len(text) for text in column)) for column in columns]
    words = [max((cell_len(word) for text in column for word in text.split()), default=1) for column in columns]
    for least in (words, [_NARROWEST] * len(widths)):
        least = [min(low, full) for low, full in zip(least, widths, strict=True)]
        widths = _shrink(widths, least, room)
    return widths


def _shrink(widths: list[int], least: list[int], room: int) -> list[int]:
    widths = list(widths)
    while (excess := sum(widths) - room) > 0:
        shrinkable = [index for index, width in enumerate(widths) if width > least[index]]
        if not shrinkable:
            break
        widest = max(widths[index] for index in shrinkable)
        at_top = [index for index in shrinkable if widths[index] == widest]
        below = max((widths[index] for index in shrinkable if widths[index] < widest), default=0)
        for position, index in enumerate(at_top):
            share = -(-excess // (len(at_top) - position))
            given = min(share, widest - max(below, least[index]), excess)
            widths[index] -= given
            excess -= given
    return widths


def _is_right(alignment: str, body: Sequence[str]) -> bool:
    if alignment:
        return alignment == "right"
    return any(text.strip() for text in body) and all(_NUMBER.fullmatch(text.strip()) for text in body)


def _pad(cell: Sequence[Run], text: str, cut: Wrapped, width: int, alignment: str, is_right: bool) -> list[Run]:
    [runs] = slice_runs(cell, [cut])
    blanks = max(0, width - cell_len(text[cut.start : cut.end]))
    before = blanks if is_right else blanks // 2 if alignment == "center" else 0
    return [(" " * before, ()), *runs, (" " * (blanks - before), ())]


def _as_records(table: Table, width: int) -> list[TableLine]:
    """For a terminal too narrow for the columns: each row as a list of "head: cell"."""
    head, *body = table.rows
    lines: list[TableLine] = []
    for number, row in enumerate(body or [head], 1 if body else 0):
        drawn: list[list[Run]] = []
        for name, cell in zip(head, row, strict=True):
            runs = [*name, (": ", ("table_head",)), *cell] if body else list(cell)
            text = "".join(text for text, _ in runs)
            drawn += slice_runs(runs, wrap(text, width))
        if number < len(body):
            drawn.append([])
        lines += [TableLine(runs, number, index == len(drawn) - 1) for index, runs in enumerate(drawn)]
    return lines
