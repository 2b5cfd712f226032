"""Answers in Markdown: calm to look at, right while they are written, clean to copy."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.geometry import Offset
from textual.selection import SELECT_ALL, Selection

from oi_tui.rendering import markdown as module
from oi_tui.rendering.lines import RenderedLine, copy_text
from oi_tui.rendering.markdown import MarkdownDocument
from oi_tui.rendering.theme import RenderTheme

ANSI = RenderTheme.ansi()


def rendered(text: str, width: int = 60) -> list[RenderedLine]:
    document = MarkdownDocument(text)
    document.finish()
    while document.advance():
        pass
    return list(document.render(width, ANSI))


def drawn(text: str, width: int = 60) -> list[str]:
    return [line.strip.text for line in rendered(text, width)]


def meanings(text: str) -> dict[str, str]:
    """The pieces of a text that have a style, and the style."""
    return {
        segment.text: str(segment.style)
        for line in rendered(text)
        for segment in line.strip
        if segment.style is not None and segment.text.strip()
    }


def copied(text: str, width: int = 60) -> str:
    return copy_text(rendered(text, width), SELECT_ALL)


# -- what it looks like ------------------------------------------------------------------------------------------------


def test_paragraphs_wrap_and_breaks_are_kept() -> None:
    assert drawn("one two\nthree four  \nfive\n\nsix", 13) == ["one two three", "four", "five", "", "six"]


def test_emphasis_code_and_links() -> None:
    styles = meanings("**bold** *it* ~~gone~~ `x = 1` [here](https://example.com/a) ***both***")
    assert styles["bold"] == "bold"
    assert styles["it"] == "italic"
    assert styles["gone"] == "strike"
    assert styles["x = 1"] == "cyan"
    assert styles["here"] == "underline blue"
    assert set(styles["both"].split()) == {"bold", "italic"}


def test_a_link_says_where_it_goes() -> None:
    assert drawn("[here](https://example.com/a)") == ["here (https://example.com/a)"]
    assert drawn("<https://example.com>") == ["https://example.com"]
    assert drawn("[example.com](https://example.com/)") == ["example.com"]
    assert drawn("[bank.com](https://evil.example)") == ["bank.com (https://evil.example)"]
    assert drawn("<me@example.com>") == ["me@example.com"]
    assert drawn("[x][1] later\n\n[1]: https://example.com") == ["x (https://example.com) later"]


def test_nothing_is_linked_for_the_terminal() -> None:
    for line in rendered("[a](https://example.com) <https://b.example> ![c](https://d.example)"):
        assert all(segment.style is None or segment.style.link is None for segment in line.strip)


def test_pictures_and_html_are_text() -> None:
    assert drawn("![a plot](https://example.com/p.png)") == ["[image: a plot] https://example.com/p.png"]
    assert drawn("a <b>bold</b> move\n\n<script>alert(1)</script>") == [
        "a <b>bold</b> move",
        "",
        "<script>alert(1)</script>",
    ]


def test_headings() -> None:
    lines = rendered("# One\ntext\n## Two\n\nmore")
    assert [line.strip.text for line in lines] == ["One", "text", "", "Two", "", "more"]
    assert meanings("# One")["One"] == "bold blue"
    assert "bold" in meanings("### *Three* x")["Three"]


def test_lists_hang_their_indentation() -> None:
    text = "- one two three four\n- five\n  - six seven eight\n    1. deep\n- [ ] open\n- [x] done"
    assert drawn(text, 14) == [
        "• one two",
        "  three four",
        "• five",
        "  ◦ six seven",
        "    eight",
        "    1. deep",
        "[ ] open",
        "[x] done",
    ]


def test_numbers_are_aligned_and_counted() -> None:
    assert drawn("\n".join(f"1. item {number}" for number in range(1, 12)))[7:] == [
        " 8. item 8",
        " 9. item 9",
        "10. item 10",
        "11. item 11",
    ]
    assert drawn("7. seven\n8. eight") == ["7. seven", "8. eight"]
    assert drawn("- a\n\n  9) x\n  10) y") == ["• a", "", "   9) x", "  10) y"]


def test_the_writer_s_empty_lines_between_items_stay() -> None:
    assert drawn("1. one\n\n2. two\n3. three") == ["1. one", "", "2. two", "3. three"]
    assert drawn("- a\n\n  more\n- b") == ["• a", "", "  more", "• b"]
    assert drawn("Here:\n- a\n- b\n\nend") == ["Here:", "• a", "• b", "", "end"]


def test_quotes_have_a_bar() -> None:
    assert drawn("> one two three\n>\n> - x\n> > deep", 12) == ["▎ one two", "▎ three", "▎ ", "▎ • x", "▎ ▎ deep"]
    assert drawn("> a\n> b\n\nc") == ["▎ a b", "", "c"]


def test_fences_are_highlighted_and_never_change_their_text() -> None:
    text = "before\n```python\nif x:\n\tprint('a')  # b\n\n```\nafter"
    assert drawn(text) == ["before", "", "│ if x:", "│     print('a')  # b", "│ ", "", "after"]
    assert meanings(text)["if"] == "blue"
    assert drawn("```\n" + "x" * 25 + "\n```", 12) == ["│ " + "x" * 10, "│ " + "x" * 10, "│ " + "x" * 5]
    assert drawn("~~~ {.python title='x'}\na\n~~~") == ["│ a"]
    assert drawn("    indented") == ["│ indented"]


def test_tables_are_aligned_and_numbers_stand_at_the_right() -> None:
    text = "| Name | Amount | Where |\n|---|---|:-:|\n| Apple | 1,200.50 | x |\n| **Pear** | −3 % | there |"
    assert drawn(text) == [
        "Name     Amount  Where",
        "──────────────────────",
        "Apple  1,200.50    x",
        "Pear       −3 %  there",
    ]


def test_tables_shrink_to_the_width() -> None:
    text = "| Name | Note |\n|---|---|\n| Apple | a long note that does not fit |\n| Pear | short |"
    assert drawn(text, 24) == [
        "Name   Note",
        "─" * 24,
        "Apple  a long note that",
        "       does not fit",
        "",
        "Pear   short",
    ]
    wide = "| " + " | ".join("abcdefgh" for _ in range(12)) + " |\n|" + "---|" * 12 + "\n| " + "x | " * 12
    for width in range(1, 60):
        assert max(cell_len(line) for line in drawn(wide, width)) <= max(width, 2)
    assert drawn("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |", 7) == ["a: 1", "b: 2", "", "a: 3", "b: 4"]


def test_tables_of_wide_characters_are_aligned() -> None:
    lines = drawn("| 名前 | n |\n|---|---|\n| 東京 | 1 |\n| ab | 22 |")
    assert lines[2:] == ["東京   1", "ab    22"]
    assert {cell_len(line) for line in lines} == {8}


def test_formulas_stay_as_they_were_written() -> None:
    assert drawn("so $a_1 * b_1$ and \\(x_i * y_i\\) is \\[z\\]") == ["so $a_1 * b_1$ and \\(x_i * y_i\\) is \\[z\\]"]
    assert drawn("$$\na_1\n- b\n= c\n$$\n\nend") == ["$$", "a_1", "- b", "= c", "$$", "", "end"]
    assert drawn("\\[\nx_1 * y\n\\]") == ["\\[", "x_1 * y", "\\]"]
    assert drawn("costs $5 and *not* $10") == ["costs $5 and not $10"]
    assert meanings("costs $5 and *not* $10")["not"] == "italic"


def test_chinese_lines_are_joined_without_blanks() -> None:
    assert drawn("今日は\n天気が\ngood\n日") == ["今日は天気が good 日"]


def test_entities_bring_no_control_characters() -> None:
    assert drawn("a&#27;[31m&#13;b&#x202e;c&#12;&#x9b;2J") == ["a\ufffd[31m b⟨U+202E⟩c \ufffd2J"]


# -- copying -----------------------------------------------------------------------------------------------------------


def test_copying_everything_gives_text_without_decoration() -> None:
    text = "## Title\n\nA paragraph that is wrapped over lines.\n\n- an item that wraps as well\n  - nested\n\n> quote"
    assert copied(text, 16) == text
    code = "```python\nif x:\n\tprint(1)\n```"
    assert copied(code, 30) == "if x:\n\tprint(1)"
    table = "| a | b |\n|---|--:|\n| x y z x y z | 1 |"
    assert copied(table, 10) == table


def test_copying_a_part_gives_what_is_seen() -> None:
    lines = rendered("- an item that is **wrapped** as well", 16)
    assert [line.strip.text for line in lines] == ["• an item that", "  is wrapped as", "  well"]
    assert copy_text(lines, Selection(Offset(5, 0), Offset(12, 1))) == "item that is wrapped"


# -- streaming ---------------------------------------------------------------------------------------------------------

FRAGMENTS = [
    "# Title\n",
    "text **bold** and `code`\n",
    "more text ",
    "\n",
    "\n\n",
    "- item\n",
    "  - nested\n",
    "  continued\n",
    "* other\n",
    "1. one\n",
    "2. two\n",
    "3) three\n",
    "- [ ] task\n",
    "> quote\n",
    "> - in quote\n",
    "```python\nx = 1\n",
    "```\n",
    "~~~\n",
    "    code\n",
    "| a | b |\n",
    "|---|---|\n",
    "| 1 | 2 |\n",
    "---\n",
    "===\n",
    "***\n",
    "$$\na_1\n- b\n$$\n",
    "[a](http://b.c) ",
    "![i](p.png)",
    "<b>\n",
    "\t\tx\n",
    "`",
    "**",
    "漢字\n",
    "\r\n",
    "\x1b[31m",
    "\x1b]0;t\x07",
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=25), st.integers(1, 9))
def test_a_stream_ends_as_the_whole_would(fragments: list[str], size: int) -> None:
    text = "".join(fragments)
    document = MarkdownDocument()
    for start in range(0, len(text), size):
        document.append(text[start : start + size])
        for line in document.render(30, ANSI):
            assert line.strip.text is not None
    document.finish()
    streamed = [line.strip.text for line in document.render(30, ANSI)]
    whole = drawn(text, 30)
    assert "".join(streamed).split() == "".join(whole).split()


def streamed(text: str, size: int, width: int = 40) -> MarkdownDocument:
    document = MarkdownDocument()
    for start in range(0, len(text), size):
        document.append(text[start : start + size])
        document.line_count(width)
    document.finish()
    return document


def test_a_link_may_be_defined_after_it_is_used() -> None:
    text = "see [this][x].\n\nmore\n\n[x]: https://example.com/a\n"
    document = streamed(text, 1)
    assert document.render(60, ANSI)[0].strip.text == "see this (https://example.com/a)."


def test_a_half_received_block_looks_like_what_it_is() -> None:
    document = MarkdownDocument("text\n\n```python\nx = 'a")
    assert [line.strip.text for line in document.render(40, ANSI)] == ["text", "", "│ x = 'a"]
    document.append("b'\n``")  # perhaps the end: not shown as code
    assert [line.strip.text for line in document.render(40, ANSI)] == ["text", "", "│ x = 'ab'"]
    document.append("`\nend")
    assert [line.strip.text for line in document.render(40, ANSI)] == ["text", "", "│ x = 'ab'", "", "end"]


def test_a_growing_number_moves_the_items_before_it() -> None:
    document = MarkdownDocument("".join(f"{number}. x\n" for number in range(1, 10)))
    assert document.render(40, ANSI)[0].strip.text == "1. x"
    document.append("10. x\n11. x\n")
    assert [line.strip.text for line in document.render(40, ANSI)][:2] == [" 1. x", " 2. x"]
    assert document.render(40, ANSI)[9].strip.text == "10. x"


def test_finished_blocks_keep_their_lines() -> None:
    document = MarkdownDocument("# Title\n\ntext\n\nlast line\nwith more")
    before = document.render(40, ANSI)
    strips = [before[index].strip for index in range(3)]
    document.append(" words\n\nmore")
    after = document.render(40, ANSI)
    assert all(after[index].strip is strip for index, strip in enumerate(strips))


@pytest.mark.parametrize(
    "text",
    [
        "- item with **text**\n" * 3000,
        "- outer\n" + "  - nested item\n" * 3000,
        "```python\n" + "x = [1, 'two']  # three\n" * 3000,
        "> quoted words\n" * 3000,
        "| a | b |\n|---|---|\n" + "| 1 | some text |\n" * 1500,
        "a paragraph without an end " * 2000,
        "```\n" + "x" * 60_000,
        "1. a\n\n" * 3000,
    ],
    ids=["list", "nested", "fence", "quote", "table", "paragraph", "line", "numbers"],
)
def test_the_cost_of_a_stream_does_not_grow_with_its_square(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the parser is given in all is a small multiple of the text; drawn again are the last lines only."""
    parsed = 0
    parse = module.parse

    def counting(source: str, env: dict[str, object]) -> object:
        nonlocal parsed
        parsed += len(source)
        return parse(source, env)

    monkeypatch.setattr(module, "parse", counting)
    document = streamed(text, 600)
    assert parsed < 60 * len(text) + 100_000
    assert document.line_count(40) >= 1000
    assert not document.is_behind


