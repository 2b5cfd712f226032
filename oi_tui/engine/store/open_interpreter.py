"""Open Interpreter's conversation files: read (the present format and that of 0.1), imported, and written.

A file is a JSON list of messages, named after its beginning and its date. Nothing here changes an original, follows a
link out of the folder, or waits for a file that is none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oi_tui.engine.errors import SettingsError
from oi_tui.engine.history import History
from oi_tui.engine.lmc import Message
from oi_tui.engine.private_files import read_regular
from oi_tui.engine.store.adding import add
from oi_tui.engine.store.store import Store, StoreError

LARGEST = 256 * 1024 * 1024
"""Bytes of a file that is still read."""
_APP_NAMES = ("open-interpreter", "Open Interpreter", "Open Interpreter Terminal")
_DATE = re.compile(r"__([A-Z][a-z]+_\d{2}_\d{4}_\d{2}-\d{2}-\d{2})$")


@dataclass(slots=True)
class Read:
    """What was in a file. `problems` are sentences about what could not be read."""

    messages: list[dict[str, Any]]
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """What an import came to."""

    imported: int = 0
    messages: int = 0
    known: int = 0
    """Files that were imported before."""
    problems: list[tuple[Path, str]] = field(default_factory=list)

    def lines(self) -> list[str]:
        """For people."""
        known = f", {self.known} were here already" if self.known else ""
        out = [f"{self.imported} conversations with {self.messages} messages were imported{known}."]
        return out + [f"  {path.name}: {problem}" for path, problem in self.problems]


def find_folder() -> Path | None:
    """Where Open Interpreter keeps its conversations, if it is there."""
    from platformdirs import user_config_path

    for name in _APP_NAMES:
        folder = user_config_path(name, appauthor=False) / "conversations"
        with contextlib.suppress(OSError):
            if folder.is_dir() and any(path.suffix == ".json" for path in folder.iterdir()):
                return folder
    return None


def files_in(path: Path) -> list[Path]:
    """The conversation files of a folder, oldest first, or the file itself. Raises `StoreError`."""
    try:
        if not path.is_dir():
            if path.exists() or path.is_symlink():
                return [path]
            raise StoreError(f"There is no {path}.")
        found = [entry for entry in path.iterdir() if entry.suffix.lower() == ".json"]
        return sorted(found, key=lambda entry: (_made(entry), entry.name))
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from None


def import_all(
    store: Store, paths: Sequence[Path], *, progress: Callable[[int, int], object] = lambda done, total: None
) -> Report:
    """Put files into the store, each as a conversation of its own. Files that were imported before are left out."""
    report = Report()
    origins = store.origins()
    for number, path in enumerate(paths, 1):
        try:
            _import(store, path, origins, report)
        except SettingsError as error:
            report.problems.append((path, error.what))
        except OSError as error:
            report.problems.append((path, error.strerror or "cannot be read"))
        progress(number, len(paths))
    if not store.flush(60):
        raise StoreError(store.fault or "The conversations could not be written.")
    return report


def _import(store: Store, path: Path, origins: set[str], report: Report) -> None:
    data = _bytes_of(path)
    origin = hashlib.sha256(path.name.encode("utf-8", "surrogateescape") + b"\0" + data).hexdigest()
    if origin in origins:
        report.known += 1
        return
    read = parse(data)
    for problem in read.problems:
        report.problems.append((path, problem))
    if not read.messages:
        if not read.problems:
            report.problems.append((path, "there is no message in it"))
        return
    messages, problems = to_messages(read.messages)
    for problem in problems:
        report.problems.append((path, problem))
    if not messages:
        return
    add(store, messages, created=_made(path), origin=origin)
    origins.add(origin)
    report.imported += 1
    report.messages += len(messages)


def _bytes_of(path: Path) -> bytes:
    if path.is_symlink() and path.resolve().parent != path.parent.resolve():
        raise SettingsError("a link to another place; import that file itself if you want it")
    try:
        return read_regular(path, LARGEST)
    except FileNotFoundError:
        raise SettingsError("is not there") from None
    except SettingsError as error:
        raise SettingsError(error.what.removeprefix(f"{path} ").rstrip(".")) from None


def parse(data: bytes) -> Read:
    """The messages of a file, and what is wrong with it. A file that was cut gives what is before the cut."""
    problems = []
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problems.append(f"byte {error.start + 1} is not UTF-8")
        text = data.decode("utf-8", "replace")
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        found = _before_the_cut(text)
        return Read(found, [*problems, f"line {error.lineno}: {error.msg}; {len(found)} messages before it were read"])
    except RecursionError:
        return Read([], [*problems, "is nested too deeply"])
    if isinstance(content, dict) and isinstance(content.get("messages"), list):
        content = content["messages"]
    if not isinstance(content, list):
        return Read([], [*problems, "is not a list of messages"])
    messages: list[dict[str, Any]] = []
    for number, item in enumerate(content, 1):
        if isinstance(item, dict):
            messages.append(item)
        else:
            problems.append(f"message {number} is not a message")
    return Read(messages, problems)


def _before_the_cut(text: str) -> list[dict[str, Any]]:
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    at = text.find("[") + 1
    while at > 0:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        try:
            item, at = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError):
            break
        if isinstance(item, dict):
            found.append(item)
    return found


def to_messages(wire: Iterable[Mapping[str, Any]]) -> tuple[list[Message], list[str]]:
    """Messages of either format. What is no message is named and left out."""
    present: list[dict[str, Any]] = []
    problems: list[str] = []
    for number, item in enumerate(wire, 1):
        for message in _modern(item):
            try:
                Message.from_dict(message)
            except (ValueError, TypeError):
                problems.append(f"message {number} cannot be read")
                continue
            present.append(message)
    return list(History.from_lmc(present)), problems


def _modern(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A message of 0.1 holds what was said, the code and its output in one; now each is a message."""
    if "type" in item or "content" in item or not {"message", "code", "output", "image"} & item.keys():
        return [dict(item)]
    role = item.get("role")
    out: list[dict[str, Any]] = []
    if isinstance(item.get("message"), str) and item["message"]:
        out.append({"role": role, "type": "message", "content": item["message"]})
    if isinstance(item.get("image"), str) and item["image"]:
        out.append({"role": role, "type": "image", "format": "base64.png", "content": item["image"]})
    if isinstance(item.get("code"), str) and item["code"]:
        language = item.get("language")
        language = language if isinstance(language, str) else "python"
        out.append({"role": "assistant", "type": "code", "format": language, "content": item["code"]})
    if isinstance(item.get("output"), str) and (item["output"] or item.get("code")):
        out.append({"role": "computer", "type": "console", "format": "output", "content": item["output"]})
    return out


def _made(path: Path) -> float:
    """When a conversation was: as its name says, or its file."""
    if (match := _DATE.search(path.stem)) is not None:
        with contextlib.suppress(ValueError, OverflowError):
            return time.mktime(time.strptime(match[1], "%B_%d_%Y_%H-%M-%S"))
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


# -- written ----------------------------------------------------------------------------------------------------------


def file_name(opening: str, at: float) -> str:
    """The name that Open Interpreter gives to a conversation that begins so."""
    words = opening[:25].split(" ")
    start = "_".join(words[:-1]) if len(words) > 1 else opening[:15]
    start = re.sub(r'[<>:"/\\|?*!\x00-\x1f\x7f]', "", start)
    return f"{start}__{time.strftime('%B_%d_%Y_%H-%M-%S', time.localtime(at))}.json"
