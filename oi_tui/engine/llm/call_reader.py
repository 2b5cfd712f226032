"""Reads the JSON of a tool call, as it arrives, into pieces of code.

The one tool is `execute(language, code)`, but models write it in many ways, and all of these are read: keys in any
order, the arguments as an object or as a string that holds JSON, the whole call wrapped as `{"name": …, "arguments":
…}` or in the OpenAI form, several of them in an array or under `tool_uses`, and near names such as `command` for the
code. Code is passed on as soon as its language is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from oi_tui.engine.llm.function_tags import FunctionTagStream
from oi_tui.engine.llm.partial_json import JsonEvent, JsonStream, Path
from oi_tui.engine.llm.pieces import CodeEnd, CodeStart, CodeText, Piece, Resolve

TOOL_NAME = "execute"
DEFAULT_LANGUAGE = "python"
"""For calls that name no language."""

_EXECUTE_NAMES = frozenset({"execute", "exec", "run", "run_code", "execute_code", "code_interpreter", "functions"})
_NAME_KEYS = frozenset({"name", "recipient_name", "function", "tool", "tool_name", "function_name"})
_LANGUAGE_KEYS = frozenset({"language", "lang"})
_CODE_KEYS = frozenset({"code", "command", "cmd", "script", "source", "input"})
_BOOKKEEPING_KEYS = frozenset({"id", "type", "index"})
_WRAPPERS = frozenset(
    {"arguments", "parameters", "args", "input", "function", "function_call", "tool_call", "tool_calls", "tool_uses"}
)
_STRING_WRAPPERS = frozenset({"", "arguments", "parameters", "args"})
_NAME_LIMIT = 200
_NESTED_LIMIT = 8
_INSIDE = "\0"
"""Marks in a path the step from a string into the JSON that it holds."""

BROKEN_ARGUMENTS = (
    "The arguments of this call are not valid JSON, so nothing was run. "
    "Call execute again with a JSON object that has the strings language and code."
)
CUT_OFF = "This call was cut off before its end, so nothing was run. Send it again, in smaller parts if it is long."
NO_CODE = "This call has no code, so nothing was run. Call execute with the strings language and code."


def tool_language(name: str, resolve: Resolve) -> tuple[bool, str | None]:
    """Whether a tool's name means `execute`, and the language that the name itself says.

    `execute`, `functions.execute`, `python`, `bash` are good names; so is no name at all.
    """
    tail = re.sub(r":\d+$", "", name.strip().lower()).rpartition(".")[2]
    if not tail or tail in _EXECUTE_NAMES:
        return True, None
    language = resolve(tail)
    return language is not None, language


def language_within(name: str, resolve: Resolve) -> str | None:
    """The language in a made-up tool name such as `run_python` or `bash-exec`."""
    words = (word for word in re.split(r"[^a-z0-9+#]+", name.lower()) if word)
    return next((found for word in words if (found := resolve(word))), None)


@dataclass(slots=True)
class _Call:
    """What is known of one call. `code` is only what has not been passed on yet."""

    key: str
    call_id: str | None
    name: str = ""
    language: str = ""
    has_language: bool = False
    code: list[str] = field(default_factory=list)
    has_code: bool = False
    code_is_whole: bool = False
    substitutes: dict[str, list[str]] = field(default_factory=dict)
    """Values under near names of `code`, used if `code` never comes."""
    started: bool = False
    ended: bool = False


class CallReader:
    """One JSON text with one call or several.

    `printed` is for JSON found in prose, where it may be anything: nothing is passed on before it is certain to be a
    call, and `verdict` becomes False as soon as it is certain that it is not one. `stream` reads another notation.
    """

    def __init__(
        self,
        resolve: Resolve,
        new_key: Callable[[], str],
        *,
        name: str = "",
        call_id: str | None = None,
        printed: bool = False,
        stream: JsonStream | FunctionTagStream | None = None,
    ) -> None:
        self.verdict: bool | None = None
        self._resolve = resolve
        self._new_key = new_key
        self._name = name
        self._call_id = call_id
        self._printed = printed
        self._stream = stream or JsonStream()
        self._nested: dict[Path, _Nested] = {}
        self._calls: dict[tuple[int, ...], _Call] = {}
        self._pieces: list[Piece] = []

    @property
    def done(self) -> bool:
        """The JSON text is whole."""
        return self._stream.done

    @property
    def broken(self) -> bool:
        """The JSON text cannot become whole any more."""
        return self._stream.broken or any(nested.broken for nested in self._nested.values())

    def feed(self, text: str, start: int = 0) -> tuple[list[Piece], int]:
        """Read `text` from `start`; returns the new pieces and how far it read."""
        events, position = self._stream.feed(text, start)
        for event in events:
            self._event(event, event.path)
        if self.done:
            self._end_calls()
        elif self.broken and self.verdict is None:
            self.verdict = False
        return self._take(), position

    def finish(self, *, cut: bool) -> list[Piece]:
        """Nothing more comes. `cut`: the answer was ended by a limit or a fault, not by the model."""
        for event in self._stream.flush():
            self._event(event, event.path)
        for call in self._calls.values():
            self._end(call, whole=not cut and not self.broken and call.code_is_whole)
        return self._take()

    def _take(self) -> list[Piece]:
        pieces, self._pieces = self._pieces, []
        return pieces

    def _event(self, event: JsonEvent, path: Path) -> None:
        located = _locate(path)
        if located is None:
            self._foreign()
            return
        slot, leaf = located
        if event.kind in ("text", "string"):
            self._string(event, path, slot, leaf)
        elif event.kind == "close" and leaf == "" and slot in self._calls:
            self._close(self._calls[slot])
        elif event.kind == "scalar" and leaf not in _BOOKKEEPING_KEYS:
            self._foreign()
        elif event.kind == "open" and leaf and leaf not in _WRAPPERS:
            self._foreign()

    def _foreign(self) -> None:
        """Something that no call contains: printed JSON with it is not a call."""
        if self.verdict is None and self._printed:
            self.verdict = False

    def _string(self, event: JsonEvent, path: Path, slot: tuple[int, ...], leaf: str) -> None:
        ended = event.kind == "string"
        if leaf in _STRING_WRAPPERS:
            self._nested_text(event, path, slot)
        elif leaf in _NAME_KEYS:
            self._name_text(self._call(slot), event.text, ended)
        elif leaf in _LANGUAGE_KEYS:
            self._language_text(self._call(slot), event.text, ended)
        elif leaf == "code":
            self._code_text(self._call(slot), event.text, ended)
        elif leaf in _CODE_KEYS:
            self._call(slot).substitutes.setdefault(leaf, []).append(event.text)
        elif leaf not in _BOOKKEEPING_KEYS:
            self._foreign()

    def _nested_text(self, event: JsonEvent, path: Path, slot: tuple[int, ...]) -> None:
        """A string that should hold the JSON of the arguments; if it holds something else, that is the code."""
        nested = self._nested.get(path)
        if nested is None:
            if len(self._nested) >= _NESTED_LIMIT:
                return
            nested = self._nested[path] = _Nested()
        for inner in nested.feed(event.text, ended=event.kind == "string"):
            if isinstance(inner, str):
                self._code_text(self._call(slot), inner, ended=False)
            else:
                self._event(inner, (*path, _INSIDE, *inner.path))
        if event.kind == "string" and nested.is_code:
            self._code_text(self._call(slot), "", ended=True)

    def _call(self, slot: tuple[int, ...]) -> _Call:
        if slot not in self._calls:
            call_id = self._call_id
            if call_id and self._calls:
                call_id = f"{call_id}_{len(self._calls)}"
            self._calls[slot] = _Call(self._new_key(), call_id)
        return self._calls[slot]

    def _name_text(self, call: _Call, text: str, ended: bool) -> None:
        call.name += text[: _NAME_LIMIT + 1 - len(call.name)]
        if len(call.name) > _NAME_LIMIT or (ended and not tool_language(call.name, self._resolve)[0]):
            self._foreign()

    def _language_text(self, call: _Call, text: str, ended: bool) -> None:
        if call.has_language:
            return
        call.language += text[: _NAME_LIMIT - len(call.language)]
        if ended:
            call.language = self._canonical(call.language)
            call.has_language = True
            if self._printed and not call.name and self._resolve(call.language) is None:
                self._foreign()
            self._pass_on(call)

    def _canonical(self, language: str) -> str:
        plain = language.strip().lower()
        return self._resolve(plain) or plain

    def _code_text(self, call: _Call, text: str, ended: bool) -> None:
        if call.code_is_whole:
            return
        call.has_code = True
        call.code_is_whole = ended
        if text:
            call.code.append(text)
        self._pass_on(call)

    def _known_language(self, call: _Call) -> str | None:
        """The language as far as it is certain now."""
        if call.has_language:
            return call.language
        named = call.name if self._printed else call.name or self._name
        return tool_language(named, self._resolve)[1] if named else None

    def _pass_on(self, call: _Call) -> None:
        """Start the block if that is possible, and pass on the code that has come."""
        if self.verdict is False or call.ended or not call.has_code:
            return
        if not call.started:
            language = self._known_language(call)
            if language is None:
                return
            self._start(call, language)
        if call.code:
            self._pieces.append(CodeText(call.key, "".join(call.code)))
            call.code = []

    def _start(self, call: _Call, language: str) -> None:
        self.verdict = True
        call.started = True
        self._pieces.append(CodeStart(call.key, language, call.call_id))

    def _close(self, call: _Call) -> None:
        """The call's object is whole."""
        if self._printed and not call.started and not (call.name and (call.has_code or call.substitutes)):
            self._foreign()
        self._end(call, whole=not self.broken)

    def _end_calls(self) -> None:
        if self.verdict is None and self._printed and not self._calls:
            self.verdict = False
        for call in self._calls.values():
            self._close(call)

    def _end(self, call: _Call, *, whole: bool) -> None:
        if call.ended or self.verdict is False or (self._printed and not call.started and not whole):
            return
        if not call.has_code and call.substitutes:
            call.code = next(iter(call.substitutes.values()))
            call.has_code = True
        if not call.started and call.has_code:
            made_up = language_within(call.name or self._name, self._resolve)
            self._start(call, self._known_language(call) or made_up or DEFAULT_LANGUAGE)
        if not call.started:
            return
        self._pass_on(call)
        call.ended = True
        problem = None if whole else BROKEN_ARGUMENTS if self.broken else CUT_OFF
        self._pieces.append(CodeEnd(call.key, whole, problem))