def test_a_message_of_megabytes_is_taken_in_steps() -> None:
    document = MarkdownDocument("lorem **ipsum** dolor\n\n" * 20_000 + "x" * 500_000)
    lines = document.render(80, ANSI)
    assert document.is_behind
    assert lines[0].strip.text == "lorem ipsum dolor"
    steps = 0
    while document.advance():
        steps += 1
    document.finish()
    assert 20 < steps < 200
    assert document.line_count(80) > 40_000
    assert len(document.source) == 20_000 * 23 + 500_000


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=10)), max_size=15), st.integers(1, 50))
def test_no_line_is_wider_than_it_may_be(fragments: list[str], width: int) -> None:
    for line in rendered("".join(fragments), width):
        assert line.strip.cell_length <= max(width, 4)
        assert line.strip.cell_length == cell_len(line.strip.text)
        assert line.text is not None
        assert line.strip.text[line.start :] == line.text


def test_nothing_is_lost_however_deep_it_is_nested() -> None:
    for mark in ("> ", "- ", "1. ", "> - "):
        assert any("found" in line for line in drawn(mark * 200 + "found", 40))
    assert drawn("-\n- x") == ["• ", "• x"]
    assert drawn(">") == ["▎ "]
    many = "".join("*a **b " for _ in range(3000)) + "found"
    assert any("found" in line for line in drawn(many + "*" * 9000, 80))


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text", ["![", "[", "[a](", "\\(", "\\[", "$$", "$a", "`a", "*a_", "~~a", "<a", "&a", "|", "#"]
)
def test_floods_of_signs_cost_what_they_are_long(text: str) -> None:
    """Anything that grew with the square of the length would take minutes here."""
    flood = text * (60_000 // len(text))
    lines = drawn(flood + "\n\nfound", 80)
    assert lines[-1] == "found"
    assert sum(line.count("a") for line in lines) == flood.count("a")
