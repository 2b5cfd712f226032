"""Themes and design tokens.

A token is a colour named for what it means (`$rail`, `$state-waiting`), and every stylesheet of the app speaks in
tokens only. Our own themes choose each token by hand; for any other theme (Textual's own, a user's) `tokens_for`
derives them, so switching the theme never leaves a colour behind. There is one accent colour; the colours of states
are used for a word or a rail, never for an area.
Tokens, to be used as `$name` in TCSS:

    accent            what the eye should find: the prompt, the block cursor, what has the focus
    text-quiet        chrome and second-order text; pair it with `&:ansi { text-style: dim; }`
    text-faint        hints, line numbers, disabled things; pair it in the same way
    rail              lines that hold foreign text: block borders, separators
    rail-active       the rail of the block that has the focus
    block             the background of a block (code, output) above the page
    block-raised      the background of panels, menus and dialogues
    line-active       the background of the line that runs
    line-cursor       the background of the line the cursor is on
    selection         the background of selected text
    state-waiting, state-running, state-done, state-failed, state-declined
    danger            everything that runs without asking: the frame of "run all"
    caution           hidden characters, warnings
    diff-added, diff-removed      the foreground of changed lines
    match             the background of search hits
    match-current     the background of the hit the search stands on
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

AUTO = "auto"
DARK = "oi-dark"
LIGHT = "oi-light"
ANSI = "oi-ansi"

_DARK_TOKENS = {
    "text-quiet": "#8b919c",
    "text-faint": "#656b76",
    "rail": "#343943",
    "rail-active": "#5f7fc4",
    "block": "#191c22",
    "block-raised": "#1d2128",
    "line-active": "#26334f",
    "line-cursor": "#1f232b",
    "selection": "#2c3e66",
    "state-waiting": "#86a8f0",
    "state-running": "#7fb9a2",
    "state-done": "#7d8592",
    "state-failed": "#e5737d",
    "state-declined": "#8b919c",
    "danger": "#e5535f",
    "caution": "#d8a657",
    "diff-added": "#8fc08a",
    "diff-removed": "#e08087",
    "match": "#4a4426",
    "match-current": "#7a6a1f",
}

_LIGHT_TOKENS = {
    "text-quiet": "#5c636e",
    "text-faint": "#7d848f",
    "rail": "#cfd3da",
    "rail-active": "#5b82d6",
    "block": "#f3f4f6",
    "block-raised": "#eceef2",
    "line-active": "#dbe6ff",
    "line-cursor": "#eceef2",
    "selection": "#c6d8fb",
    "state-waiting": "#2f5fc4",
    "state-running": "#1d7a5c",
    "state-done": "#6a717c",
    "state-failed": "#bb2f3c",
    "state-declined": "#6a717c",
    "danger": "#c81e2e",
    "caution": "#8a5a00",
    "diff-added": "#2b7034",
    "diff-removed": "#b03540",
    "match": "#f6e9a8",
    "match-current": "#edcf4f",
}

# Only the sixteen colours the user's terminal defines, and no background of our own: it stays transparent.
_ANSI_TOKENS = {
    "text-quiet": "ansi_default",
    "text-faint": "ansi_default",
    "rail": "ansi_bright_black",
    "rail-active": "ansi_blue",
    "block": "transparent",
    "block-raised": "transparent",
    "line-active": "ansi_blue",
    "line-cursor": "transparent",
    "selection": "ansi_blue",
    "state-waiting": "ansi_blue",
    "state-running": "ansi_green",
    "state-done": "ansi_default",
    "state-failed": "ansi_red",
    "state-declined": "ansi_default",
    "danger": "ansi_red",
    "caution": "ansi_yellow",
    "diff-added": "ansi_green",
    "diff-removed": "ansi_red",
    "match": "ansi_yellow",
    "match-current": "ansi_bright_yellow",
}

TOKENS = frozenset(_DARK_TOKENS)


def _quiet_chrome(accent: str, background: str, rail: str, raised: str) -> dict[str, str]:
    """Textual's own variables, calmed: widgets that we do not style ourselves fit in."""
    return {
        "border": accent,
        "border-blurred": rail,
        "scrollbar": rail,
        "scrollbar-hover": accent,
        "scrollbar-active": accent,
        "scrollbar-background": background,
        "scrollbar-background-hover": background,
        "scrollbar-background-active": background,
        "scrollbar-corner-color": background,
        "footer-background": background,
        "block-cursor-text-style": "none",
        "block-hover-background": raised,
        "link-style": "underline",
    }


