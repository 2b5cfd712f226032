"""Where a tool call that a model printed as text begins, and what belongs to it."""

from __future__ import annotations

import re

from oi_tui.engine.llm.function_tags import BEGIN

JSON_TAGS = frozenset({"", "json", "jsonc", "json5", "tool_call", "tool_calls", "tool", "function_call"})
"""Tags of fences that may hold a printed call."""

CLOSING_TAGS = ("</tool_call>", "</function_call>", "<|/tool_call|>", "<tool_call|>")

_OPENING_TAGS = ("<tool_call>", "<function_call>", "<|tool_call|>", "<|python_tag|>", "[TOOL_CALLS]")
_OPENING = re.compile("(" + "|".join(map(re.escape, _OPENING_TAGS)) + rf")?\s*(?=\{{|\[\s*\{{|{BEGIN})")
_BODIES = ("{", "[", BEGIN)


def call_opening(text: str, at: int, *, at_word_start: bool) -> re.Match[str] | None:
    """A call beginning at `at`; group 1 is its tag. Without a tag only at the beginning of a word."""
    opening = _OPENING.match(text, at)
    return opening if opening is not None and (opening[1] or at_word_start) else None


def may_become_call(rest: str, *, at_word_start: bool) -> bool:
    """Whether `rest` may become the opening of a call when more text comes."""
    if any(tag.startswith(rest) for tag in _OPENING_TAGS):
        return True
    tag = next((tag for tag in _OPENING_TAGS if rest.startswith(tag)), "")
    if not tag and not at_word_start:
        return False
    body = rest[len(tag) :].strip()
    return body in ("", "[") or (tag != "" and BEGIN.startswith(body)) or BEGIN.startswith(rest)
