"""Keys and pastes, however the terminal's bytes are cut."""

from __future__ import annotations

from oi_tui.terminal_input import END, START, Pasted, TerminalInput


def fed(*pieces: str) -> list[str | Pasted]:
    stream = TerminalInput()
    return [part for piece in pieces for part in stream.feed(piece)]


def test_keys_pass_and_a_paste_is_one_paste() -> None:
    assert fed(f"ab{START}one\rtwo{END}c") == ["ab", Pasted("one\rtwo"), "c"]


def test_two_pastes_in_one_read() -> None:
    assert fed(f"{START}a{END}{START}b{END}") == [Pasted("a"), Pasted("b")]


def test_a_paste_may_be_cut_anywhere_after_its_start() -> None:
    whole = f"x\x1b[20{END}y"
    for cut in range(len(whole) + 1):
        parts = fed(START + whole[:cut], whole[cut:])
        assert parts == [Pasted("x\x1b[20"), "y"], cut


def test_a_start_that_is_cut_in_two_is_left_to_the_parser() -> None:
    assert fed(START[:3], START[3:] + "a", END) == [START[:3], START[3:] + "a", END]


def test_alt_enter_is_translated_but_not_in_a_paste() -> None:
    assert fed(f"a\x1b\rb{START}c\x1b\rd{END}") == ["a\x1b[13;3ub", Pasted("c\x1b\rd")]


def test_an_empty_paste_and_nul() -> None:
    assert fed(f"{START}{END}", f"{START}a\0b{END}") == [Pasted(""), Pasted("ab")]


def test_five_megabytes_are_no_burden() -> None:
    text = "words in a line\n" * 330_000
    pieces = [START, *(text[at : at + 4096] for at in range(0, len(text), 4096)), END]
    assert fed(*pieces) == [Pasted(text)]
