"""The user's changes to a block of code, drawn as a diff between the rails."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from oi_tui.engine.hidden_text import reveal
from oi_tui.widgets.block import Line
from oi_tui.widgets.block_theme import BlockTheme
from oi_tui.widgets.code_lines import TAB_SIZE, hard_wrap
from oi_tui.widgets.frame import framed, inner_width


def diff_lines(original: str, edited: str, width: int, theme: BlockTheme, rail: Style) -> Sequence[Line]:
    """Every line of both versions, the changed ones marked − and +."""
    styles = {"+": theme.added, "-": theme.removed, " ": theme.quiet}
    room = inner_width(width) - 2
    lines: list[Line] = []
    for entry in difflib.ndiff(original.splitlines(), edited.splitlines()):
        sign, text = entry[0], reveal(entry[2:].expandtabs(TAB_SIZE)).text
        if sign == "?":
            continue
        style = styles[sign]
        cuts = hard_wrap(text, room)
        for index, (start, end) in enumerate(cuts):
            mark = ("−" if sign == "-" else sign) if index == 0 else " "
            strip = Strip([Segment(f"{mark} ", style), Segment(text[start:end], style)])
            joint = None if index == len(cuts) - 1 else ""
            lines.append(Line(framed(strip, width, rail), text[start:end], 4, joint))
    return lines


def changed_middle(original: str, edited: str) -> tuple[int, list[str], list[str]]:
    """What differs, after the lines both begin with and before those both end with: how many lines it is preceded by,
    and the differing lines of either. Makes the diff of a small edit cheap however long the code is."""
    old, new = original.split("\n"), edited.split("\n")
    shorter = min(len(old), len(new))
    before = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    rest = shorter - before
    after = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    return before, old[before : len(old) - after], new[before : len(new) - after]


def added_lines(original: str, edited: str) -> frozenset[int]:
    """The numbers of the lines that the user wrote, from 1."""
    if original == edited:
        return frozenset()
    before, old, new = changed_middle(original, edited)
    matcher = difflib.SequenceMatcher(None, old, new)
    return frozenset(
        before + number
        for tag, _, _, first, last in matcher.get_opcodes()
        if tag in ("insert", "replace")
        for number in range(first + 1, last + 1)
    )
