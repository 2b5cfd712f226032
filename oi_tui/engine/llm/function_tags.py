"""Tool calls as some local models print them: tags around a name and raw values, no JSON.

<function=execute>
<parameter=language>
python
</parameter>
<parameter=code>
print("hello")
</parameter>
</function>
"""

from __future__ import annotations

import re

from oi_tui.engine.llm.partial_json import JsonEvent

BEGIN = "<function="
_NAME = re.compile(r"<function=([\w.:\-]{1,100})>")
_PARAMETER = re.compile(r"<parameter=([\w.:\-]{1,100})>\n?")
_LONGEST_TAG = 120
_VALUE_END = "</parameter>"
_END = "</function>"


class FunctionTagStream:
    """One such call, read as it arrives into the events of the JSON object that it stands for."""

    def __init__(self) -> None:
        self.done = False
        self.broken = False
        self._held = ""
        self._key: str | None = None
        self._named = False
        self._events: list[JsonEvent] = []

    def feed(self, text: str, start: int = 0) -> tuple[list[JsonEvent], int]:
        """Like `JsonStream.feed`. Behind the end of the call nothing is read."""
        before = len(self._held)
        buffer = self._held + text[start:]
        at = 0
        while at < len(buffer) and not self.done and not self.broken:
            reached = self._value(buffer, at) if self._key is not None else self._tag(buffer, at)
            if reached is None:
                break
            at = reached
        self._held = "" if self.done or self.broken else buffer[at:]
        events, self._events = self._events, []
        return events, max(start, start + at - before) if self.done or self.broken else len(text)

    def flush(self) -> list[JsonEvent]:
        """What is held of a value that nothing more comes of."""
        held, self._held = self._held, ""
        return [JsonEvent("text", (self._key,), held)] if self._key is not None and held else []

    def _tag(self, buffer: str, at: int) -> int | None:
        """The next tag between values; None: more text is needed."""
        if buffer[at].isspace():
            return at + 1
        if self._named and buffer.startswith(_END, at):
            self._events.append(JsonEvent("close", ()))
            self.done = True
            return at + len(_END)
        found = (_PARAMETER if self._named else _NAME).match(buffer, at)
        if found is None or (self._named and found.end() == len(buffer) and buffer[-1] == ">"):
            rest = buffer[at : at + _LONGEST_TAG]
            if len(rest) < _LONGEST_TAG and "\n" not in rest.strip() and (found or not _is_hopeless(rest, self._named)):
                return None
            self.broken = True
            return at
        if self._named:
            self._key = found[1]
        else:
            self._named = True
            self._events += [JsonEvent("text", ("name",), found[1]), JsonEvent("string", ("name",))]
        return found.end()

    def _value(self, buffer: str, at: int) -> int | None:
        """A raw value up to its closing tag; what may belong to the tag is held, and the line end before it."""
        assert self._key is not None
        end = buffer.find(_VALUE_END, at)
        if end < 0:
            end = max(at, len(buffer) - len(_VALUE_END))
            if end > at:
                self._events.append(JsonEvent("text", (self._key,), buffer[at:end]))
            return end if end > at else None
        if value := buffer[at:end].removesuffix("\n"):
            self._events.append(JsonEvent("text", (self._key,), value))
        self._events.append(JsonEvent("string", (self._key,)))
        self._key = None
        return end + len(_VALUE_END)


def _is_hopeless(rest: str, named: bool) -> bool:
    """Whether the text can no longer become a tag that may stand here."""
    tags = ("<parameter=", _END) if named else (BEGIN,)
    return not any(tag.startswith(rest[: len(tag)]) for tag in tags) or ">" in rest
