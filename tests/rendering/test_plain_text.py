"""Words of the user are shown as they were typed."""

from __future__ import annotations

from textual.selection import SELECT_ALL

from oi_tui.rendering.lines import copy_text
from oi_tui.rendering.plain_text import PlainText
from oi_tui.rendering.theme import RenderTheme

ANSI = RenderTheme.ansi()


def test_text_is_wrapped_and_copied_as_it_was() -> None:
    text = "a line that is wrapped *here*\n\n\tdef f():\n\t\treturn 1\n- x"
    plain = PlainText(text)
    lines = plain.render(16, ANSI)
    assert [line.strip.text for line in lines] == [
        "a line that is",
        "wrapped *here*",
        "",
        "    def f():",
        "        return 1",
        "- x",
    ]
    assert copy_text(lines, SELECT_ALL) == text
    assert plain.line_count(16) == 6


def test_controls_do_nothing_and_line_ends_are_one() -> None:
    lines = PlainText("a\x1b[31mb\r\nc\rd\u202ee").render(40, ANSI)
    assert [line.strip.text for line in lines] == ["ab", "c", "d⟨U+202E⟩e"]


def test_a_paste_of_megabytes_is_drawn_where_it_is_looked_at() -> None:
    plain = PlainText("some words of a long paste\n" * 100_000, ("quiet",))
    lines = plain.render(80, ANSI)
    assert len(lines) == 100_001
    assert lines[99_999].strip.text == "some words of a long paste"
    assert sum(len(block._drawn or ()) for block in plain._blocks) == 1
