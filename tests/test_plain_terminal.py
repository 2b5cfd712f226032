"""The line front end at a real terminal: what a user types, and what happens then."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pseudo_terminal import PATIENCE, PseudoTerminal

pytestmark = [pytest.mark.terminal, pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")]

CHECKOUT = str(Path(__file__).resolve().parent.parent)
PROMPT = r"(?m)^> \Z"
QUESTION = r"Run this code\? y, n, e to edit, or words: \Z"
MARK = "OI_TUI_TEST_MARK"

FAKE = """
import asyncio, json, sys
from oi_tui.engine.settings import ModelSettings, Settings
from oi_tui.launch import Task
from oi_tui.plain import run_plain
from tests.fakes import Ask, Code, FakeSession, output

class Telling(FakeSession):
    async def aclose(self):
        print("SENT", json.dumps(self.messages_sent))
        print("DECISIONS", [(str(d.verdict), d.code, d.note) for d in self.decisions])

session = Telling(TURNS)
sys.exit(run_plain(Settings(llm=ModelSettings(model="fake")), Task(), new_session=lambda _: session))
"""


def talking(turns: str, **environ: str) -> PseudoTerminal:
    """The line front end over scripted turns (Python source)."""
    environ["PYTHONPATH"] = CHECKOUT
    return PseudoTerminal([sys.executable, "-c", FAKE.replace("TURNS", turns)], environ=environ)


def demo(*arguments: str, **environ: str) -> PseudoTerminal:
    """The program itself with the demo and a real kernel."""
    return PseudoTerminal([sys.executable, "-m", "oi_tui", "--demo", "--plain", *arguments], environ=environ)


def marked_processes(mark: str) -> set[int]:
    """The processes that were started with this mark in their environment."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}\0".encode() in (folder / "environ").read_bytes():
                found.add(int(folder.name))
        except OSError:
            continue
    return found


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


# -- asking for approval --


@pytest.mark.kernel
def test_yes_runs_the_code_and_the_answer_follows() -> None:
    with demo() as terminal:
        terminal.expect(PROMPT)
        terminal.line("what is 6*7?")
        assert "2 lines, digest " in terminal.expect(QUESTION)
        terminal.line("y")
        assert "     | 42\n\n6 * 7 = 42\n" in terminal.expect(PROMPT)
        terminal.type("\x04")
        assert terminal.wait() == 0
        assert terminal.is_cooked()


@pytest.mark.kernel
def test_words_decline_and_reach_the_model() -> None:
    with demo() as terminal:
        terminal.expect(PROMPT)
        terminal.line("draw a picture")
        terminal.expect(QUESTION)
        terminal.line("rather tell me 2+3")
        assert "You declined the code, so it did not run." in terminal.expect(QUESTION)
        terminal.line("n")
        terminal.expect(PROMPT)
        assert "     | " not in terminal.text


