"""The life of a code block, and what of it is drawn."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from rich.cells import cell_len

from oi_tui.engine.approval import CodeProposal, Decision, digest_of
from oi_tui.engine.hidden_text import summary
from oi_tui.engine.interpreter import decided
from oi_tui.styles import themes
from oi_tui.widgets.block import Line
from oi_tui.widgets.block_theme import BlockTheme
from oi_tui.widgets.code_block import CodeBlock
from oi_tui.widgets.code_state import CodeState

THEME = BlockTheme.from_variables({**(themes.OUR_DARK.variables), "foreground": "#ffffff", "background": "#000000"})
WIDTH = 60


def text_of(lines: Sequence[Line]) -> list[str]:
    return [line.strip.text for line in lines]


def drawn(block: CodeBlock, width: int = WIDTH) -> list[str]:
    lines = text_of(block.lines(width, THEME))
    assert {cell_len(line) for line in lines} == {width}, "every line is as wide as the block"
    return lines


def written(code: str, language: str = "python") -> CodeBlock:
    block = CodeBlock("id", language)
    block.append(code)
    block.finish_writing()
    return block


def waiting(code: str, language: str = "python") -> CodeBlock:
    block = written(code, language)
    block.propose(CodeProposal("id", language, code))
    return block


def decide(block: CodeBlock, decision: Decision) -> None:
    content = decided(CodeProposal("id", block.language, block.original), decision).content
    assert isinstance(content, dict)
    block.decide(content)


def see_all(block: CodeBlock, width: int = WIDTH) -> None:
    for number in range(len(block.lines(width, THEME))):
        block.painted(number)


def test_the_title_says_language_state_size_and_digest() -> None:
    block = waiting("a = 1\nb = 2")
    title = drawn(block)[0]
    assert title.startswith(f"╭ python ─ waiting ─ 2 lines ─ {digest_of('a = 1' + chr(10) + 'b = 2')[:6]} ─")
    assert title.endswith("─╮")


def test_lines_are_numbered_and_stand_between_rails() -> None:
    assert drawn(waiting("a = 1\nb = 2"))[1:-1] == [
        f"│ {'1   a = 1':<{WIDTH - 4}} │",
        f"│ {'2   b = 2':<{WIDTH - 4}} │",
    ]


def test_a_line_end_at_the_end_is_no_line() -> None:
    block = waiting("a = 1\n")
    assert "1 line ─" in drawn(block)[0]
    assert block.code == "a = 1\n", "but it is code"


def test_what_is_copied_is_the_source() -> None:
    block = waiting("if x:\n\ty = '" + "long " * 20 + "'")
    lines = block.lines(WIDTH, THEME)
    joined = [(line.source or line.text or "") + ("\n" if line.joint is None else line.joint) for line in lines[1:-1]]
    copied = "".join(joined)
    assert copied.startswith("if x:\n")
    assert "long " * 20 in copied, "wrapped lines are joined without anything between them"


def test_long_lines_are_wrapped_so_that_nothing_stands_past_the_right_edge() -> None:
    code = "x = 1" + " " * 200 + "; evil()"
    shown = "".join(line[6:-2] for line in drawn(waiting(code))[2:-1])
    assert "evil()" in shown


def test_hidden_characters_are_drawn_and_counted() -> None:
    block = waiting("access = 'user\u202e'  # ok")
    lines = drawn(block)
    assert "1 hidden character" in lines[1]
    assert "⟨U+202E⟩" in lines[2]
    assert "\u202e" not in "".join(lines)


def test_a_warning_is_never_cut() -> None:
    block = written("a\u202e = 1\nb\u200b = 2\n\u0430b = 3\nc\u2066 = 4\nd\u2069 = 5\ne\u00ad = 6\n")
    warning = summary(block.findings)
    assert len(warning) > 80
    for width in (40, 80):
        lines = [line.strip("│ ") for line in drawn(block, width)]
        assert lines[1].startswith("! ")
        assert "".join(lines[1:]).replace(" ", "").startswith("!" + warning.replace(" ", ""))


def test_control_characters_never_reach_the_screen_while_it_is_written() -> None:
    block = CodeBlock("id", "sh\x1b[31m")
    block.append("echo \x1b]52;c;aGk=\x07 \x9b31m \u200b \r done")
    everything = "".join(drawn(block))
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in everything)
    assert "\u200b" not in everything


def test_natural_scripts_raise_no_alarm() -> None:
    assert not waiting("x = 'שלום עולם 你好 👩‍💻'").findings


def test_editing_makes_other_code_with_another_digest() -> None:
    block = waiting("a = 1\nb = 2\nc = 3")
    before = block.short_digest
    block.edit("a = 1\nb = 20\nx = 5\nc = 3")
    assert block.state is CodeState.EDITED
    assert block.short_digest != before
    assert "edited +2 −1" in drawn(block)[0]
    assert "edited by you +2 −1" in drawn(block, 78)[0]
    assert [line[4] for line in drawn(block)[1:-1]] == [" ", "+", "+", " "]
    block.edit("a = 1\nb = 2\nc = 3")
    assert block.state is CodeState.WAITING and "edited" not in drawn(block)[0]


def test_the_diff_shows_both_versions() -> None:
    block = waiting("a = 1\nb = 2")
    block.edit("a = 1\nb = 3")
    block.shows_diff = True
    block.changed()
    assert [line.strip(" │")[:7] for line in drawn(block)[1:-1]] == ["a = 1", "− b = 2", "+ b = 3"]


def test_code_that_the_engine_corrected_is_not_edited_by_the_user() -> None:
    block = written("```python\nprint(1)\n```", "py")
    block.propose(CodeProposal("id", "python", "print(1)"))
    assert block.code == "print(1)" and not block.is_edited
    assert drawn(block)[0].startswith("╭ python ─ waiting")


def test_running_marks_the_line_and_ends_done() -> None:
    block = waiting("a = 1\nb = 2")
    decide(block, Decision.run())
    assert block.state is CodeState.RUNNING
    block.light(2)
    assert drawn(block)[2].startswith("│ 2 ► b = 2")
    block.print("hello\n")
    block.finish_running()
    assert block.state is CodeState.DONE
    assert any("├ output" in line for line in drawn(block)) and "│ hello" in drawn(block)[-2]


def test_a_traceback_is_a_failure_and_the_failing_line_is_marked() -> None:
    block = waiting("a = 1\n1/0")
    decide(block, Decision.run())
    block.blame(2)
    block.print("Traceback (most recent call last):\n  ...\nZeroDivisionError: division by zero\n")
    block.finish_running()
    assert block.state is CodeState.FAILED
    assert drawn(block)[2].startswith("│ 2 ✗ 1/0")


def test_an_interrupt_is_no_failure() -> None:
    block = waiting("while True: pass")
    decide(block, Decision.run())
    block.blame(1)
    block.print("KeyboardInterrupt      Traceback (most recent call last)\n  ...\n\nKeyboardInterrupt: \n")
    block.finish_running()
    assert block.state is CodeState.STOPPED


def test_text_that_only_looks_like_an_error_is_none() -> None:
    block = waiting("print()")
    decide(block, Decision.run())
    block.print("ValueError: that is what the log said\n")
    block.finish_running()
    assert block.state is CodeState.DONE


def test_declining_with_words_shows_the_words() -> None:
    block = waiting("rm -rf /")
    decide(block, Decision.decline("use trash\x1b[2J instead"))
    assert block.state is CodeState.DECLINED
    assert "use trash instead" in drawn(block)[-1]


@pytest.mark.parametrize(
    ("prepare", "stopped", "state"),
    [
        (lambda: waiting("x"), True, CodeState.STOPPED),
        (lambda: waiting("x"), False, CodeState.NOT_RUN),
        (lambda: written("x"), False, CodeState.NOT_RUN),
    ],
)
def test_the_end_of_the_turn_is_the_end_of_every_block(prepare, stopped: bool, state: CodeState) -> None:  # type: ignore[no-untyped-def]
    block = prepare()
    block.settle(stopped=stopped)
    assert block.state is state and block.state.is_over


def test_half_received_code_says_so() -> None:
    block = CodeBlock("id", "python")
    block.append("print('half")
    block.mark_incomplete("The answer was cut.")
    assert drawn(block)[0].startswith("╭ python ─ incomplete") and "The answer was cut." in drawn(block)[-1]


def test_code_must_have_been_seen_to_its_end_from_the_top() -> None:
    block = waiting("\n".join(f"line_{n} = {n}" for n in range(50)))
    lines = block.lines(WIDTH, THEME)
    for number in range(30, len(lines)):
        block.painted(number)
    assert not block.has_been_seen, "jumping to the end is not reading"
    assert block.next_unseen_line == 1
    for number in range(0, 20):
        block.painted(number)
    assert not block.has_been_seen and block.next_unseen_line == 20
    see_all(block)
    assert block.has_been_seen


def test_what_was_seen_stays_seen_when_the_width_changes() -> None:
    block = waiting("\n".join("value = " + "1 + " * 30 + "1" for _ in range(20)))
    see_all(block)
    block.lines(WIDTH // 2, THEME)
    assert block.has_been_seen
    other = waiting("\n".join("value = " + "1 + " * 30 + "1" for _ in range(20)))
    other.lines(WIDTH, THEME)
    for number in range(12):
        other.painted(number)
    other.lines(WIDTH // 2, THEME)
    assert not other.has_been_seen


def test_one_endless_line_must_be_seen_as_well() -> None:
    block = waiting("x = '" + "a" * 5000 + "'")
    block.lines(WIDTH, THEME)
    for number in range(20):
        block.painted(number)
    assert not block.has_been_seen


def test_an_edit_of_seen_code_is_seen_and_one_of_unseen_code_is_not() -> None:
    code = "\n".join(f"line_{n} = {n}" for n in range(50))
    block = waiting(code)
    block.lines(WIDTH, THEME)
    see_all(block)
    block.edit(code + "\nmore = 1")
    block.lines(WIDTH, THEME)
    assert block.has_been_seen
    block = waiting(code)
    block.lines(WIDTH, THEME)
    for number in range(0, 10):
        block.painted(number)
    block.edit("first = 1\n" + code)
    block.lines(WIDTH, THEME)
    assert not block.has_been_seen and block.next_unseen_line == 1


def test_long_code_is_whole_while_it_waits_and_short_when_it_is_done() -> None:
    block = waiting("\n".join(f"line_{n} = {n}" for n in range(200)))
    assert len(drawn(block)) == 202
    decide(block, Decision.run())
    block.light(100)
    assert len(drawn(block)) < 25 and any("► line_99" in line for line in drawn(block))
    block.finish_running()
    assert len(drawn(block)) < 25 and any("⋯ 184 lines more" in line for line in drawn(block))
    block.toggle()
    assert len(drawn(block)) == 202
    block.toggle()
    assert len(drawn(block)) == 2


def test_code_that_waits_cannot_be_folded_away() -> None:
    block = waiting("a\nb")
    block.fold(True)
    assert len(drawn(block)) == 4


def test_long_output_keeps_head_and_tail_and_counts_the_rest() -> None:
    block = waiting("x")
    decide(block, Decision.run())
    for number in range(100_000):
        block.print(f"row {number}\n")
    live = drawn(block)
    assert any("row 99999" in line for line in live) and len(live) < 25
    block.finish_running()
    done = drawn(block)
    assert any("row 0 " in line for line in done) and any("row 99999" in line for line in done)
    assert any("⋯ 99 980 lines" in line for line in done)
    assert any("100 000 lines" in line for line in done)


def test_the_rule_above_a_traceback_takes_one_row() -> None:
    block = waiting("1 / 0")
    block.start_running()
    block.print("-" * 75 + "\nZeroDivisionError\n")
    assert [line for line in drawn(block) if "---" in line] == ["│ " + "-" * (WIDTH - 4) + " │"]


def test_a_line_without_end_is_called_long() -> None:
    block = waiting("print('x' * 2**20)")
    block.start_running()
    block.print("x" * 2**20 + "\n")
    for width in (WIDTH, 100):
        assert "⋯ 1 very long line" in "\n".join(drawn(block, width))


def test_a_progress_bar_is_one_line() -> None:
    block = waiting("x")
    decide(block, Decision.run())
    for percent in range(101):
        block.print(f"\r{percent:3}% done")
    assert [line for line in drawn(block) if "% done" in line] == [f"│ {'100% done':<{WIDTH - 4}} │"]


def test_times_are_shown_after_a_slow_run(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("oi_tui.widgets.code_block.monotonic", lambda: now)
    block = waiting("a = 1\nb = slow()")
    decide(block, Decision.run())
    now += 12
    block.set_line_times({"1": 0.31, "2": 11.5})
    assert "running 00:12" in drawn(block)[0]
    block.finish_running()
    assert "0.31 s ▁ │" in drawn(block)[1] and "11.50 s █ │" in drawn(block)[2]
    assert "done 00:12" in drawn(block)[0]


def test_times_of_a_quick_run_are_shown_when_asked_for() -> None:
    block = waiting("a = 1")
    decide(block, Decision.run())
    block.set_line_times({1: 0.01})
    block.finish_running()
    assert "0.01 s" not in drawn(block)[1]
    block.shows_times = True
    block.changed()
    assert "0.01 s" in drawn(block)[1]


@pytest.mark.parametrize("width", [8, 12, 20, 33, 100])
def test_every_state_fits_into_every_width(width: int) -> None:
    block = waiting("wide = '你好' * 10\n\ttabbed\n" + "x" * 300)
    drawn(block, width)
    block.edit("other")
    drawn(block, width)
    decide(block, Decision.run("other"))
    block.print("漢字" * 50 + "\n\x1b[31mred\x1b[0m\n")
    drawn(block, width)
    block.finish_running()
    drawn(block, width)
