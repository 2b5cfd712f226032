"""No control character of foreign text reaches the screen, whichever renderer draws it and however it was cut."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.strip import Strip

from oi_tui.engine.hidden_text import reveal
from oi_tui.rendering.markdown import MarkdownDocument
from oi_tui.rendering.plain_text import PlainText
from oi_tui.rendering.sanitise import Sanitiser, sanitise_line, show_bidi
from oi_tui.rendering.terminal_text import TerminalText
from oi_tui.rendering.terminal_view import TerminalView
from oi_tui.rendering.theme import RenderTheme

ANSI = RenderTheme.ansi()
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"


def markdown(pieces: Iterable[str]) -> list[Strip]:
    document = MarkdownDocument()
    strips = []
    for piece in pieces:
        document.append(piece)
        strips += [line.strip for line in document.render(20, ANSI)]
    document.finish()
    return strips + [line.strip for line in document.render(20, ANSI)]


def fenced(pieces: Iterable[str]) -> list[Strip]:
    return markdown(["```python\n", *pieces])


def tabular(pieces: Iterable[str]) -> list[Strip]:
    return markdown(["| a | b |\n|---|---|\n| ", *pieces])


def output(pieces: Iterable[str]) -> list[Strip]:
    terminal = TerminalText()
    views = [TerminalView(terminal, 20), TerminalView(terminal, 20, is_wrapped=False)]
    strips = []
    for piece in pieces:
        terminal.feed(piece)
        for view in views:
            view.update()
            strips += [view.line(row, ANSI).strip for row in range(view.height)]
    terminal.close()
    for view in views:
        view.update()
        strips += [view.line(row, ANSI).strip for row in range(view.height)]
    return strips


def plain(pieces: Iterable[str]) -> list[Strip]:
    return [line.strip for line in PlainText("".join(pieces)).render(20, ANSI)]


RENDERERS: list[Callable[[Iterable[str]], list[Strip]]] = [markdown, fenced, tabular, output, plain]

TROUBLE = [
    "\x1b]52;c;cm0gLXJm\x07",
    "\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\",
    "\x1b[2J\x1b[H\x1b[?1049h",
    "\x1bP+q544e\x1b\\",
    "\x1b_Gi=1;AAAA\x1b\\",
    "\x9b31m\x9d0;t\x9c",
    "\x1b[31mred\x1b[0m",
    "\r\x1b[K\b\x1b[A",
    "&#27;[31m&#x1b;&#155;&#13;&#x202e;",
    "\u202eevil\u2066",
    "\u2028\x85\x0b\x0c\x00\x7f",
    "\ud83d\ude00\ud83d",
    "text **bold** `code` [a](http://b.c) ",
    "\n\n- item\n| x | y |\n",
]


def assert_harmless(strips: Iterable[Strip]) -> None:
    for strip in strips:
        for segment in strip:
            assert segment.control is None
            assert segment.style is None or segment.style.link is None
            for character in segment.text:
                assert unicodedata.category(character) not in ("Cc", "Cs"), repr(segment.text)
                assert character not in BIDI and character not in "\u2028\u2029", repr(segment.text)


@pytest.mark.parametrize("render", RENDERERS, ids=lambda render: render.__name__)
def test_every_sequence_cut_at_every_place(render: Callable[[Iterable[str]], list[Strip]]) -> None:
    for text in TROUBLE:
        for cut in range(len(text) + 1):
            assert_harmless(render([text[:cut], text[cut:]]))


@pytest.mark.parametrize("render", RENDERERS, ids=lambda render: render.__name__)
@settings(max_examples=60, deadline=None)
@given(pieces=st.lists(st.one_of(st.sampled_from(TROUBLE), st.text(max_size=8)), max_size=8), size=st.integers(1, 9))
def test_any_text_cut_anywhere(render: Callable[[Iterable[str]], list[Strip]], pieces: list[str], size: int) -> None:
    text = "".join(pieces)
    assert_harmless(render([text[start : start + size] for start in range(0, len(text), size)]))


@settings(deadline=None)
@given(st.lists(st.one_of(st.sampled_from(TROUBLE), st.text(max_size=8)), max_size=8))
def test_names_titles_and_code(pieces: list[str]) -> None:
    text = "".join(pieces)
    sanitiser = Sanitiser()
    shown = [sanitise_line(text, 30), show_bidi(sanitiser.feed(text) + sanitiser.close()), reveal(text).text]
    for line in shown:
        for character in line.replace("\r\n", "\n"):
            assert unicodedata.category(character) not in ("Cc", "Cs") or character in "\n\t\r"
    assert not set("\n\t\r") & set(shown[0])
