"""Files that are nobody else's business: written whole or not at all, readable by their owner alone."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from oi_tui.engine.errors import SettingsError

APP_NAME = "oi-tui"


def config_folder() -> Path:
    """Where profiles, trusted hashes and keys live: `~/.config/oi-tui` on Linux. It need not exist yet."""
    from platformdirs import user_config_path

    return user_config_path(APP_NAME, appauthor=False)


def data_folder() -> Path:
    """Where what the program makes is kept: `~/.local/share/oi-tui` on Linux. It need not exist yet."""
    from platformdirs import user_data_path

    return user_data_path(APP_NAME, appauthor=False)


def make_private_folder(folder: Path) -> Path:
    """Create a folder (0700) with its parents and return it. Raises `OSError`."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def write_private(path: Path, text: str) -> None:
    """Replace a file's content in one step, mode 0600. A link stays, its target is replaced. Raises `OSError`."""
    path = Path(os.path.realpath(path))
    make_private_folder(path.parent)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mkstemp makes it 0600
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def read_regular(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most `limit` bytes.

    Does not hang on a FIFO, a device or a folder, and follows no file that changes kind in between. Raises
    `FileNotFoundError` where there is nothing, `SettingsError` for everything else that cannot be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        handle = os.open(path, flags)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SettingsError(f"{path} cannot be read: {reason}.") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise SettingsError(f"{path} is not a regular file.")
    with open(handle, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise SettingsError(f"{path} is larger than {limit // 1024} KiB.", "That is no file of oi-tui.")
    return data
