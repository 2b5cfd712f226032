"""Copying, and saying which way it went."""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path

import pytest

from oi_tui import clipboard

SSH = {"SSH_CONNECTION": "1 2 3 4"}


async def test_over_ssh_the_terminal_is_asked() -> None:
    sent: list[str] = []
    text = "zwei\nZeilen ✓"
    said = await clipboard.copy(text, sent.append, SSH)
    assert sent == [f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"]
    assert said == "Sent 2 lines to the terminal's clipboard (OSC 52)."


async def test_what_is_too_long_for_a_terminal_is_not_sent() -> None:
    sent: list[str] = []
    said = await clipboard.copy("x" * 80_000, sent.append, SSH)
    assert sent == []
    assert said.startswith("Not copied: 80,000 characters")


@pytest.mark.skipif(os.name != "posix", reason="shell scripts stand in for programs")
async def test_a_clipboard_program_is_used_where_there_is_a_display(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyperclip

    def to_file(text: str) -> None:
        (tmp_path / "copied").write_text(text)

    monkeypatch.setattr(pyperclip, "copy", to_file)
    sent: list[str] = []
    assert await clipboard.copy("a", sent.append, {"DISPLAY": ":0"}) == "Copied 1 character."
    assert (tmp_path / "copied").read_text() == "a"
    assert sent == []


async def test_a_clipboard_program_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    import pyperclip

    released = threading.Event()
    monkeypatch.setattr(pyperclip, "copy", lambda text: released.wait(30))
    monkeypatch.setattr(clipboard, "_PATIENCE", 0.05)
    sent: list[str] = []
    said = await clipboard.copy("a", sent.append, {"DISPLAY": ":0"})
    released.set()
    assert "OSC 52" in said
    assert len(sent) == 1


@pytest.mark.terminal
@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
async def test_inside_tmux_the_buffer_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess

    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    subprocess.run(["tmux", "-f", "/dev/null", "new-session", "-d", "-s", "t", "sleep 60"], check=True)
    try:
        socket = subprocess.check_output(["tmux", "display-message", "-p", "-t", "t", "#{socket_path}"], text=True)
        monkeypatch.setenv("TMUX", f"{socket.strip()},0,0")
        sent: list[str] = []
        said = await clipboard.copy("from oi-tui ✓\n", sent.append)
        assert "tmux" in said
        assert subprocess.check_output(["tmux", "show-buffer"], text=True) == "from oi-tui ✓\n"
        assert sent == []
    finally:
        subprocess.run(["tmux", "kill-server"], check=False)
