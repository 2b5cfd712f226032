"""Blocks below each other: how high each is, where it begins, which line stands in which row.

Heights are exact where somebody has looked and estimated elsewhere, so two thousand blocks cost what a screenful costs.
"""

from __future__ import annotations

from collections.abc import Sequence

from oi_tui.widgets.block import Block
from oi_tui.widgets.block_theme import BlockTheme
from oi_tui.widgets.extents import Extents

MOST_LAID_OUT = 400
"""Blocks that may keep their drawn form before those out of view give it back."""


class Flow:
    """A column of blocks at one width, in one theme. Set `theme` and call `change_look` before measuring."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.width = 1
        self.is_dense = False
        """No empty line between blocks, but for those that stand apart."""
        self._theme: BlockTheme | None = None
        self._extents = Extents()
        self._laid_out: set[int] = set()

    # -- blocks ------------------------------------------------------------------------------------------------------

    def insert(self, index: int, block: Block) -> None:
        """Put a block before the one at `index`; its height is estimated."""
        self.blocks.insert(index, block)
        self._extents.insert(index, self.gap(index) + block.estimate(self.width))

    def load(self, blocks: Sequence[Block]) -> None:
        """These blocks in place of the others."""
        self.clear()
        for block in blocks:
            self.insert(len(self.blocks), block)

    def take_out(self, index: int) -> None:
        del self.blocks[index]
        self._extents.remove(index)
        if index == 0 and self.blocks:  # the first one has no gap above it
            self._estimate(0)

    def clear(self) -> None:
        self.blocks.clear()
        self._extents.clear()
        self._laid_out.clear()

    def index(self, block: Block) -> int:
        """Where a block is; quick for those near the end. Raises `ValueError` if it is not there."""
        for index in range(len(self.blocks) - 1, -1, -1):
            if self.blocks[index] is block:
                return index
        raise ValueError("not a block of this column")

    # -- heights -----------------------------------------------------------------------------------------------------

    def change_look(self, width: int, theme: BlockTheme, *, is_dense: bool) -> None:
        """Another width, theme or density: every height is an estimate from now on."""
        self.width, self._theme, self.is_dense = width, theme, is_dense
        self._extents.forget_exactness()
        for index, block in enumerate(self.blocks):
            if not block.is_laid_out:
                self._estimate(index)

    def _estimate(self, index: int) -> None:
        self._extents.set(index, self.gap(index) + self.blocks[index].estimate(self.width), exact=False)

    @property
    def can_measure(self) -> bool:
        """False until the look is known."""
        return self._theme is not None

    def measure(self, index: int) -> int:
        """The exact height of a block with the gap above it; lays it out if it is not."""
        block = self.blocks[index]
        if not (self._extents.is_exact(index) and block.is_laid_out):
            assert self._theme is not None
            height = self.gap(index) + len(block.lines(self.width, self._theme))
            self._extents.set(index, height, exact=True)
            self._laid_out.add(id(block))
        return self._extents[index]

    def measure_from(self, index: int, step: int, lines: int) -> None:
        """Measure block after block, downwards (1) or upwards (-1), until this many lines are exact."""
        while lines > 0 and 0 <= index < len(self.blocks):
            lines -= self.measure(index)
            index += step

    def height(self, index: int) -> int:
        """The height of a block with the gap above it, exact or not."""
        return self._extents[index]

    def gap(self, index: int) -> int:
        """Empty lines above a block."""
        if index == 0:
            return 0
        return 1 if not self.is_dense or self.blocks[index].stands_apart else 0

    # -- places ------------------------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """The height of everything."""
        return self._extents.total

    def top(self, index: int) -> int:
        """The row where a block's gap begins."""
        return self._extents.top(index)

    def locate(self, row: int) -> tuple[int, int]:
        """The block that a row belongs to, and the line from where its gap begins. Rows outside are taken as the
        nearest one. Raises `IndexError` if there are no blocks."""
        return self._extents.locate(row)

    def line_at(self, row: int) -> tuple[Block, int] | None:
        """The block drawn in a row and which of its lines it is; None between blocks and outside."""
        if not self.blocks or not 0 <= row < self.total:
            return None
        index, line = self.locate(row)
        line -= self.gap(index)
        return (self.blocks[index], line) if line >= 0 else None

    def between(self, first: int, last: int) -> Sequence[Block]:
        """The blocks of which something is in these rows."""
        if not self.blocks:
            return []
        return self.blocks[self.locate(first)[0] : self.locate(last)[0] + 1]

    def release_all_but(self, first: int, last: int) -> None:
        """Give back the memory of the drawn form of blocks outside these rows, if there are many."""
        if len(self._laid_out) <= MOST_LAID_OUT:
            return
        near = {id(block) for block in self.between(first, last)}
        for block in self.blocks:
            if block.is_laid_out and id(block) not in near:
                block.release()
        self._laid_out = near