@pytest.mark.kernel
def test_edited_code_is_shown_asked_for_again_and_is_what_runs(tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text("#!/bin/sh\nsed -i 's/2 + 2/40 + 2/' \"$1\"\n")
    editor.chmod(0o755)
    with demo(EDITOR=str(editor)) as terminal:
        terminal.expect(PROMPT)
        terminal.line("2+2")
        before = terminal.expect(QUESTION)
        terminal.line("e")
        after = terminal.expect(QUESTION)
        assert "   1 | result = 40 + 2\n" in after
        assert "Edited by you: 1 added, 1 removed." in after
        assert before.rpartition("digest ")[2][:6] != after.rpartition("digest ")[2][:6]
        terminal.line("y")
        answer = terminal.expect(PROMPT)
        assert "runs as edited by you, +1 −1" in answer
        assert "You edited the code before it ran, so this comes from your version. It printed 42" in answer


def test_an_editor_that_is_missing_or_fails_changes_nothing() -> None:
    for editor, reason in (
        ("/nowhere/ed", "not installed"),
        ("false", "ended with status 1"),
        ("truncate -s 0", "left nothing"),
        ("sh -c 'kill -2 $$'", "sh was stopped"),
    ):
        with talking('[Code("print(1)")]', EDITOR=editor) as terminal:
            terminal.expect(PROMPT)
            terminal.line("go")
            terminal.expect(QUESTION)
            terminal.line("e")
            asked_again = terminal.expect(QUESTION)
            assert reason in asked_again
            assert "Nothing was changed." in asked_again


def test_what_was_typed_ahead_approves_nothing() -> None:
    with talking('[Code("print(1)")]') as terminal:
        terminal.expect(PROMPT)
        terminal.type("go\ry\ry\r")
        terminal.expect(QUESTION)
        terminal.line("n")
        terminal.expect(PROMPT)
        terminal.type("\x04")
        terminal.wait()
        assert "DECISIONS [('decline', None, None)]" in terminal.text


@pytest.mark.parametrize("slip", ["", "yy", "a", "?", "\x1b[200~y\ny\x1b[201~"])
def test_a_slip_is_no_answer(slip: str) -> None:
    with talking('[Code("print(1)")]') as terminal:
        terminal.expect(PROMPT)
        terminal.line("go")
        terminal.expect(QUESTION)
        terminal.line(slip)
        terminal.expect(QUESTION)
        terminal.type("\x04")  # the end of input declines
        terminal.expect(PROMPT)
        terminal.type("\x04")
        terminal.wait()
        assert "DECISIONS [('decline', None, None)]" in terminal.text


# -- answering code --


@pytest.mark.kernel
def test_code_asks_and_a_password_is_not_echoed() -> None:
    with demo("-y") as terminal:
        terminal.expect(PROMPT)
        terminal.line("ask me something")
        terminal.expect(r"The code asks: What is your name\? \Z")
        terminal.line("Ada")
        terminal.expect(r"The code asks: In which year were you born\? \Z")
        terminal.line("1815")
        assert "Ada has 3 letters, and 1815 is odd." in terminal.expect(PROMPT)
        terminal.line("ask me for a password")
        terminal.expect(r"The code asks for a password, which is not stored: .*\Z")
        terminal.line("Hunter2!")
        assert "8 characters: small letters, capitals, digits, other signs" in terminal.expect(PROMPT)
        assert "Hunter2!" not in terminal.text


def test_output_around_a_question_cannot_look_like_ours() -> None:
    forged = "Run this code? y, n, e to edit, or words: "
    asks = f'Ask("{forged}"), "{forged}", Ask(" " * 200 + "{forged}"), Ask("x" * 105 + "{forged}")'
    turn = f'[Code("x", results=("a", {asks}, "b"))]'
    with talking(turn) as terminal:
        terminal.expect(PROMPT)
        terminal.line("go")
        terminal.expect(QUESTION)
        terminal.line("y")
        asked = terminal.expect(r"The code asks: Run this code\?.*words: \Z")
        assert "     | a\nThe code asks: " in asked
        terminal.line("y")
        asked = terminal.expect(r"The code asks: Run this code\?.*words: \Z")
        assert f"\n     | {forged}\nThe code asks: Run" in asked
        terminal.line("y")
        asked = terminal.expect(r"The code asks: \(see above\) \Z")  # on a row of its own it would look like ours
        assert all(line.startswith("     | ") for line in asked.splitlines() if "Run this" in line or "xx" in line)
        assert "Run this" in asked
        terminal.line("y")
        assert "\n     | b\n" in terminal.expect(PROMPT)


# -- stopping --


@pytest.mark.kernel
def test_ctrl_c_stops_the_loop_and_keeps_the_kernel() -> None:
    with demo("-y") as terminal:
        terminal.expect(PROMPT)
        terminal.line("run a long loop")
        terminal.expect(r"step  2 of 40")
        terminal.type("\x03")
        assert "Stopped." in terminal.expect(PROMPT)
        terminal.line("and now?")
        assert "You stopped the code." in terminal.expect(PROMPT)
        terminal.line("!echo $((6*7))")
        assert "     | 42\n" in terminal.expect(PROMPT)
        terminal.type("\x03")
        assert terminal.wait() == 130
        assert terminal.is_cooked()


def test_ctrl_c_at_the_question_stops_the_turn_and_runs_nothing() -> None:
    with talking('[Code("print(1)", results=("1\\n",))]') as terminal:
        terminal.expect(PROMPT)
        terminal.line("go")
        terminal.expect(QUESTION)
        terminal.type("\x03")
        assert "Stopped." in terminal.expect(PROMPT)
        terminal.type("\x04")
        terminal.wait()
        assert "DECISIONS []" in terminal.text


def test_a_second_ctrl_c_quits_even_when_the_turn_does_not_end() -> None:
    stubborn = (
        "async def never(self, *_, **__):\n"
        "    try:\n"
        "        yield output('begun\\n')\n"
        "        await asyncio.Event().wait()\n"
        "    finally:\n"
        "        await asyncio.sleep(3600)\n"
        "FakeSession.respond = never\n"
    )
    script = FAKE.replace("class Telling", stubborn + "class Telling").replace("TURNS", "")
    with PseudoTerminal([sys.executable, "-c", script], environ={"PYTHONPATH": CHECKOUT}) as terminal:
        terminal.expect(PROMPT)
        terminal.line("go")
        terminal.expect("begun")
        terminal.type("\x03")
        terminal.expect("Ctrl-C again quits")
        terminal.type("\x03")
        assert terminal.wait() == 130


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)], ids=lambda v: str(v)
)
@pytest.mark.parametrize("moment", ["prompt", "question", "running"])
def test_a_signal_ends_everything_and_leaves_the_terminal_clean(moment: str, number: int, status: int) -> None:
    mark = uuid.uuid4().hex
    with demo(**{MARK: mark}) as terminal:
        terminal.expect(PROMPT)
        if moment != "prompt":
            terminal.line("run a long loop")
            terminal.expect(QUESTION)
        if moment == "running":
            terminal.line("y")
            terminal.expect(r"step  1 of 40")
        terminal.process.send_signal(number)
        if number == signal.SIGINT and moment != "prompt":
            terminal.expect(PROMPT)
            terminal.type("\x04")
            status = 0
        assert terminal.wait() == status
        assert terminal.is_cooked()
        wait_until(lambda: terminal.text.endswith("\n"))
        wait_until(lambda: not marked_processes(mark))


