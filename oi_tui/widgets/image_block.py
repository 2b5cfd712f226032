"""A picture: drawn in half blocks where it can be decoded safely, else named in a line."""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from oi_tui.widgets.block import Block, Line
from oi_tui.widgets.block_theme import BlockTheme

MOST_PIXELS = 16_000_000
"""Larger pictures are named, not decoded."""
MOST_BYTES = 20 << 20
MOST_ROWS = 16


class ImageBlock(Block):
    """One picture. `origin` is the short digest of the code that made it."""

    kind: ClassVar[str] = "image"
    can_fold: ClassVar[bool] = True

    def __init__(self, data: str, format: str, origin: str | None) -> None:
        super().__init__()
        self._base64 = data
        self.format = format
        self.origin = origin

    @property
    def source(self) -> str:
        return self.label

    @cached_property
    def data(self) -> bytes:
        """The encoded picture; empty if it is no base64."""
        try:
            return base64.b64decode(self._base64, validate=False)
        except (binascii.Error, ValueError):
            return b""

    @cached_property
    def size(self) -> tuple[int, int] | None:
        """Width and height in pixels, from the header alone; None if it is not a picture that can be read."""
        from PIL import Image, UnidentifiedImageError

        if not self.data or len(self.data) > MOST_BYTES:
            return None
        try:
            with Image.open(io.BytesIO(self.data)) as image:
                return image.size
        except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
            return None

    @property
    def label(self) -> str:
        """ "image 640×480, from block 9f3c41"."""
        size = f"{self.size[0]}×{self.size[1]}" if self.size else "that cannot be read"
        return f"image {size}" + (f", from block {self.origin}" if self.origin else "")

    def _lay_out(self, width: int, theme: BlockTheme) -> Sequence[Line]:
        strip = Strip([Segment("▸ ", theme.accent), Segment(self.label, theme.quiet)])
        lines = [Line(strip.crop(0, width), self.label, 2)]
        if not self.is_folded:
            lines += [Line(strip) for strip in self._half_blocks(width)]
        return lines

    def _estimate(self, width: int) -> int:
        return 1 if self.is_folded else 1 + MOST_ROWS // 2

    def _half_blocks(self, width: int) -> list[Strip]:
        """Two pixels in each cell: the upper one is the ink, the lower one the background."""
        from PIL import Image, UnidentifiedImageError

        if self.size is None or self.size[0] * self.size[1] > MOST_PIXELS:
            return []
        columns, rows = _fit(*self.size, width, MOST_ROWS)
        try:
            with Image.open(io.BytesIO(self.data)) as image:
                image.draft("RGB", (columns, rows * 2))
                pixels = image.convert("RGBA")
                page = Image.new("RGBA", pixels.size, "white")
                small = Image.alpha_composite(page, pixels).convert("RGB").resize((columns, rows * 2))
        except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            return []
        data = small.tobytes()
        stride = columns * 3
        return [_row(data[2 * y * stride : (2 * y + 2) * stride], columns) for y in range(rows)]


def _fit(width: int, height: int, columns: int, rows: int) -> tuple[int, int]:
    """Columns and rows that keep the shape; a cell is twice as high as it is wide."""
    scale = min(columns / width, rows * 2 / height, 1.0)
    return max(1, int(width * scale)), max(1, round(height * scale / 2))


def _row(data: bytes, columns: int) -> Strip:
    segments: list[Segment] = []
    half = columns * 3
    for x in range(0, half, 3):
        upper, lower = Color.from_rgb(*data[x : x + 3]), Color.from_rgb(*data[half + x : half + x + 3])
        segments.append(Segment("▀", Style(color=upper, bgcolor=lower)))
    return Strip(segments, columns)
