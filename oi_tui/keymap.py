"""Keys: how they are written, which there are, and the user's own choice of them.

Every binding of the app has an id, `place.action`: "prompt.send", "code.run". The file `keymap.yaml` in the
configuration folder maps ids to keys:

    prompt.newline: ctrl+o
    app.panel: [f4, ctrl+t]

What cannot be used is reported in words and left out; everything else counts.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import Keys, _character_to_key

from oi_tui.engine.errors import SettingsError
from oi_tui.engine.private_files import config_folder, read_regular

_LARGEST_FILE = 64 * 1024
_MODIFIERS = frozenset({"ctrl", "shift", "alt", "super", "hyper", "meta"})
_NAMED = frozenset(key.value for key in Keys) | {"space", "question_mark"}
_SYMBOLS = {
    "escape": "esc",
    "question_mark": "?",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "slash": "/",
    "backslash": "\\",
    "percent_sign": "%",
    "at": "@",
    "exclamation_mark": "!",
    "plus": "+",
    "minus": "-",
    "comma": ",",
    "full_stop": ".",
}
_MODIFIER_NAMES = {"ctrl": "Ctrl", "shift": "Shift", "alt": "Alt", "super": "Super", "hyper": "Hyper", "meta": "Meta"}

PLACES = {
    "prompt": "At the prompt",
    "search": "In the search for earlier messages",
    "code": "On code that waits for you",
    "scope": "Choosing what runs without asking",
    "editor": "While editing code",
    "run": "While code runs",
    "input": "Answering a program",
    "transcript": "In the transcript",
    "find": "In the search in the transcript",
    "output": "In the output on the whole screen",
    "panel": "In the panel at the side",
    "browser": "In the list of conversations",
    "rebuild": "In the list of code to run again",
    "app": "Everywhere",
    "welcome": "Choosing a model",
    "settings": "In the settings",
    "quit": "When asked before quitting",
}
"""Where keys act, by the first part of their id, in the order of the key sheet."""
_FIRST = ("prompt.send", "prompt.newline", "prompt.earlier", "prompt.later", "prompt.search", "prompt.editor")
"""What comes first within its place."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """One thing a key does."""

    id: str
    keys: tuple[str, ...]
    description: str
    tooltip: str = ""

    @property
    def place(self) -> str:
        return self.id.partition(".")[0]


def display(key: str) -> str:
    """A key as people read it: ^P, Shift+Tab, F1, esc, ?."""
    *modifiers, name = key.split("+") if key != "+" else ["+"]
    shown = _SYMBOLS.get(name, name)
    if re.fullmatch(r"f\d+", name):
        shown = name.upper()
    if modifiers == ["ctrl"] and len(shown) == 1:
        return f"^{shown.upper()}"
    if not modifiers:
        return shown
    words = [_MODIFIER_NAMES.get(modifier, modifier) for modifier in modifiers]
    return "+".join([*words, shown if len(shown) > 1 and not name.isalpha() else shown.capitalize()])


def catalogue(classes: Iterable[type[DOMNode]] | None = None) -> list[KeyEntry]:
    """Every binding with an id of these classes, by default of all of the program's own that are loaded."""
    entries: dict[str, KeyEntry] = {}
    for owner in _our_classes() if classes is None else classes:
        for binding in owner.__dict__.get("BINDINGS", ()):
            if isinstance(binding, Binding) and binding.id:
                keys = tuple(_normal(key) for key in binding.key.split(","))
                known = entries.get(binding.id)
                if known is not None:
                    keys = (*known.keys, *(key for key in keys if key not in known.keys))
                entries[binding.id] = KeyEntry(binding.id, keys, binding.description, binding.tooltip)
    return sorted(entries.values(), key=_rank)


def _rank(entry: KeyEntry) -> tuple[int, int]:
    places = list(PLACES)
    place = places.index(entry.place) if entry.place in places else len(places)
    return place, _FIRST.index(entry.id) if entry.id in _FIRST else len(_FIRST)


def _our_classes() -> list[type[DOMNode]]:
    found: dict[type[DOMNode], None] = {}
    waiting: list[type[Any]] = [DOMNode]
    while waiting:
        for child in waiting.pop().__subclasses__():
            waiting.append(child)
            if child.__module__.startswith("oi_tui."):
                found.setdefault(child)
    return sorted(found, key=lambda owner: (owner.__module__, owner.__qualname__))


