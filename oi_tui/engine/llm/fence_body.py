"""What becomes of the lines inside a fence: code, prose, or one of the two when the fence is closed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from oi_tui.engine.llm.call_reader import CUT_OFF
from oi_tui.engine.llm.fence_syntax import looks_like_python
from oi_tui.engine.llm.pieces import CodeEnd, CodeStart, CodeText, Piece, Text


class Fence:
    """An opening fence. `opening` is its line as written, `indent` the columns that its lines lose.

    `closing` matches a line that closes it, `closing_at_end` the same as the last line of the answer, `nested` a line
    inside it that opens another fence, `begun` what may still become one of them.
    """

    def __init__(self, opening: str, marker: str, indent: int) -> None:
        self.opening = opening
        self.marker = marker
        self.indent = indent
        lead, char = f" {{0,{indent + 3}}}", re.escape(marker[0])
        self.closing = re.compile(rf"{lead}{char}{{{len(marker)},}}[ \t]*\n")
        self.closing_at_end = re.compile(rf"{lead}{char}{{{len(marker)},}}[ \t]*\Z")
        self.nested = re.compile(rf"{lead}{char}{{{len(marker)},}}[\w+#.\-]{{1,30}}[ \t]*(?:\n|\Z)")
        self.begun = re.compile(rf"{lead}(?:{char}*|{char}{{{len(marker)},}}[\w+#.\-]{{1,30}})[ \t]*\Z")


class Body(Protocol):
    """Takes the lines of a fence. `raw` is the text as written, `code` the same without the fence's indentation."""

    def add(self, raw: str, code: str) -> list[Piece]: ...

    def end(self, closing: str, *, complete: bool) -> list[Piece]: ...


class CodeBody:
    """Code: the fence lines and the last line end are not part of it."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._line_end = ""

    def add(self, raw: str, code: str) -> list[Piece]:
        text = self._line_end + code
        self._line_end = "\n" if text.endswith("\n") else ""
        text = text.removesuffix("\n")
        return [CodeText(self._key, text)] if text else []

    def end(self, closing: str, *, complete: bool) -> list[Piece]:
        return [CodeEnd(self._key, complete, None if complete else CUT_OFF)]


class ProseBody:
    """Not code: everything is prose, the fence lines included."""

    def add(self, raw: str, code: str) -> list[Piece]:
        return [Text(raw)] if raw else []

    def end(self, closing: str, *, complete: bool) -> list[Piece]:
        return [Text(closing)] if closing else []


class UndecidedBody:
    """A fence without a tag: held until its end shows whether it is Python."""

    def __init__(self, fence: Fence, new_key: Callable[[], str], language: str | None) -> None:
        self._raw = [fence.opening]
        self._code: list[str] = []
        self._new_key = new_key
        self._language = language

    def add(self, raw: str, code: str) -> list[Piece]:
        self._raw.append(raw)
        self._code.append(code)
        return []

    def end(self, closing: str, *, complete: bool) -> list[Piece]:
        code = "".join(self._code)
        if self._language is None or not looks_like_python(code):
            return [Text("".join(self._raw) + closing)]
        key = self._new_key()
        body = CodeBody(key)
        return [CodeStart(key, self._language), *body.add("", code), *body.end("", complete=complete)]
