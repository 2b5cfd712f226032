"""Questions that oi-tui asks the kernel between executions: the value of an expression, the user's variables.

Nothing here calls code of the user's objects: a `__repr__` may be slow, print, or do harm. What is asked for explicitly
(`evaluate`) is run, of course.
"""

from __future__ import annotations

import contextlib
import io
import sys
import types
from typing import Any

MIME = "application/x-oi-tui+json"
TEXT = 80
"""Characters of a value that are shown."""

_SIMPLE = (bool, int, float, complex, type(None))
_SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset, range)


class Answer:
    """Carries plain data through IPython's display machinery."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {MIME: self._data, "text/plain": ""}


def evaluate(source: str) -> Answer:
    """Run the source in the user's namespace: what it prints, and the value of its last expression as text."""
    import ast

    ip = _shell()
    printed = io.StringIO()
    try:
        tree = ast.parse(ip.transform_cell(source))
        last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, "<template>", "exec"), ip.user_global_ns, ip.user_ns)
            if last is not None:
                value = eval(compile(last, "<template>", "eval"), ip.user_global_ns, ip.user_ns)
                if value is not None:
                    print(value)
    except Exception as error:
        return Answer({"error": f"{type(error).__name__}: {error}"})
    return Answer({"text": printed.getvalue()})


def variables() -> Answer:
    """The user's variables in the order in which they came to be: name, type, a short description."""
    ip = _shell()
    hidden = ip.user_ns_hidden
    rows = []
    for name, value in list(ip.user_ns.items()):
        if name.startswith("_") or (name in hidden and hidden[name] is value):
            continue
        if issubclass(type(value), types.ModuleType):  # `isinstance` would ask the value for its `__class__`
            continue
        rows.append({"name": name, "type": type(value).__name__, "value": describe(value)})
    return Answer({"variables": rows})


def describe(value: Any) -> str:
    """One line about a value, without calling anything that the user or a library defined, shapes excepted."""
    kind = type(value)
    if kind is int and value.bit_length() > 256:
        return f"{value.bit_length():,} bits"
    if kind in _SIMPLE:
        return repr(value)
    if kind is str:
        return repr(value) if len(value) <= TEXT else f"{value[:TEXT]!r}… {len(value):,} characters"
    if kind in _SIZED:
        return _describe_sized(value)
    if kind in (types.FunctionType, types.BuiltinFunctionType, types.MethodType):
        return str(getattr(value, "__qualname__", ""))
    if kind is type:
        return f"{value.__module__}.{value.__qualname__}"
    return _describe_array(value, kind)


def _describe_sized(value: Any) -> str:
    length = len(value)
    unit = "bytes" if isinstance(value, (bytes, bytearray)) else "items" if length != 1 else "item"
    if isinstance(value, (list, tuple)) and length <= 8 and all(type(item) in (*_SIMPLE, str) for item in value):
        text = repr(value) if not any(isinstance(item, int) and item.bit_length() > 256 for item in value) else ""
        if text and len(text) <= TEXT:
            return text
    return f"{length:,} {unit}"


def _describe_array(value: Any, kind: type) -> str:
    """Shape and element type of what numpy, pandas, torch and their like define."""
    library = kind.__module__.partition(".")[0]
    if library not in ("numpy", "pandas", "polars", "torch", "jax", "jaxlib", "tensorflow", "xarray", "scipy", "cupy"):
        return ""
    try:
        shape = " × ".join(str(int(size)) for size in value.shape)
        dtype = getattr(value, "dtype", None)
        return f"{shape} {dtype}".strip() if dtype is not None else shape
    except Exception:
        return ""


def _shell() -> Any:
    from IPython import get_ipython

    return get_ipython()


def install(ip: Any, options: dict[str, Any]) -> None:
    """Settings for a user who looks into the kernel from here."""
    # Complete from what exists: Jedi's static analysis takes seconds at first and knows nothing of the variables.
    ip.Completer.use_jedi = False
    # `breakpoint()` asks through `input()`. debugpy, which ipykernel imports, would wait for an editor in vain.
    if sys.breakpointhook.__module__.startswith("debugpy"):
        sys.breakpointhook = sys.__breakpointhook__
