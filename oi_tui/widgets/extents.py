"""How many lines each block of a column has, and where it begins."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate


class Extents:
    """Heights in a column, some exact and some estimated. Finding a line costs O(log n) after an O(n) sum in C."""

    def __init__(self) -> None:
        self._heights: list[int] = []
        self._exact: list[bool] = []
        self._ends: list[int] | None = []

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    def insert(self, index: int, height: int) -> None:
        """Add an estimated height before `index`."""
        if index == len(self._heights) and self._ends is not None:
            self._ends.append(self.total + height)
        else:
            self._ends = None
        self._heights.insert(index, height)
        self._exact.insert(index, False)

    def remove(self, index: int) -> None:
        del self._heights[index], self._exact[index]
        self._ends = None

    def clear(self) -> None:
        self._heights, self._exact, self._ends = [], [], []

    def set(self, index: int, height: int, *, exact: bool) -> None:
        self._exact[index] = exact
        if self._heights[index] != height:
            self._heights[index] = height
            self._ends = None

    def is_exact(self, index: int) -> bool:
        return self._exact[index]

    def forget_exactness(self) -> None:
        """All heights are estimates from now on: the width has changed."""
        self._exact = [False] * len(self._heights)

    @property
    def total(self) -> int:
        ends = self._sums()
        return ends[-1] if ends else 0

    def top(self, index: int) -> int:
        """The first line of the block at `index`."""
        return self._sums()[index - 1] if index else 0

    def locate(self, y: int) -> tuple[int, int]:
        """The block that line `y` belongs to, and the line within it. Lines outside are taken as the nearest one.
        Raises `IndexError` if there is no block."""
        ends = self._sums()
        if not ends:
            raise IndexError("no blocks")
        y = max(0, min(y, ends[-1] - 1))
        index = bisect_right(ends, y)
        return index, y - (ends[index - 1] if index else 0)

    def _sums(self) -> list[int]:
        if self._ends is None:
            self._ends = list(accumulate(self._heights))
        return self._ends
