"""What the prose so far says about what may come next: in a list, in a code span, in JSON that is no call."""

from __future__ import annotations

import re

LIST_MARKER = r"(?:[-*+]|\d{1,9}[.)])"
_LIST_ITEM = re.compile(rf" *{LIST_MARKER} {{1,4}}(?=\S)")


class ProseContext:
    """Follows prose line by line."""

    def __init__(self) -> None:
        self.line_has_text = False
        self._list_indent = 0
        self._after_blank = True
        self._span = 0
        self._depth = 0

    def begin_line(self, line: str) -> None:
        """A line of prose begins; `line` is what is known of it."""
        item = _LIST_ITEM.match(line)
        is_blank = not line.split("\n", 1)[0].strip()
        if item is not None:
            self._list_indent = item.end()
        elif not is_blank and self._after_blank and not line.startswith(" "):
            self._list_indent = 0
        self._after_blank = is_blank
        self._depth = 0 if is_blank else self._depth
        self._span = 0
        self.line_has_text = False

    def passed(self, text: str) -> None:
        """This text of the line is prose."""
        self.line_has_text = self.line_has_text or bool(text.strip())

    def may_open_fence(self, lead: str) -> bool:
        """Whether a fence behind this beginning of a line opens: at most three columns into the present list item."""
        return len(lead) - len(lead.lstrip(" ")) <= self._list_indent + 3

    def ticks(self, length: int) -> None:
        """Backticks begin or end a code span."""
        if not self._span:
            self._span = length
        elif self._span == length:
            self._span = 0

    def bracket(self, char: str) -> None:
        """Brackets are counted inside JSON."""
        if self._depth:
            self._depth += 1 if char in "{[" else -1 if char in "}]" else 0

    def enter_json(self) -> None:
        """JSON that is no call begins; it ends with its last bracket, or at a blank line."""
        self._depth = 1

    def fence(self) -> None:
        """A fence begins."""
        self._depth = 0

    @property
    def is_example(self) -> bool:
        """In a code span or in other JSON, where a call is quoted and not made."""
        return bool(self._span or self._depth)
