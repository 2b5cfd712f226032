"""Python profiles: `interpreter.llm.model = "…"` and the like, recorded instead of applied.

A profile written for Open Interpreter runs against an `interpreter` that takes down what is assigned to it. The caller
has made sure that the user trusts these bytes.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oi_tui.engine.errors import SettingsError
from oi_tui.engine.profile_yaml import SECTIONS, Entry
from oi_tui.engine.settings import Settings
from oi_tui.engine.settings_sources import canonical, value_of


@dataclass(slots=True)
class Recorded:
    """What a profile assigned, in order. The last assignment to a name counts."""

    values: dict[str, Entry] = field(default_factory=dict)
    completions: Any = None

    @property
    def entries(self) -> list[Entry]:
        return list(self.values.values())


class RecordingInterpreter:
    """Stands in for `interpreter` while a profile runs; `prefix` is empty, `llm.` or `computer.`."""

    def __init__(self, recorded: Recorded, prefix: str = "") -> None:
        object.__setattr__(self, "_recorded", recorded)
        object.__setattr__(self, "_prefix", prefix)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._prefix + name == "llm.completions":
            self._recorded.completions = value
            return
        key = self._prefix + name
        line = sys._getframe(1).f_lineno
        self._recorded.values[key] = Entry(key, value, line)

    def __getattr__(self, name: str) -> Any:
        key = self._prefix + name
        if not self._prefix and name in SECTIONS:
            return RecordingInterpreter(self._recorded, f"{name}.")
        if key in self._recorded.values:
            return self._recorded.values[key].value
        if (setting := canonical(key)) is not None:
            return value_of(Settings(), setting)
        raise AttributeError(f"interpreter.{key} does not exist in profiles of oi-tui")


def run_profile(source: str, path: Path) -> Recorded:
    """Run a trusted profile and return what it set. Raises `SettingsError` with the line of whatever it raises."""
    recorded = Recorded()
    interpreter = RecordingInterpreter(recorded)
    namespace = {"__name__": "__profile__", "__file__": str(path), "interpreter": interpreter}
    try:
        code = compile(source, str(path), "exec")
        with _importable(interpreter), contextlib.redirect_stdout(sys.stderr):
            exec(code, namespace)
    except SyntaxError as error:
        raise SettingsError(f"Profile {path}, line {error.lineno}: {error.msg}.") from None
    except ValueError as error:
        raise SettingsError(f"Profile {path}: {error}.") from None
    except (Exception, SystemExit) as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
        where = f", line {lines[-1]}" if lines else ""
        raise SettingsError(f"Profile {path}{where}: {type(error).__name__}: {error}") from None
    return recorded


@contextlib.contextmanager
def _importable(interpreter: RecordingInterpreter) -> Iterator[None]:
    """Let `from interpreter import interpreter` find the recording one."""
    module = types.ModuleType("interpreter")
    module.__dict__.update(interpreter=interpreter, OpenInterpreter=lambda *_args, **_settings: interpreter)
    before = sys.modules.get("interpreter")
    sys.modules["interpreter"] = module
    try:
        yield
    finally:
        if before is None:
            sys.modules.pop("interpreter", None)
        else:
            sys.modules["interpreter"] = before
