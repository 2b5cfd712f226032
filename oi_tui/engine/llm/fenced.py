"""Text mode: from a streamed answer in Markdown to prose and code, as it arrives.

The answer is read line by line as CommonMark reads it, whatever the boundaries of the tokens: fences of three or more
backticks or tildes, indented up to three columns (more inside list items), closed by a fence of the same character
that is at least as long. What can still become a fence is held back; everything else is passed on at once.

- A fence whose language can run is code. Its fence lines disappear; everything else of the answer is prose, unchanged.
- A fence inside a fence is one only if it has a tag; models write such things when they write Markdown files.
- A fence with any other tag (`text`, `output`, `json`, `yaml`…) is prose.
- A fence without a tag is held until it is closed; it is Python if it is valid Python that does something, else prose.
- A fence that is never closed is closed by the end of the answer: whole if the model ended it, otherwise incomplete.
- A tool call printed as JSON is code: bare, in a fence, in `<tool_call>` tags. Any other JSON stays prose.
"""

from __future__ import annotations

import re
from itertools import count

from oi_tui.engine.llm.answer_scanner import HOLD_LIMIT, AnswerScanner
from oi_tui.engine.llm.call_reader import CallReader
from oi_tui.engine.llm.code_repair import repair_code
from oi_tui.engine.llm.fence_body import Body, CodeBody, Fence, ProseBody, UndecidedBody
from oi_tui.engine.llm.fence_syntax import language_of_info
from oi_tui.engine.llm.function_tags import FunctionTagStream
from oi_tui.engine.llm.pieces import CodeStart, Piece, Resolve, Text
from oi_tui.engine.llm.printed_calls import CLOSING_TAGS, JSON_TAGS, call_opening, may_become_call
from oi_tui.engine.llm.prose_context import LIST_MARKER, ProseContext

__all__ = ["FencedParser", "contains_code_fence", "repair_code"]

_OPEN = re.compile(rf"( *(?:{LIST_MARKER} {{1,4}})?)(`{{3,}}(?=[^`\n]*\n)|~{{3,}})([^\n]*)\n")
_MAYBE_OPEN = re.compile(r" *(?:(?:[-*+]|\d{1,9}[.)]?)(?: {1,4})?)?(?:`{0,2}|`{3,}[^`\n]*|~{1,2}|~{3,}[^\n]*)\Z")
_GLUED = re.compile(r"(`{3,})([\w+#.\-]+)[ \t\r]*\n")
_MAYBE_GLUED = re.compile(r"(?:`{1,2}|`{3,}(?:[\w+#.\-]+[ \t]*)?)\Z")
_TICKS = re.compile(r"`+")
_SPECIAL = re.compile(r"[\n`{\[<}\]]")