OUR_DARK = Theme(
    name=DARK,
    primary="#86a8f0",
    secondary="#7fb9a2",
    accent="#86a8f0",
    warning="#d8a657",
    error="#e5737d",
    success="#8fc08a",
    foreground="#d7dae0",
    background="#14161a",
    surface="#191c22",
    panel="#1d2128",
    dark=True,
    variables={
        **_DARK_TOKENS,
        **_quiet_chrome("#86a8f0", "#14161a", "#343943", "#22262e"),
        "block-cursor-background": "#2c3e66",
        "block-cursor-foreground": "#f0f2f6",
        "input-cursor-background": "#86a8f0",
        "input-cursor-foreground": "#14161a",
        "input-selection-background": "#2c3e66",
        "screen-selection-background": "#2c3e66",
    },
)

OUR_LIGHT = Theme(
    name=LIGHT,
    primary="#2f5fc4",
    secondary="#1d7a5c",
    accent="#2f5fc4",
    warning="#8a5a00",
    error="#bb2f3c",
    success="#2b7034",
    foreground="#22262d",
    background="#fbfbfc",
    surface="#f3f4f6",
    panel="#eceef2",
    dark=False,
    variables={
        **_LIGHT_TOKENS,
        **_quiet_chrome("#2f5fc4", "#fbfbfc", "#cfd3da", "#e4e7ed"),
        "block-cursor-background": "#c6d8fb",
        "block-cursor-foreground": "#101318",
        "input-cursor-background": "#2f5fc4",
        "input-cursor-foreground": "#ffffff",
        "input-selection-background": "#c6d8fb",
        "screen-selection-background": "#c6d8fb",
    },
)

OUR_ANSI = Theme(
    name=ANSI,
    ansi=True,
    primary="ansi_blue",
    secondary="ansi_green",
    accent="ansi_blue",
    warning="ansi_yellow",
    error="ansi_red",
    success="ansi_green",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    dark=True,
    variables={
        **BUILTIN_THEMES["ansi-dark"].variables,  # `ansi-background` and others that stylesheets of Textual need
        **_ANSI_TOKENS,
        **_quiet_chrome("ansi_blue", "ansi_default", "ansi_bright_black", "ansi_default"),
        "border-blurred": "ansi_bright_black",
        "scrollbar-background": "ansi_default",
        "block-cursor-background": "ansi_blue",
        "block-cursor-foreground": "ansi_bright_white",
        "block-cursor-text-style": "bold",
        "input-selection-background": "ansi_blue",
        "input-selection-foreground": "ansi_bright_white",
        "screen-selection-background": "ansi_blue",
        "screen-selection-foreground": "ansi_bright_white",
        "footer-key-foreground": "ansi_blue",
    },
)

OUR_THEMES = (OUR_DARK, OUR_LIGHT, OUR_ANSI)


def tokens_for(theme: Theme) -> dict[str, str]:
    """The tokens for a theme that does not choose them itself."""
    if theme.ansi:
        return dict(_ANSI_TOKENS)
    colours = theme.to_color_system().generate()
    background, foreground = Color.parse(colours["background"]), Color.parse(colours["foreground"])
    primary = Color.parse(colours["primary"])

    def towards_text(amount: float) -> str:
        return background.blend(foreground, amount, alpha=1).hex

    def tinted(name: str, amount: float) -> str:
        return background.blend(Color.parse(colours[name]), amount, alpha=1).hex

    return {
        "text-quiet": towards_text(0.62),
        "text-faint": towards_text(0.45),
        "rail": towards_text(0.2),
        "rail-active": primary.hex,
        "block": towards_text(0.03),
        "block-raised": towards_text(0.06),
        "line-active": tinted("primary", 0.25),
        "line-cursor": towards_text(0.06),
        "selection": tinted("primary", 0.35),
        "state-waiting": primary.hex,
        "state-running": colours["success"],
        "state-done": towards_text(0.55),
        "state-failed": colours["error"],
        "state-declined": towards_text(0.55),
        "danger": colours["error"],
        "caution": colours["warning"],
        "diff-added": colours["success"],
        "diff-removed": colours["error"],
        "match": tinted("warning", 0.25),
        "match-current": tinted("warning", 0.5),
    }


def theme_for_terminal(environ: Mapping[str, str] = os.environ) -> str:
    """The name of the theme that suits a terminal whose user chose none, from its environment alone.

    `COLORFGBG` is set by several terminals to "foreground;background" (or with a third part in between); 7 and 15 are
    the light backgrounds. A terminal without 256 colours, and `NO_COLOR`, get the ANSI theme, which is readable with
    the terminal's own sixteen colours or none.
    """
    if "NO_COLOR" in environ or not _has_many_colours(environ):
        return ANSI
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT if background in {"7", "15"} else DARK


def _has_many_colours(environ: Mapping[str, str]) -> bool:
    term = environ.get("TERM", "")
    if environ.get("COLORTERM", "").lower() in {"truecolor", "24bit"}:
        return True
    few = {"linux", "xterm", "screen", "tmux", "vt100", "vt220", "ansi", "rxvt", "xterm-16color", "cygwin"}
    return term not in few and not term.endswith("-16color")
