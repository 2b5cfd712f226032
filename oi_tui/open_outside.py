"""Results that are looked at outside of the terminal: written into the conversation's folder, opened by the system."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from oi_tui.widgets.block import Block
from oi_tui.widgets.image_block import ImageBlock
from oi_tui.widgets.rich_block import RichBlock


def write_result(block: Block, folder: Path) -> Path | None:
    """The result of a block as a file that only its user can read; None if there is nothing to look at."""
    if isinstance(block, ImageBlock):
        kind = block.format.rpartition(".")[2]
        return _write_private(folder, block.data, "png" if kind == "base64" else kind)
    if isinstance(block, RichBlock):
        return _write_private(folder, block.content.encode("utf-8", "replace"), block.format)
    return None


def _write_private(folder: Path, data: bytes, kind: str) -> Path:
    """A new file in the folder. `kind` comes from a stranger: only what programs call pictures and pages is kept."""
    suffix = {"javascript": "txt", "jpg": "jpeg"}.get(kind, kind)
    suffix = suffix if re.fullmatch(r"png|jpeg|gif|webp|svg|html", suffix) else "txt"
    handle, name = tempfile.mkstemp(prefix="result-", suffix=f".{suffix}", dir=folder)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    return Path(name)
