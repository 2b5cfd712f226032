"""Results that a terminal does not draw by itself: HTML and JavaScript, opened in the browser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.strip import Strip

from oi_tui.rendering.sanitise import sanitise_line
from oi_tui.widgets.block import Block, Line
from oi_tui.widgets.block_theme import BlockTheme


class RichBlock(Block):
    """A line that names the result and how to open it."""

    kind: ClassVar[str] = "result"

    def __init__(self, content: str, format: str, origin: str | None) -> None:
        super().__init__()
        self.content = content
        self.format = format
        self.origin = origin

    @property
    def source(self) -> str:
        return self.content

    @property
    def label(self) -> str:
        """ "html, 12 KB, from block 9f3c41"."""
        size = f"{max(1, len(self.content) // 1024)} KB"
        name = sanitise_line(self.format or "result", 20)
        return f"{name}, {size}" + (f", from block {self.origin}" if self.origin else "")

    def _lay_out(self, width: int, theme: BlockTheme) -> Sequence[Line]:
        strip = Strip(
            [Segment("▸ ", theme.accent), Segment(self.label, theme.text), Segment("   o opens it", theme.quiet)]
        )
        return [Line(strip.crop(0, width), self.label, 2)]

    def _estimate(self, width: int) -> int:
        return 1
