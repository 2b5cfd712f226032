"""Whatever theme is chosen, text can be read and means what it did."""

from __future__ import annotations

import re

import pytest
from pygments import token as tokens
from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from oi_tui.rendering import theme as module
from oi_tui.rendering.theme import RenderTheme, from_css_variables
from oi_tui.styles.themes import OUR_ANSI, OUR_DARK, OUR_LIGHT

THEMES = {**BUILTIN_THEMES, "oi-dark": OUR_DARK, "oi-light": OUR_LIGHT, "oi-ansi": OUR_ANSI}


def variables(theme: Theme) -> dict[str, str]:
    return {**theme.to_color_system().generate(), **theme.variables}


def foregrounds(theme: RenderTheme) -> dict[str, Style]:
    named = {
        name: getattr(theme, name) for name in ("accent", "error", "caution", "success", "link", "added", "removed")
    }
    return named | {str(token): style for token, style in theme.syntax.items()} | {"code": theme.inline_code}


@pytest.mark.parametrize("name", THEMES)
def test_text_of_every_theme_can_be_read(name: str) -> None:
    css = variables(THEMES[name])
    theme = from_css_variables(css)
    if THEMES[name].ansi:
        assert theme is RenderTheme.ansi()
        return
    paper = Color.parse(css.get("block", css["background"]))
    for meaning, style in foregrounds(theme).items():
        if style.color is not None and style.color.triplet is not None:
            ink = Color(*style.color.triplet)
            least = 2.5 if "Comment" in meaning else 2.9 if re.search("Operator|Punct|Prompt", meaning) else 4.4
            assert module._contrast(ink, paper) >= least, (meaning, ink.hex, paper.hex)
    assert len(theme.palette) == 16


def test_the_same_variables_make_the_same_theme() -> None:
    css = variables(OUR_DARK)
    assert from_css_variables(css) is from_css_variables(dict(css))
    assert from_css_variables(css) is not from_css_variables(variables(OUR_LIGHT))
    assert from_css_variables(css).is_dark and not from_css_variables(variables(OUR_LIGHT)).is_dark


def test_missing_and_broken_variables_are_replaced() -> None:
    theme = from_css_variables({"background": "#101010", "primary": "nonsense", "text-quiet": "auto 60%"})
    assert theme.style("accent").color is not None
    assert from_css_variables({}) is RenderTheme.ansi()


def test_meanings_combine_and_tokens_inherit() -> None:
    theme = from_css_variables(variables(OUR_DARK))
    both = theme.style("strong", "link")
    assert both.bold and both.underline and both.color == theme.link.color
    assert theme.style(tokens.String.Double) == theme.syntax[tokens.String]
    assert theme.style(tokens.Name.Function.Magic) == theme.syntax[tokens.Name.Function]
    assert theme.style("h2") == theme.headings[1]
    assert theme.style() == Style.null()


def test_without_colour_no_style_has_one() -> None:
    theme = RenderTheme.colourless()
    for style in [*foregrounds(theme).values(), *theme.headings, theme.hidden, theme.match, theme.rail]:
        assert style.color is None and style.bgcolor is None
    assert set(theme.palette) == {None}
    assert theme.hidden.reverse and theme.link.underline
