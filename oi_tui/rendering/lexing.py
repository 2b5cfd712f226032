"""Pygments lexers that can stop anywhere and go on later.

A Pygments lexer reads a whole text from its beginning. Code that is being written or edited needs to be read again
from the line that changed, so the state a lexer is in at the beginning of lines is kept and can be resumed. This is
possible for lexers made of regular expressions, which all the languages of the engine have; the few others are read
in pieces that begin anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeAlias

from pygments.lexer import ExtendedRegexLexer, Lexer, LexerContext, RegexLexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Error, Whitespace, _TokenType
from pygments.util import ClassNotFound

TokenType: TypeAlias = _TokenType
Stack: TypeAlias = tuple[str, ...]
START: Stack = ("root",)

# The engine's and the models' names for what Pygments calls otherwise.
_NAMES = {
    "shell": "bash",
    "react": "jsx",
    "node": "javascript",
    "nodejs": "javascript",
    "python3": "python",
    "ipython": "python",
    "jupyter": "python",
    "osascript": "applescript",
    "pwsh": "powershell",
    "plaintext": "text",
    "output": "text",
    "vue": "html",
    "svelte": "html",
}


def lexer_for(language: str | None) -> Lexer | None:
    """The lexer for a language or any alias that Pygments knows; None for plain text and unknown names."""
    name = (language or "").strip().lower()
    return _lexer_named(_NAMES.get(name, name))


@lru_cache(maxsize=64)
def _lexer_named(name: str) -> Lexer | None:
    if not name or name in ("text", "plain", "none"):
        return None
    try:
        return get_lexer_by_name(name)
    except ClassNotFound:
        return None


def can_resume(lexer: Lexer) -> bool:
    """True if a stack of states is all that the lexer needs to go on. YAML's, for one, keeps more than that."""
    if isinstance(lexer, ExtendedRegexLexer):
        return type(lexer).get_tokens_unprocessed is ExtendedRegexLexer.get_tokens_unprocessed
    return isinstance(lexer, RegexLexer)


class Boundary:
    """Says, after a token, whether a line begins there and in which state."""

    __slots__ = ("place", "stack")

    def __init__(self) -> None:
        self.place = 0
        self.stack: Stack | None = None


def lex(lexer: Lexer, text: str, stack: Stack, boundary: Boundary) -> Iterator[tuple[int, TokenType, str]]:
    """(place, token, text) from the beginning of `text` in state `stack`.

    Whenever the lexer stands at the beginning of a line, `boundary` holds the place and the state.
    """
    if not can_resume(lexer):
        yield from lexer.get_tokens_unprocessed(text)
    elif isinstance(lexer, ExtendedRegexLexer):
        yield from _lex_with_context(lexer, text, stack, boundary)
    elif isinstance(lexer, RegexLexer):
        yield from _lex_regular(lexer, text, stack, boundary)


def _lex_regular(
    lexer: RegexLexer, text: str, stack: Stack, boundary: Boundary
) -> Iterator[tuple[int, TokenType, str]]:
    states: dict[str, list[tuple[Any, Any, Any]]] = lexer._tokens  # type: ignore[attr-defined]
    current = [state for state in stack if state in states] or ["root"]
    rules = states[current[-1]]
    place, end = 0, len(text)
    while place < end:
        for match_rule, action, new_state in rules:
            if found := match_rule(text, place):
                if action is not None:
                    if type(action) is _TokenType:
                        yield place, action, found.group()
                    else:
                        yield from action(lexer, found)
                place = found.end()
                if new_state is not None:
                    _go_to(new_state, current)
                    rules = states[current[-1]]
                break
        else:
            if text[place] == "\n":  # a line end that nothing expects ends everything
                current = ["root"]
                rules = states["root"]
                yield place, Whitespace, "\n"
            else:
                yield place, Error, text[place]
            place += 1
        if text[place - 1 : place] == "\n":
            boundary.place, boundary.stack = place, tuple(current)


def _lex_with_context(
    lexer: ExtendedRegexLexer, text: str, stack: Stack, boundary: Boundary
) -> Iterator[tuple[int, TokenType, str]]:
    """For the lexers whose rules move the place and the states themselves, as Ruby's for here-documents."""
    states: dict[str, list[tuple[Any, Any, Any]]] = lexer._tokens  # type: ignore[attr-defined]
    context = LexerContext(text, 0, [state for state in stack if state in states] or ["root"])
    while context.pos < context.end:
        before = context.pos
        for match_rule, action, new_state in states[context.stack[-1]]:
            if found := match_rule(text, context.pos, context.end):
                if action is not None:
                    if type(action) is _TokenType:
                        yield context.pos, action, found.group()
                        context.pos = found.end()
                    else:
                        yield from action(lexer, found, context)
                if new_state is not None:
                    _go_to(new_state, context.stack)
                break
        else:
            if text[context.pos] == "\n":
                context.stack = ["root"]
                yield context.pos, Whitespace, "\n"
            else:
                yield context.pos, Error, text[context.pos]
            context.pos += 1
        if context.pos > before and text[context.pos - 1] == "\n":
            boundary.place, boundary.stack = context.pos, tuple(context.stack)


def _go_to(new_state: Any, current: list[str]) -> None:
    """Change the stack of states as a rule says."""
    if isinstance(new_state, tuple):
        for state in new_state:
            if state == "#pop":
                if len(current) > 1:
                    current.pop()
            elif state == "#push":
                current.append(current[-1])
            else:
                current.append(state)
    elif isinstance(new_state, int):
        del current[max(1, len(current) - abs(new_state)) :]
    elif new_state == "#push":
        current.append(current[-1])
