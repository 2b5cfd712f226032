"""Markdown that is drawn while it is written.

`MarkdownDocument` parses again only its last block; everything before it is finished and keeps its drawn lines. An item
of a list is a block of its own, and a fence grows line by line without being parsed, so the cost of a stream grows with
its length, not with the square of it. A long text that comes at once is taken in pieces: while `is_behind`, call
`advance` from time to time.

HTML is shown as text, pictures as their address, links with where they go, formulas as they were written. Nothing is
loaded and nothing can be clicked.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

from markdown_it.token import Token

from oi_tui.rendering.highlight import Highlighter
from oi_tui.rendering.lines import RenderedLine
from oi_tui.rendering.markdown_blocks import Block, BlockLines, CodeLeaf, ListGroup, plain_block
from oi_tui.rendering.markdown_builder import Builder, Piece
from oi_tui.rendering.markdown_inline import parse
from oi_tui.rendering.sanitise import Sanitiser
from oi_tui.rendering.theme import RenderTheme

STEP = 16_384
"""Characters taken at a time: about 20 ms."""
_PATIENCE = 8192
"""A last block longer than this is not parsed again for every few words."""
_LONGEST_BLOCK = 32_768
"""A longer one is cut: no text of a person has it."""
_REPARSED = 200_000
"""Texts up to this length are parsed once more at the end if a link was defined after it was used."""

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})")
_MAYBE_CLOSING = re.compile(r" {0,3}[`~]*[ \t]*")


class _OpenFence:
    """A fence that takes lines until its end, without a parser."""

    def __init__(self, block: Block, leaf: CodeLeaf, opening: str) -> None:
        found = _FENCE.match(opening)
        assert found is not None
        self.block = block
        self.leaf = leaf
        self._indent = len(found[1])
        self._closing = re.compile(rf" {{0,3}}{re.escape(found[2][0])}{{{len(found[2])},}}[ \t]*")
        self._begun: str | None = None  # what is shown of a line that has no end yet
        self._has_lines = False

    def feed(self, text: str, *, is_end: bool) -> tuple[str, bool]:
        """Take what belongs to the fence. Returns what is left, and whether the fence is closed. If it is not, what is
        left is the last line, to be given again with what follows it."""
        *lines, last = text.split("\n")
        for index, line in enumerate(lines):
            if self._closing.fullmatch(line):
                return "\n".join([*lines[index + 1 :], last]), True
            self._add(line, is_whole=True)
        if is_end and self._closing.fullmatch(last):
            return "", True
        if last and (is_end or not _MAYBE_CLOSING.fullmatch(last)):
            self._add(last, is_whole=False)
        return last, False

    def _add(self, line: str, *, is_whole: bool) -> None:
        if self._indent:
            blanks = line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4)
            line = blanks[self._indent :] + line.lstrip(" \t")
        highlighter = self.leaf.highlighter
        changed = highlighter.line_count - 1
        if self._begun is None and self._has_lines:
            highlighter.append("\n")
        highlighter.append(line[len(self._begun or "") :])
        self._has_lines = True
        self._begun = None if is_whole else line
        self.block.changed(self.leaf.grown(changed, highlighter.line_count))


class MarkdownDocument:
    """Markdown from foreign hands, growing at its end."""

    def __init__(self, text: str = "") -> None:
        self._sanitiser = Sanitiser()
        self._clean: list[str] = []
        self._waiting = ""  # sanitised, not taken yet
        self._has_return = False
        self._is_finished = False
        self._is_whole = False
        self._blocks: list[Block] = []  # finished
        self._before: str | None = None  # what the last of them was
        self._after_blank = False
        self._group: ListGroup | None = None  # the list it is an item of
        self._next_number = 0
        self._tail = ""  # the source after them
        self._tail_line = 0  # the number of its first line
        self._tail_blocks: list[Block] = []
        self._parsed = 0  # how much of the tail they show; the rest is shown as it is
        self._fence: _OpenFence | None = None
        self._references: dict[str, Any] = {}  # link definitions
        self._highlighters: dict[int, Highlighter] = {}
        self._ends: list[int] = []  # lines up to each finished block
        self._ends_key: tuple[int, int] = (0, 0)
        if text:
            self.append(text)

    @property
    def source(self) -> str:
        """The text as far as it may be shown."""
        if len(self._clean) > 1:
            self._clean = ["".join(self._clean)]
        return self._clean[0] if self._clean else ""

    @property
    def is_behind(self) -> bool:
        """True if some of the text is not drawn yet, because there is so much of it."""
        return bool(self._waiting)

    def append(self, text: str) -> None:
        """More text, cut anywhere. Costs next to nothing: it is parsed when it is drawn."""
        self._take(self._sanitiser.feed(text))

    def finish(self) -> None:
        """The text is complete."""
        if not self._is_finished:
            self._take(self._sanitiser.close() + ("\n" if self._has_return else ""))
            self._has_return = False
            self._is_finished = True

    def advance(self) -> bool:
        """Parse what has come, as much as a moment allows. True while more is left."""
        if self._waiting:
            text, self._waiting = self._waiting[:STEP], self._waiting[STEP:]
            with _collector_resting(self.is_behind):
                self._parse_more(text)
        if self._is_finished and not self._waiting:
            self._complete()
        return self.is_behind

    def line_count(self, width: int) -> int:
        """How many lines there are at this width. Cheap while the width stays."""
        return len(self._lines(width, None))

    def render(self, width: int, theme: RenderTheme) -> Sequence[RenderedLine]:
        """The lines at this width, each drawn when it is looked at. Valid until the next change of the document."""
        return self._lines(width, theme)

    # -- taking text -------------------------------------------------------------------------------------------------

    def _take(self, clean: str) -> None:
        """Text without controls; every kind of line end becomes one."""
        if self._has_return:
            clean, self._has_return = "\r" + clean, False
        if "\r" in clean:
            if clean.endswith("\r"):
                clean, self._has_return = clean[:-1], True
            clean = clean.replace("\r\n", "\n").replace("\r", "\n")
        if clean:
            self._clean.append(clean)
            self._waiting += clean

    def _parse_more(self, text: str) -> None:
        if self._fence is not None:
            rest, is_closed = self._fence.feed(self._tail + text, is_end=False)
            self._tail = rest
            if not is_closed:
                return
            self._close_fence()
        else:
            self._tail += text
        if len(self._tail) < _PATIENCE or len(self._tail) - self._parsed > len(self._tail) // 32:
            self._parse_tail()

    def _parse_tail(self) -> None:
        """Parse the tail and settle what cannot change any more."""
        pieces = self._build()
        lines = self._tail.split("\n")
        settled = 0
        for piece, following in zip(pieces, [*pieces[1:], None], strict=False):
            if following is None:
                settled += piece.is_closed
                break
            # A table is one only when the line under its head is complete, a formula when it has its end. An item that
            # is indented far would be something else without the items before it.
            if following.kind == "math_block" and not following.is_closed:
                break
            needed = following.line + (following.kind == "table_open")
            if needed >= len(lines) - 1 or (following.kind == "item" and _indent(lines[needed]) > 3):
                break
            settled += 1
        self._settle(pieces, settled, lines)
        last = pieces[-1] if pieces and len(pieces) - settled == 1 else None
        if last is not None and last.kind == "fence" and last.line < len(lines) - 1:
            self._open_fence(last.block, lines[last.line :])
        elif len(self._tail) > _LONGEST_BLOCK:
            self._settle_all()

    def _build(self) -> list[Piece]:
        if self._group is not None:
            self._group.next_number = self._next_number
        builder = Builder(self._tail, self._highlighters, self._tail_line, self._group)
        tokens = self._parse(self._tail)
        return builder.pieces(tokens, before=self._before, after_blank=self._after_blank)

    def _parse(self, source: str) -> list[Token]:
        """Parse with the link definitions so far, and remember those of complete lines."""
        env = {"references": dict(self._references)}
        tokens = parse(source, env)
        if len(env["references"]) > len(self._references):
            if not source.endswith("\n") and not self._is_finished:
                env = {"references": dict(self._references)}
                parse(source[: source.rfind("\n") + 1], env)
            self._references = env["references"]
        return tokens

    def _settle(self, pieces: Sequence[Piece], count: int, lines: Sequence[str]) -> None:
        """The first pieces are finished; the tail begins after them."""
        for piece in pieces[:count]:
            self._blocks.append(piece.block)
            self._before, self._group, self._next_number = piece.kind, piece.group, piece.next_number
        if count:
            start = pieces[count].line if count < len(pieces) else pieces[-1].end
            self._after_blank = start > 0 and not lines[start - 1].strip()
            self._tail = "\n".join(lines[start:])
            self._tail_line += start
            self._highlighters = {line: kept for line, kept in self._highlighters.items() if line >= self._tail_line}
        self._tail_blocks = [piece.block for piece in pieces[count:]]
        self._parsed = len(self._tail)

    def _settle_all(self) -> None:
        """The tail is as good as it gets."""
        if self._parsed < len(self._tail):
            pieces = self._build()
        else:
            pieces = []
            self._blocks += self._tail_blocks
            self._before = self._before if not self._tail_blocks else "paragraph_open"
        for piece in pieces:
            self._blocks.append(piece.block)
            self._before, self._group, self._next_number = piece.kind, piece.group, piece.next_number
        self._tail_line += self._tail.count("\n") + 1
        self._tail, self._tail_blocks, self._parsed, self._after_blank = "", [], 0, False

    def _open_fence(self, block: Block, lines: Sequence[str]) -> None:
        opening, *content = lines
        leaf = block.leaves[-1]
        assert isinstance(leaf, CodeLeaf)
        leaf.highlighter.replace("")
        leaf.grown(0, 1)
        self._fence = _OpenFence(block, leaf, opening)
        self._tail, _ = self._fence.feed("\n".join(content), is_end=False)

    def _close_fence(self) -> None:
        assert self._fence is not None
        self._fence.leaf.highlighter.finish()
        self._blocks.append(self._fence.block)
        self._before, self._group = "fence", None
        self._tail_line += self._fence.leaf.line_count + 2
        self._tail_blocks, self._parsed, self._after_blank = [], 0, True
        self._fence = None

    def _complete(self) -> None:
        """Nothing more comes: what is left is what it looks like."""
        if self._fence is not None:
            self._fence.feed(self._tail, is_end=True)
            self._close_fence()
            self._tail = ""
        if self._tail:
            self._settle_all()
        if self._references and not self._is_whole and len(self.source) <= _REPARSED:
            pieces = Builder(self.source, {}).pieces(self._parse(self.source))
            self._blocks = [piece.block for piece in pieces]
            self._ends = []
        self._is_whole = True

    # -- lines -------------------------------------------------------------------------------------------------------

    def _lines(self, width: int, theme: RenderTheme | None) -> BlockLines:
        self.advance()
        blocks = [*self._blocks, *self._tail_blocks]
        if self._parsed < len(self._tail) and self._fence is None:
            blocks.append(plain_block(self._tail[self._parsed :].strip("\n")))
        # A list whose numbers got wider may have moved every line after it.
        key = (width, self._group.width if self._group else 0)
        if key != self._ends_key:
            self._ends, self._ends_key = [], key
        total = self._ends[-1] if self._ends else 0
        for block in self._blocks[len(self._ends) :]:
            total += block.count(width)
            self._ends.append(total)
        tail = accumulate((block.count(width) for block in blocks[len(self._blocks) :]), initial=total)
        return BlockLines(blocks, [*self._ends, *list(tail)[1:]], width, theme)


@contextmanager
def _collector_resting(is_much: bool) -> Iterator[None]:
    """Parsing makes very many objects and soon drops them. Collecting garbage again and again in between takes as long
    as the parsing itself when much is parsed."""
    if not (is_much and gc.isenabled()):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
