"""What the user typed, kept over sessions: one JSON string per line, in a file only its owner can read.

The file is a convenience. If it cannot be read or written, the history of this session still works and nothing is said.
Two windows append to the same file; each entry is one `write` in append mode, so they do not tear each other's lines.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from oi_tui.engine.errors import SettingsError
from oi_tui.engine.private_files import data_folder, make_private_folder, read_regular, write_private

LIMIT = 1000
"""Entries kept. The file is cut down to this many when it has grown to twice as many."""
LONGEST = 100_000
"""Characters of one entry; longer ones are used in this session only."""
_LARGEST_FILE = 64 << 20


class PromptHistory:
    """Entries oldest first, without immediate repetitions. Reading happens at the first use, not at start-up."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._loaded: list[str] | None = None

    @property
    def entries(self) -> list[str]:
        """All entries, oldest first. Not to be changed from outside."""
        if self._loaded is None:
            self._loaded = self._read()
        return self._loaded

    def add(self, text: str) -> None:
        """Remember a text. Blank texts and repetitions of the last one are left out."""
        if not text.strip() or (self.entries and self.entries[-1] == text):
            return
        self.entries.append(text)
        if len(text) <= LONGEST:
            self._append(text)

    def search(self, words: str, limit: int = 50) -> list[str]:
        """Entries that contain all words (any case), newest first, each text once."""
        wanted = words.lower().split()
        found: dict[str, None] = {}
        for entry in reversed(self.entries):
            if len(found) == limit:
                break
            lowered = entry.lower()
            if all(word in lowered for word in wanted):
                found.setdefault(entry)
        return list(found)

    def _read(self) -> list[str]:
        if self._path is None:
            return []
        try:
            lines = read_regular(self._path, _LARGEST_FILE).decode("utf-8", "replace").splitlines()
        except (OSError, SettingsError):
            return []
        entries = [entry for line in lines if (entry := _parse(line)) is not None]
        if len(entries) > 2 * LIMIT:
            self._rewrite(entries[-LIMIT:])
        return entries[-LIMIT:]

    def _append(self, text: str) -> None:
        if self._path is None:
            return
        line = json.dumps(text, ensure_ascii=True) + "\n"
        try:
            make_private_folder(self._path.parent)
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o600)
            try:
                os.write(handle, line.encode())
            finally:
                os.close(handle)
        except OSError:
            self._path = None

    def _rewrite(self, entries: list[str]) -> None:
        assert self._path is not None
        try:
            write_private(self._path, "".join(json.dumps(entry) + "\n" for entry in entries))
        except OSError:
            return


def _parse(line: str) -> str | None:
    """One line of the file, or None for a torn or foreign one."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, str) and entry.strip() else None


def save_draft(text: str) -> None:
    """Keep what was typed and not sent for the next start. Where that fails it is lost, as it would have been."""
    try:
        if text.strip():
            write_private(_draft_path(), text)
    except (OSError, UnicodeError):
        return


def take_draft() -> str:
    """What the last session left unsent, once; empty if it left nothing."""
    try:
        text = read_regular(_draft_path(), _LARGEST_FILE).decode("utf-8", "replace")
        _draft_path().unlink()
    except (OSError, SettingsError):
        return ""
    return text


def _draft_path() -> Path:
    return data_folder() / "draft.txt"


class HistoryCursor:
    """Walks through the history from the prompt's own text and back to it.

    The text that stood in the prompt when the walk began is the draft; walking past the newest entry returns it.
    """

    def __init__(self, history: PromptHistory) -> None:
        self._history = history
        self._position: int | None = None
        self._draft = ""

    @property
    def is_walking(self) -> bool:
        return self._position is not None

    def previous(self, text: str) -> str | None:
        """The entry before, or None at the oldest one. `text` is what the prompt shows now."""
        entries = self._history.entries
        if self._position is None:
            self._draft, self._position = text, len(entries)
        if self._position == 0:
            if not entries:
                self._position = None
            return None
        self._position -= 1
        return entries[self._position]

    def following(self) -> str | None:
        """The entry after, then the draft, or None when there is nothing to go to."""
        if self._position is None:
            return None
        self._position += 1
        entries = self._history.entries
        if self._position < len(entries):
            return entries[self._position]
        self._position = None
        return self._draft

    def reset(self) -> None:
        """Forget the walk: the text was sent or changed."""
        self._position = None
        self._draft = ""