class _Nested:
    """A string inside the JSON that holds JSON again, or plain code."""

    def __init__(self) -> None:
        self.is_code = False
        self._json: JsonStream | None = None
        self._unfinished = False

    @property
    def broken(self) -> bool:
        return self._unfinished or (self._json is not None and self._json.broken)

    def feed(self, text: str, *, ended: bool) -> list[JsonEvent | str]:
        out: list[JsonEvent | str] = []
        if not self.is_code and self._json is None and (start := text.lstrip()):
            if start[0] in '{["':
                self._json = JsonStream()
            else:
                self.is_code = True
        if self.is_code:
            out.append(text)
        elif self._json is not None:
            out += self._json.feed(text)[0]
            self._unfinished = ended and not self._json.done
        return out


def _locate(path: Path) -> tuple[tuple[int, ...], str] | None:
    """Which call a value belongs to and what it is, whatever it is wrapped in; None if it belongs to none."""
    slot: list[int] = []
    parts = [part for part in path if part != _INSIDE]
    for part in parts[:-1]:
        if isinstance(part, int):
            slot.append(part)
        elif part not in _WRAPPERS:
            return None
    leaf = parts[-1] if parts else ""
    if isinstance(leaf, int):
        return (*slot, leaf), ""
    return tuple(slot), leaf