@pytest.mark.kernel
def test_a_storm_of_ctrl_c_leaves_no_traceback() -> None:
    with demo("-y") as terminal:
        terminal.expect(PROMPT)
        terminal.line("run a long loop")
        deadline = time.monotonic() + PATIENCE
        while terminal.process.poll() is None and time.monotonic() < deadline:
            terminal.process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        assert terminal.wait() in (0, 130)
        assert "Traceback" not in terminal.text
        assert terminal.is_cooked()


@pytest.mark.kernel
def test_a_closed_terminal_ends_everything() -> None:
    mark = uuid.uuid4().hex
    with demo("-y", **{MARK: mark}) as terminal:
        terminal.expect(PROMPT)
        terminal.line("run a long loop")
        terminal.expect(r"step  1 of 40")
        terminal.hang_up()
        terminal.process.wait(timeout=PATIENCE)
        wait_until(lambda: not marked_processes(mark))


# -- writing messages --


def test_a_paste_of_several_lines_is_one_message() -> None:
    with talking('["Fine."]') as terminal:
        terminal.expect(PROMPT)
        terminal.type("\x1b[200~one\ntwo\n  three\x1b[201~")
        terminal.line("")
        terminal.expect("Fine.")
        terminal.expect(PROMPT)
        terminal.type("\x04")
        terminal.wait()
        assert r'SENT ["one\ntwo\n  three"]' in terminal.text


def test_lines_between_triple_quotes_are_one_message_and_empty_ones_are_none() -> None:
    with talking('["Fine."], ["Fine."]') as terminal:
        terminal.expect(PROMPT)
        terminal.line("")
        terminal.line('"""one')
        terminal.line("two")
        terminal.line('three"""')
        terminal.expect("Fine.")
        terminal.expect(PROMPT)
        terminal.line('"""in one line"""')
        terminal.expect("Fine.")
        terminal.expect(PROMPT)
        terminal.type("\x04")
        terminal.wait()
        assert r'SENT ["one\ntwo\nthree", "in one line"]' in terminal.text


def test_what_was_typed_comes_back_in_the_next_session_but_answers_do_not() -> None:
    with talking('[Code("print(1)")]') as terminal:
        terminal.expect(PROMPT)
        terminal.line("remember this")
        terminal.expect(QUESTION)
        terminal.line("no, not this")
        terminal.expect(PROMPT)
        terminal.type("\x04")
        terminal.wait()
    with talking('["Again."]') as terminal:
        terminal.expect(PROMPT)
        terminal.type("\x1b[A\r")
        terminal.expect("Again.")
        terminal.expect(PROMPT)
        terminal.type("\x04")
        terminal.wait()
        assert 'SENT ["remember this"]' in terminal.text


@pytest.mark.kernel
def test_magic_commands_work_on_the_session() -> None:
    with demo() as terminal:
        terminal.expect(PROMPT)
        for line, said in {
            "%auto_run true": "Code runs without asking from now on.",
            "2+2": "2 + 2 = 4",
            "%tokens": "$0.0000",
            "%undo": "Dropped 5 messages from “2+2” on.",
            "%undo ": "There is nothing to undo.",
            "%inof": "Did you mean %info?",
            "%info": "demo",
            "%verbose maybe": "verbose should be true or false",
            "%reset": "A new conversation.",
        }.items():
            terminal.line(line)
            assert said in terminal.expect(PROMPT)


# -- the first run --


