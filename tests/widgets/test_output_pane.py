"""The whole output of a run: bounded, live, wrapped or sideways, copied as it was printed."""

from __future__ import annotations

from typing import Any

import pytest
from textual.app import App
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection

from oi_tui.rendering.terminal_text import TerminalText
from oi_tui.screens.output import OutputScreen
from oi_tui.widgets.code_block import CodeBlock
from oi_tui.widgets.output_pane import OutputPane
from tests.widgets.hosts import Host, rows, screen_text, until


async def pane_of(pilot: Pilot[None]) -> OutputPane:
    await pilot.pause()
    pane = pilot.app.query_one(OutputPane)
    pane.focus()
    return pane


def shown(app: App[Any]) -> list[str]:
    return [row[: app.size.width - 1].strip() for row in rows(app)]


async def test_it_shows_the_end_and_follows_what_comes() -> None:
    text = TerminalText()
    app = Host(lambda: OutputPane(text))
    async with app.run_test(size=(40, 10)) as pilot:
        pane = await pane_of(pilot)
        for number in range(100):
            text.feed(f"row {number}\n")
        pane.update()
        await pilot.pause()
        assert shown(app)[-1] == "row 99"
        await pilot.press("g")
        await pilot.pause()
        assert shown(app)[0] == "row 0"
        text.feed("row 100\n")
        pane.update()
        await pilot.pause()
        assert shown(app)[0] == "row 0", "who reads above is not disturbed"
        await pilot.press("G")
        await pilot.pause()
        assert shown(app)[-1] == "row 100"


async def test_long_lines_are_wrapped_or_scrolled_sideways() -> None:
    text = TerminalText()
    text.feed("start " + "x" * 100 + " end\n")
    app = Host(lambda: OutputPane(text))
    async with app.run_test(size=(40, 10)) as pilot:
        await pane_of(pilot)
        assert "end" in screen_text(app)
        await pilot.press("w")
        await pilot.pause()
        assert "start" in screen_text(app) and "end" not in screen_text(app)
        for _ in range(90):
            await pilot.press("right")
        await until(pilot, lambda: "end" in screen_text(app))


async def test_a_progress_bar_moves_in_place() -> None:
    text = TerminalText()
    app = Host(lambda: OutputPane(text))
    async with app.run_test(size=(40, 10)) as pilot:
        pane = await pane_of(pilot)
        for percent in range(0, 101, 10):
            text.feed(f"\r{percent}%")
            pane.update()
        await pilot.pause()
        assert [row for row in shown(app) if "%" in row] == ["100%"]


async def test_what_is_copied_is_what_was_printed() -> None:
    text = TerminalText()
    text.feed("short\n" + "long " * 20 + "\n\x1b[31mred\x1b[0m\n")
    app = Host(lambda: OutputPane(text))
    async with app.run_test(size=(40, 10)) as pilot:
        pane = await pane_of(pilot)
        copied = pane.get_selection(Selection(None, None))
        assert copied is not None and copied[0].rstrip("\n") == "short\n" + "long " * 20 + "\nred"
        part = pane.get_selection(Selection(Offset(2, 0), Offset(4, 1)))
        assert part is not None and part[0] == "ort\nlong"


async def test_resizing_keeps_the_line_at_the_top() -> None:
    text = TerminalText()
    for number in range(200):
        text.feed(f"row {number} " + "y" * 50 + "\n")
    app = Host(lambda: OutputPane(text))
    async with app.run_test(size=(40, 10)) as pilot:
        pane = await pane_of(pilot)
        pane.scroll_to(y=100, animate=False)
        await pilot.pause()
        top = next(row for row in shown(app) if row.startswith("row")).split()[1]
        await pilot.resize_terminal(90, 20)
        await pilot.pause()
        assert shown(app)[0].startswith(f"row {top} ") or shown(app)[1].startswith(f"row {top} ")


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (200, 3)])
async def test_no_size_is_too_odd(size: tuple[int, int]) -> None:
    text = TerminalText()
    text.feed("漢字 and words\n" * 50)
    app = Host(lambda: OutputPane(text))
    async with app.run_test(size=size) as pilot:
        pane = await pane_of(pilot)
        pane.wraps = False
        await pilot.pause()


async def test_the_screen_counts_saves_and_sanitises(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    complete = tmp_path / "full.txt"
    complete.write_text("all of it \x1b]52;c;aGk=\x07\x1b[31mred\x1b[0m\n" * 3)
    block = CodeBlock("id", "python")
    for number in range(12_000):
        block.print(f"row {number}\n")
    app = Host()
    async with app.run_test(size=(90, 20)) as pilot:
        await app.push_screen(OutputScreen(block, complete))
        await until(pilot, lambda: "row 11999" in screen_text(app))
        assert "12 000 lines; the newest 10 000 are here" in screen_text(app)
        await pilot.press("s")
        saved = tmp_path / f"output-{block.short_digest}.txt"
        await until(pilot, saved.exists)
        assert saved.read_text() == "all of it red\n" * 3
        await pilot.press("s")
        await until(pilot, lambda: (tmp_path / f"output-{block.short_digest}-2.txt").exists())
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
