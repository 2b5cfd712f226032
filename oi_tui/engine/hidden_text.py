"""Characters that trick the eye of someone who reads code before running it.

`find_hidden` names them, `reveal` draws them as visible stand-ins such as `⟨U+202E⟩`, `summary` says it in a line.

What counts: bidirectional controls ("Trojan Source"), invisible and zero-width characters, tag characters and
variation selectors that carry hidden data, control characters, spaces that are not spaces, private use characters,
letters and signs that look like ASCII ones (`oi_tui.engine.lookalikes`), and gaps wide enough to push code out of
sight.

What does not: natural right-to-left text, CJK with its own spaces and variation sequences, emoji with joiners, skin
tones and flags, joiners where Indic and Arabic scripts need them. A mark next to a right-to-left letter cannot
reorder more than the letter itself does.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import cached_property

from oi_tui.engine import lookalikes
from oi_tui.engine.lookalikes import Region, regions_of


class Kind(StrEnum):
    BIDI = auto()
    INVISIBLE = auto()
    CONTROL = auto()
    SPACE = auto()
    LOOKALIKE = auto()
    PRIVATE = auto()
    GAP = auto()


@dataclass(frozen=True, slots=True)
class Finding:
    """One character that is not what it seems. `line` and `column` count from 1, `offset` from 0."""

    offset: int
    line: int
    column: int
    char: str
    name: str
    kind: Kind

    @property
    def stand_in(self) -> str:
        """What is drawn in its place. A wide gap is made of ordinary blanks and stays."""
        return self.char if self.kind is Kind.GAP else f"⟨U+{ord(self.char[0]):04X}⟩"


@dataclass(frozen=True)
class Revealed:
    """Text with stand-ins. `spans` are (start, end, finding) in `text`, in order, one for each finding."""

    text: str
    spans: tuple[tuple[int, int, Finding], ...]

    def to_source(self, offset: int) -> int:
        """The place in the original text of a place in `text`; inside a stand-in, its character."""
        index = bisect_right(self._starts, offset) - 1
        if index < 0:
            return offset
        _, end, finding = self.spans[index]
        if offset < end:
            return finding.offset
        return finding.offset + len(finding.char) + offset - end

    def from_source(self, offset: int) -> int:
        """The place in `text` of a place in the original text."""
        index = bisect_right(self._origins, offset) - 1
        if index < 0:
            return offset
        start, end, finding = self.spans[index]
        beyond = offset - finding.offset - len(finding.char)
        return start if beyond < 0 else end + beyond

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _, _ in self.spans]

    @cached_property
    def _origins(self) -> list[int]:
        return [finding.offset for _, _, finding in self.spans]


def find_hidden(text: str, *, language: str | None = None) -> list[Finding]:
    """Every trick in the text, in order. `language` decides what is a string or a comment; cost is linear."""
    found: dict[int, tuple[str, str, Kind]] = {}
    if not text.isascii():
        regions = regions_of(text, language)
        for offset, character, kind in _suspects(text, regions):
            found[offset] = (character, _name(character), kind)
        for offset, looks_like in lookalikes.find(text, regions):
            character = text[offset]
            found.setdefault(offset, (character, f"{_name(character)}, looks like {looks_like}", Kind.LOOKALIKE))
    elif _ASCII_CONTROL.search(text):
        for match in _ASCII_CONTROL.finditer(text):
            found[match.start()] = (match[0], _name(match[0]), Kind.CONTROL)
    for match in _GAP.finditer(text):
        start = match.start("gap")
        found.setdefault(start, (match["gap"], f"gap of {len(match['gap'])} blanks before code", Kind.GAP))
    if not found:
        return []
    line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
    findings = []
    for offset in sorted(found):
        character, name, kind = found[offset]
        line = bisect_right(line_starts, offset)
        findings.append(Finding(offset, line, offset - line_starts[line - 1] + 1, character, name, kind))
    return findings


def reveal(text: str, findings: Sequence[Finding] | None = None, *, language: str | None = None) -> Revealed:
    """The text with stand-ins for its findings. Without `findings` they are looked for."""
    if findings is None:
        findings = find_hidden(text, language=language)
    if not findings:
        return Revealed(text, ())
    parts: list[str] = []
    spans = []
    done = length = 0
    for finding in findings:
        between = text[done : finding.offset]
        stand_in = finding.stand_in
        start = length + len(between)
        parts += (between, stand_in)
        length = start + len(stand_in)
        spans.append((start, length, finding))
        done = finding.offset + len(finding.char)
    parts.append(text[done:])
    return Revealed("".join(parts), tuple(spans))


_NOUNS = {
    Kind.LOOKALIKE: ("look-alike character", "look-alike characters"),
    Kind.SPACE: ("unusual space", "unusual spaces"),
    Kind.PRIVATE: ("private use character", "private use characters"),
    Kind.GAP: ("wide gap", "wide gaps"),
}
_HIDDEN = ("hidden character", "hidden characters")


def summary(findings: Sequence[Finding]) -> str:
    """One line: how many of what, the first few by name and line. Empty without findings."""
    counts: dict[tuple[str, str], int] = {}
    places: dict[str, list[int]] = {}
    for finding in findings:
        noun = _NOUNS.get(finding.kind, _HIDDEN)
        counts[noun] = counts.get(noun, 0) + 1
        lines = places.setdefault(finding.name, [])
        if finding.line not in lines[-1:]:
            lines.append(finding.line)
    if not counts:
        return ""
    totals = ", ".join(f"{count} {noun[count > 1]}" for noun, count in counts.items())
    named = ", ".join(f"{name} ({_lines(lines)})" for name, lines in list(places.items())[:3])
    rest = len(places) - 3
    return f"{totals}: {named}" + (f" and {rest} more kind{'s' if rest > 1 else ''}" if rest > 0 else "")


def _lines(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]}"
    return "lines " + ", ".join(map(str, lines[:3])) + (", …" if len(lines) > 3 else "")


# --- what to look at -------------------------------------------------------------------------------------------------

_ASCII_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
# Wide enough to push what follows past the right edge; a comment there is no trick.
_GAP = re.compile(r"(?:\S|^(?=[ \t]{100}))(?P<gap>[ \t]{60,}+|\t{8,}+)(?=[^\s#\\])", re.MULTILINE)

_BIDI = "\u202a-\u202e\u2066-\u2069"
_MARKS = "\u061c\u200e\u200f"
_JOINERS = "\u200c\u200d"
_INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufdd0-\ufdef\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000"
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U0010ffff"
_CONTROLS = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff"
_SUSPECT = re.compile(f"[{_CONTROLS}{_BIDI}{_MARKS}{_JOINERS}{_INVISIBLE}{_SPACES}{_PRIVATE}]|\r(?!\n)")

_PICTOGRAPH = (
    "©®‼⁉™ℹ\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff〰〽㊗㊙\U0001f000-\U0001faff"
)
_IS_PICTOGRAPH = re.compile(f"[{_PICTOGRAPH}]")
_FLAG_TAGS = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,7}\U000e007f")
_NEAR = 3  # punctuation and blanks between a mark and the letter it serves


def _suspects(text: str, regions: Sequence[Region]) -> Iterator[tuple[int, str, Kind]]:
    flag_tags = {index for match in _FLAG_TAGS.finditer(text) for index in range(match.start() + 1, match.end())}
    in_region = lookalikes.RegionCursor(regions)
    for match in _SUSPECT.finditer(text):
        offset, character = match.start(), match[0]
        kind = _kind_of(character)
        if kind is Kind.SPACE:
            if in_region.kind_at(offset) == "comment" or _is_natural_space(text, offset, character):
                continue
        elif offset in flag_tags or _is_natural(text, offset, character):
            continue
        yield offset, character, kind


def _kind_of(character: str) -> Kind:
    category = unicodedata.category(character)
    if category in ("Cc", "Cs"):
        return Kind.CONTROL
    if category == "Co":
        return Kind.PRIVATE
    if category == "Zs" or character == "\u2800":
        return Kind.SPACE
    if unicodedata.bidirectional(character) in _BIDI_CLASSES or character in "\u200e\u200f\u061c":
        return Kind.BIDI
    return Kind.INVISIBLE


_BIDI_CLASSES = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def _is_natural(text: str, offset: int, character: str) -> bool:
    """True where the script or the emoji around it needs this character."""
    before = text[offset - 1] if offset else ""
    after = text[offset + 1] if offset + 1 < len(text) else ""
    if character in "\u200e\u200f\u061c":
        return _is_beside(text, offset, _is_right_to_left)
    if character == "\u034f":
        return before != "" and unicodedata.category(before) == "Mn"
    if character in "\u115f\u1160":
        return _is_beside(text, offset, _is_jamo)
    if character == "\u200d":
        return _joins_emoji(before, after) or _takes_joiners(before) or (_takes_joiners(after) and not before.isalnum())
    if character == "\u200c":
        return _takes_joiners(before) and _takes_joiners(after)
    if character in "\ufe0e\ufe0f":
        return bool(_IS_PICTOGRAPH.match(before)) or (before in "0123456789#*" and after == "\u20e3" and before != "")
    if "\ufe00" <= character <= "\ufe0d":
        return before != "" and (_is_cjk(before) or unicodedata.category(before) in ("Sm", "So") or _is_shaped(before))
    if "\U000e0100" <= character <= "\U000e01ef":
        return before != "" and _is_cjk(before)
    if "\u180b" <= character <= "\u180f":
        return "\u1800" <= before <= "\u18af"
    return False


def _is_natural_space(text: str, offset: int, character: str) -> bool:
    if character == "\u3000":
        return _is_beside(text, offset, _is_cjk)
    return character == "\u2800" and _is_beside(text, offset, _is_braille)


def _joins_emoji(before: str, after: str) -> bool:
    glued = before in ("\ufe0f", "\u20e3") or bool(_IS_PICTOGRAPH.match(before))
    return glued and bool(_IS_PICTOGRAPH.match(after))


def _takes_joiners(character: str) -> bool:
    """Arabic, Syriac, N'Ko, Mongolian and the scripts of India and its neighbours: letters and marks."""
    if not character or unicodedata.category(character)[0] not in "LM":
        return False
    code = ord(character)
    return (
        0x0600 <= code <= 0x086F
        or 0x08A0 <= code <= 0x0DFF
        or 0x0F00 <= code <= 0x109F
        or 0x1780 <= code <= 0x18AF
        or 0xA840 <= code <= 0xA8FF
        or 0xFB50 <= code <= 0xFDFF
        or 0xFE70 <= code <= 0xFEFC
        or 0x11000 <= code <= 0x11FFF
    )


