"""Server-sent events as OpenAI-compatible endpoints really send them, byte by byte.

Written for what occurs: comments as signs of life, events that end in one newline instead of two, JSON over several
`data:` lines, and servers that ignore `stream` and send one JSON object. Time and memory are linear in the input.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

MAX_EVENT = 64 * 1024 * 1024
"""Bytes of one event or of a whole answer; an endpoint that sends more without an end is broken."""

_OTHER_FIELDS = (b":", b"event:", b"id:", b"retry:")
_EAGER_LINES = 16
"""An event of more lines than this is parsed only at its end: parsing after each line would be quadratic."""


class Unreadable(ValueError):
    """The stream holds something that is not an event. `body` is its beginning when the stream is no event stream."""

    def __init__(self, body: str | None = None) -> None:
        super().__init__("unreadable")
        self.body = body


class EventReader:
    """Bytes in, parsed JSON objects out. `is_done` after `[DONE]`."""

    def __init__(self) -> None:
        self.is_done = False
        self.is_stream: bool | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._data: list[str] = []
        self._other = b""
        self._any_event = False

    def feed(self, data: bytes) -> Iterator[Any]:
        """The objects that are complete now. Raises `Unreadable`."""
        self._size += len(data)
        if self._size > MAX_EVENT:
            raise Unreadable
        if self.is_stream is None:
            self._parts.append(data)
            self._sniff()
            if not self.is_stream:
                return
            data = b"".join(self._parts)
            self._parts = []
        elif not self.is_stream or (b"\n" not in data and b"\r" not in data):
            self._parts.append(data)
            return
        yield from self._lines(data)

    def finish(self) -> Iterator[Any]:
        """The rest, when the body is over. A body that is no event stream is one JSON object, or `Unreadable`."""
        rest = b"".join(self._parts)
        self._parts = []
        if self.is_stream:
            yield from self._line(rest)
            yield from self._event(last=True)
            if self._other and not self._any_event:
                raise Unreadable(self._other.decode("utf-8", "replace"))
        elif rest.strip():
            text = rest.decode("utf-8", "replace").lstrip("\ufeff")
            try:
                yield json.loads(text)
            except ValueError:
                raise Unreadable(text[:2000]) from None

    def _sniff(self) -> None:
        begin = b"".join(self._parts).lstrip(b"\xef\xbb\xbf \t\r\n")
        if begin:
            self.is_stream = begin[:1] not in (b"{", b"[", b"<")
            self._parts = [begin] if self.is_stream else self._parts

    def _lines(self, data: bytes) -> Iterator[Any]:
        whole = b"".join([*self._parts, data]) if self._parts else data
        # A lone \r at the end may be the first half of \r\n; it waits with the unfinished line.
        lines = whole.replace(b"\r\n", b"\n").split(b"\n")
        rest = lines.pop()
        self._parts = [rest] if rest else []
        self._size = len(rest) + sum(map(len, self._data))
        for line in lines:
            yield from self._line(line)

    def _line(self, line: bytes) -> Iterator[Any]:
        line = line.rstrip(b"\r")
        if not line:
            yield from self._event(last=True)
        elif line.startswith(b"data:"):
            self._data.append(line[5:].strip().decode("utf-8", "replace"))
            yield from self._event(last=False)
        elif not line.startswith(_OTHER_FIELDS):
            self._other = self._other or line[:2000]

    def _event(self, *, last: bool) -> Iterator[Any]:
        """The event collected so far, if it is whole; `last` says that nothing can make it whole any more."""
        text = "\n".join(self._data)
        if not text:
            self._data = []
            return
        self._any_event = True
        if text == "[DONE]":
            self._data = []
            self.is_done = True
            return
        if not last and len(self._data) > _EAGER_LINES:
            return
        try:
            value = json.loads(text)
        except ValueError:
            if last:
                raise Unreadable from None
            return
        self._data = []
        yield value
