"""Profiles: named files of settings. Finding them, reading them, and knowing which of them may do what.

Lookup goes from the user's folder to the shipped profiles; only something written as a path is looked up as one. A
profile from anywhere else has the rights of a stranger: it may not make code run unasked, choose the program that runs
it, or send the user's key to another server, until the user has trusted exactly these bytes. Python profiles are
programs and are not run before that at all. Nothing is ever loaded from the network.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from oi_tui.engine import trust
from oi_tui.engine.errors import SettingsError
from oi_tui.engine.private_files import config_folder, read_regular
from oi_tui.engine.profile_yaml import SECTIONS, Entry, parse_json, parse_yaml
from oi_tui.engine.settings_sources import Layer, canonical, checked, nearest, nearest_setting

MAX_BYTES = 256 * 1024
DATA_SUFFIXES = (".yaml", ".yml", ".json")
SUFFIXES = (*DATA_SUFFIXES, ".py")
DEFAULT = "default"

IGNORED = frozenset(
    {
        "version",
        "wtf",
        "disable_telemetry",
        "anonymous_telemetry",
        "contribute_conversation",
        "in_terminal_interface",
        "multi_line",
        "plain_text_display",
        "speak_messages",
        "llm.vision_renderer",
    }
)
"""Open Interpreter's keys that have no meaning here and do no harm."""

REFUSED: Mapping[str, str] = {
    "start_script": "start_script is not run: a profile in YAML is data. Put that code into a Python profile.",
    "llm.api_key_command": "A profile cannot run commands.",
}


class Home(StrEnum):
    """Where a profile lives, and so what it may do."""

    USER = auto()
    SHIPPED = auto()
    ELSEWHERE = auto()


@dataclass(frozen=True, slots=True)
class ProfileFile:
    path: Path
    home: Home

    @property
    def name(self) -> str:
        """What to write after `--profile`."""
        return self.path.stem if self.home is not Home.ELSEWHERE else str(self.path)

    @property
    def is_python(self) -> bool:
        return self.path.suffix == ".py"


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile that has been read. `notes` are lines for the user; `completions` is a Python profile's own model."""

    file: ProfileFile
    layer: Layer
    notes: Sequence[str] = ()
    withheld: Mapping[str, Any] = field(default_factory=dict)
    """Settings that it wanted but may not make until it is trusted."""
    completions: Any = None


class NotTrusted(SettingsError):
    """A Python profile whose exact bytes the user has not trusted yet."""

    def __init__(self, path: Path, digest: str) -> None:
        self.path = path
        self.digest = digest
        super().__init__(
            f"{path} is a Python profile, a program, and you have not trusted it yet (SHA-256 {digest}).",
            f"Read it, then run: oi-tui --trust-profile {path}",
        )


# -- finding --------------------------------------------------------------------------------------------------------


def user_folder() -> Path:
    """The folder of the user's own profiles. It need not exist yet."""
    return config_folder() / "profiles"


def shipped_folder() -> Path:
    """The profiles that come with the program: inside the wheel, or those of the checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_profiles"
    return inside if inside.is_dir() else package.parent / "profiles"


def available() -> list[ProfileFile]:
    """All profiles that can be named, the user's before the shipped ones they replace, by name."""
    found: dict[str, ProfileFile] = {}
    for folder, home in ((shipped_folder(), Home.SHIPPED), (user_folder(), Home.USER)):
        for path in sorted(folder.glob("*")) if folder.is_dir() else ():
            if path.suffix in SUFFIXES and not path.name.startswith("."):
                found[path.stem] = ProfileFile(path, home)
    return [found[name] for name in sorted(found)]


def find(name: str) -> ProfileFile:
    """The profile that the user means. Raises `SettingsError` with the nearest name."""
    if "://" in name:
        raise SettingsError(
            f"Profiles are not loaded from the network: {name}",
            f"Download it, read it, and put it into {user_folder()}.",
        )
    if not name.strip() or "\0" in name:
        raise SettingsError("A profile needs a name.", "oi-tui --profiles lists them.")
    if not _is_path(name):
        for folder, home in ((user_folder(), Home.USER), (shipped_folder(), Home.SHIPPED)):
            for path in _spellings(folder / name):
                if path.is_file():
                    return ProfileFile(path, home)
    path = Path(name).expanduser()
    if (_is_path(name) or path.suffix in SUFFIXES) and path.exists():
        return ProfileFile(path, _home_of(path))
    names = [file.name for file in available()]
    guess = nearest(Path(name).stem, names)
    hint = f"Did you mean {guess}?" if guess else "There are: " + ", ".join(names) + "."
    raise SettingsError(f"There is no profile {name}.", hint)


