"""What the side panel shows: gathered from the transcript, the kernel and the working directory."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from oi_tui.file_search import walk
from oi_tui.widgets.block import Block
from oi_tui.widgets.code_block import CodeBlock
from oi_tui.widgets.image_block import ImageBlock
from oi_tui.widgets.side_panel import PanelRow, PanelSection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oi_tui.engine.session import Session

_MOST_ROWS = 30
_MOST_FILES = 12


class Inspector:
    """Gathers the panel's sections. Files count as changed from the time the inspector was made."""

    def __init__(self) -> None:
        self._since = time.time()
        self._blocks: dict[str, Block] = {}

    def block(self, key: str) -> Block | None:
        """The block that a row of the panel stands for."""
        return self._blocks.get(key)

    async def sections(self, blocks: Sequence[Block], session: Session | None) -> tuple[PanelSection, ...]:
        """All sections as things are now. Asks the kernel and the disk, neither for long."""
        variables = await _variables(session)
        files = await asyncio.to_thread(_changed_files, Path.cwd(), self._since)
        self._blocks = {}
        images = [self._row(block, block.label, "") for block in blocks if isinstance(block, ImageBlock)]
        runs = [self._row(block, _first_line(block), _state(block)) for block in blocks if isinstance(block, CodeBlock)]
        return (
            PanelSection("Variables", tuple(variables)),
            PanelSection("Images", tuple(images[-_MOST_ROWS:])),
            PanelSection("Files", tuple(files), "none changed yet"),
            PanelSection("Runs", tuple(runs[-_MOST_ROWS:])),
        )

    def _row(self, block: Block, text: str, detail: str) -> PanelRow:
        key = str(len(self._blocks))
        self._blocks[key] = block
        return PanelRow(text, detail, key)


async def _variables(session: Session | None) -> list[PanelRow]:
    """The kernel's variables, newest last. A language that cannot be asked has none."""
    ask = getattr(session.languages.python, "variables", None) if session is not None else None
    if ask is None:
        return []
    rows = [PanelRow(row["name"], row["value"] or row["type"]) for row in await ask()]
    return rows[-_MOST_ROWS:]


def _changed_files(folder: Path, since: float) -> list[PanelRow]:
    """Files below the folder that were written since then, newest first. For a thread."""
    changed = []
    for path in walk(folder, seconds=0.3).paths:
        if path.endswith("/"):
            continue
        try:
            status = os.stat(folder / path)
        except OSError:
            continue
        if status.st_mtime >= since:
            changed.append((status.st_mtime, path, status.st_size))
    newest = sorted(changed, reverse=True)[:_MOST_FILES]
    return [PanelRow(path, _size(size)) for _time, path, size in newest]


def _first_line(block: CodeBlock) -> str:
    return next((line.strip() for line in block.code_lines if line.strip()), block.language)


def _state(block: CodeBlock) -> str:
    seconds = f" {block.elapsed:.1f} s" if block.elapsed >= 0.05 else ""
    return f"{block.state}{seconds}"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
