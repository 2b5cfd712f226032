"""One-line blocks: what the engine does, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from oi_tui.rendering.lines import wrap
from oi_tui.rendering.sanitise import sanitise, show_bidi
from oi_tui.widgets.block import Block, Line
from oi_tui.widgets.block_theme import BlockTheme

INDENT = 2


def remark_lines(
    sign: str, text: str, width: int, style: Style, hint: str = "", hint_style: Style | None = None
) -> Sequence[Line]:
    """A sign, then foreign text in one style, wrapped and indented; a hint of ours at the end if it fits."""
    room = max(1, width - INDENT)
    lines: list[Line] = []
    for source in show_bidi(sanitise(text)).replace("\t", " ").splitlines() or [""]:
        cuts = wrap(source, room)
        for index, (start, end) in enumerate(cuts):
            piece = source[start:end]
            is_last = index == len(cuts) - 1
            joint = None if is_last else source[end : cuts[index + 1].start]
            prefix = sign if not lines else " "
            strip = Strip([Segment(f"{prefix} ", style), Segment(piece, style)])
            lines.append(Line(strip, piece, INDENT, joint))
    if hint and lines[-1].strip.cell_length + len(hint) + 3 <= width:
        last = lines[-1]
        lines[-1] = Line(Strip([*last.strip, Segment(f"   {hint}", hint_style)]), last.text, last.start)
    return lines


class NoticeBlock(Block):
    """A line about what the engine does. Notices of a kind in a row replace each other."""

    kind: ClassVar[str] = "notice"
    _WARNINGS: ClassVar[frozenset[str]] = frozenset({"kernel", "budget", "loop", "repeat", "incomplete", "trimmed"})

    def __init__(self, notice_kind: str, text: str) -> None:
        super().__init__()
        self.notice_kind = notice_kind
        self._text = text

    @property
    def source(self) -> str:
        return self._text

    def set_text(self, text: str) -> None:
        """Say something else in its place."""
        self._text = text
        self.changed()

    def _lay_out(self, width: int, theme: BlockTheme) -> Sequence[Line]:
        style = theme.caution if self.notice_kind in self._WARNINGS else theme.quiet
        return remark_lines("·", self._text, width, style)


class ErrorBlock(Block):
    """What went wrong, in a line, and the key that tries again."""

    kind: ClassVar[str] = "error"

    def __init__(self, code: str, text: str) -> None:
        super().__init__()
        self.code = code
        self._text = text
        self.retry_hint = "F5 tries again"
        """Our own words about the key; empty once it would not work any more."""

    @property
    def source(self) -> str:
        return self._text

    def _lay_out(self, width: int, theme: BlockTheme) -> Sequence[Line]:
        return remark_lines("✗", self._text, width, theme.failed, self.retry_hint, theme.quiet)
