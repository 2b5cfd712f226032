"""Rendered lines: what is drawn, and what copying it gives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from pygments.token import _TokenType as TokenType
from rich.cells import cell_len, split_graphemes
from rich.segment import Segment
from rich.style import Style
from textual.selection import Selection
from textual.strip import Strip

from oi_tui.rendering.theme import RenderTheme

Meaning: TypeAlias = tuple[str | TokenType, ...]
"""How a run of text is to look: what `RenderTheme.style` takes."""
Run: TypeAlias = tuple[str, Meaning]
PLAIN: Meaning = ()


@dataclass(frozen=True, slots=True)
class RenderedLine:
    """One drawn line, and what copying it gives."""

    strip: Strip
    text: str | None = None
    """What of the line is text, without rails, bullets and padding, as drawn. None: nothing to copy."""
    start: int = 0
    """Where in the strip's characters `text` begins."""
    joint: str | None = None
    """None: the text ends here. Otherwise it goes on in the next line, and this stood between them ("" or " ")."""
    source: str | None = None
    """What copying the whole line gives, where it is not `text`: bullets, table rows, tabs, hidden characters."""

    @property
    def is_continued(self) -> bool:
        """True if the line is wrapped and goes on in the next one."""
        return self.joint is not None


def copy_text(lines: Sequence[RenderedLine], selection: Selection) -> str:
    """The selected text: wrapped lines joined, decoration left out, whole lines as they were written.

    Positions of the selection are characters of the drawn lines, as Textual reports them.
    """
    pieces: list[str] = []
    for number, line in enumerate(lines):
        if line.text is None or (span := selection.get_span(number)) is None:
            continue
        first, last = cut(line, span)
        if line.source is not None and first == 0 and last == len(line.text):
            pieces.append(line.source)
        else:
            pieces.append(line.text[first:last])
        pieces.append("\n" if line.joint is None else line.joint)
    return "".join(pieces[:-1])


def cut(line: RenderedLine, span: tuple[int, int]) -> tuple[int, int]:
    """The part of the line's text that a span of the drawn line covers. An end of -1 is the end of the line."""
    length = len(line.text or "")
    start, end = span
    first = max(0, min(start - line.start, length))
    return first, length if end < 0 else max(first, min(end - line.start, length))


def restyle(strip: Strip, ranges: Iterable[tuple[int, int]], style: Style) -> Strip:
    """The strip with a style laid over ranges of its characters, which are in order: a selection, search hits."""
    segments: list[Segment] = []
    pending = list(ranges)[::-1]
    place = 0
    for text, old, control in strip:
        end = place + len(text)
        at = place
        while at < end:
            while pending and pending[-1][1] <= at:
                pending.pop()
            if not pending or pending[-1][0] >= end:
                segments.append(Segment(text[at - place :], old, control))
                break
            first, last = pending[-1]
            if first > at:
                segments.append(Segment(text[at - place : first - place], old, control))
            at, begin = min(last, end), max(first, at)
            segments.append(Segment(text[begin - place : at - place], old + style if old else style, control))
        place = end
    return Strip(segments, strip.cell_length)


class Wrapped(NamedTuple):
    """A line of a wrapped text: `text[start:end]`. What stands between `end` and the next start is not drawn."""

    start: int
    end: int


_BLANK = " "
# One cell each, certainly: most prose in Latin, Greek and Cyrillic letters takes the short way.
_NARROW = re.compile(
    r"[ -~\xa0-\xac\xae-\u02ff\u0370-\u0377\u0384-\u0482\u048a-\u0556\u2010-\u2027\u2030-\u205e\u20a0-\u20bf"
    r"\u2190-\u21ff\u2200-\u22ff\u2500-\u25fc]*+"
)
_WIDE = re.compile(
    r"[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60"
    r"\uffe0-\uffe6\U0001f300-\U0001faff\U00020000-\U0003fffd]"
)
# No line begins with these (kinsoku): closing brackets, punctuation, small kana, prolonged sound marks. No line ends
# with opening brackets.
_NOT_FIRST = frozenset("、。，．：；？！）］｝〉》」』】〕〗〙〛’”…‥ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ)]},.:;?!%")
_NOT_LAST = frozenset("（［｛〈《「『【〔〖〘〚‘“([{")


def is_narrow(text: str) -> bool:
    """True if each character is one cell, certainly. Text of one line."""
    return text.isascii() or _NARROW.fullmatch(text) is not None


def wrap(text: str, width: int, first: int | None = None) -> list[Wrapped]:
    """Break one line of text into lines of at most `width` cells, the first one of at most `first`.

    Breaks at blanks, between wide characters, and anywhere where a word is longer than a line. Blanks at a break are
    left out; leading ones stay. Cost is linear. A character wider than the line gets a line of its own.
    """
    width = max(1, width)
    room = width if first is None else max(1, first)
    if is_narrow(text):
        return _wrap_narrow(text, width, room)
    return _wrap_words(_words(text), text, width, room)


