"""The text of an answer as it arrives: what has been read of it, what is held back, and thinking at its beginning."""

from __future__ import annotations

import re
from collections.abc import Callable

from oi_tui.engine.llm.piece_output import PieceOutput
from oi_tui.engine.llm.pieces import Reasoning, Text

HOLD_LIMIT = 256
"""A line that might open or close something is held back up to this length."""

_THINK = re.compile(r"\s*<(think|thinking)>")
_MAYBE_THINK = re.compile(r"\s*(?:<(?:t(?:h(?:i(?:n(?:k(?:i(?:n(?:g)?)?)?)?)?)?)?)?)?\Z")
_SPACE = re.compile(r"\s+")


class AnswerScanner:
    """A state machine over a growing text.

    A mode is a method that consumes something and returns True, or returns False: it needs more text. The first mode
    looks for `<think>`; what follows, or everything, is read by `_answer_mode`.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._text = ""
        self._at = 0
        self._carriage_return = ""
        self._final = False
        self._out = PieceOutput()
        self._mode: Callable[[], bool] = self._beginning
        self._think_end = ""

    def _answer_mode(self) -> bool:
        raise NotImplementedError

    def _take_in(self, text: str) -> None:
        """Add text and read as far as possible. Line ends of Windows become plain ones."""
        text = self._carriage_return + text
        self._carriage_return = "\r" if text.endswith("\r") else ""
        self._text = self._text[self._at :] + text.removesuffix("\r").replace("\r\n", "\n")
        self._at = 0
        self._run()

    def _run(self) -> None:
        while self._at < len(self._text) and self._mode():
            pass

    def _pass_text(self, end: int) -> str:
        """Text up to `end` is prose. Returns it."""
        text = self._text[self._at : end]
        self._out.add([Text(text)])
        self._at = end
        return text

    def _rest(self) -> str:
        """The beginning of what has not been read."""
        return self._text[self._at : self._at + HOLD_LIMIT]

    def _may_hold(self, pattern: re.Pattern[str]) -> bool:
        """Whether what has not been read is short, and may become what the pattern describes."""
        if self._final or len(self._text) - self._at > HOLD_LIMIT:
            return False
        return pattern.match(self._text, self._at) is not None

    def _beginning(self) -> bool:
        """At the beginning of the answer, where local models think aloud."""
        if thinking := _THINK.match(self._text, self._at):
            self._think_end = f"</{thinking[1]}>"
            self._at = thinking.end()
            self._mode = self._before_thought
        elif self._may_hold(_MAYBE_THINK):
            return False
        else:
            self._mode = self._answer_mode
        return True

    def _before_thought(self) -> bool:
        if space := _SPACE.match(self._text, self._at):
            self._at = space.end()
        else:
            self._mode = self._thinking
        return True

    def _thinking(self) -> bool:
        """Everything up to the closing tag, also code, is thought and no more."""
        end = self._text.find(self._think_end, self._at)
        if end >= 0:
            self._pass_thought(end)
            self._at = end + len(self._think_end)
            self._mode = self._answer_mode
            return True
        held = 0 if self._final else _overlap(self._text[self._at :], self._think_end)
        self._pass_thought(len(self._text) - held)
        return self._final

    def _pass_thought(self, end: int) -> None:
        if end > self._at:
            self._out.add([Reasoning(self._text[self._at : end])])
            self._at = end


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of the text may be the beginning of the tag."""
    return next((n for n in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:n])), 0)
