"""Output looks as in a terminal, stays in bounds, and costs what is new."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.selection import SELECT_ALL

from oi_tui.rendering import terminal_text as module
from oi_tui.rendering.lines import copy_text
from oi_tui.rendering.sgr import DEFAULT, Sgr
from oi_tui.rendering.terminal_text import TerminalText
from oi_tui.rendering.terminal_view import TerminalView
from oi_tui.rendering.theme import RenderTheme

ANSI = RenderTheme.ansi()


def printed(*texts: str) -> list[str]:
    terminal = TerminalText()
    for text in texts:
        terminal.feed(text)
    terminal.close()
    return [terminal.plain(number) for number in range(terminal.first, terminal.end)]


def drawn(terminal: TerminalText, width: int, **options: bool) -> list[str]:
    view = TerminalView(terminal, width, **options)
    return [view.line(row, ANSI).strip.text for row in range(view.height)]


def test_lines() -> None:
    assert printed("a\nb\n") == ["a", "b"]
    assert printed("a\r\nb\r", "\nc") == ["a", "b", "c"]
    assert printed("no end") == ["no end"]
    assert printed("\n\nx") == ["", "", "x"]
    assert printed("") == []


def test_a_progress_bar_updates_in_place() -> None:
    assert printed("\r 10%", "\r 50%", "\r100%", "\ndone\n") == ["100%", "done"]
    assert printed("Downloading...\rok\n") == ["okwnloading..."]
    assert printed("Downloading...\r\x1b[Kok\n") == ["ok"]
    assert printed("12345\b\b\bX\n") == ["12X45"]
    assert printed("|\b/\b-\b\\\bdone\n") == ["done"]
    assert printed("50%\r", "\r", "60%\r", "\n") == ["60%"]
    assert printed("abc\r\r\n") == ["abc"]


def test_a_million_updates_of_one_bar_are_one_line() -> None:
    terminal = TerminalText()
    for start in range(0, 1_000_000, 50_000):
        terminal.feed("".join(f"\r{number:>9}" for number in range(start, start + 50_000)))
    terminal.feed("\n")
    assert [terminal.plain(0)] == ["   999999"]
    assert terminal.end == 1


def test_several_bars_as_tqdm_draws_them() -> None:
    """Each bar goes to its line with line feeds and back up with ESC [ A."""
    bars = [0, 0, 0]
    pieces = []
    for step in range(1, 4):
        for position in range(3):
            bars[position] = step
            pieces.append("\n" * position + f"\rbar {position}: {step}/3" + "\x1b[A" * position)
    assert printed(*pieces, "\n\n\n", "end\n") == ["bar 0: 3/3", "bar 1: 3/3", "bar 2: 3/3", "end"]


def test_cursor_movements_and_erasing() -> None:
    assert printed("abcdef\x1b[3D\x1b[K!") == ["abc!"]
    assert printed("abc\x1b[2Kx") == ["   x"]
    assert printed("abcdef\x1b[2G\x1b[1KX") == [" Xcdef"]
    assert printed("one\ntwo\nthree\x1b[2A\x1b[1G\x1b[Jgone") == ["gone"]
    assert printed("one\ntwo\n\x1b[1F\x1b[2KTWO\n") == ["one", "TWO"]
    assert printed("a\x1b[5Cb") == ["a     b"]
    assert printed("a\x1b[99999999Ab") == ["ab"]
    assert printed("a\x1b[99999Cb")[-1].endswith("b")


def test_colours_stay_with_their_characters() -> None:
    terminal = TerminalText()
    terminal.feed("\x1b[31mred\x1b[0m plain\rRE")
    assert terminal.line(0) == [("RE", DEFAULT), ("d", Sgr(1)), (" plain", DEFAULT)]
    terminal.feed("\n\x1b[32mgreen\nstill green\x1b[m\nplain\n")
    assert terminal.line(1) == [("green", Sgr(2))]
    assert terminal.line(2) == [("still green", Sgr(2))]
    assert terminal.line(3) == [("plain", DEFAULT)]
    assert terminal.plain(2) == "still green"


def test_tabs_go_to_multiples_of_eight() -> None:
    assert printed("a\tb\n\x1b[1ma\x1b[0m\tb\n漢\tb\n") == ["a       b", "a       b", "漢      b"]
    assert printed("x\ra\tb") == ["a       b"]
    assert printed("x\r漢", "\tb") == printed("漢\tb")


def test_only_the_newest_lines_are_kept_and_all_are_counted() -> None:
    terminal = TerminalText(max_lines=100)
    for start in range(0, 5000, 50):
        terminal.feed("".join(f"line {number}\n" for number in range(start, start + 50)))
    assert (terminal.first, terminal.end) == (4900, 5000)
    assert terminal.plain(4900) == "line 4900"
    with pytest.raises(IndexError):
        terminal.plain(4000)


def test_a_flood_in_one_piece_is_counted_without_being_looked_at() -> None:
    terminal = TerminalText(max_lines=100)
    terminal.feed("before\n\x1b[31m")
    terminal.feed("".join(f"{number}\n" for number in range(100_000)))
    assert (terminal.first, terminal.end) == (99_901, 100_001)
    assert terminal.line(100_000) == [("99999", Sgr(1))]


def test_a_line_of_a_megabyte_survives() -> None:
    line = "".join(random.Random(1).choices("abcdefgh ", k=1 << 20))
    terminal = TerminalText()
    for start in range(0, len(line), 7777):
        terminal.feed(line[start : start + 7777])
    terminal.feed("\nnext\n")
    assert terminal.text() == line + "\nnext\n"
    view = TerminalView(terminal, 80)
    lines = [view.line(row, ANSI) for row in range(view.height)]
    assert all(cell_len(rendered.strip.text) <= 80 for rendered in lines)
    assert copy_text(lines, SELECT_ALL) == line + "\nnext"


def test_a_colour_is_not_lost_where_a_long_line_is_cut() -> None:
    terminal = TerminalText()
    text = "x" * (module.LONGEST_LINE - 3) + "\x1b[31m" + "y" * 10
    terminal.feed(text)
    assert terminal.text() == "x" * (module.LONGEST_LINE - 3) + "y" * 10 + "\n"
    assert terminal.line(1) == [("y" * 10, Sgr(1))]


@pytest.mark.parametrize("character", ["x", "漢", "😀"])
def test_memory_is_bounded_whatever_is_printed(character: str) -> None:
    terminal = TerminalText()
    piece = character * 200_000
    tracemalloc.start()
    try:
        for number in range(100):
            terminal.feed(
                piece if number % 2 else "\r".join(piece[start : start + 100] for start in range(0, 9000, 100))
            )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60 << 20


def test_moving_around_in_long_lines_is_bounded() -> None:
    terminal = TerminalText()
    terminal.feed(("x" * 8000 + "\n") * 100)
    for _ in range(3000):
        terminal.feed("\x1b[60A\r!\n" * 3 + "\x1b[9B")
    assert terminal.end <= 101
    assert terminal.plain(terminal.end - 1).strip("x!") == ""


def test_what_follows_a_long_line_that_is_returned_to_goes_below() -> None:
    long_line = "x" * 20_000
    assert printed(long_line + "\rshort\n") == [long_line, "short"]
    assert printed(long_line + "\r", "\nshort\n") == [long_line, "short"]


def test_only_changed_lines_are_reported() -> None:
    terminal = TerminalText()
    changes = terminal.changes()
    terminal.feed("a\nb\nc\n")
    assert changes.take() == 0
    assert changes.take() is None
    terminal.feed("d\n")
    assert changes.take() == 3
    terminal.feed("e")
    terminal.feed("f")
    assert changes.take() == 4
    terminal.feed("\x1b[2A\rX")
    assert changes.take() == 2


def test_wrapped_rows() -> None:
    terminal = TerminalText()
    terminal.feed("abcdefghij\nxy\n漢字漢字\n")
    assert drawn(terminal, 4) == ["abcd", "efgh", "ij", "xy", "漢字", "漢字"]
    assert drawn(terminal, 3) == ["abc", "def", "ghi", "j", "xy", "漢", "字", "漢", "字"]
    assert drawn(terminal, 4, is_wrapped=False) == ["abcdefghij", "xy", "漢字漢字"]
    view = TerminalView(terminal, 4, is_wrapped=False)
    assert view.widest == 10
    wrapped = TerminalView(terminal, 4)
    assert [wrapped.row_of(number) for number in range(4)] == [0, 3, 4, 6]
    assert wrapped.locate(2) == (0, 2)
    with pytest.raises(IndexError):
        wrapped.locate(6)


def test_bidirectional_controls_are_shown() -> None:
    terminal = TerminalText()
    terminal.feed("a\u202eb\n\x1b[1m\u2066\x1b[0m\n")
    assert terminal.plain(0) == "a⟨U+202E⟩b"
    assert drawn(terminal, 40) == ["a⟨U+202E⟩b", "⟨U+2066⟩"]


PRINTED = st.lists(
    st.one_of(
        st.sampled_from(
            ["\n", "\r", "\b", "\t", "\r\n", "\x1b[A", "\x1b[2B", "\x1b[K", "\x1b[1K", "\x1b[J", "\x1b[3G"]
        ),
        st.sampled_from(
            ["\x1b[31m", "\x1b[0m", "\x1b[2C", "\x1b[D", "\x1b[E", "\x1b[F", "\x1b[", "\x1b]0;t\x07", "漢"]
        ),
        st.text(max_size=6),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(PRINTED, st.integers(1, 12))
@example(pieces=["\x1b[A", "\x08", "漢"], size=1)
def test_output_cut_anywhere_is_the_same_output(pieces: list[str], size: int) -> None:
    text = "".join(pieces)
    whole, cut = TerminalText(), TerminalText()
    whole.feed(text)
    for start in range(0, len(text), size):
        cut.feed(text[start : start + size])
    whole.close()
    cut.close()
    assert whole.text() == cut.text()
    assert [whole.line(n) for n in range(whole.end)] == [cut.line(n) for n in range(cut.end)] or _same(whole, cut)


def _same(one: TerminalText, other: TerminalText) -> bool:
    """Equal character by character, however the pieces are cut."""

    def characters(terminal: TerminalText) -> list[list[tuple[str, Sgr]]]:
        return [[(c, state) for text, state in terminal.line(n) for c in text] for n in range(terminal.end)]

    return characters(one) == characters(other)


@settings(max_examples=60, deadline=None)
@given(st.lists(PRINTED, max_size=8), st.integers(2, 9), st.booleans())
def test_a_view_that_is_updated_equals_a_new_one(feeds: list[list[str]], width: int, is_wrapped: bool) -> None:
    terminal = TerminalText(max_lines=70)
    view = TerminalView(terminal, width, is_wrapped=is_wrapped)
    before: list[str] = []
    for pieces in feeds:
        terminal.feed("".join(pieces) + "\n" * 9)
        changed = view.update()
        now = [view.line(row, ANSI).strip.text for row in range(view.height)]
        assert now == drawn(terminal, width, is_wrapped=is_wrapped)
        if changed:
            assert now[:changed] == before[:changed]
        before = now
    assert view.height == 0 or view.locate(view.height - 1)[0] == terminal.end - 1


def test_many_lines_at_once_are_the_same_as_one_by_one() -> None:
    lines = ["plain", "\x1b[31mred", "still red\x1b[0m", "", "\x1b[1mbold\x1b[22m off", "tab\tbed"] * 40
    text = "bar 10%\rbar 20%" + "\n" + "\n".join(lines) + "\nend"
    at_once, one_by_one = TerminalText(), TerminalText()
    at_once.feed("bar 10%\rbar 20%")
    at_once.feed(text[15:])
    for character in text:
        one_by_one.feed(character)
    assert at_once.end == one_by_one.end == len(lines) + 2
    assert _same(at_once, one_by_one)
    at_once.feed("\x1b[3A\r!")
    one_by_one.feed("\x1b[3A\r!")
    assert _same(at_once, one_by_one)
