"""The colours that renderers draw with, taken from the theme of the app.

Renderers know meanings ("heading", "removed"), never colours. A `RenderTheme` turns meanings into Rich styles; it is
made from the variables of a Textual theme, from the sixteen colours of the terminal, or without any colour. Colours
of text are moved away from the background until they can be read. Styles leave the background alone where they can,
so that a block may be drawn on any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pygments import token as tokens
from pygments.token import _TokenType as TokenType
from rich.color import Color as RichColor
from rich.style import Style
from textual.color import Color, ColorParseError

_READABLE = 4.5
_QUIET = 3.0
_FAINT = 2.6
"""Least contrast of text, of what is meant to step back, and of what is to be seen only when looked for."""

# Where the theme of the app has no say: what programs mean when they ask for "red". Dark, then light background.
_PALETTE_DARK = "#4a4f59 #e5737d #8fc08a #d8a657 #7f9ff0 #c48fe0 #6fbfc4 #c6cad2"
_PALETTE_DARK += " #7a808c #f08f98 #a8d5a2 #e8c07a #a3bcf7 #d8aeef #92d6da #f0f2f6"
_PALETTE_LIGHT = "#22262d #b5303d #2b7034 #8a5a00 #2f5fc4 #8a3fae #12707a #6a717c"
_PALETTE_LIGHT += " #4c525d #cc4350 #3a8445 #a06c0c #4674d6 #9d55c0 #1f838d #8a909a"
_PALETTE_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


@dataclass(frozen=True, eq=False)
class RenderTheme:
    """Styles by meaning. Compared by identity; `from_variables` returns the same object for the same variables."""

    text: Style
    quiet: Style
    faint: Style
    accent: Style
    rail: Style
    error: Style
    caution: Style
    success: Style
    headings: tuple[Style, Style, Style, Style, Style, Style]
    inline_code: Style
    link: Style
    bullet: Style
    table_head: Style
    hidden: Style
    """Stand-ins for hidden characters."""
    added: Style
    removed: Style
    match: Style
    match_current: Style
    palette: tuple[RichColor | None, ...]
    """What the sixteen colours of SGR are drawn as; None: not at all."""
    syntax: Mapping[TokenType, Style]
    is_dark: bool = True
    has_colour: bool = True
    strong: Style = field(default=Style(bold=True))
    emphasis: Style = field(default=Style(italic=True))
    struck: Style = field(default=Style(strike=True))
    _styles: dict[tuple[str | TokenType, ...], Style] = field(default_factory=dict, repr=False)

    @classmethod
    def from_variables(cls, variables: Mapping[str, str]) -> RenderTheme:
        """From the CSS variables of a Textual theme, with our own tokens where they are defined."""
        return _from_items(tuple(sorted(variables.items())))

    @classmethod
    def ansi(cls) -> RenderTheme:
        """With the sixteen colours of the terminal, whatever they look like."""
        return _ansi_theme()

    @classmethod
    def colourless(cls) -> RenderTheme:
        """Without any colour: bold, dim, italic, underline and reverse have to do."""
        return _colourless_theme()

    def style(self, *meanings: str | TokenType) -> Style:
        """The style of several meanings at once, the last one on top. A meaning is a field of this class, `h1`…`h6`
        or a Pygments token."""
        style = self._styles.get(meanings)
        if style is None:
            style = Style.combine([_NONE, *(self._single(meaning) for meaning in meanings)])
            self._styles[meanings] = style
        return style

    def _single(self, meaning: str | TokenType) -> Style:
        if isinstance(meaning, str):
            if len(meaning) == 2 and meaning[0] == "h":
                return self.headings[int(meaning[1]) - 1]
            style: Style = getattr(self, meaning)
            return style
        while meaning not in self.syntax and meaning.parent is not None:
            meaning = meaning.parent
        return self.syntax.get(meaning, _NONE)


_NONE = Style.null()


def from_css_variables(variables: Mapping[str, str]) -> RenderTheme:
    """The theme for an app with these CSS variables."""
    return RenderTheme.from_variables(variables)


@lru_cache(maxsize=32)
def _from_items(items: tuple[tuple[str, str], ...]) -> RenderTheme:
    variables = dict(items)
    background = _parse(variables.get("background"), None)
    if background is None or background.ansi is not None:
        return _ansi_theme()
    return _Derivation(variables, background).theme()


class _Derivation:
    """Derives every style from the variables of a theme."""

    def __init__(self, variables: Mapping[str, str], background: Color) -> None:
        self._variables = variables
        self._background = background
        self._is_dark = background.brightness < 0.5
        self._text = self._colour("foreground", background.get_contrast_text(0.87))
        # Text stands on blocks as well as on the page; readable on the block is readable on both.
        self._paper = self._colour("block", background)

    def theme(self) -> RenderTheme:
        quiet = self._contrasting(self._towards_text("text-quiet", 0.62), _QUIET)
        primary, secondary = self._readable("primary", self._text), self._readable("secondary", self._text)
        success, warning = self._readable("success", self._text), self._readable("warning", self._text)
        accent = self._readable("accent", primary)
        error = self._readable("state-failed", self._readable("error", self._text))
        caution = self._readable("caution", warning)
        faint = self._contrasting(self._towards_text("text-faint", 0.45), _FAINT)
        ink = {
            "keyword": primary,
            "name": self._text,
            "function": secondary,
            "class": secondary,
            "builtin": self._mixed(primary, self._text),
            "decorator": warning,
            "string": success,
            "escape": warning,
            "number": warning,
            "comment": faint,
            "operator": quiet,
            "error": error,
        }
        steps_back = {"comment": _FAINT, "operator": _QUIET}
        ink = {
            name: self._readable(f"syntax-{name}", colour, steps_back.get(name, _READABLE))
            for name, colour in ink.items()
        }
        heading = _of(accent, bold=True)
        return RenderTheme(
            text=_NONE,
            quiet=_of(quiet),
            faint=_of(faint),
            accent=_of(accent),
            rail=_of(self._towards_text("rail", 0.2)),
            error=_of(error),
            caution=_of(caution),
            success=_of(success),
            headings=(
                heading,  # not underlined: that is what links are
                heading,
                Style(bold=True),
                Style(bold=True, italic=True),
                Style(italic=True),
                Style(italic=True),
            ),
            inline_code=_of(self._readable("inline-code", self._mixed(secondary, self._text))),
            link=_of(accent, underline=True),
            bullet=_of(quiet),
            table_head=Style(bold=True),
            hidden=_of(self._paper, bold=True) + Style(bgcolor=caution.rich_color),
            added=_of(self._readable("diff-added", success)),
            removed=_of(self._readable("diff-removed", error)),
            match=Style(bgcolor=self._blended("match", warning, 0.25).rich_color),
            match_current=Style(bgcolor=self._blended("match-current", warning, 0.5).rich_color),
            palette=self._palette(),
            syntax=_syntax({name: _of(colour) for name, colour in ink.items()}),
            is_dark=self._is_dark,
        )

    def _palette(self) -> tuple[RichColor, ...]:
        defaults = (_PALETTE_DARK if self._is_dark else _PALETTE_LIGHT).split()
        names = [*_PALETTE_NAMES, *(f"bright-{name}" for name in _PALETTE_NAMES)]
        return tuple(
            # Black and white are also used as backgrounds and to step back: they keep a little less contrast.
            self._readable(f"ansi-{name}", Color.parse(default), 1.8 if index in (0, 7, 8) else 3.0).rich_color
            for index, (name, default) in enumerate(zip(names, defaults, strict=True))
        )

    def _colour(self, name: str, default: Color) -> Color:
        """A variable as a solid colour on the background."""
        colour = _parse(self._variables.get(name), default, self._background) or default
        return self._background.blend(colour.with_alpha(1.0), colour.a, alpha=1.0) if colour.a < 1 else colour

    def _readable(self, name: str, default: Color, contrast: float = _READABLE) -> Color:
        return self._contrasting(self._colour(name, default), contrast)

    def _contrasting(self, colour: Color, contrast: float) -> Color:
        """The colour, moved towards white or black until it stands out against the background."""
        limit = self._paper.get_contrast_text(1.0)
        for step in range(20):
            moved = colour.blend(limit, step / 20, alpha=1.0)
            if _contrast(moved, self._paper) >= contrast:
                return moved
        return limit

    def _towards_text(self, name: str, amount: float) -> Color:
        return self._colour(name, self._background.blend(self._text, amount, alpha=1.0))

    def _blended(self, name: str, colour: Color, amount: float) -> Color:
        return self._colour(name, self._background.blend(colour, amount, alpha=1.0))

    @staticmethod
    def _mixed(one: Color, other: Color) -> Color:
        return one.blend(other, 0.5, alpha=1.0)


@lru_cache(maxsize=1)
def _ansi_theme() -> RenderTheme:
    def ink(name: str, *, bold: bool | None = None, underline: bool | None = None) -> Style:
        return Style(color=name, bold=bold, underline=underline)

    dim = Style(dim=True)
    heading = ink("blue", bold=True)
    return RenderTheme(
        text=_NONE,
        quiet=dim,
        faint=dim,
        accent=ink("blue"),
        rail=ink("bright_black"),
        error=ink("red"),
        caution=ink("yellow"),
        success=ink("green"),
        headings=(
            heading,
            heading,
            Style(bold=True),
            Style(bold=True, italic=True),
            Style(italic=True),
            Style(italic=True),
        ),
        inline_code=ink("cyan"),
        link=ink("blue", underline=True),
        bullet=dim,
        table_head=Style(bold=True),
        hidden=Style(color="yellow", bold=True, reverse=True),
        added=ink("green"),
        removed=ink("red"),
        match=Style(reverse=True),
        match_current=Style(reverse=True, bold=True),
        palette=tuple(RichColor.from_ansi(number) for number in range(16)),
        syntax=_syntax(
            {
                "keyword": ink("blue"),
                "name": _NONE,
                "function": ink("cyan"),
                "class": ink("cyan"),
                "builtin": ink("cyan"),
                "decorator": ink("yellow"),
                "string": ink("green"),
                "escape": ink("yellow"),
                "number": ink("yellow"),
                "comment": dim,
                "operator": _NONE,
                "error": ink("red"),
            }
        ),
    )


@lru_cache(maxsize=1)
def _colourless_theme() -> RenderTheme:
    bold, dim, reverse = Style(bold=True), Style(dim=True), Style(reverse=True)
    names = ("name", "function", "builtin", "decorator", "string", "escape", "number", "operator")
    return RenderTheme(
        text=_NONE,
        quiet=dim,
        faint=dim,
        accent=bold,
        rail=dim,
        error=bold,
        caution=bold,
        success=_NONE,
        headings=(bold, bold, bold, bold, bold, bold),
        inline_code=bold,
        link=Style(underline=True),
        bullet=_NONE,
        table_head=bold,
        hidden=reverse,
        added=_NONE,
        removed=dim,
        match=reverse,
        match_current=reverse + bold,
        palette=(None,) * 16,
        syntax=_syntax(
            dict.fromkeys(names, _NONE) | {"keyword": bold, "class": bold, "comment": dim, "error": reverse}
        ),
        has_colour=False,
    )


def _syntax(ink: Mapping[str, Style]) -> dict[TokenType, Style]:
    return {
        tokens.Token: _NONE,
        tokens.Comment: ink["comment"] + Style(italic=True),
        tokens.Comment.Preproc: ink["decorator"],
        tokens.Comment.Hashbang: ink["comment"],
        tokens.Keyword: ink["keyword"],
        tokens.Keyword.Constant: ink["number"],
        tokens.Keyword.Type: ink["class"],
        tokens.Operator: ink["operator"],
        tokens.Operator.Word: ink["keyword"],
        tokens.Punctuation: ink["operator"],
        tokens.Name: ink["name"],
        tokens.Name.Function: ink["function"],
        tokens.Name.Class: ink["class"],
        tokens.Name.Exception: ink["class"],
        tokens.Name.Builtin: ink["builtin"],
        tokens.Name.Builtin.Pseudo: ink["name"] + Style(italic=True),
        tokens.Name.Decorator: ink["decorator"],
        tokens.Name.Tag: ink["keyword"],
        tokens.Name.Attribute: ink["function"],
        tokens.Name.Constant: ink["number"],
        tokens.Name.Entity: ink["escape"],
        tokens.Literal: ink["number"],
        tokens.String: ink["string"],
        tokens.String.Doc: ink["string"] + Style(italic=True),
        tokens.String.Escape: ink["escape"],
        tokens.String.Interpol: ink["escape"],
        tokens.String.Regex: ink["escape"],
        tokens.Number: ink["number"],
        tokens.Generic.Heading: Style(bold=True),
        tokens.Generic.Subheading: Style(bold=True),
        tokens.Generic.Inserted: ink["string"],
        tokens.Generic.Deleted: ink["error"],
        tokens.Generic.Emph: Style(italic=True),
        tokens.Generic.Strong: Style(bold=True),
        tokens.Generic.Prompt: ink["operator"],
        tokens.Generic.Error: ink["error"],
        tokens.Generic.Traceback: ink["error"],
    }


def _of(colour: Color, *, bold: bool | None = None, underline: bool | None = None) -> Style:
    return Style(color=colour.rich_color, bold=bold, underline=underline)


def _parse(value: str | None, default: Color | None, background: Color | None = None) -> Color | None:
    """A CSS variable: a colour, perhaps with a percentage; `auto` stands for whatever is readable on the background."""
    if value is None:
        return default
    name, _, percentage = value.strip().partition(" ")
    try:
        if name == "auto":
            if background is None:
                return default
            colour = background.get_contrast_text(1.0)
        else:
            colour = Color.parse(name)
        if percentage.endswith("%"):
            colour = colour.with_alpha(colour.a * float(percentage[:-1]) / 100)
    except (ColorParseError, ValueError):
        return default
    if colour.ansi is not None and background is not None:
        return default  # a colour of the terminal among solid ones: what it looks like is not known
    return colour


def _contrast(one: Color, other: Color) -> float:
    """The contrast ratio of WCAG 2, 1 to 21."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Color) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
