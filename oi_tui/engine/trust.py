"""What the user has trusted: SHA-256 digests of files, kept in a private file. Changed bytes are a stranger again."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from oi_tui.engine.errors import SettingsError
from oi_tui.engine.private_files import config_folder, read_regular, write_private

MAX_BYTES = 1024 * 1024


def _store() -> Path:
    return config_folder() / "trusted.json"


def _load() -> dict[str, Any]:
    """What is trusted; nothing, if the file is missing or damaged: the question is asked again then."""
    try:
        data = json.loads(read_regular(_store(), MAX_BYTES))
    except (FileNotFoundError, SettingsError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def is_trusted(digest: str) -> bool:
    """Whether the user has trusted a file with this SHA-256 (64 hexadecimal digits)."""
    return digest in _load()


def trust(digest: str, path: Path) -> None:
    """Remember that the user trusts a file with this SHA-256. Raises `SettingsError` if it cannot be written."""
    known = _load()
    known[digest] = {"path": str(path.absolute()), "trusted": time.strftime("%Y-%m-%d %H:%M")}
    try:
        write_private(_store(), json.dumps(known, indent=1) + "\n")
    except OSError as error:
        raise SettingsError(f"The trust could not be saved in {_store()}: {error.strerror}.") from None
