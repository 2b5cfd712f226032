"""The line front end: what is printed, what is asked, and how it ends. Stories at a real terminal are in
`test_plain_terminal.py`."""

from __future__ import annotations

import base64
import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from oi_tui.engine.approval import CodeProposal, digest_of
from oi_tui.engine.errors import RateLimited
from oi_tui.engine.lmc import Chunk, Message, notice
from oi_tui.engine.settings import ModelSettings, Settings
from oi_tui.launch import Task
from oi_tui.plain import run_plain
from oi_tui.plain_files import FileShelf
from oi_tui.plain_lines import RailedText
from oi_tui.plain_output import JsonPrinter, LinePrinter
from oi_tui.plain_width import WordWrap
from tests.fakes import Ask, Code, FakeSession


class Paper:
    """A printer and what it has printed."""

    def __init__(self, **settings: Any) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        self.printer = LinePrinter(self.out, self.err, FileShelf(), **settings)

    def print(self, *items: Message | Chunk) -> str:
        for item in items:
            self.printer.print(item.to_chunks() if isinstance(item, Message) else [item])
        return self.out.getvalue()


def said(text: str) -> Message:
    return Message("assistant", "message", text)


def code(text: str, language: str = "python", id: str = "c1") -> Message:
    return Message("assistant", "code", text, language, id=id)


def console(text: str) -> Message:
    return Message("computer", "console", text, "output", meta={"code_id": "c1"})


# -- what is printed --


def test_a_turn_reads_from_top_to_bottom() -> None:
    paper = Paper()
    assert paper.print(said("I will add."), code("a = 1\nprint(a)"), console("1\n"), said("It is 1.")) == (
        "I will add.\n\nCode, python:\n   1 | a = 1\n   2 | print(a)\nOutput:\n     | 1\n\nIt is 1.\n"
    )


def test_code_that_prints_nothing_says_so() -> None:
    paper = Paper()
    paper.print(code("a = 1"))
    flags = [Chunk("computer", "console", start=True), Chunk("computer", "console", end=True)]
    lines = [Chunk("computer", "console", "active_line", line) for line in (1, None)]
    assert paper.print(flags[0], *lines, flags[1]).endswith("   1 | a = 1\nOutput: none\n")


ESCAPES = "\x1b]52;c;aGk=\x07\x1b[2J\x1b[1;1H\x9b5n\x1bP+q\x1b\\\x07\x08"


@pytest.mark.parametrize("kind", [said, code, console])
def test_no_control_sequence_reaches_the_terminal_wherever_it_is_cut(kind: Any) -> None:
    paper = Paper()
    message = kind(f"before{ESCAPES}after\x1b[31mred\n")
    start, whole, end = message.to_chunks()
    pieces = [Chunk(whole.role, whole.type, whole.format, character, id=whole.id) for character in whole.text]
    printed = paper.print(start, *pieces, end)
    assert "after" in printed
    assert not any(ord(character) < 32 and character != "\n" for character in printed)


def test_a_programs_colours_reach_a_terminal_and_end_with_their_piece() -> None:
    assert "     | \x1b[31mred\x1b[0m\n" in Paper(colour=True).print(console("\x1b[31mred\n"))
    assert "     | red\n" in Paper().print(console("\x1b[31mred\n"))


def test_output_cannot_look_like_a_question_of_ours() -> None:
    printed = Paper().print(console("ok\nRun this code? y, n, e to edit, or words: "))
    assert printed == "Output:\n     | ok\n     | Run this code? y, n, e to edit, or words: \n"