def find_default() -> ProfileFile | None:
    """The profile that is used when none is named."""
    try:
        return find(DEFAULT)
    except SettingsError:
        return None


def _is_path(name: str) -> bool:
    return "/" in name or "\\" in name or name.startswith("~")


def _spellings(path: Path) -> list[Path]:
    if path.suffix in SUFFIXES:
        return [path]
    return [path.with_name(path.name + suffix) for suffix in SUFFIXES]


def _home_of(path: Path) -> Home:
    resolved = path.resolve()
    if resolved.parent == user_folder().resolve():
        return Home.USER
    if resolved.parent == shipped_folder().resolve():
        return Home.SHIPPED
    return Home.ELSEWHERE


# -- reading --------------------------------------------------------------------------------------------------------


def read(file: ProfileFile) -> Profile:
    """Read a profile. Unknown keys become notes; values of the wrong kind raise `SettingsError` with their line.

    Raises `NotTrusted` for a Python profile that has not been trusted: nothing of it has run then.
    """
    data = _bytes_of(file)
    digest = hashlib.sha256(data).hexdigest()
    trusted = trust.is_trusted(digest)
    text = _decoded(file, data)
    if file.is_python:
        if not trusted and file.home is not Home.SHIPPED:
            raise NotTrusted(file.path, digest)
        from oi_tui.engine.profile_python import run_profile

        recorded = run_profile(text, file.path)
        entries, completions = recorded.entries, recorded.completions
    else:
        try:
            entries = parse_json(text) if file.path.suffix == ".json" else parse_yaml(text)
        except SettingsError as error:
            raise _in_file(file, error) from None
        completions = None
    values, notes = _checked_entries(file, entries)
    withheld: dict[str, Any] = {}
    if file.home is Home.ELSEWHERE and not trusted:
        withheld = {name: value for name, value in values.items() if needs_trust(name, value)}
        values = {name: value for name, value in values.items() if name not in withheld}
    return Profile(file, Layer(f"profile {file.name}", values), notes, withheld, completions)


def digest_of_file(file: ProfileFile) -> str:
    """SHA-256 of the file's bytes, for the trust question. Raises `SettingsError`."""
    return hashlib.sha256(_bytes_of(file)).hexdigest()


def needs_trust(name: str, value: Any) -> bool:
    """Whether a stranger's profile may not set this."""
    if name == "auto_run":
        return bool(value)
    if name == "llm.api_base":
        return value is not None and not _is_loopback(str(value))
    if name == "pass_keys":
        return bool(value)
    return name in ("kernel", "shell", "conversation_filename", "conversation_history_path") and value is not None


def _is_loopback(address: str) -> bool:
    try:
        host = urlsplit(address if "//" in address else f"//{address}").hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bytes_of(file: ProfileFile) -> bytes:
    try:
        return read_regular(file.path, MAX_BYTES)
    except FileNotFoundError:
        raise SettingsError(f"There is no profile {file.path}.") from None


def _decoded(file: ProfileFile, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"Profile {file.path}, line {line}: it is not UTF-8 text.") from None


def _in_file(file: ProfileFile, error: SettingsError, line: int | None = None) -> SettingsError:
    where = f", line {line}" if line else ""
    separator = ", " if error.what.startswith("line ") else ": "
    return SettingsError(f"Profile {file.path}{where}{separator}{error.what}", error.hint)


def _checked_entries(file: ProfileFile, entries: Sequence[Entry]) -> tuple[dict[str, Any], list[str]]:
    values: dict[str, Any] = {}
    notes: list[str] = []
    for entry in entries:
        where = f"Profile {file.path}" + (f", line {entry.line}" if entry.line else "")
        name = canonical(entry.key)
        if name is None:
            if (note := _unknown(entry.key)) is not None:
                notes.append(f"{where}: {note}")
            continue
        if name in values:
            notes.append(f"{where}: {entry.key} is set twice; the last one counts.")
        try:
            values[name] = checked(name, entry.value)
        except SettingsError as error:
            raise _in_file(file, error, entry.line) from None
    return values, notes


def _unknown(key: str) -> str | None:
    """What to say about a key that is no setting; None if it needs no word."""
    if key in IGNORED:
        return None
    if key in REFUSED:
        return REFUSED[key]
    if key.startswith("computer."):
        return f"{key} has no meaning here and is ignored."
    section, _, _ = key.partition(".")
    guess = nearest_setting(key if section in SECTIONS else key.rpartition(".")[2])
    return f"unknown key {key[:60]}" + (f"; did you mean {guess}?" if guess else ", ignored.")
