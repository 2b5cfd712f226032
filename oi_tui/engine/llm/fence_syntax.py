"""What a code fence says: its language, and whether the text in an unlabelled one is code."""

from __future__ import annotations

import ast
import re
import warnings

from oi_tui.engine.llm.pieces import Resolve

_TAG = re.compile(r"[\w+#.\-]+")
_VERSION = re.compile(r"[\d.]+$")
_OWN_NAMES = {"tool_code": "python", "ipython": "python", "pycon": "", "console": "", "output": ""}
"""Tags with a meaning of their own; an empty one is never code, whatever a language's aliases say."""
_LIKENESS_LIMIT = 20_000


def language_of_info(info: str, resolve: Resolve) -> str | None:
    """The executable language that an info string names, canonical; None if it names none.

    `python`, `python3`, `Python title="x"`, `{.python}`, `c++`: the first word counts, without version.
    """
    found = _TAG.search(info.strip().lstrip("{.").lower())
    if found is None:
        return None
    tag = _OWN_NAMES.get(found.group(), found.group())
    if not tag:
        return None
    return resolve(tag) or resolve(_VERSION.sub("", tag)) or None


def looks_like_python(text: str) -> bool:
    """Whether the text of a fence without a language is meant to be run: it is valid Python and does something.

    Output, file lists, configuration and the like are not valid Python, or are only values.
    """
    if len(text) > _LIKENESS_LIMIT:
        return False
    lines = ["pass" if line.startswith(("!", "%")) else line for line in text.splitlines()]
    has_magic = any(line.startswith(("!", "%")) for line in text.splitlines())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    acting = (ast.Call, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Await)
    return has_magic or any(isinstance(node, acting) for node in ast.walk(tree))
