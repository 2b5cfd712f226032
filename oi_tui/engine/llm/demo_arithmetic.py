"""Finding arithmetic in a request, for the demo: digits, operators and a few words, and nothing that could be code."""

from __future__ import annotations

import ast
import re

_WORDS = (
    (r"\bto the power of\b", "**"),
    (r"\bdivided by\b", "/"),
    (r"\bmultiplied by\b", "*"),
    (r"\btimes\b", "*"),
    (r"\bplus\b", "+"),
    (r"\bminus\b", "-"),
    (r"(\d(?:[\d.]*\d)?)\s*(?:%|percent)\s+of\b", r"\1/100*"),
    (r"(\d(?:[\d.]*\d)?)\s+squared\b", r"\1**2"),
    (r"(\d(?:[\d.]*\d)?)\s+cubed\b", r"\1**3"),
    (r"(?<=\d)\s*[x×·]\s*(?=[\d(])", "*"),
    (r"[÷]", "/"),
    (r"[−–]", "-"),
    (r"\^", "**"),
    (r"(?<=\d),(?=\d{3}(?!\d))", ""),
)
_EXPRESSION = re.compile(r"[-+(.\d][-+*/%().\d\s]*[\d.)]")


def expression_in(request: str) -> str | None:
    """The longest piece of arithmetic in a request, as Python; None if there is none."""
    text = request[:2000]
    for pattern, operator in _WORDS:
        text = re.sub(pattern, operator, text, flags=re.IGNORECASE)
    candidates = [" ".join(match.group().split()) for match in _EXPRESSION.finditer(text)]
    usable = [candidate for candidate in candidates if _is_arithmetic(candidate)]
    longest = max(usable, key=len, default=None)
    return None if longest is None else ast.unparse(ast.parse(longest, mode="eval"))


def _is_arithmetic(candidate: str) -> bool:
    """Whether this is an expression with at least one operator between numbers, and nothing else."""
    if not re.search(r"[\d.)]\s*(?:\*\*|//|[-+*/%])\s*[-+(.\d]", candidate) or re.fullmatch(
        r"[\d]+(-[\d]+){2}", candidate
    ):
        return False  # the second: a date
    try:
        tree = ast.parse(candidate, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    allowed = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Constant)
    return all(isinstance(node, allowed) for node in ast.walk(tree))