def test_output_that_is_interrupted_by_us_goes_on_behind_a_rail() -> None:
    paper = Paper()
    start, whole, end = console("a").to_chunks()
    paper.print(start, whole)
    forged = Chunk(whole.role, whole.type, whole.format, "Run this code? ", id=whole.id)
    for interrupt in (
        lambda: paper.printer.say("a note"),
        lambda: paper.printer.tell("a line"),
        lambda: paper.printer.announce("Stopping."),
        lambda: paper.printer.asking().__enter__(),
        lambda: paper.print(said("words")),
    ):
        interrupt()
        assert paper.out.getvalue().endswith("\n")
        paper.print(forged)
        assert paper.out.getvalue().splitlines()[-1] == "     | Run this code? "
    paper.print(end)


def test_what_a_signal_says_does_not_enter_a_line_that_is_being_written() -> None:
    paper = Paper()

    class Interrupted(io.StringIO):
        def write(self, text: str) -> int:
            if "half" in text:
                paper.printer.announce("Stopping.")
            return super().write(text)

    paper.printer._out = both = Interrupted()
    paper.printer._err = both
    start, whole, end = console("half of it").to_chunks()
    paper.print(start, whole, Chunk(whole.role, whole.type, whole.format, "Run this code?", id=whole.id), end)
    assert both.getvalue() == "Output:\n     | half of it\nStopping.\n     | Run this code?\n"


def test_a_row_that_the_terminal_would_break_has_its_own_rail() -> None:
    paper = Paper(width=lambda: 30, colour=True)
    printed = paper.print(console("x" * 22 + "\x1b[31mRun this code?\x1b[0m\n" + "字" * 20), code("y" * 40))
    assert all(line.startswith(("     | ", "   1 | ", "Output:", "Code, ", "\x1b[0m")) or not line
               for line in printed.splitlines())  # fmt: skip
    assert "     | " + "x" * 22 + "\x1b[31mR\x1b[0m\n     | \x1b[31mun this" in printed
    assert "     | " + "字" * 11 + "\n     | " + "字" * 9 + "\n" in printed
    assert "   1 | " + "y" * 23 + "\n     | " + "y" * 17 + "\n" in printed


def wrapped(pieces: Iterable[str], width: int = 20) -> str:
    words = WordWrap(lambda: width)
    return "".join([*map(words.feed, pieces), words.close()])


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("The quick brown fox jumps over it.", "The quick brown fox\njumps over it."),
        ("short\n\nlines", "short\n\nlines"),
        ("- The quick brown fox jumps", "- The quick brown\n  fox jumps"),
        ("see https://example.org/a/long/address now", "see\nhttps://example.org/a/long/address\nnow"),
        ("```\nThe quick brown fox jumps over it.\n```\nend", "```\nThe quick brown fox jumps over it.\n```\nend"),
        ("字" * 12, "字" * 10 + "\n" + "字" * 2),
        ("a  b   c", "a  b   c"),
        ("trailing   ", "trailing   "),
    ],
)
def test_prose_is_wrapped_by_words_wherever_it_is_cut(text: str, printed: str) -> None:
    assert wrapped([text]) == printed
    assert wrapped(text) == printed


def test_prose_is_wrapped_on_a_terminal_and_not_in_a_pipe() -> None:
    text = "The quick brown fox jumps over it."
    assert Paper(width=lambda: 20).print(said(text)) == "The quick brown fox\njumps over it.\n"
    assert Paper().print(said(text)) == text + "\n"


def test_a_direction_override_is_drawn_not_obeyed() -> None:
    assert "⟨U+202E⟩" in Paper().print(said("abc\u202edef"))
    assert "⟨U+202E⟩" in Paper().print(console("abc\u202edef\n"))


def railed(pieces: Iterable[str], *, seconds: float = 0.0) -> str:
    written: list[str] = []
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += seconds
        return now

    text = RailedText(written.append, clock=clock)
    for piece in pieces:
        text.feed(piece)
    text.close()
    return "".join(written)


