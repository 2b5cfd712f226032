"""Output as the model reads it: what a terminal would show at the end, head and tail of it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oi_tui.engine.llm.output_text import clean_output, model_output, truncate_output


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mrgb\x1b[m", "red rgb"),
        ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("\x1bP1$r\x1b\\x\x1b(By\x1b7z\x1b=", "xyz"),
        ("a\x9b31mb", "ab"),
        ("cut \x1b[3", "cut "),
        ("cut \x1b]0;tit", "cut "),
        ("open \x1b]0;tit\nle", "open ]0;tit\nle"),
        ("bell\x07 null\x00 del\x7f", "bell null del"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("10%\r50%\r100%", "100%"),
        ("downloading\rdone", "doneloading"),
        ("downloading\r\x1b[Kdone", "done"),
        ("downloading\r\x1b[2Kdone\r", "done"),
        ("abc\r", "abc"),
        ("a\r\r\nb", "a\nb"),
        ("|\b/\b-\b\\\bok", "ok"),
        ("ab\b\b\bX", "Xb"),
        ("lone \ud83d", "lone \ufffd"),
        (
            "\u00e9t\u00e9 \u4e2d\u6587 \U0001f600 \u05e9\u05dc\u05d5\u05dd",
            "\u00e9t\u00e9 \u4e2d\u6587 \U0001f600 \u05e9\u05dc\u05d5\u05dd",
        ),
    ],
)
def test_clean_output(raw: str, shown: str) -> None:
    assert clean_output(raw) == shown


@given(st.text(alphabet="ab\n\r\b\x1b[]0;mK\x07\\\x9b\x00\ud83d é", max_size=40))
def test_clean_output_leaves_nothing_that_controls_and_is_final(raw: str) -> None:
    once = clean_output(raw)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", once)
    assert clean_output(once) == once


@given(st.text(alphabet="ab", max_size=12), st.text(alphabet="cd", max_size=12), st.text(alphabet="ef", max_size=12))
def test_carriage_returns_overwrite_as_a_terminal_does(first: str, second: str, third: str) -> None:
    expected = list(first)
    for part in (second, third):
        expected[: len(part)] = part
    assert clean_output(f"{first}\r{second}\r{third}") == "".join(expected)


def test_short_output_is_left_alone() -> None:
    assert truncate_output("abc", 3) == "abc"
    assert truncate_output("", 0) == ""


def test_head_and_tail_stay_with_a_note_of_what_is_missing() -> None:
    text = "".join(f"line {n}\n" for n in range(1000))
    cut = truncate_output(text, 200, "/tmp/out.txt")
    head, _, rest = cut.partition("\n[… ")
    note, _, tail = rest.partition("]\n")
    assert text.startswith(head + "\n") and text.endswith(tail) and tail.startswith("line ")
    assert len(tail) > len(head) > 40 and len(head) + len(tail) <= 200
    assert "/tmp/out.txt" in note
    missing = len(text) - len(head) - len(tail) - 1
    assert f"{missing:,} characters" in note
    assert f"({1000 - head.count('line') - tail.count('line')} lines)" in note


def test_one_long_line_is_cut_anywhere_and_a_limit_of_nothing_leaves_the_note() -> None:
    cut = truncate_output("x" * 1000, 100)
    assert cut == "x" * 40 + "\n[… 900 characters left out here.]\n" + "x" * 60
    assert truncate_output("x" * 10, 0) == "[… 10 characters left out here.]\n"


@given(st.text(alphabet="a\n", max_size=200), st.integers(0, 60))
def test_a_cut_keeps_to_the_limit(text: str, limit: int) -> None:
    cut = truncate_output(text, limit)
    head, _, tail = cut.partition("[… ")
    assert cut == text or len(head) + len(tail.partition("]\n")[2]) <= limit + 1


@given(st.integers(0, 40))
def test_no_cut_falls_into_an_escape_sequence(limit: int) -> None:
    sequence = "\x1b[38;5;196m"
    cut = truncate_output(f"ab{sequence}" * 20, limit)
    for part in re.split(r"\n?\[… .*?\]\n", cut):
        assert part.count("\x1b") == part.count(sequence) and part.count("196m") == part.count(sequence)


def test_no_cut_falls_into_a_surrogate_pair() -> None:
    for limit in range(10):
        cut = truncate_output("\ud83d\ude00" * 10, limit)
        assert cut.replace("\ud83d\ude00", "").encode()


def test_a_flood_costs_no_more_than_its_two_ends() -> None:
    """What lies between the ends is never cleaned: it could not be seen anyway."""
    flood = "\x1b[32mok\x1b[0m begin\n" + "spam\x1b[1m\r" * 2_000_000 + "\nend\n"
    cut = model_output(flood, 300, "/tmp/flood.txt")
    assert cut.startswith("ok begin\n") and cut.endswith("\nend\n") and "\x1b" not in cut
    assert "/tmp/flood.txt" in cut and "left out" in cut and len(cut) < 500


def test_long_output_in_lines_keeps_whole_lines() -> None:
    cut = model_output("".join(f"{n:07}\n" for n in range(100_000)), 400)
    lines = [line for line in cut.splitlines() if not line.startswith("[…")]
    assert lines[0] == "0000000" and lines[-1] == "0099999" and all(len(line) == 7 for line in lines)
    assert 300 < sum(len(line) + 1 for line in lines) <= 400


def test_backspaces_and_carriage_returns_cost_linear_work() -> None:
    """Each would take minutes if every overwriting copied the line."""
    assert clean_output("x" * 50_000 + "\ry" * 50_000) == "y" + "x" * 49_999
    assert clean_output("x" * 50_000 + "\b" * 50_000 + "y") == "y" + "x" * 49_999
