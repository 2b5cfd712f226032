"""Pictures and pages that a line cannot show: kept as files, and said in words."""

from __future__ import annotations

import base64
import binascii
import io
import os
import tempfile
import time
from pathlib import Path

from oi_tui.engine.lmc import Chunk
from oi_tui.engine.private_files import data_folder
from oi_tui.rendering.sanitise import sanitise_line

_EXTENSIONS = {"html": "html", "javascript": "js", "svg": "svg"}
_PATH_LENGTH = 1000


class FileShelf:
    """A folder of this session, made when the first file is kept. `keep=False` puts it among the temporary files."""

    def __init__(self, *, keep: bool = True) -> None:
        self._keep = keep
        self._folder: Path | None = None
        self._count = 0

    def keep(self, chunk: Chunk) -> str:
        """Save what a chunk holds and describe it in one line: kind, size, and where it is."""
        if chunk.type == "image" and chunk.format == "path":
            return f"Image: {sanitise_line(chunk.text, _PATH_LENGTH)}"
        if chunk.type == "image" and chunk.format == "description":
            return f"Image: {sanitise_line(chunk.text, _PATH_LENGTH)}"
        data, extension, what = _content_of(chunk)
        if data is None:
            return "Image: it cannot be read."
        try:
            path = self._write(data, extension)
        except OSError as error:
            return f"{what}, which could not be saved: {error.strerror}"
        return f"{what}: {path}"

    def _write(self, data: bytes, extension: str) -> Path:
        if self._folder is None:
            self._folder = self._make_folder()
        self._count += 1
        path = self._folder / f"{self._count}.{extension}"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        return path

    def _make_folder(self) -> Path:
        if not self._keep:
            return Path(tempfile.mkdtemp(prefix="oi-tui-"))
        parent = data_folder() / "files"
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Path(tempfile.mkdtemp(prefix=time.strftime("%Y-%m-%d-%H%M-"), dir=parent))


def _content_of(chunk: Chunk) -> tuple[bytes | None, str, str]:
    """The bytes, the file extension, and what it is in words."""
    if chunk.type != "image":
        text = chunk.text
        kind = chunk.format or "text"
        return text.encode("utf-8", "replace"), _EXTENSIONS.get(kind, "txt"), f"{kind} page, {_size(len(text))}"
    try:
        data = base64.b64decode(chunk.text, validate=False)
    except (binascii.Error, ValueError):
        return None, "", ""
    extension = (chunk.format or "base64.png").partition(".")[2] or "png"
    extension = extension if extension.isalnum() else "png"
    return data, extension, f"Image, {_dimensions(data)}{extension.upper()}, {_size(len(data))}"


def _dimensions(data: bytes) -> str:
    """ "640 by 480 pixels, " from the picture's header; empty if that cannot be read."""
    import warnings

    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a picture that claims to be huge is only measured here
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "GIF", "WEBP")) as image:
                return f"{image.width} by {image.height} pixels, "
    except Exception:  # Pillow raises all kinds of errors for damaged pictures
        return ""


def _size(count: int) -> str:
    return (
        f"{count} bytes" if count < 2000 else f"{count / 1000:.0f} kB" if count < 2_000_000 else f"{count / 1e6:.1f} MB"
    )