def with_keymap(entries: Sequence[KeyEntry], keymap: Mapping[str, str]) -> list[KeyEntry]:
    """The entries with the user's keys in place of the usual ones."""
    return [
        KeyEntry(entry.id, tuple(keymap[entry.id].split(",")), entry.description, entry.tooltip)
        if entry.id in keymap
        else entry
        for entry in entries
    ]


# -- the user's file --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UserKeys:
    """What `keymap.yaml` says. `problems` are sentences for people."""

    keymap: Mapping[str, str]
    problems: tuple[str, ...] = ()


def keymap_path() -> Path:
    return config_folder() / "keymap.yaml"


def read_keymap(path: Path) -> UserKeys:
    """Read the file; whether the ids exist and the keys are free is for `check` to say, once everything is loaded."""
    try:
        data = read_regular(path, _LARGEST_FILE)
    except FileNotFoundError:
        return UserKeys({})
    except SettingsError as error:
        return UserKeys({}, (str(error),))
    import yaml

    try:
        content = yaml.safe_load(data)
    except (yaml.YAMLError, RecursionError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = f", line {line + 1}" if line is not None else ""
        return UserKeys({}, (f"{path.name}{where} is not valid YAML; the usual keys count.",))
    if content is None:
        return UserKeys({})
    if not isinstance(content, dict):
        return UserKeys({}, (f"{path.name} must consist of lines like 'prompt.newline: ctrl+o'.",))
    keymap: dict[str, str] = {}
    problems: list[str] = []
    for name, value in content.items():
        keys = _keys_of(value)
        if not keys:
            problems.append(f"{path.name}: {name} has no keys.")
            continue
        unknown = [key for key in keys if not is_key(key)]
        problems += [f"{path.name}: {key!r} is not a key ({name}).{_guess(key)}" for key in unknown]
        if good := [_normal(key) for key in keys if key not in unknown]:
            keymap[str(name)] = ",".join(good)
    return UserKeys(keymap, tuple(problems))


def check(keymap: Mapping[str, str], entries: Sequence[KeyEntry]) -> list[str]:
    """Unknown ids, and keys that the user gave to two things that can be active together."""
    known = {entry.id for entry in entries}
    unknown = [f"keymap.yaml: there is no {name}.{_guess(name, known)}" for name in keymap if name not in known]
    return unknown + [
        f"keymap.yaml: {display(key)} is both {one} and {other}; the usual keys count for them."
        for key, one, other in _conflicts(keymap, entries)
    ]


def without_conflicts(keymap: Mapping[str, str], entries: Sequence[KeyEntry]) -> dict[str, str]:
    """The keymap without what would give one key two meanings: which of them it had would be chance."""
    in_conflict = {name for _key, *both in _conflicts(keymap, entries) for name in both}
    return {name: keys for name, keys in keymap.items() if name not in in_conflict}


def _conflicts(keymap: Mapping[str, str], entries: Sequence[KeyEntry]) -> list[tuple[str, str, str]]:
    """Key and both ids, for every key that the user gave to two things that can be active together."""
    found: list[tuple[str, str, str]] = []
    now = with_keymap(entries, keymap)
    usual = {entry.id: set(entry.keys) for entry in entries}
    for index, one in enumerate(now):
        for other in now[index + 1 :]:
            if not _meet(one, other) or not {one.id, other.id} & keymap.keys():
                continue
            meant = usual[one.id] & usual[other.id]
            found += [(key, one.id, other.id) for key in one.keys if key in other.keys and key not in meant]
    return found


def is_key(key: str) -> bool:
    *modifiers, name = key.strip().split("+") if key.strip() != "+" else ["+"]
    if not set(modifiers) <= _MODIFIERS or not name:
        return False
    return len(name) == 1 or name in _NAMED or re.fullmatch(r"f([1-9]|1\d|2[0-4])", name) is not None


def _keys_of(value: object) -> list[str]:
    if isinstance(value, str):
        value = value.split(",") if value.strip() != "," else [value]
    if not isinstance(value, list):
        return []
    return [key.strip() for key in value if isinstance(key, str) and key.strip()]


def _normal(key: str) -> str:
    """The name Textual uses: `question_mark` for "?"."""
    key = key.strip()
    *modifiers, name = key.split("+") if key != "+" else ["+"]
    return "+".join([*modifiers, _character_to_key(name) if len(name) == 1 else name])


def _meet(one: KeyEntry, other: KeyEntry) -> bool:
    """True if both can be active at the same time."""
    return one.place == other.place or "app" in (one.place, other.place)


def _guess(word: str, known: Iterable[str] = _NAMED) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f" Did you mean {close[0]}?" if close else ""
