"""Blocks: what a conversation is made of on the screen, drawn as lines and cached.

A block is a value with a face, not a widget: two thousand of them cost what twenty cost, because only those near the
viewport are ever laid out. `Canvas` draws them; `Transcript` decides what they are told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, overload

from oi_tui.rendering.lines import RenderedLine
from oi_tui.widgets.block_theme import BlockTheme

Line = RenderedLine


@dataclass(frozen=True, slots=True)
class Slot:
    """Lines of a block that a widget occupies while it is mounted."""

    line: int
    height: int
    indent: int = 0
    """Columns of frame that stay visible on both sides."""


class Stack(Sequence[Line]):
    """Several sequences of lines as one, without copying them."""

    def __init__(self, parts: Iterable[Sequence[Line]]) -> None:
        self._parts = [part for part in parts if len(part)]
        self._length = sum(len(part) for part in self._parts)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Line]: ...
    def __getitem__(self, index: int | slice) -> Line | Sequence[Line]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._length))]
        if index < 0:
            index += self._length
        for part in self._parts:
            if index < len(part):
                return part[index]
            index -= len(part)
        raise IndexError(index)


class Mapped(Sequence[Line]):
    """Lines made one by one when they are looked at."""

    def __init__(self, length: int, make: Callable[[int], Line]) -> None:
        self._length = length
        self._make = make
        self._made: dict[int, Line] = {}

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Line]: ...
    def __getitem__(self, index: int | slice) -> Line | Sequence[Line]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        index %= self._length
        if (line := self._made.get(index)) is None:
            line = self._made[index] = self._make(index)
        return line


class Block:
    """One piece of a conversation. Subclasses implement `_lay_out`, `_estimate` and `source`."""

    kind: ClassVar[str] = "block"
    """What the block is, for people: "answer", "code", "image"."""
    stands_apart: ClassVar[bool] = False
    """True if there is an empty line above it even where rows are scarce."""
    can_fold: ClassVar[bool] = False

    def __init__(self, block_id: str | None = None) -> None:
        self.id = block_id
        self.is_folded = False
        self._laid_out: tuple[tuple[int, BlockTheme], Sequence[Line]] | None = None

    def lines(self, width: int, theme: BlockTheme) -> Sequence[Line]:
        """The block as lines of at most `width` cells. Cached until `changed` is called or the arguments differ."""
        key = (width, theme)
        if self._laid_out is None or self._laid_out[0] != key:
            self._laid_out = (key, self._lay_out(width, theme))
        return self._laid_out[1]

    def changed(self) -> None:
        """Forget the drawn form."""
        self._laid_out = None

    def release(self) -> None:
        """The block is far from the viewport: give back the memory of the drawn form."""
        self.changed()

    @property
    def is_behind(self) -> bool:
        """True while work is put off to keep the screen quick."""
        return False

    def advance(self) -> None:
        """Go on with what was put off, for a few tens of milliseconds at most."""

    @property
    def is_laid_out(self) -> bool:
        return self._laid_out is not None

    def estimate(self, width: int) -> int:
        """About how many lines the block has, without laying it out. Costs a few microseconds."""
        return max(1, self._estimate(max(1, width)))

    @property
    def source(self) -> str:
        """The text the block was made from: what copying the whole block gives."""
        return ""

    @property
    def searchable(self) -> str:
        """The text in which words are looked for."""
        return self.source

    def fold(self, folded: bool) -> None:
        """Show only the essential, or everything again."""
        if self.can_fold and folded != self.is_folded:
            self.is_folded = folded
            self.changed()

    def expand(self, expanded: bool) -> None:
        """Show everything, however long, or only the essential."""
        self.fold(not expanded)

    def toggle(self) -> None:
        """What the fold key does: fold, or unfold."""
        self.fold(not self.is_folded)

    def is_toggled_by_click(self, line: int) -> bool:
        """True if a click on this line folds or unfolds."""
        return self.can_fold and line == 0 and self.is_folded

    def slots(self) -> Mapping[str, Slot]:
        """Where widgets go, by name. Only while laid out."""
        return {}

    def painted(self, line: int) -> None:
        """This line has been drawn on the screen."""

    def _lay_out(self, width: int, theme: BlockTheme) -> Sequence[Line]:
        raise NotImplementedError

    def _estimate(self, width: int) -> int:
        return wrapped_height(self.source, width)


def wrapped_height(text: str, width: int) -> int:
    """A rough count of the lines `text` fills at this width; exact enough for a scroll bar."""
    return text.count("\n") + len(text) // max(1, width) + 1
