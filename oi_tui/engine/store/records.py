"""Messages as rows, and rows as messages. Pictures and long outputs are files in the conversation's folder."""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oi_tui.engine.lmc import ROLES, Message
from oi_tui.engine.redaction import STAND_IN

TEXT, FILE, JSON = "text", "file", "json"
"""Kinds of content: in the row, in a file named by the row, or a number or mapping as JSON."""

LARGEST_PICTURE = 64 * 1024 * 1024
MISSING_PICTURE = "(This picture is missing from the store.)"


@dataclass(frozen=True, slots=True)
class Record:
    """One message as it is stored. `data` are the bytes of its file, if it has one that must be written."""

    id: str
    position: int
    role: str
    type: str
    format: str | None
    recipient: str | None
    content: str
    kind: str
    meta: Mapping[str, Any]
    data: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes, about."""
        return len(self.content) + len(self.data or b"")


def to_record(message: Message, position: int, extra: Mapping[str, Any], keys: Iterable[str]) -> Record:
    """What is stored of a message: without the known keys, with `extra` added to its meta."""
    keys = tuple(keys)
    meta = without_keys({**message.meta, **extra}, keys)
    content, kind, data = _encoded(message, keys)
    return Record(
        message.id,
        position,
        message.role,
        message.type,
        message.format,
        message.recipient,
        content,
        kind,
        meta,
        data,
    )


def _encoded(message: Message, keys: tuple[str, ...]) -> tuple[str, str, bytes | None]:
    if not isinstance(message.content, str):
        return json.dumps(without_keys(message.content, keys)), JSON, None
    if message.type == "image" and (message.format or "base64").startswith("base64"):
        text = message.content
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return json.dumps(text), JSON, None
        if base64.b64encode(data).decode() == text and data:
            extension = (message.format or "").partition(".")[2] or "png"
            extension = extension if extension.isalnum() and len(extension) < 8 else "bin"
            return f"{hashlib.sha256(data).hexdigest()[:32]}.{extension}", FILE, data
        return json.dumps(text), JSON, None
    return storable(without_keys(message.content, keys)), TEXT, None


def storable(text: str) -> str:
    """Lone surrogates cannot be stored as UTF-8: they are written out."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text


def without_keys(value: Any, keys: Iterable[str]) -> Any:
    """The same value with the known keys taken out of every text in it."""
    if isinstance(value, str):
        for key in keys:
            if key in value:
                value = value.replace(key, STAND_IN)
        return value
    if isinstance(value, Mapping):
        return {str(name): without_keys(item, keys) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_keys(item, keys) for item in value]
    return value


def to_json(value: Any) -> str:
    return storable(json.dumps(value, default=str, ensure_ascii=False))


# -- files ------------------------------------------------------------------------------------------------------------


def with_files(record: Record, folder: Path, keys: Iterable[str]) -> Record:
    """Write what belongs to a record into the conversation's folder, and name it there relatively. Safe to repeat.
    Raises `OSError`."""
    if record.data is not None:
        _write_once(folder / record.content, record.data)
        record = replace(record, data=None)
    if (path := record.meta.get("full_output")) and isinstance(path, str):
        record = replace(record, meta={**record.meta, "full_output": _taken_in(Path(path), folder, tuple(keys))})
    return record


def _write_once(path: Path, data: bytes) -> None:
    """The name says what is in it: a file that is there with this size is this file."""
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size == len(data):
            return
    handle, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _taken_in(path: Path, folder: Path, keys: tuple[str, ...]) -> str:
    """The name of a file that holds a complete output, within the folder. A file elsewhere is linked or copied."""
    if not path.is_absolute():
        return path.name
    if path.parent != folder:
        target = folder / path.name
        if not target.exists() and path.is_file():
            link_or_copy(path, target)
        path = target
    _remove_keys_from_file(path, keys)
    return path.name


def link_or_copy(source: Path, target: Path) -> None:
    """The same file in two places where the file system can do that, a copy elsewhere. Raises `OSError`."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        target.chmod(0o600)


def _remove_keys_from_file(path: Path, keys: tuple[str, ...]) -> None:
    """Outputs are written as they come; a key that a program printed goes when the output is complete."""
    wanted = [key.encode() for key in keys]
    if not wanted or not path.is_file() or not any(_contains(path, key) for key in wanted):
        return
    handle, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    longest = max(map(len, wanted))
    with open(handle, "wb") as target, open(path, "rb") as source:
        held = b""
        while piece := source.read(1 << 20):
            held += piece
            for key in wanted:
                held = held.replace(key, STAND_IN.encode())
            target.write(held[: -longest or None])
            held = held[-longest:]
        target.write(held)
    os.replace(name, path)


def _contains(path: Path, wanted: bytes) -> bool:
    with open(path, "rb") as file:
        held = b""
        while piece := file.read(1 << 20):
            if wanted in held + piece:
                return True
            held = piece[-len(wanted) :]
    return False


# -- back -------------------------------------------------------------------------------------------------------------


def to_message(row: Mapping[str, Any], folder: Path) -> Message:
    """The message of a row. Raises `ValueError` for a row that is no message."""
    role, kind = row["role"], row["kind"]
    if role not in ROLES or not isinstance(row["content"], str):
        raise ValueError("not a message")
    meta = json.loads(row["meta"])
    if not isinstance(meta, dict):
        raise ValueError("meta is not a mapping")
    if isinstance(name := meta.get("full_output"), str):
        meta["full_output"] = str(folder / Path(name).name)
    message = Message(
        role, str(row["type"]), row["content"], row["format"], row["recipient"], id=str(row["id"]), meta=meta
    )
    if kind == JSON:
        return replace(message, content=json.loads(row["content"]))
    if kind == FILE:
        data = read_picture(folder / Path(row["content"]).name)
        if data is None:
            return replace(message, format="description", content=MISSING_PICTURE)
        return replace(message, content=base64.b64encode(data).decode())
    return message


def read_picture(path: Path) -> bytes | None:
    """The bytes of a picture's file; None if it is not there or cannot be one."""
    from oi_tui.engine.errors import SettingsError
    from oi_tui.engine.private_files import read_regular

    try:
        return read_regular(path, LARGEST_PICTURE)
    except (OSError, SettingsError):
        return None
