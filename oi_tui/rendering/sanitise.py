"""Foreign text without its power over the terminal.

Everything that a model, a program, a file or a server wrote passes through here once before it is shown. What is left
is text, `\\n`, `\\t`, `\\r` and, where asked for, well-formed SGR colour sequences; every other control is removed:

* escape sequences: CSI, OSC, DCS, APC, PM, SOS, `ESC x`, in the 7-bit form and as C1 characters;
* lone C0 and C1 controls and DEL;
* lone surrogates, which no terminal can be sent, become U+FFFD; the two halves of one character are joined.

Cutting the input anywhere changes nothing: `feed` holds an unfinished sequence back (a few hundred characters at most)
and the concatenated output is the same for every way of cutting. Feeding the output in again returns it unchanged.
Cost is linear in the length; text without controls is returned as it came. Standard library only.

A string sequence (OSC and its like) that is never ended would swallow everything after it. It is given up at the end
of its line, at the next control sequence, or after `STRING_LIMIT` characters, whichever comes first; what follows is
shown. Only sixel data may run over several lines, and only while it consists of sixel characters.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterable, Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.encoder import encode_basestring_ascii

STRING_LIMIT = 1 << 20
"""Longest payload of an OSC, APC, PM, SOS or DCS sequence, in characters."""

_SIXEL_LIMIT = 16 << 20

# The grammar, as in ECMA-48 with xterm's additions. Every quantifier is possessive: no backtracking, linear cost.
_CSI = r"[0-?]{0,256}+[ -/]{0,16}+[@-~]?+"
_ESC_X = r"[ -/]{0,16}+[0-~]?+"
_STRING_CHAR = r"[^\x07\x18\x1a\x1b\x80-\x9f\n]"
_SIXEL_CHAR = r"[?-~0-9;!\"#$\-\r\n]"
_STRING_END = r"[\x07\x18\x1a\x9c]?+"

_SEQUENCE = (
    rf"\x1b(?:\[{_CSI}"
    rf"|P[0-9;]{{0,32}}+q{_SIXEL_CHAR}{{0,{_SIXEL_LIMIT}}}+{_STRING_END}"
    rf"|[]PX^_]{_STRING_CHAR}{{0,{STRING_LIMIT}}}+{_STRING_END}"
    rf"|{_ESC_X})"
    rf"|\x9b{_CSI}"
    rf"|[\x90\x98\x9d-\x9f]{_STRING_CHAR}{{0,{STRING_LIMIT}}}+{_STRING_END}"
)
_SGR = r"\x1b\[[0-9;:]{0,64}m"
_MOTION = r"\x1b\[[0-9]{0,5}[A-GJK]"

# Repeated as a whole, so that a flood of sequences is one match.
_REMOVE_ALL = re.compile(rf"(?:{_SEQUENCE})++")
_REMOVE_BUT_SGR = re.compile(rf"(?:(?!{_SGR})(?:{_SEQUENCE}))++")
_REMOVE_BUT_MOTION = re.compile(rf"(?:(?!{_SGR}|{_MOTION})(?:{_SEQUENCE}))++")

# What is left after the sequences: lone controls. ESC is not among them, it is only left where it is wanted.
_LONE = [*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x1B), *range(0x1C, 0x20), *range(0x7F, 0xA0)]
_LONE_BUT_BACKSPACE = [code for code in _LONE if code != 0x08]


def _deletions(codes: list[int]) -> tuple[dict[int, str | None], dict[int, str | None]]:
    """Translation tables for any text and for ASCII: each kind has another fast way to delete."""
    return dict.fromkeys(codes, ""), dict.fromkeys(codes, None)


_REMOVE_LONE = _deletions(_LONE)
_REMOVE_LONE_BUT_BACKSPACE = _deletions(_LONE_BUT_BACKSPACE)
_ANY_LONE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]")

_ANY_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

# The last introducer decides whether the text ends inside a sequence: a later introducer ends an earlier sequence.
_INTRODUCERS = "\x1b\x90\x98\x9b\x9d\x9e\x9f"
_ESCAPES = re.compile(r"\x1b{2,}+")
_UNFINISHED = re.compile(
    r"\x1b(?:\[[0-?]{0,256}+[ -/]{0,16}+|[ -/]{0,16}+|P[0-9;]{0,32}+)\Z|\x9b[0-?]{0,256}+[ -/]{0,16}+\Z"
)
_INSIDE_SIXEL = re.compile(rf"\x1bP[0-9;]{{0,32}}+q({_SIXEL_CHAR}{{0,{_SIXEL_LIMIT}}}+)\Z")
_INSIDE_STRING = re.compile(
    rf"(?:\x1b(?:[]X^_]|P(?![0-9;]{{0,32}}+q))|[\x90\x98\x9d-\x9f])({_STRING_CHAR}{{0,{STRING_LIMIT}}}+)\Z"
)
_MORE_SIXEL = re.compile(rf"{_SIXEL_CHAR}*+")
_MORE_STRING = re.compile(rf"{_STRING_CHAR}*+")

_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
_LINE_BREAKS = re.compile(r"\r\n|[\n\r\u2028\u2029]")
_BIDI = re.compile("[\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_LINE_PIECE = 4096


class Sanitiser:
    """Sanitises a stream of text, cut anywhere.

    `keep_sgr` keeps colour and style sequences (`ESC [ digits ; : m`). `keep_motion` keeps in addition `\\b` and the
    short cursor movements that progress bars are made of (`CSI n A…G J K`), for a consumer that applies them.
    """

    def __init__(self, keep_sgr: bool = False, *, keep_motion: bool = False) -> None:
        self._remove = _REMOVE_BUT_MOTION if keep_motion else _REMOVE_BUT_SGR if keep_sgr else _REMOVE_ALL
        self._lone = _REMOVE_LONE_BUT_BACKSPACE if keep_motion else _REMOVE_LONE
        self._half = ""  # the first half of a character
        self._held = ""  # the start of a sequence
        self._inside: re.Pattern[str] | None = None  # payload of a string sequence, being thrown away
        self._budget = 0  # how much more of it

    def feed(self, text: str) -> str:
        """The harmless part of `text`, as far as it can be decided."""
        if not self._held and not self._half and self._inside is None and _ANY_CONTROL.search(text) is None:
            return text
        return self._clean(self._hold_back(self._whole_characters(text)))

    def close(self) -> str:
        """What was held back, if it turned out to be text. The sanitiser is as new afterwards."""
        rest = self._held + _mend_surrogates(self._half) if self._inside is None else ""
        self._held = self._half = ""
        self._inside, self._budget = None, 0
        return self._clean(rest)

    def _clean(self, text: str) -> str:
        if any(introducer in text for introducer in _INTRODUCERS):
            text = self._remove.sub("", text)
        if _ANY_LONE.search(text):
            text = text.translate(self._lone[text.isascii()])
        return text

    def _whole_characters(self, text: str) -> str:
        """The text with its surrogates mended; a first half at the end waits for its second."""
        text = self._half + text
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._half, text = text[-1], text[:-1]
        return _mend_surrogates(text)

    def _hold_back(self, text: str) -> str:
        """The text up to a sequence that it does not finish."""
        if self._inside is not None:
            text = self._skip_payload(text)
        if self._held:
            text, self._held = self._held + text, ""
        if "\x1b\x1b" in text:  # only the last one of several means anything
            text = _ESCAPES.sub("\x1b", text)
        start = max(text.rfind(introducer) for introducer in _INTRODUCERS)
        if start < 0:
            return text
        if _UNFINISHED.match(text, start):
            self._held = text[start:]
        elif found := _INSIDE_SIXEL.match(text, start):
            self._inside, self._budget = _MORE_SIXEL, _SIXEL_LIMIT - len(found[1])
        elif found := _INSIDE_STRING.match(text, start):
            self._inside, self._budget = _MORE_STRING, STRING_LIMIT - len(found[1])
        else:
            return text
        return text[:start]

    def _skip_payload(self, text: str) -> str:
        assert self._inside is not None
        found = self._inside.match(text, 0, self._budget)
        end = found.end() if found else 0
        self._budget -= end
        if end == len(text):
            return ""
        self._inside = None
        return text[end + 1 :] if text[end] in "\x07\x18\x1a\x9c" else text[end:]


def sanitise(text: str, keep_sgr: bool = False) -> str:
    """The whole text without its controls. A sequence that the text does not finish is dropped."""
    sanitiser = Sanitiser(keep_sgr)
    return sanitiser.feed(text) + sanitiser.close()


def sanitise_stream(pieces: Iterable[str], keep_sgr: bool = False) -> Iterator[str]:
    """The pieces without their controls, empty ones left out."""
    sanitiser = Sanitiser(keep_sgr)
    for piece in pieces:
        if clean := sanitiser.feed(piece):
            yield clean
    if clean := sanitiser.close():
        yield clean


def sanitise_line(text: str, limit: int) -> str:
    """One line for a title, a name or a notice: at most `limit` terminal cells, cut with `…`.

    Line breaks become `⏎`, tabs become spaces, bidirectional controls become visible, because a line that stands next
    to our own words must not reorder them. Costs what is shown, not what was given.
    """
    shown: list[str] = []
    cells = 0
    for character in _line_characters(text):
        width = _cell_width(character)
        if cells + width > limit:
            return _cut(shown, cells, limit)
        shown.append(character)
        cells += width
    return "".join(shown)


def show_bidi(text: str) -> str:
    """The text with its bidirectional controls drawn as `⟨U+202E⟩`: a terminal that obeys them moves our words. So are
    the line separators of Unicode, which some take for a line end."""
    if text.isascii():
        return text
    return _BIDI.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def utf8_decoder() -> codecs.IncrementalDecoder:
    """Bytes to text, cut anywhere; what is not UTF-8 becomes U+FFFD."""
    return codecs.getincrementaldecoder("utf-8")("replace")


def _mend_surrogates(text: str) -> str:
    """Halves that belong together become their character, others U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # JSON's own escaping is the fastest way there is to join the pairs of a long text.
        joined: str = scanstring(encode_basestring_ascii(text), 1)[0]
        return joined.translate(_SURROGATES)
    return text


def _line_characters(text: str) -> Iterator[str]:
    """The characters of the one-line form, worked out piece by piece so that a long text costs nothing."""
    pieces = (text[start : start + _LINE_PIECE] for start in range(0, len(text), _LINE_PIECE))
    after_return = False
    for clean in sanitise_stream(pieces):
        if after_return and clean.startswith("\n"):
            clean = clean[1:]
        after_return = clean.endswith("\r")
        yield from show_bidi(_LINE_BREAKS.sub("⏎", clean.replace("\t", " ")))


def _cell_width(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _cut(shown: list[str], cells: int, limit: int) -> str:
    while shown and cells > limit - 1:
        cells -= _cell_width(shown.pop())
    return "".join(shown) + "…" if limit > 0 else ""
