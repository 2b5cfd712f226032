"""`$VISUAL` or `$EDITOR` for a text, while the app stands aside."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from textual.app import App, SuspendNotSupported

_FALLBACKS = ("nano", "vim", "vi")
MOST_BYTES = 8 << 20


class NoEditor(Exception):
    """The text cannot be edited outside. `str()` is the line to show."""


def editor_command() -> list[str]:
    """The user's editor as arguments. Raises `NoEditor`."""
    for variable in ("VISUAL", "EDITOR"):
        if chosen := os.environ.get(variable, "").strip():
            try:
                command = shlex.split(chosen)
            except ValueError:
                raise NoEditor(f"${variable} cannot be understood: unbalanced quotes.") from None
            if shutil.which(command[0]) is None:
                raise NoEditor(f"${variable} is {command[0]}, which is not installed.")
            return command
    for name in _FALLBACKS:
        if shutil.which(name):
            return [name]
    raise NoEditor("No editor found. Set EDITOR, for example EDITOR=nano.")


async def edit_text(app: App[Any], text: str, *, extension: str = "md") -> str | None:
    """Let the user edit `text` in their editor. Returns the new text, or None if it is unchanged.

    The app draws nothing meanwhile but goes on working, so a running turn does not stall. Raises `NoEditor`.
    """
    command = editor_command()
    with tempfile.TemporaryDirectory(prefix="oi-tui-edit-") as folder:  # 0700
        path = Path(folder) / f"text.{extension}"
        path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
        before = path.read_bytes()
        try:
            with app.batch_update(), _standing_aside(), app.suspend():
                process = await asyncio.create_subprocess_exec(*command, str(path))
                try:
                    status = await process.wait()
                finally:
                    if process.returncode is None:  # the app is leaving
                        process.terminate()
        except SuspendNotSupported:
            raise NoEditor("This terminal cannot be handed over to an editor.") from None
        except OSError as error:
            raise NoEditor(f"{command[0]} cannot be started: {error.strerror}.") from None
        if status != 0:
            raise NoEditor(f"{command[0]} ended with status {status}; the text is unchanged.")
        try:
            after = path.read_bytes()
        except OSError as error:
            raise NoEditor(f"The edited text cannot be read: {error.strerror}; it is unchanged.") from None
    if after == before:
        return None
    if len(after) > MOST_BYTES:
        raise NoEditor("The edited text is larger than 8 MiB; it is unchanged.")
    edited = after.decode("utf-8", "replace").replace("\r\n", "\n")
    # Editors end the last line; the text had none.
    return edited if text.endswith("\n") else edited.removesuffix("\n")


@contextlib.contextmanager
def _standing_aside() -> Iterator[None]:
    """The editor is in our process group: its ^C must not end us.

    A handler, not `SIG_IGN`, which the editor would inherit.
    """
    previous = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