@pytest.mark.parametrize(
    ("pieces", "printed"),
    [
        (["a\nb\n"], "     | a\n     | b\n"),
        (["a", "b", "\n", "\n", "c"], "     | ab\n     |\n     | c\n"),
        (["a\r\nb\r", "\nc"], "     | a\n     | b\n     | c\n"),
        (["\r10%\r20%\r100%\n"], "     | 100%\n"),
        (["10%\r20%\r100%\ndone\n"], "     | 10%\n     | 100%\n     | done\n"),
        (["working", "\rstill"], "     | working\n     | still\n"),
        ([""], ""),
    ],
)
def test_a_line_that_overwrites_itself_shows_its_first_and_its_last_state(pieces: list[str], printed: str) -> None:
    assert railed(pieces) == printed


def test_a_slow_progress_bar_is_heard_of_now_and_then() -> None:
    printed = railed([f"\r{percent}%" for percent in range(0, 100, 10)], seconds=6.0)
    assert 2 < printed.count("%") < 10
    assert printed.endswith("90%\n")


def test_notices_and_errors_go_to_the_error_stream_and_a_countdown_is_said_once() -> None:
    paper = Paper()
    for seconds in (3, 2, 1):
        paper.print(notice("retry", f"Trying again in {seconds} s."))
    paper.print(notice("retry", ""), notice("trimmed", "Old messages were left out."))
    paper.print(Chunk("server", "error", "rate_limit", "Too many requests.\x1b[2J\nWait."))
    assert paper.out.getvalue() == ""
    assert paper.err.getvalue().splitlines() == [
        "note: Trying again in 3 s. (Ctrl-C stops)",
        "note: Old messages were left out.",
        "error: Too many requests.⏎Wait.",
    ]
    assert paper.printer.failure is not None


def test_thinking_is_printed_only_when_more_is_asked_for() -> None:
    thought = Message("assistant", "reasoning", "hm", recipient="user")
    assert Paper().print(thought) == ""
    assert Paper(verbose=True).print(thought) == "Thinking:\n     | hm\n"


# -- the code above the question --


def test_the_question_stands_below_exactly_the_code_it_is_about() -> None:
    paper = Paper()
    paper.print(code("print(1)"))
    paper.printer.show_proposal(CodeProposal("c1", "python", "print(1)"))
    printed = paper.out.getvalue()
    assert printed.count("print(1)") == 1
    assert printed.endswith(f"1 line, digest {digest_of('print(1)')[:6]}\n")


@pytest.mark.parametrize(
    "between", [[console("Code, python:\n   1 | harmless()\n")], [said("never mind")], [code("other()", id="c2")]]
)
def test_code_that_something_has_come_below_is_shown_again(between: list[Message]) -> None:
    paper = Paper()
    paper.print(code("rm()"), *between)
    paper.printer.show_proposal(CodeProposal("c1", "python", "rm()"))
    assert paper.out.getvalue().endswith(f"\nCode, python:\n   1 | rm()\n1 line, digest {digest_of('rm()')[:6]}\n")


def test_code_that_differs_from_what_was_streamed_is_shown_again() -> None:
    paper = Paper()
    paper.print(code("`\nprint(1)"))
    paper.printer.show_proposal(CodeProposal("c1", "python", "print(1)"))
    assert paper.out.getvalue().endswith(
        f"\nCode, python:\n   1 | print(1)\n1 line, digest {digest_of('print(1)')[:6]}\n"
    )


def test_hidden_characters_are_drawn_and_warned_about_before_the_question() -> None:
    paper = Paper()
    text = "a = 'x\u202e'\nb\u200b = 2"
    paper.print(code(text))
    paper.printer.show_proposal(CodeProposal("c1", "python", text))
    printed = paper.out.getvalue()
    assert "   1 | a = 'x⟨U+202E⟩'\n   2 | b⟨U+200B⟩ = 2\n" in printed
    assert printed.splitlines()[-1].startswith("Warning: 2 hidden characters: ")
    assert "\u202e" not in printed and "\u200b" not in printed


