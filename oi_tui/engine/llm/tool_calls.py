"""Tool mode: from the fragments of tool calls to code, as it arrives.

There is one tool, `execute(language, code)`. Providers differ in how they number the calls of one answer, and models
in how they write them; a call that is not understood is never lost, it ends in a `problem` that the model is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any
from uuid import uuid4

from oi_tui.engine.llm.base import ToolCallDelta
from oi_tui.engine.llm.call_reader import (
    BROKEN_ARGUMENTS,
    CUT_OFF,
    DEFAULT_LANGUAGE,
    NO_CODE,
    TOOL_NAME,
    CallReader,
    language_within,
    tool_language,
)
from oi_tui.engine.llm.partial_json import SurrogateJoiner, join_surrogates
from oi_tui.engine.llm.pieces import CodeEnd, CodeStart, CodeText, Piece, Resolve

CUT_REASONS = frozenset({"length", "max_tokens", "content_filter", "error"})
"""Finish reasons that mean: the model had more to say."""

_OBJECT_WITH_KEY = re.compile(r"""\{\s*["']?(\w+)["']?\s*:""")
_MAYBE_OBJECT = re.compile(r"""(?:\{\s*(?:["']?\w*["']?\s*)?)?\Z""")
_ARGUMENT_KEYS = frozenset(
    {"language", "lang", "code", "command", "cmd", "script", "source", "input", "arguments", "name"}
)
_HEAD_LIMIT = 100
"""Characters at the beginning of raw arguments by which JSON is recognised."""


def execute_tool(languages: Sequence[str]) -> dict[str, Any]:
    """The tool `execute` in the form of the OpenAI API, for these canonical language names."""
    return {
        "type": "function",
        "function": {
            "name": TOOL_NAME,
            "description": "Run code on the user's machine. The user sees it first and may change or decline it. "
            "Returns what it printed. State is kept between calls in the same language.",
            "parameters": {
                "type": "object",
                "properties": {
                    "language": {"type": "string", "enum": list(languages), "description": "The language of the code."},
                    "code": {"type": "string", "description": "The code to run."},
                },
                "required": ["language", "code"],
            },
        },
    }


class ToolCallParser:
    """The tool calls of one answer. Feed it every delta, then finish it."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._keys = count()
        self._calls: list[_ToolCall] = []
        self._current: _ToolCall | None = None

    def feed(self, deltas: ToolCallDelta | Iterable[ToolCallDelta]) -> list[Piece]:
        """The pieces that have become certain."""
        pieces: list[Piece] = []
        for delta in [deltas] if isinstance(deltas, ToolCallDelta) else deltas:
            call = self._find(delta)
            if call is None:
                if self._current is not None and delta.index is None:
                    pieces += self._current.finish(cut=False)
                call = self._open(delta)
            self._current = call
            pieces += call.feed(delta)
        return pieces

    def finish(self, finish_reason: str | None) -> list[Piece]:
        """End every call. None as reason: the stream broke off. A call whose code is not whole is ended as incomplete
        whatever the reason says, and one whose arguments are whole is complete even in an answer that was cut."""
        pieces: list[Piece] = []
        for call in self._calls:
            pieces += call.finish(cut=finish_reason is None or finish_reason in CUT_REASONS)
        return pieces

    def _open(self, delta: ToolCallDelta) -> _ToolCall:
        taken = {call.call_id for call in self._calls}
        call_id = delta.id if delta.id and delta.id not in taken else f"call_{uuid4().hex[:12]}"
        call = _ToolCall(self._resolve, lambda: f"call-{next(self._keys)}", delta, call_id)
        self._calls.append(call)
        return call

    def _find(self, delta: ToolCallDelta) -> _ToolCall | None:
        """The call that a fragment continues; None if it begins a new one."""
        call = self._by_id(delta) if delta.id else None
        if call is None and delta.id and delta.name:
            return None
        if call is None:  # some servers make up an id for every fragment; only the first has a name
            call = self._by_index(delta)
            if delta.id and call is not None and call.is_done:
                return None
        return None if call is not None and delta.name and call.is_over(delta.name) else call

    def _by_index(self, delta: ToolCallDelta) -> _ToolCall | None:
        if delta.index is None:
            return self._current
        return next((call for call in reversed(self._calls) if call.index == delta.index), None)

    def _by_id(self, delta: ToolCallDelta) -> _ToolCall | None:
        for call in reversed(self._calls):
            if call.given_id == delta.id and delta.index in (None, call.index):
                return call
        late = self._by_index(delta)
        if late is not None and late.given_id is None and not late.has_begun:
            late.given_id = delta.id
            return late
        return None


class _ToolCall:
    """One call: its name, then its arguments."""

    def __init__(self, resolve: Resolve, new_key: Callable[[], str], delta: ToolCallDelta, call_id: str) -> None:
        self.index = delta.index
        self.given_id = delta.id or None
        self.call_id = call_id
        self.name = ""
        self._resolve = resolve
        self._new_key = new_key
        self._arguments: list[str] = []
        self._reader: CallReader | _RawCode | None = None
        self._is_started = False
        self._is_finished = False

    @property
    def has_begun(self) -> bool:
        """Arguments have come."""
        return bool(self._arguments)

    @property
    def is_done(self) -> bool:
        """Its arguments are whole."""
        return self._reader is not None and self._reader.done

    def is_over(self, name: str) -> bool:
        """Whether a fragment that carries this name begins another call. Some servers repeat the name each time."""
        if not self.has_begun:
            return False
        return name != self.name or self.is_done

    def feed(self, delta: ToolCallDelta) -> list[Piece]:
        if delta.name and delta.name != self.name and not self.has_begun:
            self.name += delta.name
        if not delta.arguments or self._is_finished:
            return []
        self._arguments.append(delta.arguments)
        return self._read(delta.arguments)

    def _read(self, text: str) -> list[Piece]:
        if self._reader is None:
            self._reader = self._new_reader()
        pieces: list[Piece] = []
        position = 0
        while position < len(text):
            if self._reader.done:
                position += len(text[position:]) - len(text[position:].lstrip())
                if not text.startswith(("{", "["), position):
                    break
                self._reader = self._new_reader()  # a second object in the same arguments is a second call
            found, position = self._reader.feed(text, position)
            pieces += found
            if self._reader.broken:
                break
        return self._seen(pieces)

    def _new_reader(self) -> CallReader | _RawCode:
        language = tool_language(self.name, self._resolve)[1]
        tail = self.name.strip().lower().rpartition(".")[2]
        call_id = self.call_id if not self._is_started else f"{self.call_id}_{uuid4().hex[:4]}"
        if tail == "functions" or language is not None:
            return _RawCode(self._resolve, self._new_key, self.name, call_id, language or DEFAULT_LANGUAGE)
        return CallReader(self._resolve, self._new_key, name=self.name, call_id=call_id)

    def _seen(self, pieces: list[Piece]) -> list[Piece]:
        self._is_started = self._is_started or any(isinstance(piece, CodeStart) for piece in pieces)
        return pieces

    def finish(self, *, cut: bool) -> list[Piece]:
        if self._is_finished:
            return []
        self._is_finished = True
        pieces = self._seen(self._reader.finish(cut=cut)) if self._reader is not None else []
        return pieces if self._is_started else pieces + self._failed(cut)

    def _failed(self, cut: bool) -> list[Piece]:
        """No code came out of the call: show what came and say why it is nothing to run."""
        raw = join_surrogates("".join(self._arguments))
        known = tool_language(self.name, self._resolve)[0]
        language = language_within(self.name, self._resolve) or (DEFAULT_LANGUAGE if known else self.name)
        done = self._reader is not None and self._reader.done and raw.lstrip().startswith(("{", "["))
        complete = done or not raw
        if not known:
            problem = f"There is no tool called {json.dumps(self.name[:80])}. The only tool is execute(language, code)."
        elif complete:
            problem = NO_CODE
        else:
            problem = BROKEN_ARGUMENTS if self._reader is None or self._reader.broken or not cut else CUT_OFF
        key = self._new_key()
        start: list[Piece] = [CodeStart(key, language, self.call_id)]
        return [*start, *([CodeText(key, raw)] if raw else []), CodeEnd(key, complete, problem)]


class _RawCode:
    """Arguments of a tool that is named like a language: the code itself, or JSON after all."""

    def __init__(self, resolve: Resolve, new_key: Callable[[], str], name: str, call_id: str, language: str) -> None:
        self._resolve = resolve
        self._new_key = new_key
        self._name = name
        self._call_id = call_id
        self._language = language
        self._joiner = SurrogateJoiner()
        self._held: list[str] = []
        self._head = ""
        self._key: str | None = None
        self._json: CallReader | None = None

    @property
    def done(self) -> bool:
        return self._json is not None and self._json.done

    @property
    def broken(self) -> bool:
        return self._json is not None and self._json.broken

    def feed(self, text: str, start: int = 0) -> tuple[list[Piece], int]:
        """Read `text` from `start`; returns the new pieces and how far it read."""
        if self._json is not None:
            return self._json.feed(text, start)
        text = text[start:]
        self._held.append(text)
        if self._key is None:
            self._head = (self._head + text).lstrip()[:_HEAD_LIMIT]
            if (match := _OBJECT_WITH_KEY.match(self._head)) and match[1] in _ARGUMENT_KEYS:
                self._json = CallReader(self._resolve, self._new_key, name=self._name, call_id=self._call_id)
                held = "".join(self._held)
                pieces, end = self._json.feed(held)
                return pieces, start + max(0, len(text) - (len(held) - end))
            if self._is_string or (len(self._head) < _HEAD_LIMIT and _MAYBE_OBJECT.match(self._head)):
                return [], start + len(text)
        return self._pass_on(), start + len(text)

    @property
    def _is_string(self) -> bool:
        """A JSON string with the code in it; that is known at the end only."""
        return self._head.startswith('"') and not self._head.startswith('"""')

    def _pass_on(self) -> list[Piece]:
        pieces: list[Piece] = []
        if self._key is None:
            self._key = self._new_key()
            pieces.append(CodeStart(self._key, self._language, self._call_id))
        if text := self._joiner.feed("".join(self._held)):
            pieces.append(CodeText(self._key, text))
        self._held = []
        return pieces

    def finish(self, *, cut: bool) -> list[Piece]:
        """End the block, if there is one."""
        if self._json is not None:
            return self._json.finish(cut=cut)
        if self._key is None and self._is_string:
            self._held = [_unquoted("".join(self._held))]
        pieces = self._pass_on() if self._held else []
        if self._key is None:
            return pieces
        if last := self._joiner.finish():
            pieces.append(CodeText(self._key, last))
        return [*pieces, CodeEnd(self._key, not cut, CUT_OFF if cut else None)]


def _unquoted(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else text
