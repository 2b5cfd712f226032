"""Puts right what models are known to wrap around code when they mix up the ways of calling a tool.

Applied to a finished block before it is proposed, so that what is shown is what may run. Nothing is changed that could
be meant: each repair recognises one whole form.
"""

from __future__ import annotations

import ast
import re
import warnings

from oi_tui.engine.llm.partial_json import JsonStream

_WRAPPER = re.compile(r"\s*(?:functions\.)?execute\(\s*(?=[{\[])")
_FENCED = re.compile(r"\s*(`{3,}|~{3,})([\w+#.\-]*)[^\n`]*\n(.*?)\n?[ \t]*\1[`~]*\s*\Z", re.DOTALL)
_ALLOWED = frozenset({("language",), ("code",)})


def repair_code(language: str, code: str) -> tuple[str, str]:
    """Language and code as they were meant. Returns its arguments unchanged when nothing is wrong with them."""
    if code.startswith("`\n"):
        code = code[2:]
    if code.endswith("executeexecute"):
        code = code.removesuffix("executeexecute").rstrip()
    if wrapper := _WRAPPER.match(code):
        language, code = _unwrapped(language, code, code[wrapper.end() :])
    elif code.lstrip().startswith("{"):
        language, code = _unwrapped(language, code, code)
    if (fenced := _FENCED.match(code)) and fenced[1] not in fenced[3]:
        code = fenced[3]
    return language, _unescaped(language, code)


def _unwrapped(language: str, code: str, text: str) -> tuple[str, str]:
    """The two values of a JSON object with exactly the keys `language` and `code`, if `text` is one."""
    stream = JsonStream()
    events, end = stream.feed(text)
    rest = text[end:].strip().rstrip(");").strip()
    values: dict[tuple[str | int, ...], str] = {}
    for event in events:
        if event.kind == "string":
            values.setdefault(event.path, "")
        elif event.kind == "text":
            values[event.path] = values.get(event.path, "") + event.text
        elif event.kind == "scalar" or event.path:
            return language, code
    if not stream.done or rest or set(values) != _ALLOWED:
        return language, code
    return values["language",].strip().lower(), values["code",]


def _unescaped(language: str, code: str) -> str:
    """Python whose line ends arrived as the two characters `\\n`, if only reading them as line ends makes it valid."""
    if language != "python" or "\n" in code or "\\n" not in code or _is_python(code):
        return code
    try:
        plain = code.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    except ValueError:
        return code
    return plain if _is_python(plain) else code


def _is_python(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
