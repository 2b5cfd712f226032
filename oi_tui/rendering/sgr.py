"""SGR: the colours and styles that programs ask for with `ESC [ … m`.

`Sgr` is the state that a terminal would be in, as a small value; `Sgr.style` draws it in the colours of a theme. Blink
and conceal are left out: nothing blinks here, and hidden text is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from oi_tui.rendering.theme import RenderTheme

Ink: TypeAlias = int | tuple[int, int, int]
"""A colour: 0–15 of the palette, 16–255 of the fixed table, or red, green and blue."""

BOLD, DIM, ITALIC, UNDERLINE, REVERSE, STRIKE = (1 << bit for bit in range(6))

_ON = {1: BOLD, 2: DIM, 3: ITALIC, 4: UNDERLINE, 7: REVERSE, 9: STRIKE, 21: UNDERLINE}
_OFF = {22: BOLD | DIM, 23: ITALIC, 24: UNDERLINE, 27: REVERSE, 29: STRIKE}
SEQUENCE = re.compile(r"\x1b\[([0-9;:]*)m")


class Sgr(NamedTuple):
    """Foreground, background and a set of attributes."""

    foreground: Ink | None = None
    background: Ink | None = None
    attributes: int = 0

    def after(self, parameters: str) -> Sgr:
        """The state after a sequence with these parameters ("1;31", "38:2::1:2:3", "")."""
        return _after(self, parameters)

    def style(self, theme: RenderTheme) -> Style | None:
        """How text in this state is drawn; None without any style."""
        return _style(self, theme) if self != DEFAULT else None


DEFAULT = Sgr()
StyledText: TypeAlias = list[tuple[str, Sgr]]


def split(text: str, state: Sgr = DEFAULT) -> tuple[StyledText, Sgr]:
    """Sanitised text with its SGR kept, as pieces of one style each, and the state at its end."""
    pieces: StyledText = []
    place = 0
    for found in SEQUENCE.finditer(text):
        if found.start() > place:
            pieces.append((text[place : found.start()], state))
        state = _after(state, found[1])
        place = found.end()
    if place < len(text):
        pieces.append((text[place:], state))
    return pieces, state


def state_after(text: str, state: Sgr) -> Sgr:
    """The state at the end of sanitised text. Looks only at what comes after the last reset."""
    reset = max(text.rfind("\x1b[0m"), text.rfind("\x1b[m"))
    if reset >= 0:
        state = DEFAULT
    elif "\x1b" not in text:
        return state
    for parameters in SEQUENCE.findall(text, max(reset, 0)):
        state = _after(state, parameters)
    return state


def plain(text: str) -> str:
    """Sanitised text without its SGR."""
    return SEQUENCE.sub("", text) if "\x1b" in text else text


def to_segments(pieces: Iterable[tuple[str, Sgr]], theme: RenderTheme) -> list[Segment]:
    """Pieces in the colours of the theme."""
    return [Segment(text, state.style(theme)) for text, state in pieces]


@lru_cache(maxsize=4096)
def _after(state: Sgr, parameters: str) -> Sgr:
    foreground, background, attributes = state
    fields = parameters.split(";")
    index = 0
    while index < len(fields):
        code, *details = fields[index].split(":")
        index += 1
        number = int(code) if code and len(code) < 6 else 0 if not code else -1
        if number == 0:
            foreground = background = None
            attributes = 0
        elif number == 4 and details[:1] == ["0"]:
            attributes &= ~UNDERLINE
        elif number in _ON:
            attributes |= _ON[number]
        elif number in _OFF:
            attributes &= ~_OFF[number]
        elif number in (38, 48, 58):
            if details:
                ink = _colour(details[:1] + details[-3:] if details[:1] == ["2"] else details)
            else:
                used = {"5": 2, "2": 4}.get(fields[index] if index < len(fields) else "", 1)
                ink = _colour(fields[index : index + used])
                index += used
            if ink is not None and number == 38:
                foreground = ink
            elif ink is not None and number == 48:
                background = ink
        elif 30 <= number <= 37 or 90 <= number <= 97:
            foreground = number - 30 if number < 90 else number - 82
        elif 40 <= number <= 47 or 100 <= number <= 107:
            background = number - 40 if number < 100 else number - 92
        elif number == 39:
            foreground = None
        elif number == 49:
            background = None
    return Sgr(foreground, background, attributes)


def _colour(fields: list[str]) -> Ink | None:
    """`5;n` or `2;r;g;b`; None for anything else."""
    values = [int(value) if value.isdigit() and len(value) < 6 else 0 for value in fields]
    if len(values) >= 2 and values[0] == 5 and values[1] < 256:
        return values[1]
    if len(values) == 4 and values[0] == 2 and max(values[1:]) < 256:
        return values[1], values[2], values[3]
    return None


@lru_cache(maxsize=4096)
def _style(state: Sgr, theme: RenderTheme) -> Style:
    attributes = state.attributes
    return Style(
        color=_to_rich(state.foreground, theme),
        bgcolor=_to_rich(state.background, theme),
        bold=True if attributes & BOLD else None,
        dim=True if attributes & DIM else None,
        italic=True if attributes & ITALIC else None,
        underline=True if attributes & UNDERLINE else None,
        reverse=True if attributes & REVERSE else None,
        strike=True if attributes & STRIKE else None,
    )


def _to_rich(ink: Ink | None, theme: RenderTheme) -> Color | None:
    if ink is None or not theme.has_colour:
        return None
    if isinstance(ink, tuple):
        return Color.from_rgb(*ink)
    return theme.palette[ink] if ink < 16 else Color.from_ansi(ink)
