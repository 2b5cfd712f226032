"""Where settings come from: values from flags, environment and profiles, checked against the one schema and merged.

Every source is a `Layer`: dotted setting names (`llm.model`) with values of the right type. `merge` puts layers on top
of each other and remembers which one won. The schema is read off the dataclasses in `settings`, so a new field there is
at once a profile key and an environment variable.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from oi_tui.engine.errors import SettingsError
from oi_tui.engine.settings import ModelSettings, Settings

ENVIRONMENT_PREFIX = "OI_TUI_"

NOT_SETTINGS = frozenset({"origins", "notes", "profile", "llm", "llm.completions"})
"""Fields of `Settings` that no source may set by name."""

ALIASES: Mapping[str, str] = {
    **{f.name: f"llm.{f.name}" for f in dataclasses.fields(ModelSettings) if f"llm.{f.name}" not in NOT_SETTINGS},
    "llm_supports_vision": "llm.supports_vision",
    "llm_supports_functions": "llm.supports_functions",
    "llm.llm_supports_vision": "llm.supports_vision",
    "llm.llm_supports_functions": "llm.supports_functions",
    "budget": "llm.max_budget",
    "computer.languages": "languages",
    "computer.offline": "offline",
    "computer.verbose": "verbose",
    "computer.max_output": "max_output",
    "llm.max_output": "max_output",
    "debug": "verbose",
    "debug_mode": "verbose",
}
"""Open Interpreter's other names for settings, flat and nested."""

_TRUE = frozenset({"true", "yes", "on", "1", "y"})
_FALSE = frozenset({"false", "no", "off", "0", "n"})

POSITIVE = frozenset(
    {"max_output", "loop_limit", "llm.max_tokens", "llm.context_window", "llm.connect_notice", "llm.idle_timeout"}
    | {"time_limit", "idle_limit"}
)
NOT_NEGATIVE = frozenset({"llm.max_budget"})
HIGHEST_TEMPERATURE = 2
"""What OpenAI and most others take; some providers stop at 1 and say so themselves."""


@dataclass(frozen=True, slots=True)
class Spec:
    """What a setting may hold. `kind` is one of bool, int, float, str, list, choice."""

    name: str
    kind: str
    choices: tuple[str, ...] = ()
    optional: bool = False

    @property
    def wanted(self) -> str:
        """What to write, for people."""
        if self.kind == "choice":
            return "one of " + ", ".join(self.choices)
        return {
            "bool": "true or false",
            "int": "a whole number",
            "float": "a number",
            "str": "text",
            "list": "a list of names",
        }[self.kind]


@dataclass(frozen=True, slots=True)
class Layer:
    """The settings of one source. `origin` names it for people: "command line", "profile fast"."""

    origin: str
    values: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    """More exact origins of single settings, where the source knows: "OI_TUI_MODEL"."""


@cache
def schema() -> Mapping[str, Spec]:
    """Every setting by its dotted name, in the order of the dataclasses."""
    specs: dict[str, Spec] = {}
    for owner, prefix in ((ModelSettings, "llm."), (Settings, "")):
        hints = get_type_hints(owner)
        for item in dataclasses.fields(owner):
            if prefix + item.name not in NOT_SETTINGS:
                specs[prefix + item.name] = _spec(prefix + item.name, hints[item.name])
    return specs


def _spec(name: str, hint: Any) -> Spec:
    optional = False
    if get_origin(hint) in (Union, types.UnionType):
        optional = type(None) in get_args(hint)
        hint = next(part for part in get_args(hint) if part is not type(None))
    if get_origin(hint) is Literal:
        return Spec(name, "choice", tuple(str(c) for c in get_args(hint)), optional)
    if get_origin(hint) is tuple:
        return Spec(name, "list", (), optional)
    return Spec(name, {bool: "bool", int: "int", float: "float"}.get(hint, "str"), (), optional)


