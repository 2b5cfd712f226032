"""JSON that is read while it arrives, one fragment after the other, wherever the fragments are cut.

A language model's arguments come in pieces of a few characters; what matters in them are long strings that should be
seen at once. `JsonStream` turns characters into events in one pass: each character is looked at once, and a fragment of
a string is passed on as soon as it is certain.

It reads more than JSON, because local models write more than JSON: raw newlines and tabs in strings, single quotes,
bare keys, trailing commas, and escapes that do not exist (`\\d` stays what it is). It never guesses where a string
ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Path: TypeAlias = tuple[str | int, ...]

MAX_DEPTH = 32
"""Deeper nesting is not read: no tool call needs it, and a path is copied for each value."""

_WHITE = re.compile(r"[ \t\r\n\ufeff]*")
_RUN = {'"': re.compile(r'[^"\\]+'), "'": re.compile(r"[^'\\]+")}
_WORD = re.compile(r"[\w.+\-$]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}
_HEX = frozenset("0123456789abcdefABCDEF")


@dataclass(frozen=True, slots=True)
class JsonEvent:
    """Something that became certain.

    `text`: the next characters of the string at `path`; `string`: that string is whole; `scalar`: a number or a word
    (in `text`, as written); `open` and `close`: an object or array begins or ends there.
    """

    kind: Literal["text", "string", "scalar", "open", "close"]
    path: Path
    text: str = ""


class SurrogateJoiner:
    """Joins surrogate halves that arrive apart; a half without its other half becomes U+FFFD."""

    def __init__(self) -> None:
        self._high = ""

    def feed(self, text: str) -> str:
        text = self._high + text
        self._high = ""
        if not _SURROGATE.search(text):
            return text
        if "\ud800" <= text[-1] <= "\udbff":
            self._high, text = text[-1], text[:-1]
        return join_surrogates(text)

    def finish(self) -> str:
        """What is left of a half that stays alone."""
        left, self._high = self._high, ""
        return "\ufffd" if left else ""


def join_surrogates(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced by U+FFFD: always encodable."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class JsonStream:
    """One JSON document. `done` when it is whole, `broken` when it cannot become one."""

    def __init__(self) -> None:
        self.done = False
        self.broken = False
        self._path: list[str | int] = []
        self._arrays: list[bool] = []
        self._state = "value"
        self._quote = '"'
        self._escape = ""
        self._word: list[str] = []
        self._joiner = SurrogateJoiner()
        self._events: list[JsonEvent] = []

    @property
    def in_string(self) -> bool:
        """True while a string value has begun and not ended."""
        return self._state == "string"

    def feed(self, text: str, start: int = 0) -> tuple[list[JsonEvent], int]:
        """Read `text` from `start`. Returns the events and how far it read: to the end of the text, behind the end
        of the document, or up to the character that breaks it."""
        position = start
        while position < len(text) and not (self.done or self.broken):
            position = self._step(text, position)
        events, self._events = self._events, []
        return events, position

    def flush(self) -> list[JsonEvent]:
        """What is held of a string that nothing more comes of: half a surrogate pair at most."""
        left = self._joiner.finish()
        return [JsonEvent("text", tuple(self._path), left)] if left and self._state == "string" else []

    def _step(self, text: str, position: int) -> int:
        if self._state in ("string", "key"):
            return self._in_string(text, position)
        if self._state in ("word", "bare_key"):
            return self._in_word(text, position)
        if (white := _WHITE.match(text, position)) and white.end() > position:
            return white.end()
        return self._structure(text[position], position)

    def _structure(self, char: str, position: int) -> int:
        """One structural character. A character that belongs to a word is left to be read again."""
        state = self._state
        if state == "colon" and char == ":":
            self._state = "value"
        elif state == "after" and char == "," and self._arrays:
            self._state = "item" if self._arrays[-1] else "name"
            if self._arrays[-1]:
                self._path[-1] = int(self._path[-1]) + 1
        elif char in "}]" and state in ("after", "name" if char == "}" else "item") and self._closes(char):
            self._close()
        elif state == "name" and char in _RUN:
            self._begin_string("key", char)
        elif state == "name" and _WORD.match(char):
            self._state = "bare_key"
            return position
        elif state in ("value", "item"):
            return self._begin_value(char, position)
        else:
            self.broken = True
            return position
        return position + 1

    def _begin_value(self, char: str, position: int) -> int:
        if char in _RUN:
            self._begin_string("string", char)
        elif char in "{[" and len(self._arrays) < MAX_DEPTH:
            self._emit("open", char)
            self._arrays.append(char == "[")
            self._path.append(0 if char == "[" else "")
            self._state = "item" if char == "[" else "name"
        elif _WORD.match(char):
            self._state = "word"
            return position
        else:
            self.broken = True
            return position
        return position + 1

    def _closes(self, char: str) -> bool:
        return bool(self._arrays) and self._arrays[-1] == (char == "]")

    def _close(self) -> None:
        self._arrays.pop()
        self._path.pop()
        self._emit("close")
        self._after_value()

    def _after_value(self) -> None:
        self._state = "after"
        self.done = not self._arrays

    def _begin_string(self, state: str, quote: str) -> None:
        self._state, self._quote, self._word = state, quote, []

    def _in_string(self, text: str, position: int) -> int:
        """Read to the end of the string or of the text."""
        out: list[str] = []
        ended = False
        run = _RUN[self._quote]
        while position < len(text) and not ended:
            if self._escape:
                position = self._in_escape(text[position], position, out)
            elif plain := run.match(text, position):
                out.append(plain.group())
                position = plain.end()
            else:
                ended = text[position] == self._quote
                self._escape = "" if ended else "\\"
                position += 1
        self._string_text(self._joiner.feed("".join(out)) + (self._joiner.finish() if ended else ""))
        if ended:
            self._end_string()
        return position

    def _in_escape(self, char: str, position: int, out: list[str]) -> int:
        if self._escape == "\\":
            self._escape = "\\u" if char == "u" else ""
            if char != "u":
                out.append(_ESCAPES.get(char, "\\" + char))
            return position + 1
        if char not in _HEX:  # not an escape after all: leave it as it is
            out.append(self._escape)
            self._escape = ""
            return position
        self._escape += char
        if len(self._escape) == 6:
            out.append(chr(int(self._escape[2:], 16)))
            self._escape = ""
        return position + 1

    def _string_text(self, text: str) -> None:
        if not text:
            return
        if self._state == "key":
            self._word.append(text)
        else:
            self._emit("text", text)

    def _end_string(self) -> None:
        if self._state == "key":
            self._path[-1], self._word = "".join(self._word), []
            self._state = "colon"
        else:
            self._emit("string")
            self._after_value()

    def _in_word(self, text: str, position: int) -> int:
        word = _WORD.match(text, position)
        if word:
            self._word.append(word.group())
            position = word.end()
        if position < len(text):  # the word is over
            whole, self._word = "".join(self._word), []
            if self._state == "bare_key":
                self._path[-1] = whole
                self._state = "colon"
            else:
                self._emit("scalar", whole)
                self._after_value()
        return position

    def _emit(self, kind: Literal["text", "string", "scalar", "open", "close"], text: str = "") -> None:
        self._events.append(JsonEvent(kind, tuple(self._path), text))
