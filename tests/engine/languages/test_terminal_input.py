"""Does a program wait for its user? Real programs in a real terminal."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest

from oi_tui.engine.languages import terminal_input
from oi_tui.engine.languages.terminal import Terminal, last_line
from oi_tui.engine.languages.terminal_input import LIKELY, MAYBE, SURE, waiting_for_input

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="what programs wait for is looked up on Linux only"
    ),
]


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


class Program:
    """A Python program in the foreground of the terminal, which prints "ready" and then goes on."""

    def __init__(self, terminal: Terminal, code: str) -> None:
        start = "import fcntl, os, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); print('ready', flush=True)\n"
        self.process = subprocess.Popen(
            [sys.executable, "-c", start + code],
            stdin=terminal.inner,
            stdout=terminal.inner,
            stderr=terminal.inner,
            start_new_session=True,
        )

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


CASES = [
    ("reads", "os.read(0, 1)", "", SURE, (False,)),
    ("reads the terminal itself", "os.read(os.open('/dev/tty', os.O_RDWR), 1)", "", SURE, (False,)),
    (
        "a thread reads",
        "import threading; threading.Thread(target=lambda: os.read(0, 1)).start(); threading.Event().wait()",
        "",
        SURE,
        (False,),
    ),
    ("selects", "import select; select.select([0], [], [])", "name? ", LIKELY, (False,)),
    ("polls", "import select; p = select.poll(); p.register(0, select.POLLIN); p.poll()", "name? ", LIKELY, (False,)),
    ("epolls", "import select; p = select.epoll(); p.register(0, select.EPOLLIN); p.poll()", "", MAYBE, (False,)),
    ("asks for a password", "import getpass; getpass.getpass()", "Password: ", SURE, (True,)),
    ("sleeps", "import time; time.sleep(600)", "Continue? ", 60, None),
    ("computes", "while True: pass", "Continue? ", 60, None),
    ("waits for something else", "import select; r, w = os.pipe(); select.select([r], [], [])", "50 %: ", 60, None),
    ("reads a pipe", "r, w = os.pipe(); os.read(r, 1)", "> ", 60, None),
]


@pytest.mark.parametrize(("code", "prompt", "silence", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
async def test_what_programs_wait_for(
    terminal: Terminal, code: str, prompt: str, silence: float, expected: tuple[bool] | None
) -> None:
    program = Program(terminal, code)
    try:
        await _printed(terminal, b"ready")
        if expected is None:
            for _ in range(20):
                assert waiting_for_input(terminal, prompt, silence) is None
                await asyncio.sleep(0.01)
            return
        async with asyncio.timeout(30):
            while (found := waiting_for_input(terminal, prompt, silence)) is None:
                await asyncio.sleep(0.01)
        assert found.prompt == prompt
        assert (found.password,) == expected
        assert waiting_for_input(terminal, prompt, 0.0) is None
        terminal.write(b"typed")  # no line yet: it still waits, but what is typed counts only with Enter
        assert program.process.poll() is None
    finally:
        program.end()


async def _printed(terminal: Terminal, text: bytes) -> None:
    seen = b""
    async with asyncio.timeout(30):
        while text not in seen:
            seen += terminal.read(4096) or b""
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("prompt", "silence", "waits", "password"),
    [
        ("Do you want to continue? [Y/n] ", MAYBE, True, False),
        ("Do you want to continue? [Y/n] ", LIKELY, False, False),
        ("Downloading 45%", 60, False, False),
        ("", 60, False, False),
    ],
)
async def test_where_a_program_cannot_be_seen_the_prompt_has_to_do(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, prompt: str, silence: float, waits: bool, password: bool
) -> None:
    """As with `sudo`, which runs as another user, or on another platform."""
    monkeypatch.setattr(terminal_input, "_look", lambda terminal: terminal_input._Sight.HIDDEN)
    found = waiting_for_input(terminal, prompt, silence)
    assert (found is not None) == waits
    if found is not None:
        assert found.password == password


async def test_an_unseen_program_that_switched_the_echo_off_wants_a_password(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    import termios

    monkeypatch.setattr(terminal_input, "_look", lambda terminal: terminal_input._Sight.HIDDEN)
    mode = termios.tcgetattr(terminal.inner)
    mode[3] &= ~termios.ECHO
    termios.tcsetattr(terminal.inner, termios.TCSANOW, mode)
    found = waiting_for_input(terminal, "[sudo] password for ada: ", LIKELY)
    assert found is not None
    assert found.password


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("a\nName: ", "Name: "),
        ("a\n", ""),
        ("10 %\r20 %", "20 %"),
        ("\x1b[1;32mName\x1b[0m: ", "Name: "),
        ("\x1b[1G\x1b[0J> \x1b[3G", "> "),
        ("\x1b]0;title\x07$ ", "$ "),
    ],
)
def test_the_prompt_is_what_stands_on_the_last_line(output: str, line: str) -> None:
    assert last_line(output) == line