def canonical(name: str) -> str | None:
    """The setting that a name from a profile means; None if there is no such setting."""
    if name in schema():
        return name
    return ALIASES.get(name)


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The closest of `names`, if one is close enough to be meant."""
    matches = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return matches[0] if matches else None


def nearest_setting(name: str) -> str | None:
    """The setting whose name is closest, written as a profile writes it."""
    return nearest(name, [*schema(), *(n for n in ALIASES if "." not in n)])


def checked(name: str, value: Any) -> Any:
    """`value` as setting `name` holds it; text is read as the type that is wanted.

    Raises `SettingsError` saying what is wrong. `name` must be in the schema.
    """
    spec = schema()[name]
    shown = name.removeprefix("llm.")
    if value is None or (isinstance(value, str) and not value.strip() and spec.kind not in ("str", "list")):
        if spec.optional:
            return None
        raise SettingsError(f"{shown} is empty.", f"It should be {spec.wanted}.")
    try:
        result = _convert(spec, value)
    except (ValueError, OverflowError):
        said = "" if name == "llm.api_key" else f", not {_shown(value)}"
        raise SettingsError(f"{shown} should be {spec.wanted}{said}.") from None
    if name in POSITIVE and result is not None and result <= 0:
        raise SettingsError(f"{shown} should be more than 0, not {_shown(value)}.")
    if name == "llm.temperature" and result is not None and not 0 <= result <= HIGHEST_TEMPERATURE:
        raise SettingsError(f"{shown} should be from 0 to {HIGHEST_TEMPERATURE}, not {_shown(value)}.")
    if name in NOT_NEGATIVE and result is not None and result < 0:
        raise SettingsError(f"{shown} cannot be less than 0, and it is {_shown(value)}.")
    return result


def _convert(spec: Spec, value: Any) -> Any:
    """Raises ValueError when the value cannot be read as what is wanted."""
    match spec.kind:
        case "bool":
            return _as_bool(value)
        case "int":
            return _as_int(value)
        case "float":
            return _as_float(value)
        case "choice":
            return _as_choice(spec, value)
        case "list":
            return _as_list(value)
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, str):
        return value
    raise ValueError


def _as_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if isinstance(value, str | int) and word in _TRUE | _FALSE:
        return word in _TRUE
    raise ValueError


def _as_int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError
    if isinstance(value, str):
        return int(value)
    if isinstance(value, float) and not value.is_integer():
        raise ValueError
    return int(value)


def _as_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError
    return number


def _as_choice(spec: Spec, value: Any) -> str:
    if value is False and "off" in spec.choices:  # YAML reads a bare `off` as false
        return "off"
    word = str(value).strip().lower()
    if word not in spec.choices:
        raise ValueError
    return word


def _as_list(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    if not isinstance(value, Sequence) or not all(isinstance(v, str | int | float) for v in value):
        raise ValueError
    return tuple(str(v) for v in value if str(v))


def _shown(value: Any) -> str:
    """The value for an error line. Containers are only named: nested YAML aliases can be astronomically long."""
    if isinstance(value, Mapping):
        return "a mapping"
    if not isinstance(value, str | int | float):
        return f"a {type(value).__name__}"
    text = repr(value) if isinstance(value, str) else str(value)[:80]
    return text if len(text) <= 60 else text[:57] + "…"


def from_environment(environ: Mapping[str, str]) -> tuple[Layer, list[str]]:
    """The layer of the `OI_TUI_…` variables, and a line for each that means nothing. Raises `SettingsError`."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    unknown: list[str] = []
    for variable in sorted(environ):
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable == ENVIRONMENT_PREFIX + "PROFILE":
            continue
        written = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        name = canonical(written) or canonical(written.replace("llm_", "llm.", 1))
        if name is None:
            guess = nearest(written, [n.removeprefix("llm.") for n in schema()])
            hint = f" Did you mean {ENVIRONMENT_PREFIX}{guess.upper()}?" if guess else ""
            unknown.append(f"The environment variable {variable} is no setting.{hint}")
            continue
        try:
            values[name] = checked(name, environ[variable])
        except SettingsError as error:
            raise SettingsError(f"{variable}: {error.what}", error.hint) from None
        origins[name] = variable
    return Layer("environment", values, origins), unknown


def merge(layers: Sequence[Layer], *, profile: str | None = None, notes: Sequence[str] = ()) -> Settings:
    """Settings from layers, the strongest first. Safe mode switches auto-run off, wherever either came from."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        for name, value in layer.values.items():
            if name not in values:
                values[name] = value
                origins[name] = layer.origins.get(name, layer.origin)
    if values.get("safe_mode", "off") != "off" and values.get("auto_run"):
        values["auto_run"] = False
        origins["auto_run"] = "safe mode, which always asks"
    llm = {name.removeprefix("llm."): value for name, value in values.items() if name.startswith("llm.")}
    top = {name: value for name, value in values.items() if not name.startswith("llm.")}
    return Settings(**top, llm=ModelSettings(**llm), notes=tuple(notes), profile=profile, origins=origins)


def with_values(settings: Settings, values: Mapping[str, Any], origin: str) -> Settings:
    """Settings with these dotted names changed, and where they came from. The values must be checked ones."""
    llm = {name.removeprefix("llm."): value for name, value in values.items() if name.startswith("llm.")}
    top = {name: value for name, value in values.items() if not name.startswith("llm.")}
    origins = {**settings.origins, **dict.fromkeys(values, origin)}
    return dataclasses.replace(settings, **top, llm=dataclasses.replace(settings.llm, **llm), origins=origins)


def value_of(settings: Settings, name: str) -> Any:
    """The value of a dotted setting."""
    return getattr(settings.llm, name.removeprefix("llm.")) if name.startswith("llm.") else getattr(settings, name)


def explain(settings: Settings) -> list[tuple[str, str, str]]:
    """Every setting as (name, value for people, origin). Keys are never part of it."""
    rows = []
    for name in schema():
        value = value_of(settings, name)
        rows.append((name, _explained(name, value), settings.origins.get(name, "default")))
    return rows


def _explained(name: str, value: Any) -> str:
    if name == "llm.api_key":
        return "set, not shown" if value else "not set"
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = " ".join((", ".join(value) if isinstance(value, tuple) else str(value)).split())
    if name == "llm.api_base":
        text = re.sub(r"//[^/@]*@", "//…@", text)
    return (text if len(text) <= 72 else text[:71] + "…") or "empty"