def test_hidden_characters_are_warned_about_also_where_nobody_is_asked() -> None:
    paper = Paper()
    printed = paper.print(code("b\u200b = 2"), console("1\n"))
    assert "   1 | b⟨U+200B⟩ = 2\nWarning: 1 hidden character" in printed
    assert printed.index("Warning") < printed.index("Output:")


# -- pictures --


def picture() -> str:
    data = io.BytesIO()
    Image.new("RGB", (64, 48), "red").save(data, "PNG")
    return base64.b64encode(data.getvalue()).decode()


def test_a_picture_is_kept_in_a_private_file_and_described_in_words() -> None:
    paper = Paper()
    printed = paper.print(Message("computer", "image", picture(), "base64.png"))
    path = Path(printed.strip().rpartition(": ")[2])
    assert printed.startswith("Image, 64 by 48 pixels, PNG, ")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with Image.open(path) as image:
        assert image.size == (64, 48)


def test_two_pictures_are_two_files_and_a_page_is_one_too() -> None:
    paper = Paper()
    page = Message("computer", "code", "<b>hi</b>", "html", recipient="user")
    pictures = [Message("computer", "image", picture(), "base64.png") for _ in range(2)]
    paths = [line.rpartition(": ")[2] for line in paper.print(*pictures, page).splitlines()]
    assert [Path(path).name for path in paths] == ["1.png", "2.png", "3.html"]


@pytest.mark.parametrize(
    ("content", "format"), [("not base64!", "base64.png"), ("AAAA", "base64.../../etc/x"), ("", "base64.png")]
)
def test_a_damaged_picture_is_no_disaster(content: str, format: str) -> None:
    printed = Paper().print(Message("computer", "image", content or "AAAA", format))
    assert printed.startswith("Image")
    assert "/etc/" not in printed


def test_a_picture_that_cannot_be_saved_says_why(monkeypatch: pytest.MonkeyPatch, empty_machine: Path) -> None:
    (empty_machine / "taken").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(empty_machine / "taken"))
    assert "could not be saved: " in Paper().print(Message("computer", "image", picture(), "base64.png"))


# -- for programs --


def test_json_prints_protocol_chunks_and_errors_and_nothing_else() -> None:
    out, err = io.StringIO(), io.StringIO()
    printer = JsonPrinter(out, err)
    printer.print(
        [
            *said("hi\x1b[2J\n\u202e").to_chunks(),
            Chunk("assistant", "reasoning", None, "hm"),
            notice("retry", "Trying again."),
            Chunk("server", "usage", None, {"prompt_tokens": 1}),
            Chunk("computer", "console", "line_times", {"1": 0.5}),
            Chunk("computer", "console", "active_line", None),
            Chunk("server", "error", "model", "No."),
        ]
    )
    lines = out.getvalue().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"role": "assistant", "type": "message", "start": True},
        {"role": "assistant", "type": "message", "content": "hi\x1b[2J\n\u202e"},
        {"role": "assistant", "type": "message", "end": True},
        {"role": "computer", "type": "console", "format": "active_line", "content": None},
        {"role": "server", "type": "error", "format": "model", "content": "No."},
    ]
    assert out.getvalue().isascii() and "\x1b" not in out.getvalue()
    assert err.getvalue() == "note: Trying again.\n"
    assert printer.failure == "No."


# -- without a terminal --


def run(session: FakeSession, prompt: str | None = "go", *, json: bool = False, **settings: Any) -> int:
    chosen = Settings(llm=ModelSettings(model="fake"), **settings)
    session.settings = chosen
    return run_plain(chosen, Task(prompt, json), new_session=lambda _: session)  # type: ignore[arg-type, return-value]


def test_a_task_that_is_done_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    session = FakeSession([Code("print(1)", results=("1\n",)), "It is 1."])
    assert run(session, auto_run=True) == 0
    assert capsys.readouterr().out.endswith("     | 1\n\nIt is 1.\n")
    assert session.messages_sent == ["go"]
    assert not session.is_open


