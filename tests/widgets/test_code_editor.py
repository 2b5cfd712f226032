"""The editor in place of code: what is typed is code, and looks like it."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from oi_tui.widgets.code_editor import CodeEditor
from tests.widgets.hosts import Host, rows, screen_text, until


async def editor_of(pilot: Pilot[None]) -> CodeEditor:
    await pilot.pause()
    editor = pilot.app.query_one(CodeEditor)
    editor.focus()
    await pilot.pause()
    return editor


def host(code: str, language: str = "python", original: str | None = None) -> Host:
    return Host(lambda: CodeEditor(code, language, original=code if original is None else original))


async def test_numbers_and_signs_stand_where_the_block_has_them() -> None:
    app = host("a = 1\nb = 2")
    async with app.run_test(size=(60, 10)) as pilot:
        await editor_of(pilot)
        await pilot.press("down", "end", "3")
        await pilot.pause()
        assert [row.rstrip() for row in rows(app)[:2]] == [" 1   a = 1", " 2 + b = 23"]


async def test_every_change_is_told_with_the_rows_it_needs() -> None:
    app = host("a = 1")
    async with app.run_test(size=(60, 10)) as pilot:
        await editor_of(pilot)
        await pilot.press("end", "enter", "b")
        await until(pilot, lambda: len(app.of(CodeEditor.Edited)) >= 2)
        last = app.of(CodeEditor.Edited)[-1]
        assert (last.code, last.rows) == ("a = 1\nb", 2)


async def test_a_new_line_keeps_the_indentation_and_goes_deeper_after_an_opener() -> None:
    app = host("")
    async with app.run_test(size=(60, 10)) as pilot:
        editor = await editor_of(pilot)
        await pilot.press(*"if x:", "enter", *"f(", "enter", "y")
        assert editor.code == "if x:\n    f(\n        y"


async def test_tab_and_shift_tab_move_whole_lines() -> None:
    app = host("a\nb\n\nc")
    async with app.run_test(size=(60, 10)) as pilot:
        editor = await editor_of(pilot)
        await pilot.press("f7", "tab")
        assert editor.code == "    a\n    b\n\n    c"
        await pilot.press("shift+tab")
        assert editor.code == "a\nb\n\nc"


async def test_undo_and_the_model_s_version() -> None:
    app = host("mine", original="theirs")
    async with app.run_test(size=(60, 10)) as pilot:
        editor = await editor_of(pilot)
        await pilot.press("ctrl+r")
        assert editor.code == "theirs"
        await pilot.press("ctrl+z")
        assert editor.code == "mine"


async def test_escape_ends_and_nothing_typed_after_it_counts() -> None:
    app = host("a")
    async with app.run_test(size=(60, 10)) as pilot:
        editor = await editor_of(pilot)
        await pilot.press("escape", "b", "backspace")
        await until(pilot, lambda: app.of(CodeEditor.Ended))
        assert editor.code == "a" and len(app.of(CodeEditor.Ended)) == 1


async def test_hidden_and_control_characters_are_visible_and_kept() -> None:
    code = "x = 'a\u202eb\x1b[31m'  # \u200b\r"
    app = host(code)
    async with app.run_test(size=(80, 10)) as pilot:
        editor = await editor_of(pilot)
        shown = screen_text(app)
        assert not any(c in shown for c in "\u202e\x1b\u200b\r")
        assert editor.code == code
        await pilot.press("home", "y", "ctrl+z")
        assert editor.code == code


@pytest.mark.parametrize("code", ["a = 1\r\nb = 2\r\n", "x = 'a\x0cb\u2028c'\n\n", "a\rb", "\U000f0000 = 1", ""])
async def test_what_is_not_edited_stays_byte_for_byte(code: str) -> None:
    app = host(code)
    async with app.run_test(size=(80, 10)) as pilot:
        editor = await editor_of(pilot)
        assert editor.code == code
        await pilot.press("end", "z", "backspace")
        assert editor.code == code


async def test_colours_follow_every_change() -> None:
    app = host("x = 1\ny = 2")
    async with app.run_test(size=(60, 10)) as pilot:
        editor = await editor_of(pilot)
        plain = editor.get_line(1).spans
        await pilot.press("home", *'"""')
        await pilot.pause()
        assert editor.get_line(1).spans != plain, "the second line is part of a string now"
        await pilot.press("backspace", "backspace", "backspace")
        await pilot.pause()
        assert editor.get_line(1).spans == plain


async def test_ten_thousand_lines_can_be_edited() -> None:
    app = host("\n".join(f"value_{n} = {n}" for n in range(10_000)))
    async with app.run_test(size=(60, 20)) as pilot:
        editor = await editor_of(pilot)
        editor.move_cursor((9_999, 0))
        await pilot.press("x", "enter", "backspace")
        await pilot.pause()
        assert editor.document.get_line(9_999).startswith("x") or editor.document.get_line(9_998).endswith("x")
        assert "10000" in screen_text(app)