def _wrap_narrow(text: str, width: int, room: int) -> list[Wrapped]:
    """Where each character is one cell."""
    lines = []
    start, length = 0, len(text)
    if length > room:
        indent = length - len(text.lstrip(_BLANK))  # no break before the first word
    while length - start > room:
        end = text.rfind(_BLANK, max(start, indent), start + room + 1)
        if end < 0:
            end = following = start + room
        else:
            following = end + 1
            while end > start and text[end - 1] == _BLANK:
                end -= 1
            while following < length and text[following] == _BLANK:
                following += 1
        lines.append(Wrapped(start, end))
        if following >= length:
            return lines
        start, room = following, width
    lines.append(Wrapped(start, length))
    return lines


class _Word(NamedTuple):
    """`text[start:end]` is not broken if it can be helped; `blanks` more cells separate it from the next one."""

    start: int
    end: int
    cells: int
    blanks: int


def _words(text: str) -> list[_Word]:
    words: list[_Word] = []
    start = end = cells = blanks = 0
    before = ""
    for begin, stop, size in split_graphemes(text)[0]:
        is_blank = text[begin:stop] == _BLANK
        if is_blank and end:
            blanks += 1
        elif blanks or (before and _may_break(before, text[begin])):
            words.append(_Word(start, end, cells, blanks))
            start, end, cells, blanks = begin, stop, size, 0
        else:
            cells += size
            if not is_blank:  # leading blanks belong to the first word
                end = stop
        before = "" if is_blank else text[begin]
    words.append(_Word(start, end or len(text), cells, blanks))
    return words


def _wrap_words(words: Sequence[_Word], text: str, width: int, room: int) -> list[Wrapped]:
    lines: list[Wrapped] = []
    start = end = used = 0
    for word in words:
        if used and used + word.cells > room:
            lines.append(Wrapped(start, end))
            start, used, room = word.start, 0, width
        if word.cells <= room:
            used += word.cells
        else:
            for begin, _, size in split_graphemes(text[word.start : word.end])[0]:
                if used and used + size > room:
                    lines.append(Wrapped(start, word.start + begin))
                    start, used, room = word.start + begin, 0, width
                used += size
        end = word.end
        used += word.blanks
    lines.append(Wrapped(start, end))
    return lines


@lru_cache(maxsize=16384)
def _may_break(before: str, after: str) -> bool:
    if after in _NOT_FIRST or before in _NOT_LAST:
        return False
    return bool(_WIDE.match(before) or _WIDE.match(after))


def chop(text: str, width: int) -> list[Wrapped]:
    """Break one line of text anywhere, as terminals do, leaving nothing out. A wide character is not cut in two."""
    if is_narrow(text):
        return [Wrapped(start, min(start + width, len(text))) for start in range(0, len(text) or 1, width)]
    parts: list[Wrapped] = []
    start = used = 0
    for begin, _, cells in split_graphemes(text)[0]:
        if used + cells > width and begin > start:
            parts.append(Wrapped(start, begin))
            start, used = begin, 0
        used += cells
    parts.append(Wrapped(start, len(text)))
    return parts


def slice_runs(runs: Sequence[Run], cuts: Iterable[Wrapped]) -> list[list[Run]]:
    """The runs of each wrapped line. Cuts are in order and do not overlap."""
    result: list[list[Run]] = []
    index, offset = 0, 0  # the run that is being cut, and where it begins
    for start, end in cuts:
        while index < len(runs) and offset + len(runs[index][0]) <= start:
            offset += len(runs[index][0])
            index += 1
        line: list[Run] = []
        at, place = index, offset
        while at < len(runs) and place < end:
            text, meaning = runs[at]
            piece = text[max(0, start - place) : end - place]
            if piece:
                line.append((piece, meaning))
            if place + len(text) > end:
                break
            place += len(text)
            at += 1
        index, offset = at, place
        result.append(line)
    return result


def to_strip(runs: Iterable[Run], theme: RenderTheme) -> Strip:
    """Runs in the colours of the theme."""
    style = theme.style
    return Strip([Segment(text, style(*meaning) if meaning else None) for text, meaning in runs])


def expand_tabs(runs: Iterable[Run], tab_size: int, column: int = 0) -> list[Run]:
    """The runs with their tabs as blanks up to the next stop; `column` is where the first run begins."""
    expanded: list[Run] = []
    for text, meaning in runs:
        if "\t" in text:
            first, *others = text.split("\t")
            parts = [first]
            column += cell_len(first)
            for part in others:
                blanks = tab_size - column % tab_size
                parts += (_BLANK * blanks, part)
                column += blanks + cell_len(part)
            text = "".join(parts)
        else:
            column += cell_len(text)
        expanded.append((text, meaning))
    return expanded


def crop_cells(text: str, width: int) -> str:
    """The text, cut with `…` if it is wider than `width` cells."""
    if (len(text) <= width and text.isascii()) or cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    if text.isascii():
        return text[: width - 1] + "…"
    used = 0
    for begin, _, cells in split_graphemes(text)[0]:
        if used + cells > width - 1:
            return text[:begin] + "…"
        used += cells
    return text
