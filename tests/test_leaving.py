"""Leaving, in a real terminal: whatever ends the program, the terminal is clean and the reason is said."""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
from pathlib import Path

import pytest

from tests.pty_program import PtyProgram

pytestmark = [pytest.mark.terminal, pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")]

OI_TUI = [sys.executable, "-m", "oi_tui", "--profile", "demo"]
PROMPT = "sk for something"  # the cursor is drawn apart

WITH_FAULTS = """
import sys, time
from oi_tui.app import OiApp, run_app
from oi_tui.engine.settings import ModelSettings, Settings

def fail(self):
    raise ValueError("boom with sk-abcdefghijklmnop1234 \\x1b]0;evil\\x07")

def hang(self):
    time.sleep(600)

OiApp.action_help = fail
OiApp.action_panel = hang
sys.exit(run_app(Settings(llm=ModelSettings(model="demo", api_key="my-own-key-0123"))))
"""


def assert_clean(program: PtyProgram) -> None:
    assert program.is_cooked
    assert program.modes_left_on == []
    assert program.keyboard_pushes <= 0


def test_quitting_leaves_nothing_behind_and_says_nothing() -> None:
    with PtyProgram(OI_TUI) as program:
        program.expect(PROMPT)
        program.type("\x11")
        assert program.wait() == 0
        assert_clean(program)
        assert program.last_words == ""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"])
def test_a_signal_ends_it_with_a_clean_terminal_and_a_reason(name: str) -> None:
    number = signal.Signals[name]
    with PtyProgram(OI_TUI) as program:
        program.expect(PROMPT)
        os.kill(program.pid, number)
        assert program.wait() == 128 + number
        assert_clean(program)
        assert program.last_words == f"oi-tui: ended by {name}."


def test_a_signal_in_the_middle_of_starting_is_no_different() -> None:
    with PtyProgram(OI_TUI) as program:
        program.expect("\x1b[?1049h")
        os.kill(program.pid, signal.SIGTERM)
        assert program.wait() == 128 + signal.SIGTERM
        assert_clean(program)


def test_a_closed_terminal_ends_it() -> None:
    with PtyProgram(OI_TUI) as program:
        program.expect(PROMPT)
        program.hang_up()
        assert program.wait() == 128 + signal.SIGHUP


def test_a_closed_terminal_ends_it_even_when_nobody_says_so() -> None:
    with PtyProgram(["sh", "-c", f"trap '' HUP; exec {' '.join(OI_TUI)}"]) as program:
        program.expect(PROMPT)
        program.hang_up()
        assert program.wait() == 128 + signal.SIGHUP


def test_a_fault_is_one_calm_line_and_a_private_file_without_keys(empty_machine: Path) -> None:
    with PtyProgram([sys.executable, "-c", WITH_FAULTS]) as program:
        program.expect(PROMPT)
        program.type("\x1bOP")
        assert program.wait() == 1
        assert_clean(program)
        words = " ".join(program.last_words.split())
    assert words.startswith("oi-tui: a fault of oi-tui ended it: ValueError: boom with [key removed]")
    assert "Traceback" not in words and "evil" not in words
    (log,) = (empty_machine / ".local/share/oi-tui/logs").glob("*.log")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    text = log.read_text()
    assert "Traceback" in text and "in fail" in text
    assert "sk-abcdefghijklmnop1234" not in text and "my-own-key-0123" not in text


def test_a_program_that_hangs_is_ended_all_the_same() -> None:
    with PtyProgram([sys.executable, "-c", WITH_FAULTS]) as program:
        program.expect(PROMPT)
        program.type("\x14")
        time.sleep(0.5)  # nothing can be seen of a program that hangs
        os.kill(program.pid, signal.SIGTERM)
        assert program.wait() == 128 + signal.SIGTERM
        assert_clean(program)
        assert program.last_words.endswith("ended by SIGTERM.")


def test_suspended_and_continued_it_gives_the_terminal_back_and_takes_it_again() -> None:
    with PtyProgram(OI_TUI) as program:
        program.expect(PROMPT)
        os.kill(program.pid, signal.SIGTSTP)
        program.wait_for_stop()
        assert_clean(program)

        stopped_at = len(program.output)
        os.kill(program.pid, signal.SIGCONT)
        program.expect("\x1b[?1049h", after=stopped_at)
        drawn = program.expect(PROMPT, after=stopped_at)
        program.type("still here")
        program.expect("here", after=drawn)
        program.type("\x11")
        assert program.wait() == 0
        assert_clean(program)


def test_stopped_without_warning_it_draws_itself_anew() -> None:
    with PtyProgram(OI_TUI) as program:
        program.expect(PROMPT)
        os.kill(program.pid, signal.SIGSTOP)
        program.wait_for_stop()
        stopped_at = len(program.output)
        os.kill(program.pid, signal.SIGCONT)
        program.expect(PROMPT, after=stopped_at)
        assert not program.is_cooked
        program.type("\x11")
        assert program.wait() == 0
        assert_clean(program)


@pytest.mark.kernel
def test_what_it_started_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = f"leaving-{os.getpid()}-{time.monotonic_ns()}"
    with PtyProgram(OI_TUI, {"OI_TEST_MARK": mark}) as program:
        program.expect("ready")
        program.type("!sleep 600\r")
        deadline = time.monotonic() + 60
        while not any("sleep 600" in process for process in _processes_with(mark)):
            assert time.monotonic() < deadline, _processes_with(mark)
            program.read(0.05)
        os.kill(program.pid, signal.SIGTERM)
        assert program.wait() == 128 + signal.SIGTERM
    deadline = time.monotonic() + 60
    while _processes_with(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _processes_with(mark) == []


def _processes_with(mark: str) -> list[str]:
    """Living processes whose environment holds the mark."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                alive = (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
                if alive and mark.encode() in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            except OSError:
                continue
    return found


@pytest.mark.parametrize(("term", "word"), [("dumb", "TERM"), ("", "TERM")])
def test_a_terminal_that_cannot_draw_gets_one_line(term: str, word: str) -> None:
    code = "import sys; from oi_tui.app import run_app; from oi_tui.engine.settings import Settings"
    with PtyProgram([sys.executable, "-c", f"{code}; sys.exit(run_app(Settings()))"], {"TERM": term}) as program:
        assert program.wait() == 2
        lines = program.output.decode().strip().splitlines()
    assert len(lines) == 1 and word in lines[0]


@pytest.mark.parametrize(
    "environ", [{"LC_ALL": "C"}, {"COLORTERM": "truecolor"}, {"TERM": "linux"}, {"COLUMNS": "x", "LINES": "-1"}]
)
def test_odd_environments_start(environ: dict[str, str]) -> None:
    with PtyProgram(OI_TUI, environ) as program:
        program.expect(PROMPT)
        program.type("\x11")
        assert program.wait() == 0
        assert_clean(program)


def test_the_editor_gets_the_terminal_and_gives_back_the_text(tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nstty -a | tr "\\n" " "\nprintf "edited outside" > "$1"\n')
    editor.chmod(0o700)
    with PtyProgram(OI_TUI, {"EDITOR": str(editor)}) as program:
        program.expect("ready")
        program.type("draft")
        program.type("\x07")
        program.expect(" icanon ")
        program.expect("edited outside")
        program.type("\x03\x11")
        assert program.wait() == 0
        assert_clean(program)


def test_leaving_while_the_editor_is_open_ends_the_editor(tmp_path: Path) -> None:
    mark = f"editor-{os.getpid()}-{time.monotonic_ns()}"
    editor = tmp_path / "editor.sh"
    editor.write_text("#!/bin/sh\necho editing\nexec sleep 600\n")
    editor.chmod(0o700)
    with PtyProgram(OI_TUI, {"EDITOR": str(editor), "OI_TEST_MARK": mark}) as program:
        program.expect("ready")
        program.type("\x07")
        program.expect("editing")
        os.kill(program.pid, signal.SIGTERM)
        assert program.wait() == 128 + signal.SIGTERM
        assert_clean(program)
    deadline = time.monotonic() + 60
    while any("sleep" in process for process in _processes_with(mark)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
