"""Writing profiles: changing single values in place, comments and order kept, and putting a profile back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from oi_tui.engine.errors import SettingsError
from oi_tui.engine.private_files import make_private_folder, read_regular, write_private
from oi_tui.engine.profile_yaml import parse_yaml
from oi_tui.engine.profiles import DEFAULT, MAX_BYTES, shipped_folder, user_folder
from oi_tui.engine.settings_sources import canonical, checked

HEADER = "# Settings of oi-tui, changed by the program and by you. All keys: oi-tui --settings\n"


def save_default(changes: Mapping[str, Any]) -> Path:
    """Write these settings (dotted names) into the user's default profile and return its path.

    The rest of the file stays as it is, comments included. The first time the shipped default is the starting point.
    Keys (`llm.api_key`) are refused: they belong into `secrets`. Raises `SettingsError`, with the old file intact.
    """
    if "llm.api_key" in changes:
        raise SettingsError("A key is not saved in a profile.", "It goes to the keyring or the key file.")
    values = {name: checked(name, value) for name, value in changes.items()}
    path = user_folder() / f"{DEFAULT}.yaml"
    text = _with_values(_start(path), values, path)
    try:
        make_private_folder(path.parent)
        write_private(path, text)
    except OSError as error:
        raise SettingsError(f"{path} could not be written: {error.strerror}.") from None
    return path


def reset(name: str = DEFAULT) -> Path | None:
    """Take the user's own version of a profile out of the way, so that the shipped one counts again.

    The old file is kept beside it; returns its new path, or None when there was none. Raises `SettingsError`.
    """
    stem = name.removesuffix(".yaml")
    shipped = sorted(path.stem for path in shipped_folder().glob("*.yaml"))
    if stem not in shipped:
        raise SettingsError(f"{name} is not a shipped profile.", "There are: " + ", ".join(shipped) + ".")
    path = user_folder() / f"{stem}.yaml"
    if not path.is_file():
        return None
    number = 1
    while (old := path.with_name(f"{stem}.yaml.old{number}")).exists():
        number += 1
    try:
        return path.rename(old)
    except OSError as error:
        raise SettingsError(f"{path} could not be moved: {error.strerror}.") from None


def _start(path: Path) -> str:
    for candidate in (path, shipped_folder() / path.name):
        try:
            return read_regular(candidate, MAX_BYTES).decode("utf-8-sig")
        except FileNotFoundError:
            continue
        except UnicodeDecodeError:
            raise SettingsError(f"{candidate} is not UTF-8 text.", "Nothing was changed.") from None
    return HEADER


def _with_values(text: str, values: Mapping[str, Any], path: Path) -> str:
    """The profile's text with these values in it: edited in place if that can be done, otherwise written anew."""
    try:
        before = {entry.key: entry.value for entry in parse_yaml(text)}
    except SettingsError as error:
        raise SettingsError(f"{path}: {error.what}", "Nothing was changed; correct the file first.") from None
    kept = {key: value for key, value in before.items() if canonical(key) not in values}
    wanted = kept | {name: _plain(value) for name, value in values.items()}
    edited = text
    try:
        for name, value in values.items():
            edited = _set(edited, name, _plain(value))
        after = {canonical(entry.key) or entry.key: entry.value for entry in parse_yaml(edited)}
    except (SettingsError, yaml.YAMLError):
        after = None
    if after != {canonical(key) or key: value for key, value in wanted.items()}:
        return HEADER + _dumped(wanted)
    return edited


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _scalar(value: Any) -> str:
    """One value as YAML on one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**9)
    return text.removesuffix("\n").removesuffix("\n...").strip()


def _dumped(values: Mapping[str, Any]) -> str:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        section, dot, inner = key.partition(".")
        if dot:
            tree.setdefault(section, {})[inner] = value
        else:
            tree[key] = value
    text: str = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
    return text


def _set(text: str, name: str, value: Any) -> str:
    """One value changed in the text. The caller checks the result, so odd layouts may come out wrong here."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    section, _, inner = name.rpartition(".")
    for key, node in pairs:
        if canonical(str(key.value)) == name:
            return _replaced(text, key, node, value)
        if section and key.value == section and isinstance(node, yaml.MappingNode):
            for inner_key, inner_node in node.value:
                if inner_key.value == inner:
                    return _replaced(text, inner_key, inner_node, value)
            if node.value:
                return _inserted(text, key, node, f"{inner}: {_scalar(value)}")
        elif section and key.value == section:  # `llm:` with nothing below it
            return text[: key.end_mark.index] + f":\n  {inner}: {_scalar(value)}" + text[node.end_mark.index :]
    if text and not text.endswith("\n"):
        text += "\n"
    if section:
        return f"{text}{section}:\n  {inner}: {_scalar(value)}\n"
    return f"{text}{name}: {_scalar(value)}\n"


def _inserted(text: str, key: yaml.Node, section: yaml.MappingNode, entry: str) -> str:
    """The entry as the first of a section, above the comments of what follows."""
    first = section.value[0][0].start_mark
    if section.flow_style:
        return f"{text[: first.index]}{entry}, {text[first.index :]}"
    line_end = text.index("\n", key.end_mark.index)
    return f"{text[:line_end]}\n{' ' * first.column}{entry}{text[line_end:]}"


def _replaced(text: str, key: yaml.Node, node: yaml.Node, value: Any) -> str:
    end = node.end_mark.index
    while end > key.end_mark.index and text[end - 1] in " \r\n":  # block values end at the next key
        end -= 1
    return text[: key.end_mark.index] + f": {_scalar(value)}" + text[end:]
