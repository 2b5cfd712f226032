"""Files below a folder, found quickly enough to complete a path while it is typed.

Bounded in every direction: entries, depth and time. Hidden files, folders that hold only generated files, and what the
top `.gitignore` names are left out; links to folders are not followed.
"""

from __future__ import annotations

import fnmatch
import os
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

MOST_FILES = 20_000
LONGEST_WALK = 1.0
"""Seconds. What was found until then is offered."""

_GENERATED = frozenset(
    {
        "node_modules",
        "__pycache__",
        "venv",
        "env",
        "site-packages",
        "dist",
        "build",
        "target",
        "vendor",
        "bower_components",
    }
)


@dataclass(frozen=True, slots=True)
class FileIndex:
    """Paths relative to `root`, with `/` as separator and a trailing `/` on folders, nearest first."""

    root: Path
    paths: tuple[str, ...]
    is_complete: bool


def walk(root: Path, *, most: int = MOST_FILES, seconds: float = LONGEST_WALK) -> FileIndex:
    """List what is below `root`, breadth first. Unreadable folders are passed over. Blocks: run it in a thread."""
    ignored = _ignored_names(root)
    deadline = time.monotonic() + seconds
    paths: list[str] = []
    queue: deque[str] = deque([""])
    while queue:
        if len(paths) >= most or time.monotonic() > deadline:
            return FileIndex(root, tuple(paths[:most]), is_complete=False)
        folder = queue.popleft()
        for name, is_folder in _list(root / folder, most + 1):
            if name.startswith(".") or (is_folder and name in _GENERATED) or _is_ignored(name, is_folder, ignored):
                continue
            paths.append(f"{folder}{name}/" if is_folder else f"{folder}{name}")
            if is_folder:
                queue.append(f"{folder}{name}/")
    return FileIndex(root, tuple(paths[:most]), is_complete=len(paths) <= most)


def list_folder(root: Path, typed: str, limit: int = 200) -> list[str]:
    """Completions of a path that names its folder itself: `../da`, `~/data/`, `/etc/ho`, `.hid`. Blocks."""
    head, slash, prefix = typed.rpartition("/")
    folder = Path(os.path.expanduser(head + slash)) if slash else Path()
    found = []
    for name, is_folder in _list(root / folder):
        if not name.lower().startswith(prefix.lower()) or (name.startswith(".") and not prefix.startswith(".")):
            continue
        found.append(f"{head}{slash}{name}{'/' if is_folder else ''}")
        if len(found) == limit:
            break
    return found


def best_matches(paths: Sequence[str], typed: str, limit: int = 8) -> list[str]:
    """The paths that fit what was typed, best first: whole words, then starts of names, then scattered letters."""
    if not typed:
        return list(paths[:limit])
    needle = typed.lower()
    scored = [(score, index) for index, path in enumerate(paths) if (score := _score(path.lower(), needle)) is not None]
    scored.sort()
    return [paths[index] for _score_, index in scored[:limit]]


def _score(path: str, needle: str) -> tuple[int, int] | None:
    name = path.rstrip("/").rpartition("/")[2]
    if name == needle or path == needle:
        return (0, len(path))
    if name.startswith(needle) or path.startswith(needle):
        return (1, len(path))
    if needle in name:
        return (2, len(path))
    if needle in path:
        return (3, len(path))
    position = -1
    for character in needle:
        position = path.find(character, position + 1)
        if position < 0:
            return None
    return (4, len(path))


def _list(folder: Path, most: int = MOST_FILES) -> list[tuple[str, bool]]:
    """(name, is a folder) of each entry, by name; any `most` of them where there are more."""
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(entries, most)]
    except OSError:
        return []
    return sorted(found)


def _ignored_names(root: Path) -> list[str]:
    """The simple patterns of the top .gitignore: those that name a file or folder wherever it is."""
    try:
        with open(root / ".gitignore", encoding="utf-8", errors="replace") as file:
            lines = file.read(64 * 1024).splitlines()
    except OSError:
        return []
    patterns = [line.strip() for line in lines]
    return [
        pattern.removeprefix("/")
        for pattern in patterns
        if pattern and not pattern.startswith(("#", "!")) and "/" not in pattern.strip("/")
    ]


def _is_ignored(name: str, is_folder: bool, patterns: Sequence[str]) -> bool:
    return any(
        fnmatch.fnmatchcase(name, pattern.rstrip("/")) for pattern in patterns if is_folder or not pattern.endswith("/")
    )
