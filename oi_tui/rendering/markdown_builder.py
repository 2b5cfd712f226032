"""From Markdown tokens to blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from markdown_it.token import Token

from oi_tui.rendering.highlight import Highlighter
from oi_tui.rendering.lines import PLAIN, Meaning, Run
from oi_tui.rendering.markdown_blocks import (
    NO_PREFIX,
    BlankLeaf,
    Block,
    CodeLeaf,
    Leaf,
    ListGroup,
    Prefix,
    RuleLeaf,
    TableLeaf,
    TextLeaf,
)
from oi_tui.rendering.markdown_inline import harmless, inline_runs
from oi_tui.rendering.markdown_table import Table

_BULLETS = ("•", "◦", "·")
_MARKS = " \t>-*+.)0123456789"
_BLANK = BlankLeaf()  # the same for all: there are very many of them
_TASK = re.compile(r"\[([ xX])\][ \t]+")
_CLOSING_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*")
_APART = frozenset({"fence", "code_block", "table_open", "heading_open", "math_block", "hr"})
"""Kinds of blocks that have an empty line around them on the screen even where there is none in the source."""


@dataclass
class Piece:
    """A top-level block and where it begins. Lines count from the beginning of the parsed text."""

    line: int
    end: int
    block: Block
    kind: str
    is_closed: bool = False
    """True for a fence or a formula that has its end: nothing can be added to it."""
    group: ListGroup | None = None
    """The list that an item belongs to."""
    next_number: int = 0
    """The number of the item after it."""


@dataclass
class _Place:
    """Where in the nesting a block stands: what its first line begins with, what the others do."""

    first: Prefix = NO_PREFIX
    rest: Prefix = NO_PREFIX
    depth: int = 0  # of lists

    def take(self) -> tuple[Prefix, Prefix]:
        """For the next leaf. A bullet stands before the first one only."""
        first, self.first = self.first, self.rest
        return first, self.rest


@lru_cache(maxsize=256)
def _prefix(drawn: str, meaning: Meaning, source: str) -> Prefix:
    return Prefix(((drawn, meaning),), source)


class Builder:
    """Builds the blocks of one parsed text.

    `highlighters` are kept by line number by the caller, so that code parsed again is not read again from its
    beginning; `offset` is the number of the first line in the whole document. `group` is the list that a list at the
    beginning of the text goes on with.
    """

    def __init__(
        self, source: str, highlighters: dict[int, Highlighter], offset: int = 0, group: ListGroup | None = None
    ) -> None:
        self._lines = source.split("\n")
        self._highlighters = highlighters
        self._offset = offset
        self._group = group

    def pieces(self, tokens: Sequence[Token], *, before: str | None = None, after_blank: bool = False) -> list[Piece]:
        """The top-level blocks. `before` is the kind of the block before the first one, if there is one;
        `after_blank`: there is an empty line between the two."""
        pieces: list[Piece] = []
        for group in _groups(tokens):
            opener = group[0]
            line, end = opener.map or (0, 0)
            gap = before is not None and (
                self._is_apart(before, opener.type) or (self._is_blank(line - 1) if pieces else after_blank)
            )
            if opener.type in ("bullet_list_open", "ordered_list_open"):
                pieces += self._items(group, gap=gap, is_first=not pieces)
            else:
                leaves: list[Leaf] = [_BLANK] if gap else []
                leaves += self._leaves(group, _Place())
                closed = opener.type in ("fence", "math_block") and self._is_closed(opener)
                pieces.append(Piece(line, end, Block(leaves), opener.type, closed))
            before = opener.type
        return pieces

    @staticmethod
    def _is_apart(before: str, kind: str) -> bool:
        return kind in _APART or (before in _APART and before != "heading_open")

    def _items(self, group: Sequence[Token], *, gap: bool, is_first: bool) -> Iterator[Piece]:
        """The items of a top-level list, each a block."""
        opener = group[0]
        is_ordered = opener.type == "ordered_list_open"
        kind = f"{opener.type} {opener.markup}"
        if not (is_first and self._group is not None and self._group.kind == kind):
            self._group = ListGroup(kind, int(opener.attrGet("start") or 1) if is_ordered else 0)
        for item in _groups(group[1:-1]):
            line, end = item[0].map or (0, 0)
            leaves: list[Leaf] = [_BLANK] if gap else []
            place = _Place()
            self._mark(place, item, self._group if is_ordered else None)
            leaves += self._leaves(item[1:-1], place) or self._unparsed(item[0], place)
            block = Block(leaves, self._group if is_ordered else None)
            yield Piece(line, end, block, "item", False, self._group, self._group.next_number)
            gap = self._is_blank(end - 1)

    def _mark(self, place: _Place, item: Sequence[Token], group: ListGroup | None) -> None:
        """Put the bullet or number of an item into its place."""
        markup = item[0].markup
        if group is not None:
            number = f"{group.take_number()}{markup}"
            drawn, source = f"{number:>{group.width - 1}} ", f"{number} "
        else:
            drawn, source = _BULLETS[min(place.depth, 2)] + " ", f"{markup} "
        if done := self._task(item):
            drawn, source = drawn + f"[{done}] ", source + f"[{done}] "
            if group is None:
                drawn = f"[{done}] "
        place.first = place.first + _prefix(drawn, ("bullet",), source)
        place.rest = place.rest + _prefix(" " * len(drawn), PLAIN, " " * len(source))
        place.depth += 1

    @staticmethod
    def _task(item: Sequence[Token]) -> str:
        """ "x" or " " for a task, which is then taken out of the text; "" for any other item."""
        if len(item) > 2 and item[1].type == "paragraph_open" and (children := item[2].children):
            if children[0].type == "text" and (found := _TASK.match(children[0].content)):
                children[0].content = children[0].content[found.end() :]
                return found[1].lower()
        return ""

    def _leaves(self, tokens: Sequence[Token], place: _Place) -> list[Leaf]:
        """The leaves of the blocks of a container, empty lines between them included."""
        leaves: list[Leaf] = []
        before: Token | None = None
        for group in _groups(tokens):
            if before is not None and self._is_blank((group[0].map or [0, 0])[0] - 1):
                leaves.append(BlankLeaf(place.rest))
            leaves += self._block(group, place)
            before = group[0]
        return leaves

    def _block(self, group: Sequence[Token], place: _Place) -> list[Leaf]:
        opener = group[0]
        match opener.type:
            case "paragraph_open":
                return [TextLeaf(*place.take(), inline_runs(group[1], PLAIN))]
            case "heading_open":
                first, rest = place.take()
                lines = inline_runs(group[1], (opener.tag,))
                return [_Heading(first, rest, lines, int(opener.tag[1]))]
            case "fence" | "code_block":
                return [self._code(opener, place)]
            case "math_block":
                lines = [[(harmless(line), PLAIN)] for line in opener.content.split("\n")]
                return [TextLeaf(*place.take(), lines)]
            case "hr":
                return [RuleLeaf(*place.take())]
            case "table_open":
                return [TableLeaf(*place.take(), self._table(group))]
            case "blockquote_open":
                bar = Prefix((("▎ ", ("quiet",)),), "> ")
                inner = _Place(place.first + bar, place.rest + bar, place.depth)
                leaves = self._leaves(group[1:-1], inner) or self._unparsed(opener, inner)
                place.first = place.rest
                return leaves
            case "bullet_list_open" | "ordered_list_open":
                return self._nested_list(group, place)
        return []

    def _nested_list(self, group: Sequence[Token], place: _Place) -> list[Leaf]:
        opener = group[0]
        items = list(_groups(group[1:-1]))
        numbers: ListGroup | None = None
        if opener.type == "ordered_list_open":
            start = int(opener.attrGet("start") or 1)
            numbers = ListGroup("", start)
            numbers.width = len(str(start + len(items) - 1)) + 2
        leaves: list[Leaf] = []
        for index, item in enumerate(items):
            inner = _Place(place.first, place.rest, place.depth)
            if index and self._is_blank((items[index - 1][0].map or [0, 0])[1] - 1):
                leaves.append(BlankLeaf(place.rest))
            self._mark(inner, item, numbers)
            leaves += self._leaves(item[1:-1], inner) or self._unparsed(item[0], inner)
            place.first = place.rest
        return leaves

    def _unparsed(self, token: Token, place: _Place) -> list[Leaf]:
        """For a container without contents. It is empty, or nested so deep that the parser gave up: nothing is lost."""
        start, end = token.map or (0, 0)
        lines = [line.lstrip(_MARKS) for line in self._lines[start:end]]
        return [TextLeaf(*place.take(), [[(harmless(line), PLAIN)] for line in lines if line] or [[]])]

    def _code(self, token: Token, place: _Place) -> CodeLeaf:
        language = token.info.split()[0].strip("{}.") if token.info.strip() else None
        text = token.content.removesuffix("\n")
        line = self._offset + (token.map[0] if token.map else 0)
        highlighter = self._highlighters.get(line)
        if highlighter is None or highlighter.language != language:
            highlighter = self._highlighters[line] = Highlighter(language, text)
        else:
            highlighter.replace(text)
        bar = Prefix((("│ ", ("rail",)),))
        first, rest = place.take()
        return CodeLeaf(first + bar, rest + bar, highlighter, highlighter.line_count)

    def _table(self, group: Sequence[Token]) -> Table:
        rows: list[tuple[tuple[Run, ...], ...]] = []
        row: list[tuple[Run, ...]] = []
        alignments: list[str] = []
        for index, token in enumerate(group):
            if token.type in ("th_open", "td_open"):
                base: Meaning = ("table_head",) if token.tag == "th" else PLAIN
                row.append(tuple(run for line in inline_runs(group[index + 1], base) for run in line))
                if token.tag == "th":
                    alignments.append(str(token.attrGet("style") or "").removeprefix("text-align:"))
            elif token.type == "tr_close":
                rows.append(tuple(row))
                row = []
        start, end = group[0].map or (0, 0)
        sources = tuple(line.strip().lstrip("> ") for line in self._lines[start:end])
        return Table(tuple(rows), tuple(alignments), sources)

    def _is_blank(self, line: int) -> bool:
        return 0 <= line < len(self._lines) and not self._lines[line].strip(" \t>")

    def _is_closed(self, token: Token) -> bool:
        start, end = token.map or (0, 0)
        if end >= len(self._lines):
            return False
        if token.type == "math_block":
            text = token.content.strip().rstrip(".,; \t")
            return len(text) > 3 and text.endswith("$$" if text.startswith("$$") else "\\]")
        if end - start < 2:
            return False
        found = _CLOSING_FENCE.fullmatch(self._lines[end - 1])
        return found is not None and found[1].startswith(token.markup)


class _Heading(TextLeaf):
    """A heading: copied with its signs."""

    __slots__ = ()

    def __init__(self, first: Prefix, rest: Prefix, lines: Sequence[Sequence[Run]], level: int) -> None:
        super().__init__(Prefix(first.runs, f"{first.source}{'#' * level} "), rest, lines)


def _groups(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The blocks of one level, each with everything inside it."""
    start = depth = 0
    for index, token in enumerate(tokens):
        depth += token.nesting
        if depth == 0:
            yield tokens[start : index + 1]
            start = index + 1