def _is_shaped(character: str) -> bool:
    return "\u1000" <= character <= "\u109f" or "\uaa60" <= character <= "\uaa7f" or "\ua840" <= character <= "\ua87f"


def _is_jamo(character: str) -> bool:
    return "\u1100" <= character <= "\u115e" or "\u1161" <= character <= "\u11ff" or "\ua960" <= character <= "\ua97c"


def _is_braille(character: str) -> bool:
    return "\u2801" <= character <= "\u28ff"


def _is_beside(text: str, offset: int, is_wanted: lookalikes.CharacterTest) -> bool:
    """True if the nearest letter on either side, a few signs away at most and on the same line, is a wanted one."""
    for step in (-1, 1):
        for distance in range(1, _NEAR + 2):
            place = offset + step * distance
            if not 0 <= place < len(text) or text[place] == "\n":
                break
            if is_wanted(text[place]):
                return True
            if text[place].isalnum():
                break
    return False


def _is_right_to_left(character: str) -> bool:
    return unicodedata.bidirectional(character) in ("R", "AL") and character not in "\u200f\u061c"


def _is_cjk(character: str) -> bool:
    code = ord(character)
    return (
        0x2E80 <= code <= 0x9FFF
        or 0xAC00 <= code <= 0xD7AF
        or 0xF900 <= code <= 0xFAFF
        or 0xFF01 <= code <= 0xFF9F
        or 0x20000 <= code <= 0x3FFFF
    ) and code not in (0x3000, 0x3164)


