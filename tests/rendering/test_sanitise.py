"""Foreign text loses its power over the terminal and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oi_tui.rendering import sanitise as module
from oi_tui.rendering.sanitise import Sanitiser, sanitise, sanitise_line, show_bidi, utf8_decoder

ATTACKS = {
    "clipboard": ("a\x1b]52;c;cm0gLXJm\x07b", "ab"),
    "clipboard, string terminator": ("a\x1b]52;c;cm0gLXJm\x1b\\b", "ab"),
    "title, C1 forms": ("a\x9d0;title\x9cb", "ab"),
    "hyperlink": ("\x1b]8;;file:///etc/passwd\x1b\\text\x1b]8;;\x1b\\", "text"),
    "clear and home": ("a\x1b[2J\x1b[Hb", "ab"),
    "C1 CSI": ("a\x9b2Jb", "ab"),
    "alternate screen": ("\x1b[?1049hx\x1b[?1049l", "x"),
    "kitty graphics": ("a\x1b_Gf=32;AAAA\x1b\\b", "ab"),
    "privacy message": ("a\x1b^secret\x1b\\b", "ab"),
    "start of string": ("a\x1bXsecret\x1b\\b", "ab"),
    "sixel": ("a\x1bPq#0;2;0;0;0~~@@vv\n@@$-\n\x1b\\b", "ab"),
    "device status": ("\x1b[6n\x1b[c\x1bZ", ""),
    "charset": ("\x1b(Bplain\x1b[m", "plain"),
    "tmux passthrough": ("a\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\b", "ab"),
    "reset": ("\x1bc\x1b#8done", "done"),
    "lone controls": ("a\x00\x07\x08\x0b\x0c\x7f\x85\x9ab", "ab"),
    "escape at the end": ("a\x1b", "a"),
    "cancelled sequence": ("\x1b[12\x18after", "after"),
    "control inside a sequence": ("\x1b[3\n1m", "\n1m"),
    "bracketed paste": ("\x1b[200~rm -rf\x1b[201~", "rm -rf"),
    "lone surrogate": ("a\ud800b\udc00", "a\ufffdb\ufffd"),
    "joined surrogates": ("\ud83d\ude00", "😀"),
    "kept": ("tab\tline\nreturn\r", "tab\tline\nreturn\r"),
}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda name: name.replace(" ", "-"))
def test_nothing_of_a_control_sequence_is_left(attack: str) -> None:
    given_text, expected = ATTACKS[attack]
    assert sanitise(given_text) == expected


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda name: name.replace(" ", "-"))
def test_a_sequence_cut_anywhere_is_the_same_sequence(attack: str) -> None:
    text, expected = ATTACKS[attack]
    for cut in range(len(text) + 1):
        sanitiser = Sanitiser()
        assert sanitiser.feed(text[:cut]) + sanitiser.feed(text[cut:]) + sanitiser.close() == expected
    one_by_one = Sanitiser()
    assert "".join(map(one_by_one.feed, text)) + one_by_one.close() == expected


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda name: name.replace(" ", "-"))
def test_a_sequence_cut_at_any_byte_is_the_same_sequence(attack: str) -> None:
    text, expected = ATTACKS[attack]
    if any("\ud800" <= character <= "\udfff" for character in text):
        pytest.skip("cannot be bytes")
    data = text.encode()
    for cut in range(len(data) + 1):
        sanitiser, decoder = Sanitiser(), utf8_decoder()
        shown = sanitiser.feed(decoder.decode(data[:cut])) + sanitiser.feed(decoder.decode(data[cut:], final=True))
        assert shown + sanitiser.close() == expected


def test_colours_survive_where_they_are_wanted_and_only_colours() -> None:
    text = "\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mtrue\x1b[m \x1b[2Jclear \x1b[>4;1mnot a colour\x1b[1;?2m"
    assert sanitise(text, keep_sgr=True) == ("\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mtrue\x1b[m clear not a colour")


def test_progress_bars_keep_their_movements_and_nothing_else() -> None:
    text = "\x1b[A\x1b[2K\r50%\b\x1b[31mx\x1b[5;5H\x1b[2J\x1b]0;t\x07"
    assert Sanitiser(keep_motion=True).feed(text) == "\x1b[A\x1b[2K\r50%\b\x1b[31mx\x1b[2J"


def test_an_endless_string_sequence_does_not_swallow_the_rest() -> None:
    assert sanitise("\x1b]0;never ended\nthe next line") == "\nthe next line"
    limit = module.STRING_LIMIT
    flood = "\x1b]" + "x" * limit + "shown"
    assert sanitise(flood) == "shown"
    sanitiser = Sanitiser()
    pieces = [sanitiser.feed(flood[start : start + 70_001]) for start in range(0, len(flood), 70_001)]
    assert "".join(pieces) + sanitiser.close() == "shown"


def test_a_sixel_that_breaks_off_does_not_swallow_the_rest() -> None:
    text = "\x1bPq#0~~~\n~~-\nTraceback (most recent call last)"
    assert sanitise(text).endswith(" (most recent call last)")
    one_by_one = Sanitiser()
    assert "".join(map(one_by_one.feed, text)) == sanitise(text)


def test_what_is_held_back_is_bounded() -> None:
    sanitiser = Sanitiser()
    for _ in range(100):
        assert sanitiser.feed("\x1b[" + "1" * 200) == ""
        assert len(sanitiser._held) < 400
        sanitiser.feed("m")
    sanitiser.feed("\x1b]")
    for _ in range(8):
        sanitiser.feed("x" * 100_000)
        assert len(sanitiser._held) < 400


pieces_of_trouble = st.lists(
    st.one_of(
        st.sampled_from("\x1b [ ] P Pq q X ^ _ \\ 31m 0; m K \x07 \x9b \x9d \x90 \x9c \x18 \b \x85 ; ~ ?".split(" ")),
        st.sampled_from(["\n", "\r", "\t", " ", "a", "é", "漢", "\ud83d", "\ude00", "😀"]),
        st.text(max_size=5),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(pieces_of_trouble, st.sampled_from(["none", "sgr", "motion"]), st.booleans())
def test_any_text_cut_anywhere(pieces: list[str], keep: str, one_by_one: bool) -> None:
    def new() -> Sanitiser:
        return Sanitiser(keep_sgr=keep == "sgr", keep_motion=keep == "motion")

    def whole(text: str) -> str:
        sanitiser = new()
        return sanitiser.feed(text) + sanitiser.close()

    text = "".join(pieces)
    streaming = new()
    shown = "".join(map(streaming.feed, text if one_by_one else pieces)) + streaming.close()
    assert shown == whole(text)
    assert whole(shown) == shown
    if keep == "none":
        assert not any(character < " " and character not in "\n\t\r" for character in shown)
        assert not any("\x7f" <= character <= "\x9f" or "\ud800" <= character <= "\udfff" for character in shown)


@settings(deadline=None)
@given(st.binary(max_size=200), st.integers(0, 200))
def test_any_bytes_cut_anywhere(data: bytes, cut: int) -> None:
    sanitiser, decoder = Sanitiser(), utf8_decoder()
    shown = sanitiser.feed(decoder.decode(data[:cut])) + sanitiser.feed(decoder.decode(data[cut:], final=True))
    assert shown + sanitiser.close() == sanitise(data.decode("utf-8", "replace"))


def test_clean_text_is_returned_as_it_came() -> None:
    text = "Plain text, déjà vu, 漢字, 👩‍👩‍👧, עברית.\n" * 100
    assert Sanitiser().feed(text) is text


def test_a_title_stays_on_its_line_and_in_its_place() -> None:
    assert sanitise_line("one\r\ntwo\nthree\tfour", 40) == "one⏎two⏎three four"
    assert sanitise_line("\x1b]0;x\x07sales \x1b[31mreport", 40) == "sales report"
    assert sanitise_line("invoice_\u202egpj.exe", 40) == "invoice_⟨U+202E⟩gpj.exe"
    assert sanitise_line("x" * 50, 10) == "x" * 9 + "…"
    assert sanitise_line("漢字漢字漢字", 6) == "漢字…"
    assert sanitise_line("漢字漢", 6) == "漢字漢"
    assert sanitise_line("e\u0301tude", 5) == "e\u0301tude"
    assert sanitise_line("anything", 0) == ""
    assert sanitise_line("a" * 4095 + "\r\nb", 5000).endswith("a⏎b")


def test_a_title_of_many_megabytes_costs_only_its_beginning() -> None:
    class Counting(str):
        looked_at = 0

        def __getitem__(self, key):  # type: ignore[no-untyped-def]
            Counting.looked_at += 1
            return str.__getitem__(self, key)

    sanitise_line(Counting("y" * 5_000_000), 60)
    assert Counting.looked_at < 10


def test_bidirectional_controls_are_shown_and_letters_left_alone() -> None:
    assert show_bidi("a\u202eb\u2066c") == "a⟨U+202E⟩b⟨U+2066⟩c"
    assert show_bidi("שלום") == "שלום"
