"""The frame of a code block: title, separators, rails, bottom edge. Nothing else on the screen is drawn like it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from oi_tui.widgets.block import Line

RAIL_LEFT = "│ "
RAIL_RIGHT = " │"

Part = tuple[str, Style]
"""A few of our own words, or foreign ones that were sanitised, and how they are drawn."""


def inner_width(width: int) -> int:
    """Cells for text between the rails."""
    return max(1, width - len(RAIL_LEFT) - len(RAIL_RIGHT))


def edge(width: int, ends: str, left: Sequence[Part], right: Sequence[Part], rail: Style) -> Line:
    """ "╭ left ─ left ───── right ╮": `ends` are the two corners. What does not fit is left out, from the right."""
    shown_left, used_left = _fit(left, width - 5)
    shown_right, _ = _fit(right, width - used_left - 7) if width - used_left > 16 else ([], 0)
    segments = [Segment(ends[0], rail), *_between(shown_left, rail)]
    right_segments = [*_between(shown_right, rail), Segment(ends[1], rail)]
    used = sum(cell_len(segment.text) for segment in (*segments, *right_segments))
    fill = Segment("─" * max(0, width - used), rail)
    return Line(Strip([*segments, fill, *right_segments]).adjust_cell_length(width))


def _between(parts: Sequence[Part], rail: Style) -> list[Segment]:
    """ " part ─ part ", nothing without parts."""
    segments: list[Segment] = []
    for index, (text, style) in enumerate(parts):
        segments += [Segment(" ─ " if index else " ", rail), Segment(text, style)]
    return [*segments, Segment(" ", rail)] if segments else []


def framed(content: Iterable[Segment], width: int, rail: Style, *, background: Style | None = None) -> Strip:
    """Text between the rails, padded to the full width and cut to it."""
    inner = list(content)
    room = inner_width(width)
    used = sum(cell_len(segment.text) for segment in inner)
    if used > room:
        inner = list(Strip(inner).crop(0, room))
    elif used < room:
        inner.append(Segment(" " * (room - used)))
    if background is not None:
        inner = [Segment(text, background + style if style else background) for text, style, _ in inner]
    return Strip([Segment(RAIL_LEFT, rail), *inner, Segment(RAIL_RIGHT, rail)], width)


def framed_words(words: Sequence[Part], width: int, rail: Style) -> Line:
    """A line of our own words between the rails."""
    shown, _ = _fit(words, inner_width(width), gap=0)
    return Line(framed([Segment(text, style) for text, style in shown], width, rail))


def blank_framed(width: int, rail: Style) -> Line:
    """An empty line between the rails."""
    return Line(framed((), width, rail))


def grouped(number: int) -> str:
    """A number as people read it: 1 234 567."""
    return f"{number:,}".replace(",", " ")


def _fit(parts: Sequence[Part], room: int, gap: int = 3) -> tuple[list[Part], int]:
    """As many parts as there is room for, the last one cut, and the cells they take."""
    shown: list[Part] = []
    used = 0
    for text, style in parts:
        need = cell_len(text) + (gap if shown else 0)
        if used + need <= room:
            shown.append((text, style))
            used += need
            continue
        left = room - used - (gap if shown else 0)
        if left >= 4 or not shown:
            shown.append((set_cell_size(text, max(0, left - 1)) + "…", style))
            used = room
        break
    return shown, used
