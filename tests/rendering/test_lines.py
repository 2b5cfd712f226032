"""Lines fit, lose nothing, and copy clean."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset
from textual.selection import SELECT_ALL, Selection
from textual.strip import Strip

from oi_tui.rendering.lines import (
    _NARROW,
    RenderedLine,
    Wrapped,
    copy_text,
    crop_cells,
    expand_tabs,
    restyle,
    slice_runs,
    wrap,
)


def wrapped(text: str, width: int, first: int | None = None) -> list[str]:
    return [text[start:end] for start, end in wrap(text, width, first)]


def test_lines_break_at_blanks() -> None:
    assert wrapped("the quick brown fox", 10) == ["the quick", "brown fox"]
    assert wrapped("the quick brown fox", 9) == ["the quick", "brown fox"]
    assert wrapped("one  two   three", 5) == ["one", "two", "three"]
    assert wrapped("first is short", 20, 5) == ["first", "is short"]
    assert wrapped("", 10) == [""]


def test_a_word_longer_than_the_line_is_cut() -> None:
    assert wrapped("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert wrapped("x abcdefghij", 4) == ["x", "abcd", "efgh", "ij"]
    assert wrapped("é漢" * 4, 3) == ["é漢"] * 4


def test_an_indented_line_keeps_its_indentation() -> None:
    assert wrapped("    if x and y:", 12) == ["    if x and", "y:"]
    assert wrapped("    漢字 kanji:", 9) == ["    漢字", "kanji:"]


def test_chinese_and_japanese_break_between_characters() -> None:
    assert wrapped("東京都に住んでいます。", 8) == ["東京都に", "住んでい", "ます。"]
    assert wrapped("你好，世界", 4) == ["你", "好，", "世界"]  # a comma never begins a line
    assert wrapped("use 変数 here", 7) == ["use 変", "数 here"]


def test_emoji_with_joiners_are_not_cut() -> None:
    family = "👩\u200d👩\u200d👧"
    assert wrapped(family * 3, 4) == [family * 2, family]


@settings(deadline=None)
@given(
    st.text(alphabet="ab  漢é。（👩\u200d\u0301", max_size=60),
    st.integers(2, 20),
    st.one_of(st.none(), st.integers(2, 20)),
)
def test_wrapping_fits_and_loses_only_blanks(text: str, width: int, first: int | None) -> None:
    lines = wrap(text, width, first)
    for number, (start, end) in enumerate(lines):
        room = width if number or first is None else first
        assert cell_len(text[start:end].rstrip(" ")) <= room
    place = 0
    for start, end in lines:
        assert not text[place:start].strip(" ")
        place = end
    assert not text[place:].strip(" ")


@settings(deadline=None)
@given(st.text(alphabet="ab c d", max_size=80), st.integers(1, 12))
def test_both_ways_of_wrapping_agree(text: str, width: int) -> None:
    """A text with one wide character far behind wraps in front of it as it does without."""
    text = f"a {text.strip()} {'x' * width}"
    alone = wrapped(text, width)
    followed = wrapped(text + " 漢", width)
    assert [line.rstrip() for line in followed[: len(alone)]] == [line.rstrip() for line in alone]


def test_the_short_way_is_taken_for_narrow_characters_only() -> None:
    for code in range(0x20, 0x3000):
        if _NARROW.fullmatch(chr(code)):
            assert cell_len(chr(code)) == 1, hex(code)


def test_runs_are_cut_with_their_text() -> None:
    runs = [("the ", ("strong",)), ("quick brown", ()), (" fox", ("code",))]
    cuts = wrap("the quick brown fox", 9)
    assert cuts == [Wrapped(0, 9), Wrapped(10, 19)]
    assert slice_runs(runs, cuts) == [
        [("the ", ("strong",)), ("quick", ())],
        [("brown", ()), (" fox", ("code",))],
    ]


def test_tabs_go_to_the_next_stop() -> None:
    assert expand_tabs([("a\tb", ()), ("\tc", ())], 4) == [("a   b", ()), ("   c", ())]
    assert expand_tabs([("\t漢\tx", ())], 4) == [("    漢  x", ())]


def test_cutting_a_line_keeps_its_width() -> None:
    assert crop_cells("abcdef", 6) == "abcdef"
    assert crop_cells("abcdef", 4) == "abc…"
    assert crop_cells("漢字漢字", 5) == "漢字…"
    assert crop_cells("abc", 0) == ""


def line(text: str, *, decoration: str = "", joint: str | None = None, source: str | None = None) -> RenderedLine:
    return RenderedLine(Strip([Segment(decoration), Segment(text)]), text, len(decoration), joint, source)


def test_copying_joins_wrapped_lines_and_leaves_decoration_out() -> None:
    lines = [
        line("a paragraph that", decoration="▌ ", joint=" "),
        line("was wrapped", decoration="▌ "),
        RenderedLine(Strip([Segment("────")])),
        line("item", decoration="• ", source="- item"),
    ]
    assert copy_text(lines, SELECT_ALL) == "a paragraph that was wrapped\n- item"
    assert copy_text(lines, Selection(Offset(4, 0), Offset(5, 1))) == "paragraph that was"
    assert copy_text(lines, Selection(Offset(0, 3), Offset(4, 3))) == "it"
    assert copy_text(lines, Selection(Offset(0, 2), Offset(9, 2))) == ""


def test_marking_ranges_changes_colours_only() -> None:
    strip = Strip([Segment("hello ", Style(bold=True)), Segment("world")])
    marked = restyle(strip, [(1, 2), (4, 8)], Style(reverse=True))
    assert marked.text == strip.text
    reversed_text = "".join(segment.text for segment in marked if segment.style and segment.style.reverse)
    assert reversed_text == "eo wo"
    assert all(segment.style and segment.style.bold for segment in marked if segment.text in ("h", "e", "o "))


@settings(deadline=None)
@given(st.lists(st.text(max_size=5), max_size=5), st.lists(st.integers(0, 25), max_size=8))
def test_marking_any_ranges_keeps_the_text(parts: list[str], edges: list[int]) -> None:
    edges = sorted(set(edges))
    ranges = list(zip(edges[::2], edges[1::2], strict=False))
    strip = Strip([Segment(part) for part in parts])
    marked = restyle(strip, ranges, Style(reverse=True))
    assert marked.text == strip.text
    expected = "".join(c for i, c in enumerate(strip.text) if any(a <= i < b for a, b in ranges))
    assert "".join(s.text for s in marked if s.style and s.style.reverse) == expected
