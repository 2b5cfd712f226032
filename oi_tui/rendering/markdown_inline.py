"""Markdown to tokens, and inline tokens to runs of text.

CommonMark with tables and strikethrough. HTML is text, pictures are not loaded, formulas stay as they were written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from rich.cells import cell_len

from oi_tui.rendering.lines import Meaning, Run
from oi_tui.rendering.sanitise import show_bidi

# Entities (`&#13;`) make characters after the text was sanitised.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_INLINE_MATH = re.compile(
    r"\\\((?:[^\\\n]|\\(?!\)).)*?\\\)|\\\[(?:[^\\]|\\[^\]])*?\\\]|\$\$[^$]+\$\$|\$(?![\s$])[^$\n]*?[^\s$\\]\$(?!\d)",
    re.DOTALL,
)
_MATH_LIMIT = 1000
_MATH_CLOSINGS = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}
_MATH_OPENS = re.compile(r"\$\$|\\\[")
_EMPHASES = {"strong_open": "strong", "em_open": "emphasis", "s_open": "struck"}


def _math_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A formula that begins its line: taken as it is up to its end, a blank line or the end of the text."""
    begin = state.bMarks[start] + state.tShift[start]
    if state.is_code_block(start) or not (opened := _MATH_OPENS.match(state.src, begin)):
        return False
    closing = "$$" if opened[0] == "$$" else "\\]"
    line = start
    while line < end and not state.isEmpty(line):
        after = opened.end() if line == start else state.bMarks[line]
        found = state.src.find(closing, after, state.eMarks[line])
        if found >= 0:
            if state.src[found + 2 : state.eMarks[line]].strip(" \t.,;"):
                return False  # text follows: a formula within a sentence
            line += 1
            break
        if line > start and state.sCount[line] < min(state.blkIndent, state.sCount[start]):
            return False
        line += 1
    else:
        if line < end:
            return False
    if silent:
        return True
    token = state.push("math_block", "", 0)
    token.content = state.getLines(start, line, state.blkIndent, False)
    token.map = [start, line]
    state.line = line
    return True


def _math_inline(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    opening = state.src[state.pos : state.pos + 2]
    closing = _MATH_CLOSINGS.get(opening, "$" if opening[0] == "$" else "")
    end = min(state.posMax, state.pos + _MATH_LIMIT)
    if not closing or state.src.find(closing, state.pos + len(closing), end) < 0:
        return False
    found = _INLINE_MATH.match(state.src, state.pos, end)
    if found is None:
        return False
    if not silent:
        state.push("math_inline", "", 0).content = found[0]
    state.pos = found.end()
    return True


def _parser(*without: str) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.block.ruler.before("fence", "math_block", _math_block, {"alt": ["paragraph", "blockquote", "list"]})
    parser.inline.ruler.before("escape", "math_inline", _math_inline)
    return parser.disable(list(without))


_PARSER = _parser()
# Looking for the end of very many links takes time that grows with their square.
_PARSER_WITHOUT_LINKS = _parser("link", "image")
_MOST_BRACKETS = 1500


def parse(source: str, env: dict[str, Any]) -> list[Token]:
    """The block tokens of sanitised Markdown. `env` keeps link definitions from one call to the next."""
    return (_PARSER if source.count("[") < _MOST_BRACKETS else _PARSER_WITHOUT_LINKS).parse(source, env)


def harmless(text: str) -> str:
    """Text that entities may have put controls into."""
    return show_bidi(_CONTROL.sub(" ", text))


def inline_runs(token: Token | None, base: Meaning) -> list[list[Run]]:
    """An inline token as lines of runs; only hard breaks make more than one line."""
    lines: list[list[Run]] = [[]]
    meaning = base
    stack: list[Meaning] = []
    link_start = (0, 0)
    link_target = ""
    for child in (token.children if token is not None else None) or ():
        kind = child.type
        if kind == "text" or kind == "html_inline":
            _add(lines, child.content, meaning)
        elif kind == "softbreak":
            _add(lines, _softbreak(lines[-1]), meaning)
        elif kind == "hardbreak":
            lines.append([])
        elif kind == "code_inline":
            _add(lines, child.content, (*meaning, "inline_code"))
        elif kind == "math_inline":
            first, *others = child.content.split("\n")
            _add(lines, first, meaning)
            for line in others:
                lines.append([])
                _add(lines, line, meaning)
        elif kind in _EMPHASES:
            stack.append(meaning)
            if _EMPHASES[kind] not in meaning:  # nesting may be as deep as the text is long
                meaning = (*meaning, _EMPHASES[kind])
        elif kind == "link_open":
            stack.append(meaning)
            meaning = (*meaning, "link")
            link_start = (len(lines) - 1, len(lines[-1]))
            link_target = str(child.attrGet("href") or "")
        elif kind == "image":
            _add(lines, f"[image: {child.content}]", (*meaning, "quiet"))
            _add(lines, " ", meaning)
            _add(lines, str(child.attrGet("src") or ""), (*meaning, "link"))
        elif kind.endswith("_close") and stack:
            meaning = stack.pop()
            if kind == "link_close" and not _says(lines, link_start, link_target):
                _add(lines, f" ({link_target})", (*meaning, "quiet"))
    return [_join_cjk(line) for line in lines]


_SOFTBREAK = "\n"  # until it is known what follows


def _softbreak(line: Sequence[Run]) -> str:
    return _SOFTBREAK


def _add(lines: list[list[Run]], text: str, meaning: Meaning) -> None:
    if text == _SOFTBREAK:
        lines[-1].append((text, meaning))
    elif text := harmless(text):
        lines[-1].append((text, meaning))


def _join_cjk(line: list[Run]) -> list[Run]:
    """Soft breaks become blanks, but not between wide characters: Chinese and Japanese have none between words."""
    joined: list[Run] = []
    for index, (text, meaning) in enumerate(line):
        if text == _SOFTBREAK:
            before = joined[-1][0][-1:] if joined else ""
            after = line[index + 1][0][:1] if index + 1 < len(line) else ""
            if _is_wide(before) and _is_wide(after):
                continue
            text = " "
        if joined and joined[-1][1] == meaning:
            joined[-1] = (joined[-1][0] + text, meaning)
        else:
            joined.append((text, meaning))
    return joined


def _is_wide(character: str) -> bool:
    return not character.isascii() and cell_len(character) == 2 and not "\uac00" <= character <= "\ud7a3"


def _says(lines: Sequence[Sequence[Run]], start: tuple[int, int], target: str) -> bool:
    """True if the text of a link already says where it goes."""
    first, place = start
    text = "".join(text for text, _ in lines[first][place:])
    text += "".join(text for line in lines[first + 1 :] for text, _ in line)
    plain = target.removeprefix("mailto:").removeprefix("https://").removeprefix("http://").rstrip("/")
    return not target or text == target or text.removeprefix("https://").removeprefix("http://").rstrip("/") == plain