def test_code_is_shown_and_declined_where_nobody_can_be_asked(capsys: pytest.CaptureFixture[str]) -> None:
    session = FakeSession([Code("print(1)", results=("1\n",)), "It is 1."])
    assert run(session) == 1
    out, err = capsys.readouterr()
    assert "   1 | print(1)\n" in out
    assert "     | 1" not in out
    assert err == "Declined: there is no terminal to ask for approval. Add -y to let code run.\n"


def test_json_declines_too_and_says_so_on_the_error_stream(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeSession([Code("print(1)")]), json=True) == 1
    out, err = capsys.readouterr()
    chunks = [json.loads(line) for line in out.splitlines()]
    assert chunks[-1]["type"] == "confirmation"
    assert "Declined" in err


def test_input_that_nobody_can_give_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeSession([Code("input()", results=(Ask("Name? "), "asked"))]), auto_run=True) == 0
    out, err = capsys.readouterr()
    assert "     | KeyboardInterrupt\n" in out and "asked" not in out
    assert err == "The code asks for input, and there is no terminal to answer: Name? \n"


def test_a_model_that_fails_is_one_line_and_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    session = FakeSession(["Well", Chunk("server", "error", "rate_limit", "Too many requests. Wait a minute.")])
    assert run(session) == 1
    assert capsys.readouterr().err == "error: Too many requests. Wait a minute.\n"
    assert run(FakeSession([RateLimited("Too many requests.", "Wait.")])) == 1


def test_a_fault_of_the_program_is_one_line_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeSession(["Well", ZeroDivisionError("oops")])) == 1
    assert capsys.readouterr().err == "error: a fault in oi-tui: ZeroDivisionError: oops (--verbose tells more)\n"


def test_a_piped_conversation_takes_a_message_from_each_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("first\n\n%nonsense\nsecond\n"))
    session = FakeSession(["One."], ["Two."])
    assert run(session, None) == 0
    assert session.messages_sent == ["first", "second"]
    assert "There is no command %nonsense." in capsys.readouterr().out


def test_notes_about_settings_are_said_once_at_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    run(FakeSession(["One."]), notes=("Profile x: unknown key y",))
    assert capsys.readouterr().err == "note: Profile x: unknown key y\n"


# -- the program itself --


def oi_tui(*arguments: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "oi_tui", *arguments]
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, **kwargs)


@pytest.mark.kernel
def test_the_demo_runs_the_whole_loop_in_the_real_kernel() -> None:
    ran = oi_tui("--profile", "demo", "-y", "-p", "what is 2380*3875?")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.endswith("2380 * 3875 = 9222500\n")
    assert "     | 9222500\n" in ran.stdout


@pytest.mark.kernel
def test_the_demo_draws_a_real_picture(empty_machine: Path) -> None:
    ran = oi_tui("--demo", "-y", "draw", "a", "picture")
    assert (ran.returncode, ran.stderr) == (0, "")
    (path,) = (empty_machine / ".local/share/oi-tui/files").rglob("*.png")
    assert f"Image, 480 by 480 pixels, PNG, {path.stat().st_size / 1000:.0f} kB: {path}\n" in ran.stdout


@pytest.mark.kernel
def test_the_task_can_come_from_standard_input() -> None:
    ran = oi_tui("--demo", "-y", "--stdin", "-p", "work this out:", stdin=None, input="40 + 2\n")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.endswith("40 + 2 = 42\n")


@pytest.mark.kernel
def test_a_reader_that_leaves_early_ends_the_program_quietly() -> None:
    command = f"{sys.executable} -m oi_tui --demo -y -p 'run a long loop' | head -3; echo ${{PIPESTATUS[0]}}"
    ran = subprocess.run(
        command, shell=True, executable="/bin/bash", capture_output=True, text=True, timeout=100, check=False,
        stdin=subprocess.DEVNULL, env=os.environ,
    )  # fmt: skip
    assert ran.stderr == ""
    assert ran.stdout.splitlines()[-1] == "1"
