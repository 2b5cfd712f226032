"""Foreign text as it is: the words of the user, notes, whatever is not Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from oi_tui.rendering.lines import PLAIN, Meaning, RenderedLine, expand_tabs
from oi_tui.rendering.markdown_blocks import NO_PREFIX, TAB_SIZE, Block, BlockLines, TextLeaf
from oi_tui.rendering.sanitise import sanitise, show_bidi
from oi_tui.rendering.theme import RenderTheme

_LINES_OF_BLOCK = 200


class PlainText:
    """A text, wrapped at blanks, drawn where it is looked at. `meaning` is how all of it is to look."""

    def __init__(self, text: str, meaning: Meaning = PLAIN) -> None:
        self.source = sanitise(text).replace("\r\n", "\n").replace("\r", "\n")
        lines = self.source.split("\n")
        self._blocks = [
            _block(lines[start : start + _LINES_OF_BLOCK], meaning) for start in range(0, len(lines), _LINES_OF_BLOCK)
        ]

    def line_count(self, width: int) -> int:
        """How many lines there are at this width. Cheap while the width stays."""
        return sum(block.count(width) for block in self._blocks)

    def render(self, width: int, theme: RenderTheme) -> Sequence[RenderedLine]:
        """The lines at this width, each drawn when it is looked at."""
        return BlockLines(self._blocks, list(accumulate(block.count(width) for block in self._blocks)), width, theme)


def _block(lines: Sequence[str], meaning: Meaning) -> Block:
    shown = [expand_tabs([(show_bidi(line), meaning)], TAB_SIZE) for line in lines]
    return Block([TextLeaf(NO_PREFIX, NO_PREFIX, shown, lines)])