def test_the_first_run_offers_what_it_found_and_the_demo() -> None:
    with PseudoTerminal([sys.executable, "-m", "oi_tui", "--plain"], environ={"MISTRAL_API_KEY": "k"}) as terminal:
        offered = terminal.expect(r"Which one \(1 to \d+, Enter for none\): \Z")
        assert "1. Mistral: mistral/mistral-medium-latest (key in MISTRAL_API_KEY)" in offered
        number = offered.splitlines()[-2].partition(".")[0]
        assert "The embedded demo (scripted, no AI, no key)" in offered.splitlines()[-2]
        terminal.line("99")
        terminal.expect("please")
        terminal.line(number)
        terminal.expect(PROMPT)
        terminal.line("hello")
        assert "demo: scripted, no AI" in terminal.expect(PROMPT)


def test_a_model_of_ones_own_is_saved_and_its_key_is_kept_apart(empty_machine: Path) -> None:
    with PseudoTerminal([sys.executable, "-m", "oi_tui", "--plain"]) as terminal:
        offered = terminal.expect(r"Which one \(1 to \d+, Enter for none\): \Z")
        number = next(line.partition(".")[0] for line in offered.splitlines() if "Another model" in line)
        terminal.line(number)
        terminal.expect(r"Its name.*: \Z")
        terminal.line("openai/nothing")
        terminal.expect(r"Address.*: \Z")
        terminal.line("http://127.0.0.1:9/v1")
        terminal.expect(r"Key.*: \Z")
        terminal.line("sk-secret-of-mine")
        terminal.expect(PROMPT)
        terminal.type("\x04")
        assert terminal.wait() == 0
        assert "sk-secret-of-mine" not in terminal.text
    profile = (empty_machine / ".config/oi-tui/profiles/default.yaml").read_text()
    assert "model: openai/nothing" in profile
    assert "sk-secret" not in profile
    assert "sk-secret-of-mine" in (empty_machine / ".config/oi-tui/keys.json").read_text()


def test_no_choice_is_no_model_and_exit_1() -> None:
    with PseudoTerminal([sys.executable, "-m", "oi_tui", "--plain"]) as terminal:
        terminal.expect(r"Which one \(1 to \d+, Enter for none\): \Z")
        terminal.line("")
        assert terminal.wait() == 1
        assert "No model is chosen." in terminal.text


# -- mixed company --


@pytest.mark.kernel
def test_a_piped_task_is_still_approved_at_the_terminal() -> None:
    command = f"echo 'what is 6*7?' | {sys.executable} -m oi_tui --demo --stdin"
    with PseudoTerminal(["/bin/sh", "-c", command]) as terminal:
        terminal.expect(QUESTION)
        terminal.line("y")
        assert terminal.wait() == 0
        assert terminal.text.endswith("6 * 7 = 42\n")


def test_a_dumb_terminal_gets_the_line_prompt() -> None:
    with PseudoTerminal([sys.executable, "-m", "oi_tui", "--demo"], environ={"TERM": "dumb"}) as terminal:
        terminal.expect("here is the line prompt")
        terminal.expect(PROMPT)
        terminal.type("\x04")
        assert terminal.wait() == 0


@pytest.mark.kernel
def test_ctrl_c_ends_a_task_with_130() -> None:
    with PseudoTerminal([sys.executable, "-m", "oi_tui", "--demo", "-y", "-p", "run a long loop"]) as terminal:
        terminal.expect(r"step  1 of 40")
        terminal.type("\x03")
        assert terminal.wait() == 130
        assert "Stopped." in terminal.text
        assert terminal.is_cooked()


@pytest.mark.parametrize(("answer", "model"), [("y", "from-python"), ("", None), ("n", None)])
def test_a_python_profile_asks_to_be_trusted_before_it_runs(tmp_path: Path, answer: str, model: str | None) -> None:
    path = tmp_path / "mine.py"
    path.write_text("interpreter.llm.model = 'from-python'\nprint('ran')\n")
    with PseudoTerminal([sys.executable, "-m", "oi_tui", "--profile", str(path), "--plain"]) as terminal:
        asked = terminal.expect(r"Trust this file as it is now\? \[y/N\] \Z")
        assert str(path) in asked
        assert "SHA-256 " + hashlib.sha256(path.read_bytes()).hexdigest() in asked
        assert "ran" not in asked.replace("Trust", "")
        terminal.line(answer)
        if model:
            assert f"Model: {model}." in terminal.expect(PROMPT)
            terminal.type("\x04")
        assert terminal.wait() == (0 if model else 2)
        assert ("ran" in terminal.text.splitlines()) == bool(model)
