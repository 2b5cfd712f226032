"""What oi-tui changes in a fresh Python kernel, as code to be run in it. The code itself is in `in_kernel`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PARTS = ("publisher", "streams", "tracker", "interrupts", "questions", "inspection")
"""In the order in which they are installed. One that fails does so alone."""

REPORT = "__import__('_oi_tui').REPORT"
"""An expression: which parts are installed, and the reasons of those that are not."""

_BOOTSTRAP = """
import sys, types
package = sys.modules["_oi_tui"] = types.ModuleType("_oi_tui")
package.REPORT = {}
ip = get_ipython()
for name, source in SOURCES.items():
    module = types.ModuleType("_oi_tui." + name)
    sys.modules[module.__name__] = module
    setattr(package, name, module)
    try:
        exec(compile(source, "<oi-tui " + name + ">", "exec"), module.__dict__)
        module.install(ip, OPTIONS)
        package.REPORT[name] = ""
    except Exception as error:
        package.REPORT[name] = type(error).__name__ + ": " + str(error)
"""


def setup_code(*, folder: Path, active_line: Path | None) -> str:
    """Code for one silent execution. `folder` is the kernel's private one; `active_line` the shared file."""
    options: Mapping[str, Any] = {"folder": str(folder), "active_line": str(active_line) if active_line else ""}
    scope = f"{{'SOURCES': {_sources()!r}, 'OPTIONS': {options!r}, 'get_ipython': get_ipython}}"
    return f"exec({_BOOTSTRAP!r}, {scope})"


def call(function: str, *arguments: str) -> str:
    """An expression that calls a function of `in_kernel.inspection`."""
    return f"__import__('_oi_tui').inspection.{function}({', '.join(map(repr, arguments))})"


@functools.cache
def _sources() -> dict[str, str]:
    here = Path(__file__).with_name("in_kernel")
    return {name: (here / f"{name}.py").read_text("utf-8") for name in PARTS}