# --- names -----------------------------------------------------------------------------------------------------------

_C0_NAMES = (
    "null,start of heading,start of text,end of text,end of transmission,enquiry,acknowledge,bell,backspace,tab,"
    "line feed,vertical tab,form feed,carriage return,shift out,shift in,data link escape,device control 1,"
    "device control 2,device control 3,device control 4,negative acknowledge,synchronous idle,"
    "end of transmission block,cancel,end of medium,substitute,escape,file separator,group separator,"
    "record separator,unit separator"
).split(",")


def _name(character: str) -> str:
    """The Unicode name in lower case, proper names capitalised; controls by their old names."""
    code = ord(character[0])
    if code < 0x20:
        return _C0_NAMES[code]
    if code == 0x7F:
        return "delete"
    if 0x80 <= code < 0xA0:
        return "next line" if code == 0x85 else "C1 control character"
    if 0xD800 <= code <= 0xDFFF:
        return "half of a character"
    if 0xE000 <= code <= 0xF8FF or code >= 0xF0000:
        return "private use character"
    name = unicodedata.name(character[0], "unassigned character").lower()
    for script in ("cyrillic", "greek", "latin", "armenian", "cherokee", "coptic", "hangul", "arabic", "mongolian"):
        name = name.replace(script, script.capitalize())
    return name
