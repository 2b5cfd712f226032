"""Copying: to the system's clipboard, else to tmux, else through the terminal, and saying which way it went."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import sys
import threading
from collections.abc import Callable, Mapping

_PATIENCE = 1.5
"""Seconds for a clipboard program; some wait for a display that is not there."""
LONGEST_OSC52 = 74_994
"""Bytes. Several terminals silently ignore longer ones."""


async def copy(text: str, write: Callable[[str], object], environ: Mapping[str, str] = os.environ) -> str:
    """Copy a text on behalf of the user and return what happened, for people.

    `write` sends to the terminal; it is used last, because nobody can know whether the terminal obeyed.
    """
    size = _size(text)
    if _has_clipboard(environ) and await _in_thread(lambda: _copy_natively(text)):
        return f"Copied {size}."
    if environ.get("TMUX") and await _copy_to_tmux(text):
        return f"Copied {size} to the tmux buffer, and from there to the terminal if tmux may."
    data = text.encode("utf-8", "replace")
    if len(data) > LONGEST_OSC52:
        return f"Not copied: {size} is more than a terminal takes (about 75 kB), and no clipboard was found."
    write(osc52(data))
    return f"Sent {size} to the terminal's clipboard (OSC 52)."


def osc52(data: bytes) -> str:
    """The sequence that asks a terminal to put `data` on the clipboard."""
    return f"\x1b]52;c;{base64.b64encode(data).decode()}\x07"


def _size(text: str) -> str:
    lines = text.count("\n") + (not text.endswith("\n"))
    if lines > 1:
        return f"{lines:,} lines"
    count = len(text.rstrip("\n"))
    return f"{count:,} character{'' if count == 1 else 's'}"


def _has_clipboard(environ: Mapping[str, str]) -> bool:
    """Whether this machine's clipboard is the user's. Over SSH it is not, unless their display is forwarded."""
    if environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"):
        return True
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return False
    return sys.platform in ("darwin", "win32", "cygwin") or "WSL_DISTRO_NAME" in environ


def _copy_natively(text: str) -> bool:
    import pyperclip

    try:
        pyperclip.copy(text)
    except (pyperclip.PyperclipException, OSError):
        return False
    return True


async def _in_thread(job: Callable[[], bool]) -> bool:
    """Run a job that may hang in a thread that nobody waits for at exit; False if it takes too long."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[bool] = loop.create_future()

    def finish(result: bool) -> None:
        if not done.done():
            done.set_result(result)

    def run() -> None:
        result = job()
        try:
            loop.call_soon_threadsafe(finish, result)
        except RuntimeError:
            return  # the app has ended

    threading.Thread(target=run, name="clipboard", daemon=True).start()
    try:
        return await asyncio.wait_for(done, _PATIENCE)
    except TimeoutError:
        return False


async def _copy_to_tmux(text: str) -> bool:
    if shutil.which("tmux") is None:
        return False
    for options in (["-w"], []):  # -w also tells the terminal; tmux before 3.2 does not know it
        process = await asyncio.create_subprocess_exec(
            "tmux",
            "load-buffer",
            *options,
            "-",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await asyncio.wait_for(process.communicate(text.encode("utf-8", "replace")), _PATIENCE)
        except TimeoutError:
            process.kill()
            await process.wait()
            return False
        if process.returncode == 0:
            return True
    return False
