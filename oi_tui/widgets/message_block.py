"""What user and model said: plain words of the user, the model's Markdown, its reasoning folded away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.strip import Strip

from oi_tui.rendering.markdown import MarkdownDocument
from oi_tui.rendering.plain_text import PlainText
from oi_tui.widgets.block import Block, Line, Mapped, Stack
from oi_tui.widgets.block_theme import BlockTheme

_KEPT_LINES = 500
RAIL = "▏"
"""Stands at the left of every line of foreign words; nothing of ours has it."""


class MessageBlock(Block):
    """Words that grow at their end."""

    def __init__(self, block_id: str | None = None) -> None:
        super().__init__(block_id)
        self.is_finished = False
        self._pieces: list[str] = []

    @property
    def source(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def append(self, text: str) -> None:
        """More words."""
        self._pieces.append(text)
        self.changed()

    def finish(self) -> None:
        """No more words come."""
        self.is_finished = True
        self.changed()


class UserBlock(MessageBlock):
    """What the user said, in the words of the user."""

    kind: ClassVar[str] = "message"
    stands_apart: ClassVar[bool] = True
    LABEL: ClassVar[str] = "You  "

    def _lay_out(self, width: int, theme: BlockTheme) -> Sequence[Line]:
        first = Segment(self.LABEL, theme.accent)
        rest = Segment(f"{RAIL}{' ' * (len(self.LABEL) - 1)}", theme.rail)
        return _railed(PlainText(self.source).render(max(1, width - len(self.LABEL)), theme.render), first, rest)


class AnswerBlock(MessageBlock):
    """What the model said, in Markdown."""

    kind: ClassVar[str] = "answer"

    def __init__(self, block_id: str | None = None) -> None:
        super().__init__(block_id)
        self._document: MarkdownDocument | None = None
        self._railed: dict[int, tuple[Line, BlockTheme, Line]] = {}  # id(line of the document) → behind the rail

    def append(self, text: str) -> None:
        super().append(text)
        if self._document is not None:
            self._document.append(text)

    def finish(self) -> None:
        super().finish()
        if self._document is not None:
            self._document.finish()

    @property
    def is_behind(self) -> bool:
        return self._document is not None and self._document.is_behind

    def advance(self) -> None:
        if self._document is not None:
            self._document.advance()
            self.changed()

    def release(self) -> None:
        self.changed()
        if self.is_finished:
            self._document = None
            self._railed.clear()

    def _lay_out(self, width: int, theme: BlockTheme) -> Sequence[Line]:
        if self._document is None:
            self._document = MarkdownDocument(self.source)
            if self.is_finished:
                self._document.finish()
        lines = self._document.render(max(1, width - 2), theme.render)
        first, rest = Segment("● ", theme.accent), Segment(f"{RAIL} ", theme.rail)

        def make(index: int) -> Line:
            line = lines[index]
            known = self._railed.get(id(line))
            if known is None or known[0] is not line or known[1] is not theme:
                if len(self._railed) > _KEPT_LINES:
                    self._railed.clear()
                known = self._railed[id(line)] = (line, theme, _behind(rest if index else first, line))
            return known[2]

        return Mapped(len(lines), make) if len(lines) else [_behind(first, Line(Strip([]), ""))]


class ReasoningBlock(MessageBlock):
    """What the model thought: one line, unless it is unfolded."""

    kind: ClassVar[str] = "reasoning"
    can_fold: ClassVar[bool] = True

    def __init__(self, block_id: str | None = None) -> None:
        super().__init__(block_id)
        self.is_folded = True

    def _lay_out(self, width: int, theme: BlockTheme) -> Sequence[Line]:
        verb = "thought" if self.is_finished else "thinking"
        words = len(self.source.split())
        summary = f"{verb} · {words} word{'s' if words != 1 else ''}"
        hint = "   space shows them" if self.is_folded and self.is_finished else ""
        title = Strip([Segment("∴ ", theme.quiet), Segment(summary, theme.quiet), Segment(hint, theme.faint)])
        lines = [Line(title.crop(0, width))]
        if not self.is_folded:
            text = PlainText(self.source, ("quiet",)).render(max(1, width - 2), theme.render)
            rail = Segment(f"{RAIL} ", theme.rail)
            return Stack([lines, _railed(text, rail, rail)])
        return lines

    def _estimate(self, width: int) -> int:
        return 1 if self.is_folded else 1 + super()._estimate(width)


def _railed(lines: Sequence[Line], first: Segment, rest: Segment) -> Sequence[Line]:
    """The lines behind a rail, made when they are looked at."""
    return Mapped(len(lines), lambda index: _behind(rest if index else first, lines[index]))


def _behind(rail: Segment, line: Line) -> Line:
    strip = Strip([rail, *line.strip], len(rail.text) + line.strip.cell_length)
    return Line(strip, line.text, line.start + len(rail.text), line.joint, line.source)
