"""What a terminal sends, cut into keys and pastes.

Textual's parser takes one character after the other, a microsecond each: a paste of five megabytes holds the program up
for as many seconds. Pastes are taken out before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

START, END = "\x1b[200~", "\x1b[201~"

_LEGACY_ALT_ENTER, _ALT_ENTER = "\x1b\r", "\x1b[13;3u"
"""Terminals without the kitty protocol send Alt+Enter as Escape and Return, which Textual takes for Return."""


@dataclass(frozen=True, slots=True)
class Pasted:
    """One paste, whole."""

    text: str


class TerminalInput:
    """Feed it what was read, cut anywhere; it yields text for the parser and whole pastes, in order.

    A start marker that is cut in two goes to the parser, which knows pastes as well and gets all of that one.
    """

    def __init__(self) -> None:
        self._pasted: list[str] | None = None
        self._tail = ""  # of the paste so far: the end marker may be cut in two

    def feed(self, data: str) -> Iterator[str | Pasted]:
        while data:
            if self._pasted is None:
                keys, started, data = data.partition(START)
                if keys:
                    yield keys.replace(_LEGACY_ALT_ENTER, _ALT_ENTER)
                if started:
                    self._pasted, self._tail = [], ""
                continue
            data, self._tail = self._tail + data, ""
            text, ended, rest = data.partition(END)
            if not ended:
                cut = max(0, len(data) - len(END) + 1)
                self._pasted.append(data[:cut])
                self._tail = data[cut:]
                return
            pasted = "".join(self._pasted) + text
            self._pasted, data = None, rest
            yield Pasted(pasted.replace("\0", ""))
