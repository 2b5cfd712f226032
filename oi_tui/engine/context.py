"""The model's context window: how much a request takes of it, and what to leave out when it takes too much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oi_tui.engine.llm.base import Capabilities
from oi_tui.engine.llm.output_text import truncate_output
from oi_tui.engine.llm.request_form import ApiMessage, join_contents, repair
from oi_tui.engine.settings import ModelSettings, Settings

__all__ = ["Trimmed", "estimate_tokens", "input_budget", "repair", "trim"]

UNKNOWN_WINDOW = 8000
"""Tokens, for a model of which nothing is known."""
OUTPUT_SHARE = 0.2
"""The part of the window that is kept for the answer when nothing says how long it may be."""
MARGIN_SHARE = 0.03
"""Kept free because tokens are estimated."""
SMALLEST_BUDGET = 256
IMAGE_TOKENS = 1000
_MESSAGE_TOKENS = 4
_NOTE_TOKENS = 40
"""For the note in a text that was shortened."""
_SHORT = 600
"""Characters below which no text of the newest exchange is cut."""
_LEFT_OUT = "(The beginning of this conversation is left out here, because it did not fit.)"


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What `trim` left out. `fits` is False if the request is too long even so. `str()` is the line for the user."""

    messages: int
    tokens: int
    shortened: int = 0
    fits: bool = True

    def __str__(self) -> str:
        parts: list[str] = []
        if self.messages:
            parts.append(f"the oldest {_count(self.messages, 'message')} left out")
        if self.shortened:
            parts.append(f"{_count(self.shortened, 'long text')} shortened")
        if not parts:
            return "The request may be too long for the model's context window, and nothing of it can be left out."
        what = " and ".join(parts)
        line = f"Trimmed to the model's context window: {what} (about {self.tokens:,} tokens)."
        return line if self.fits else line + " It may still be too long."


def estimate_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """About how many tokens these OpenAI-form messages take: four ASCII characters or three other bytes for one."""
    return sum(_message_tokens(message) for message in messages)


def input_budget(capabilities: Capabilities, settings: Settings | ModelSettings) -> int:
    """How many tokens a request may have: the context window without room for the answer, and with some margin."""
    llm = settings.llm if isinstance(settings, Settings) else settings
    window = llm.context_window or capabilities.context_window
    if not window or window <= 0:
        return UNKNOWN_WINDOW
    share = int(window * OUTPUT_SHARE)
    answer = llm.max_tokens or min(share, capabilities.max_output_tokens or share)
    if answer >= window:
        answer = share
    return max(window - answer - max(25, int(window * MARGIN_SHARE)), SMALLEST_BUDGET)


def trim(messages: Sequence[Mapping[str, Any]], budget: int) -> tuple[list[dict[str, Any]], Trimmed | None]:
    """The messages within `budget` tokens, and what was left out for that (None: nothing).

    The system message and what the user said last always stay. The oldest exchanges go first, whole; then the oldest
    steps of the newest exchange, each call with its result; long texts of that exchange are shortened before.
    """
    trimming = _Trimming([ApiMessage(message) for message in messages], budget)
    return trimming.result()


class _Trimming:
    def __init__(self, messages: list[ApiMessage], budget: int) -> None:
        self._before = estimate_tokens(messages)
        self._budget = budget
        self._messages = messages
        self._count = len(messages)
        self._shortened = 0
        head = 1 if messages and messages[0].get("role") in ("system", "developer") else 0
        self._system, rest = messages[:head], messages[head:]
        newest = max((i for i, m in enumerate(rest) if m.opens_exchange), default=0)
        self._older, self._exchange = rest[:newest], rest[newest:]

    def result(self) -> tuple[list[dict[str, Any]], Trimmed | None]:
        if self._before <= self._budget:
            return list(self._messages), None
        for step in (self._drop_exchanges, self._shorten_results, self._drop_steps, self._shorten_all):
            step()
            if self._size() <= self._budget:
                break
        kept = repair(self._kept())
        left_out = self._left_out()
        after = estimate_tokens(kept)
        return kept, Trimmed(left_out, max(0, self._before - after), self._shortened, after <= self._budget)

    def _left_out(self) -> int:
        return self._count - len(self._system) - len(self._older) - len(self._exchange)

    def _kept(self) -> list[ApiMessage]:
        system = self._system
        if system and self._left_out():
            system = [system[0].changed(content=join_contents(system[0].get("content"), _LEFT_OUT))]
        return [*system, *self._older, *self._exchange]

    def _size(self) -> int:
        return estimate_tokens(self._kept())

    def _drop_exchanges(self) -> None:
        """Drop whole exchanges, oldest first, until the rest fits."""
        size = self._size() + _text_tokens(_LEFT_OUT)
        while self._older and size > self._budget:
            end = next((i for i, m in enumerate(self._older) if i and m.opens_exchange), len(self._older))
            size -= estimate_tokens(self._older[:end])
            del self._older[:end]

    def _shorten_results(self) -> None:
        """Shorten long outputs of the newest exchange, oldest first, and never the last one."""
        results = [i for i, m in enumerate(self._exchange) if i and m.get("role") in ("tool", "user")]
        for index in results[:-1]:
            if self._size() <= self._budget:
                return
            self._shorten(index)

    def _drop_steps(self) -> None:
        """Drop the oldest steps of the newest exchange: a call with its results, or an answer and its output."""
        size = self._size()
        while size > self._budget:
            starts = [i for i, m in enumerate(self._exchange) if i and m.get("role") == "assistant"]
            if len(starts) < 2:
                return
            size -= estimate_tokens(self._exchange[starts[0] : starts[1]])
            del self._exchange[starts[0] : starts[1]]

    def _shorten_all(self) -> None:
        """Shorten everything that is left, the longest text first."""
        order = sorted(range(len(self._exchange)), key=lambda i: -_message_tokens(self._exchange[i]))
        for index in order:
            if self._size() <= self._budget:
                return
            self._shorten(index)

    def _shorten(self, index: int) -> None:
        """Cut one text to what fits, but not to nothing."""
        message = self._exchange[index]
        content = message.get("content")
        if not isinstance(content, str) or len(content) <= 2 * _SHORT:
            return
        tokens = _text_tokens(content)
        fitting = tokens - (self._size() - self._budget) - _NOTE_TOKENS
        length = max(_SHORT, int(len(content) * fitting / tokens))
        self._exchange[index] = message.changed(content=truncate_output(content, length))
        self._shortened += 1


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _message_tokens(message: Mapping[str, Any]) -> int:
    tokens = _MESSAGE_TOKENS + _content_tokens(message.get("content"))
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        tokens += _MESSAGE_TOKENS + _text_tokens(str(function.get("name", "")) + str(function.get("arguments", "")))
    return tokens


def _content_tokens(content: Any) -> int:
    if isinstance(content, str):
        return _text_tokens(content)
    parts = content if isinstance(content, Sequence) else ()
    return sum(IMAGE_TOKENS if part.get("type") != "text" else _text_tokens(part.get("text", "")) for part in parts)


def _text_tokens(text: str) -> int:
    if text.isascii():
        return (len(text) + 3) // 4
    ascii_only = len(text.encode("ascii", "ignore"))
    others = len(text.encode("utf-8", "surrogatepass")) - ascii_only
    return (ascii_only + 3) // 4 + (others + 2) // 3
