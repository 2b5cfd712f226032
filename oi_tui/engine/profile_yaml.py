"""Reading YAML and JSON profiles: data only, each value with the line it stands in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from oi_tui.engine.errors import SettingsError

SECTIONS = ("llm", "computer")
"""Keys whose value is a mapping of settings."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One `key: value` of a profile; nested keys are dotted. `line` counts from 1 and is None where unknown."""

    key: str
    value: Any
    line: int | None = None


def parse_yaml(text: str) -> list[Entry]:
    """The entries of a YAML profile in order. Raises `SettingsError`; never makes anything but plain data."""
    try:
        loader = yaml.SafeLoader(text)
    except yaml.YAMLError as error:
        raise _syntax_error(error) from None
    try:
        node = loader.get_single_node()
        if node is None:
            return []
        if not isinstance(node, yaml.MappingNode):
            raise SettingsError("it should hold lines such as `auto_run: false`.")
        return list(_entries(loader, node, ""))
    except yaml.YAMLError as error:
        raise _syntax_error(error) from None
    except RecursionError:
        raise SettingsError("it is nested too deeply.") from None
    finally:
        loader.dispose()


def _entries(loader: yaml.SafeLoader, node: yaml.MappingNode, prefix: str) -> Iterator[Entry]:
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise SettingsError(f"line {line}: a key should be a word.")
        key = prefix + key_node.value
        if not prefix and key in SECTIONS:
            if isinstance(value_node, yaml.MappingNode):
                yield from _entries(loader, value_node, f"{key}.")
            elif _value(loader, value_node) is not None:
                raise SettingsError(f"line {line}: below `{key}:` there should be settings, indented.")
            continue
        yield Entry(key, _value(loader, value_node), line)


def _value(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    try:
        return loader.construct_object(node, deep=True)
    except (ValueError, OverflowError) as error:  # a date of month 13, a number of 5,000 digits
        raise SettingsError(f"line {node.start_mark.line + 1}: this value cannot be read: {error}.") from None


def _syntax_error(error: yaml.YAMLError) -> SettingsError:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}: " if mark is not None else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it is not valid YAML"
    if isinstance(error, yaml.constructor.ConstructorError):
        problem = "only plain data is allowed, no tags that make objects"
    return SettingsError(f"{where}{problem}.")


def parse_json(text: str) -> list[Entry]:
    """The entries of a JSON profile in order. Raises `SettingsError`."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise SettingsError(f"line {error.lineno}: {error.msg}.") from None
    except (RecursionError, ValueError):
        raise SettingsError("it is not valid JSON.") from None
    if not isinstance(data, dict):
        raise SettingsError("it should hold one JSON object.")
    entries: list[Entry] = []
    for key, value in data.items():
        if key in SECTIONS and isinstance(value, Mapping):
            entries += [Entry(f"{key}.{name}", inner) for name, inner in value.items()]
        else:
            entries.append(Entry(key, value))
    return entries
