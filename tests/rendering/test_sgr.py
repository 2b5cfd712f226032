"""Colours that programs ask for are drawn in the colours of the theme."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.color import Color

from oi_tui.rendering import sgr
from oi_tui.rendering.sanitise import sanitise
from oi_tui.rendering.sgr import BOLD, DEFAULT, DIM, ITALIC, REVERSE, STRIKE, UNDERLINE, Sgr
from oi_tui.rendering.theme import RenderTheme, from_css_variables

THEME = from_css_variables({"background": "#101014", "foreground": "#d0d0d0", "primary": "#80a0f0"})


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("", Sgr()),
        ("0", Sgr()),
        ("1;3;4", Sgr(attributes=BOLD | ITALIC | UNDERLINE)),
        ("2;7;9", Sgr(attributes=DIM | REVERSE | STRIKE)),
        ("31", Sgr(1)),
        ("97;44", Sgr(15, 4)),
        ("38;5;208", Sgr(208)),
        ("48;5;0", Sgr(None, 0)),
        ("38;2;1;2;3", Sgr((1, 2, 3))),
        ("38:2::1:2:3", Sgr((1, 2, 3))),
        ("38:2:1:2:3", Sgr((1, 2, 3))),
        ("38:5:9;1", Sgr(9, attributes=BOLD)),
        ("4:3", Sgr(attributes=UNDERLINE)),
        ("58;5;1;31", Sgr(1)),
        ("5;8", Sgr()),  # no blinking, nothing concealed
        ("38;5;999", Sgr()),
        ("38;5", Sgr()),
        ("38", Sgr()),
        ("38;2;1", Sgr()),
        ("999999999999", Sgr()),
        (";;31;;", Sgr()),
        ("38;:", Sgr()),
        ("38:;1", Sgr(attributes=BOLD)),
    ],
)
def test_parameters(parameters: str, expected: Sgr) -> None:
    assert DEFAULT.after(parameters) == expected


def test_attributes_can_be_taken_back() -> None:
    state = DEFAULT.after("1;2;3;4;7;9;31;42")
    assert state.after("22").attributes == ITALIC | UNDERLINE | REVERSE | STRIKE
    assert state.after("23;24;27;29;22;39;49") == DEFAULT
    assert state.after("4:0").attributes == state.attributes & ~UNDERLINE


def test_text_is_split_where_the_colour_changes() -> None:
    pieces, state = sgr.split("a\x1b[31mred\x1b[1mbold\x1b[0mplain\x1b[4m")
    assert pieces == [("a", DEFAULT), ("red", Sgr(1)), ("bold", Sgr(1, None, BOLD)), ("plain", DEFAULT)]
    assert state == Sgr(attributes=UNDERLINE)
    assert sgr.plain("a\x1b[31mred\x1b[m") == "ared"


def test_the_palette_is_the_theme_s() -> None:
    (red,) = sgr.to_segments([("x", Sgr(1))], THEME)
    assert red.style is not None and red.style.color == THEME.palette[1]
    (fixed,) = sgr.to_segments([("x", Sgr(208))], THEME)
    assert fixed.style is not None and fixed.style.color == Color.from_ansi(208)
    (plain,) = sgr.to_segments([("x", Sgr(1, 2, BOLD))], RenderTheme.colourless())
    assert plain.style is not None and plain.style.color is None and plain.style.bold
    assert sgr.to_segments([("x", DEFAULT)], THEME)[0].style is None


@settings(deadline=None)
@given(st.lists(st.one_of(st.sampled_from(["\x1b[31m", "\x1b[0m", "\x1b[m", "\x1b[1;4m", "\x1b[38;5;7m"]), st.text())))
def test_the_quick_way_to_the_state_at_the_end_is_right(parts: list[str]) -> None:
    text = sanitise("".join(parts), keep_sgr=True)
    assert sgr.state_after(text, Sgr(5)) == sgr.split(text, Sgr(5))[1]


@settings(deadline=None)
@given(st.text(alphabet="0123456789;:", max_size=30))
def test_any_parameters_make_a_state_that_can_be_drawn(parameters: str) -> None:
    state = DEFAULT.after(parameters)
    state.style(THEME)
    assert state.after("") == DEFAULT
