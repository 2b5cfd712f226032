"""Conversations as files for others: Markdown, notebook, HTML, Open Interpreter's JSON, scripts."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from oi_tui.engine.errors import EngineError
from oi_tui.engine.exporters.base import Conversation
from oi_tui.engine.lmc import Message

if TYPE_CHECKING:
    from oi_tui.engine.store.reading import StoredConversation

FORMATS = {"markdown": "md", "notebook": "ipynb", "html": "html", "json": "json", "scripts": ""}
"""Names of the formats and the endings of their files; "scripts" makes a folder."""

ALIASES = {
    "md": "markdown",
    "ipynb": "notebook",
    "jupyter": "notebook",
    "script": "scripts",
    "sh": "shell",
    "py": "python",
}


class ExportError(EngineError):
    """A conversation cannot be exported so."""

    code = "export"


class PathExists(ExportError):
    """There is a file already."""


def format_named(name: str) -> str | None:
    """A format by its name or ending; the name of a language means its script."""
    from oi_tui.engine.exporters import scripts

    name = name.lower().lstrip(".")
    name = ALIASES.get(name, name)
    by_ending = {ending: language for language, ending in scripts.EXTENSIONS.items() if ending not in FORMATS.values()}
    name = by_ending.get(name, name)
    return name if name in FORMATS or name in scripts.EXTENSIONS else None


def format_for(path: Path) -> str:
    """The format that a path's ending means. Raises `ExportError`."""
    found = format_named(path.suffix) if path.suffix else "scripts"
    if found is None:
        raise ExportError(f"{path.suffix} is no format to export to.", f"There are: {', '.join(known_formats())}.")
    return found


def known_formats() -> list[str]:
    from oi_tui.engine.exporters import scripts

    return [*FORMATS, *(language for language in scripts.EXTENSIONS if language not in FORMATS)]


def export(
    source: Conversation | StoredConversation, format: str, path: Path, *, force: bool = False, keys: Sequence[str] = ()
) -> list[Path]:
    """Write a conversation to a file and return what was written; "scripts" makes a folder of them. Keys in the
    environment and those given are left out. Raises `ExportError`; `PathExists` where something would be replaced."""
    from oi_tui.engine.exporters import scripts

    conversation = _without_keys(source if isinstance(source, Conversation) else of_stored(source), keys)
    if format == "scripts":
        languages = scripts.languages_of(conversation)
        if not languages:
            raise ExportError("No code was run in this conversation.")
        names = [(path / f"script.{scripts.EXTENSIONS.get(lang, 'txt')}", lang) for lang in languages]
        _make_folder(path)
        return [_write(name, scripts.render(conversation, lang), force=force) for name, lang in names]
    if format in scripts.EXTENSIONS and format not in FORMATS and format not in scripts.languages_of(conversation):
        raise ExportError(f"No {format} code was run in this conversation.")
    return [_write(path, render(conversation, format), force=force)]


def render(conversation: Conversation, format: str) -> str:
    """The text of one format."""
    from oi_tui.engine.exporters import html, lmc_json, markdown, notebook, scripts

    match format:
        case "markdown":
            return markdown.render(conversation)
        case "notebook":
            return notebook.render(conversation)
        case "html":
            return html.render(conversation)
        case "json":
            return lmc_json.render(conversation)
    return scripts.render(conversation, format)


def of_stored(stored: StoredConversation) -> Conversation:
    return Conversation(stored.info.title, stored.shown, stored.info.created, stored.info.model)


def _without_keys(conversation: Conversation, keys: Sequence[str]) -> Conversation:
    from oi_tui.engine.redaction import known_keys
    from oi_tui.engine.store.records import without_keys

    known = known_keys(*keys)
    if not known:
        return conversation
    messages: list[Message] = [
        message
        if message.type == "image"
        else replace(message, content=without_keys(message.content, known), meta=without_keys(message.meta, known))
        for message in conversation.messages
    ]
    return replace(conversation, title=without_keys(conversation.title, known), messages=messages)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise ExportError(f"{path} cannot be made: {error.strerror}.") from None


def _write(path: Path, text: str, *, force: bool) -> Path:
    """Whole or not at all. A conversation is its user's alone: 0600."""
    from oi_tui.engine.private_files import write_private

    if path.is_dir():
        raise ExportError(f"{path} is a folder.", "Give the name of a file.")
    if not path.parent.is_dir():
        raise ExportError(f"There is no folder {path.parent}.")
    if not force and os.path.lexists(path):
        raise PathExists(f"{path} exists.", "Use --force to replace it.")
    if path.exists() and not path.is_file():
        raise ExportError(f"{path} is not a regular file.")
    try:
        write_private(path, text)
    except OSError as error:
        raise ExportError(
            f"{path} cannot be written: {error.strerror or errno.errorcode.get(error.errno or 0)}."
        ) from None
    return path
