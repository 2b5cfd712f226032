"""What could be meant by a beginning: commands, variables, files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from oi_tui.file_search import FileIndex, best_matches, list_folder, walk

MOST = 8
_MOST_VARIABLES = 3
_INDEX_LIFETIME = 10.0
"""Seconds after which the list of files is made anew."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One thing that could be meant. `text` replaces what was typed."""

    text: str
    label: str
    hint: str = ""


class Completer:
    """Knows what there is. The list of files is made when it is first needed, in a thread."""

    def __init__(self) -> None:
        self.folder = Path.cwd()
        """Files are those below this folder."""
        self.commands: Sequence[tuple[str, str]] = ()
        """(name without %, what it does)."""
        self.variables: Sequence[tuple[str, str]] = ()
        """(name, value) of the kernel's variables, offered before files."""
        self._files: FileIndex | None = None
        self._files_made_at = 0.0

    def commands_like(self, typed: str) -> list[Completion]:
        """Commands whose name begins like this."""
        names = [(name, hint) for name, hint in self.commands if name.startswith(typed.lower())]
        return [Completion(f"%{name}", f"%{name}", hint) for name, hint in names]

    async def files(self, typed: str) -> list[Completion]:
        """Variables and files that fit, best first."""
        if typed.startswith(("~", "/", ".")) or "/." in typed:
            paths = (await asyncio.to_thread(list_folder, self.folder, typed))[:MOST]
        else:
            index = await self._index()
            paths = await asyncio.to_thread(best_matches, index.paths, typed, MOST)
        return [*self._variables_like(typed), *(file_completion(path) for path in paths)]

    def _variables_like(self, typed: str) -> list[Completion]:
        names = [(name, value) for name, value in self.variables if typed and name.startswith(typed)]
        return [Completion(name, name, value) for name, value in names[:_MOST_VARIABLES]]

    async def _index(self) -> FileIndex:
        is_old = monotonic() - self._files_made_at > _INDEX_LIFETIME
        if self._files is None or self._files.root != self.folder or is_old:
            self._files = await asyncio.to_thread(walk, self.folder)
            self._files_made_at = monotonic()
        return self._files


def file_completion(path: str) -> Completion:
    """A path as it is written in a prompt: quoted where it has a space."""
    if " " not in path:
        return Completion(f"@{path}", path)
    return Completion(f'@"{path}' if path.endswith("/") else f'@"{path}"', path)