class FencedParser(AnswerScanner):
    """One answer. Feed it text as it comes, then finish it.

    `resolve` tells which tags are languages that can run. With `run_fences` off (tool mode) every fence is prose, and
    only printed tool calls become code. Blank lines next to code are dropped, and so is white space at the end.
    """

    def __init__(self, resolve: Resolve, *, run_fences: bool = True) -> None:
        self._resolve = resolve
        self._run_fences = run_fences
        self._keys = count()
        super().__init__()

    def _begin(self) -> None:
        super()._begin()
        self._context = ProseContext()
        self._fence: Fence | None = None
        self._body: Body = ProseBody()
        self._nested = 0
        self._reader: CallReader | None = None
        self._call_raw: list[str] = []
        self._call_at: int | None = None
        self._call_tag = ""

    def feed(self, text: str) -> list[Piece]:
        """The pieces that have become certain."""
        self._call_at = None
        self._take_in(text)
        return self._out.take()

    def finish(self, complete: bool = True) -> list[Piece]:
        """Nothing more comes. `complete`: the model ended the answer itself, so an open fence is whole.

        Afterwards the parser is ready for another text; keys go on.
        """
        self._final = True
        self._run()
        while self._reader is not None and self._reader.verdict is None:
            self._reject_call()
            self._run()
        if self._reader is not None:
            self._out.add(self._reader.finish(cut=not complete))
        elif self._fence is not None:
            if self._mode == self._fence_peek:
                self._open_other(self._fence_tag())
            self._out.add(self._body.end("", complete=complete))
        self._out.add([Text(self._text[self._at :])])
        pieces = self._out.take()
        self._begin()
        return pieces

    def _new_key(self) -> str:
        return f"block-{next(self._keys)}"

    def _pass_prose(self, end: int) -> None:
        self._context.passed(self._pass_text(end))

    # Prose.

    def _answer_mode(self) -> bool:
        return self._prose_line()

    def _prose_line(self) -> bool:
        """At the beginning of a line."""
        opening = _OPEN.match(self._text, self._at)
        if opening is not None and self._context.may_open_fence(opening[1]):
            self._pass_prose(self._at + len(opening[1].rstrip()))  # the number of a list item
            written = self._text[self._at : opening.end()]
            self._open_fence(written, opening[2], opening[3], len(opening[1]), opening.end())
            return True
        if opening is None and self._may_hold(_MAYBE_OPEN):
            return False
        self._context.begin_line(self._rest())
        self._mode = self._prose_rest
        return True

    def _prose_rest(self) -> bool:
        """Inside a line."""
        special = _SPECIAL.search(self._text, self._at)
        self._pass_prose(special.start() if special else len(self._text))
        if special is None:
            return True
        char = special.group()
        if char == "\n":
            self._pass_prose(self._at + 1)
            self._mode = self._prose_line
            return True
        if char in "}]":
            self._context.bracket(char)
            self._pass_prose(self._at + 1)
            return True
        return self._ticks() if char == "`" else self._maybe_call()

    def _ticks(self) -> bool:
        """Backticks in a line: a code span, or a fence glued to prose, if it has a language that can run."""
        glued = _GLUED.match(self._text, self._at) if self._context.line_has_text else None
        if glued is not None and language_of_info(glued[2], self._resolve) is not None:
            self._open_fence(glued[0], glued[1], glued[2], 0, glued.end())
            return True
        if glued is None and self._may_hold(_MAYBE_GLUED):
            return False
        run = _TICKS.match(self._text, self._at)
        length = run.end() - self._at if run else 1
        self._context.ticks(length)
        self._pass_prose(self._at + length)
        return True

    # Fences.

    def _open_fence(self, opening: str, marker: str, info: str, indent: int, end: int) -> None:
        self._at = end
        self._fence = Fence(opening, marker, indent)
        self._body = ProseBody()
        self._nested = 0
        self._context.fence()
        language = language_of_info(info, self._resolve) if self._run_fences else None
        tag = info.strip().lower()
        if language is not None:
            key = self._new_key()
            self._body = CodeBody(key)
            self._out.add([CodeStart(key, language)])
        elif tag in JSON_TAGS:
            self._mode = self._fence_peek
            return
        else:
            self._open_other("text")
        self._mode = self._body_line

    def _open_other(self, tag: str) -> None:
        """The fence holds no code for certain: prose, or, without a tag, something to look at when it is closed."""
        assert self._fence is not None
        if tag or not self._run_fences:
            self._body = ProseBody()
            self._out.add([Text(self._fence.opening)])
        else:
            self._body = UndecidedBody(self._fence, self._new_key, self._resolve("python"))
        self._mode = self._body_line

    def _fence_tag(self) -> str:
        assert self._fence is not None
        return self._fence.opening.strip().lstrip("`~-*+.)0123456789 ").lower()

    def _fence_peek(self) -> bool:
        """The first character in a fence that may hold a printed call."""
        if self._text[self._at] in "{[":
            self._begin_call("", "")
        else:
            self._open_other(self._fence_tag())
        return True

    def _body_line(self) -> bool:
        """At the beginning of a line in a fence."""
        assert self._fence is not None
        closing = self._fence.closing_at_end if self._final else None
        closed = self._fence.closing.match(self._text, self._at) or (closing and closing.match(self._text, self._at))
        if closed and not self._nested:
            self._at = closed.end()
            self._close_fence(closed[0])
            return True
        if not closed and self._may_hold(self._fence.begun):
            return False
        if closed:
            self._nested -= 1
        elif self._fence.nested.match(self._text, self._at):
            self._nested += 1
        end = self._at
        while end < len(self._text) and end - self._at < self._fence.indent and self._text[end] == " ":
            end += 1
        self._out.add(self._body.add(self._text[self._at : end], ""))
        self._at = end
        self._mode = self._body_rest
        return True

    def _body_rest(self) -> bool:
        """Inside a line in a fence."""
        assert self._fence is not None
        line_end = self._text.find("\n", self._at)
        end = line_end + 1 if line_end >= 0 else len(self._text)
        text = self._text[self._at : end]
        bare = text.rstrip(self._fence.marker[0])
        if line_end < 0 and self._fence.marker[0] == "`" and len(text) - len(bare) <= HOLD_LIMIT:
            if self._final and len(text) - len(bare) >= len(self._fence.marker):
                self._out.add(self._body.add(bare, bare))
                self._at = end
                self._close_fence(text[len(bare) :])
                return True
            if not self._final:
                text, end = bare, end - (len(text) - len(bare))
        self._out.add(self._body.add(text, text))
        self._at = end
        if line_end >= 0:
            self._mode = self._body_line
        return bool(text)

    def _close_fence(self, closing: str) -> None:
        self._out.add(self._body.end(closing, complete=True))
        self._fence = None
        self._mode = self._prose_line

    # Printed tool calls.

    def _maybe_call(self) -> bool:
        """At a character that may begin a tool call printed as text. A code span shows an example, and what is inside
        other JSON is a part of that."""
        at_word_start = self._out.is_at_word_start
        if not self._context.is_example:
            opening = call_opening(self._text, self._at, at_word_start=at_word_start)
            if opening is not None:
                self._at = opening.end()
                self._begin_call(opening[1] or "", opening[0])
                return True
            rest = self._rest()
            if not self._final and len(rest) < HOLD_LIMIT and may_become_call(rest, at_word_start=at_word_start):
                return False
        self._context.bracket(self._text[self._at])
        self._pass_prose(self._at + 1)
        return True

    def _begin_call(self, tag: str, raw: str) -> None:
        """`raw` is what of the call has been read already."""
        self._call_raw = [raw]
        self._call_at = self._at - len(raw)
        self._call_tag = tag
        stream = FunctionTagStream() if self._text[self._at] == "<" else None
        self._reader = CallReader(self._resolve, self._new_key, printed=True, stream=stream)
        self._mode = self._call

    def _call(self) -> bool:
        """Inside JSON that is, or may be, a call."""
        reader = self._reader
        assert reader is not None
        pieces, end = reader.feed(self._text, self._at)
        self._call_raw.append(self._text[self._at : end])
        self._at = end
        if reader.verdict:
            self._call_raw = []
            self._out.add(pieces)
            if reader.done or reader.broken:
                self._out.add(reader.finish(cut=False))
                self._reader = None
                self._mode = self._after_call
        elif reader.verdict is False or reader.done:
            self._reject_call()
        return True

    def _reject_call(self) -> None:
        """It is not a call: read it again as what it is."""
        if self._call_at is not None:
            self._at = self._call_at
        else:  # it began in earlier text
            self._text = "".join(self._call_raw) + self._text[self._at :]
            self._at = 0
        is_json = self._reader is not None and not self._reader.broken and not self._final
        self._reader = None
        self._call_raw = []
        if self._fence is not None:
            self._open_other(self._fence_tag())
            return
        if is_json and self._text[self._at] in "{[":
            self._context.enter_json()
        self._pass_prose(self._at + 1)
        self._mode = self._prose_rest

    def _after_call(self) -> bool:
        """Behind a call: its closing tag or fence belongs to it."""
        if self._fence is None and not self._call_tag:
            self._mode = self._prose_rest
            return True
        while self._at < len(self._text) and self._text[self._at] in " \t\r\n,":
            self._at += 1
        rest = self._rest()
        if self._fence is None:
            return self._after_tag(rest)
        if rest.startswith(("{", "[")):
            self._begin_call("", "")
        elif closed := (self._fence.closing_at_end if self._final else self._fence.closing).match(rest):
            self._at += closed.end()
            self._fence = None
            self._mode = self._prose_line
        elif self._may_hold(self._fence.begun):
            return False
        else:
            self._open_other("json")
        return True

    def _after_tag(self, rest: str) -> bool:
        for tag in CLOSING_TAGS:
            if rest.startswith(tag):
                self._at += len(tag)
                rest = ""
                break
            if tag.startswith(rest) and not self._final:
                return False
        self._mode = self._prose_rest
        return True


def contains_code_fence(text: str, resolve: Resolve) -> bool:
    """Whether prose holds code that text mode would run: a model in tool mode that did not call the tool."""
    parser = FencedParser(resolve)
    return any(isinstance(piece, CodeStart) for piece in parser.feed(text) + parser.finish())
