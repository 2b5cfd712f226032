"""Pictures for the model: from LMC image messages to parts of OpenAI-form messages."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import math
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oi_tui.engine.lmc import Message

MAX_BYTES = 5_000_000
"""Larger pictures (as base64 text, which is what providers count) are scaled down."""
TARGET_BYTES = 4_900_000
KEEP_ALL = 3
"""Up to this many pictures are all sent; of more, the first and the last two."""
MAX_FILE_BYTES = 64_000_000

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
)


class ImageFailed(Exception):
    """A picture cannot be sent. The text says why, for the model."""


def images_to_send(messages: Sequence[Message]) -> set[str]:
    """The ids of the image messages that the model gets to see: all of a few, the first and the last two of many."""
    ids = [m.id for m in messages if m.type == "image" and m.format != "description"]
    return set(ids if len(ids) <= KEEP_ALL else [ids[0], *ids[-2:]])


def image_part(message: Message, *, shrink: bool) -> dict[str, Any]:
    """The part that shows this image. Raises `ImageFailed`."""
    data = _file_bytes(message.text) if message.format == "path" else _decoded(message.text)
    kind = _kind(data)
    if shrink and len(data) * 4 // 3 > MAX_BYTES:
        data, kind = _small(data)
    url = f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
    return {"type": "image_url", "image_url": {"url": url, "detail": "auto"}}


def _file_bytes(path: str) -> bytes:
    file = Path(path).expanduser()
    try:
        if not file.is_file():
            raise ImageFailed(f"there is no file {path}")
        if file.stat().st_size > MAX_FILE_BYTES:
            raise ImageFailed(f"the file {path} is too large")
        return file.read_bytes()
    except (OSError, ValueError) as error:
        raise ImageFailed(f"the file {path} could not be read") from error


def _decoded(text: str) -> bytes:
    if text.startswith("data:"):
        text = text.partition(",")[2]
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ImageFailed("its data is damaged") from error


def _kind(data: bytes) -> str:
    """The media type by content. What a message's format says is a claim; providers reject a wrong one."""
    for signature, kind in _SIGNATURES:
        if data.startswith(signature):
            return kind
    raise ImageFailed("it is not a PNG, JPEG, GIF or WebP")


_smaller: OrderedDict[bytes, tuple[bytes, str]] = OrderedDict()
"""The pictures scaled down last, by the digest of the large one: each takes a second, and is in every request."""


def _small(data: bytes) -> tuple[bytes, str]:
    key = hashlib.sha256(data).digest()
    if key not in _smaller:
        _smaller[key] = _shrunk(data)
        while len(_smaller) > KEEP_ALL:
            _smaller.popitem(last=False)
    _smaller.move_to_end(key)
    return _smaller[key]


def _shrunk(data: bytes) -> tuple[bytes, str]:
    """The picture scaled down until its base64 text is below the limit."""
    from PIL import Image, UnidentifiedImageError  # Pillow takes 30 ms to import; few conversations need it

    try:
        with Image.open(io.BytesIO(data)) as opened:
            image: Image.Image = opened.convert("RGBA" if "A" in opened.getbands() else "RGB")
        kind = "PNG" if image.mode == "RGBA" else "JPEG"
        size = len(data) * 4 // 3
        for _ in range(10):
            factor = min(0.95, math.sqrt(TARGET_BYTES / size))
            image = image.resize((max(1, int(image.width * factor)), max(1, int(image.height * factor))))
            out = io.BytesIO()
            image.save(out, kind)
            size = out.tell() * 4 // 3
            if size <= MAX_BYTES:
                return out.getvalue(), f"image/{kind.lower()}"
    except (OSError, ValueError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise ImageFailed("it could not be scaled down") from error
    raise ImageFailed("it is too large")
