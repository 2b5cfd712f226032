"""Where a conversation's files are, and whose they are at the moment."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Self

from oi_tui.engine.private_files import data_folder, make_private_folder

_ID = re.compile(r"[0-9a-f]{8,32}\Z")


def store_folder() -> Path:
    """Where everything that is stored lies: the database, and a folder for each conversation."""
    return data_folder() / "conversations"


def folder_of(store: Path, conversation_id: str) -> Path:
    """The folder of one conversation. It need not exist. Raises `ValueError` for what is no id of ours: a name from a
    damaged file must not lead out of the store."""
    if not _ID.match(conversation_id):
        raise ValueError(f"not an id of a conversation: {conversation_id!r}")
    return store / conversation_id


def make_folder(store: Path, conversation_id: str) -> Path:
    """The folder of one conversation, 0700 whatever the umask. Raises `OSError`."""
    folder = make_private_folder(folder_of(store, conversation_id))
    for path in (store, folder):
        with contextlib.suppress(PermissionError):
            path.chmod(0o700)
    return folder


class ConversationLock:
    """Says that this process writes to a conversation. Ends with the process, however that ends."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @classmethod
    def take(cls, folder: Path) -> Self | None:
        """The lock, or None while another process has it. Raises `OSError` where no lock can be made."""
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            taken = _try_lock(handle)
        except OSError:
            os.close(handle)
            raise
        if not taken:
            os.close(handle)
            return None
        return cls(handle)

    def release(self) -> None:
        """Idempotent."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        if os.name == "posix":
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    except (BlockingIOError, PermissionError):
        return False
    return True
