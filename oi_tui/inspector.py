"""The panel at the side: when it is open, and what it shows of the transcript, the kernel and the working folder."""

from __future__ import annotations

import asyncio
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from oi_tui.engine.languages.base import MASKED
from oi_tui.file_search import walk
from oi_tui.widgets.block import Block
from oi_tui.widgets.canvas import Canvas
from oi_tui.widgets.code_block import CodeBlock
from oi_tui.widgets.image_block import ImageBlock
from oi_tui.widgets.side_panel import PanelRow, PanelSection, SidePanel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.screen import Screen

    from oi_tui.engine.session import Session

Variable: TypeAlias = tuple[str, str]
"""Name, and a short description of the value."""

WIDE = 170
"""Columns from which on the panel is open by itself; as the breakpoint `-wide`."""
_MOST_ROWS = 30
_MOST_FILES = 12
_SECRET_NAME = re.compile(r"passw|passphrase|secret|token|api_?key|credential", re.IGNORECASE)


class Inspector:
    """Opens the panel on a conversation's screen and fills it. Files count as changed from when it was made.

    In a wide terminal the panel is open until the user closes it, elsewhere it opens on request.
    """

    def __init__(self, screen: Screen[None], canvas: Canvas) -> None:
        self._screen = screen
        self._canvas = canvas
        self._since = time.time()
        self._blocks: dict[str, Block] = {}
        self._wanted: bool | None = None  # None: the width decides

    @property
    def is_open(self) -> bool:
        return any(panel.is_open for panel in self._screen.query(SidePanel))

    async def toggle(self) -> None:
        """Open or close the panel, and remember that the user wanted it so."""
        self._wanted = not self.is_open
        await self._show(self._wanted)

    async def fit(self) -> None:
        """Open or close the panel as the width asks, unless the user has decided."""
        if self._wanted is None:
            # Not by the screen's class: that follows a resize only later.
            await self._show(self._screen.app.size.width >= WIDE)

    async def _show(self, is_open: bool) -> None:
        if is_open and not self._screen.query(SidePanel):
            await self._screen.query_one("#conversation").mount(SidePanel())
        for panel in self._screen.query(SidePanel):
            panel.open(is_open)
        self._screen.set_class(is_open, "-panel-open")

    async def update(self, variables: Sequence[Variable]) -> None:
        """Show things as they are now, if anybody can see them. Asks the disk, not for long."""
        if self.is_open:
            self._screen.query_one(SidePanel).sections = await self._sections(variables)

    def block(self, key: str) -> Block | None:
        """The block that a row of the panel stands for."""
        return self._blocks.get(key)

    async def _sections(self, variables: Sequence[Variable]) -> tuple[PanelSection, ...]:
        files = await asyncio.to_thread(_changed_files, Path.cwd(), self._since)
        self._blocks = {}
        blocks = self._canvas.blocks
        images = [self._row(block, block.label, "") for block in blocks if isinstance(block, ImageBlock)]
        runs = [self._row(block, _first_line(block), _state(block)) for block in blocks if isinstance(block, CodeBlock)]
        return (
            PanelSection("Variables", tuple(PanelRow(name, value) for name, value in variables[-_MOST_ROWS:])),
            PanelSection("Images", tuple(images[-_MOST_ROWS:])),
            PanelSection("Files", tuple(files), "none changed yet"),
            PanelSection("Runs", tuple(runs[-_MOST_ROWS:])),
        )

    def _row(self, block: Block, text: str, detail: str) -> PanelRow:
        key = str(len(self._blocks))
        self._blocks[key] = block
        return PanelRow(text, detail, key)


async def variables_of(session: Session | None) -> list[Variable]:
    """The variables of the session's Python, newest last. A language that cannot be asked has none."""
    languages = session.languages if session is not None else None
    ask = getattr(languages.python, "variables", None) if languages is not None else None
    if ask is None:
        return []
    return [(row["name"], _shown(row)) for row in await ask()]


def _shown(row: Mapping[str, str]) -> str:
    """The value, unless its name says that it is nobody's business."""
    if _SECRET_NAME.search(row["name"]) and row["type"] in ("str", "bytes"):
        return MASKED
    return row["value"] or row["type"]


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
    return block.code.lstrip().partition("\n")[0][:200] or block.language


def _state(block: CodeBlock) -> str:
    seconds = f" {block.elapsed:.1f} s" if block.elapsed >= 0.05 else ""
    return f"{block.state}{seconds}"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
