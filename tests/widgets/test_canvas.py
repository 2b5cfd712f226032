"""The column of blocks: nothing jumps, everything is found again, whatever grows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from textual.pilot import Pilot
from textual.strip import Strip

from oi_tui.widgets.block import Block, Line
from oi_tui.widgets.block_theme import BlockTheme
from oi_tui.widgets.canvas import Canvas
from oi_tui.widgets.extents import Extents
from tests.widgets.hosts import Host, rows, screen_text, until


class Words(Block):
    """Numbered lines; `guess` is what it says before it is laid out. Wraps nothing."""

    def __init__(self, name: str, count: int, guess: int = 1) -> None:
        super().__init__(name)
        self.name, self.count, self.guess = name, count, guess
        self.layouts = 0

    @property
    def source(self) -> str:
        return "\n".join(f"{self.name}{number}" for number in range(self.count))

    def _lay_out(self, width: int, theme: BlockTheme) -> Sequence[Line]:
        self.layouts += 1
        return [Line(Strip([Segment(text)]), text) for text in self.source.split("\n")]

    def _estimate(self, width: int) -> int:
        return self.guess


def shown(app: Host) -> list[str]:
    return [text for row in rows(app) if (text := row[: app.size.width - 1].strip())]


async def canvas_of(pilot: Pilot[None]) -> Canvas:
    await pilot.pause()
    return pilot.app.query_one(Canvas)


async def test_it_follows_the_tail() -> None:
    app = Host(Canvas)
    async with app.run_test(size=(40, 10)) as pilot:
        canvas = await canvas_of(pilot)
        block = Words("a", 3)
        canvas.add(block)
        for count in range(3, 40):
            block.count = count
            block.changed()
            canvas.redraw(block)
            await pilot.pause()
            assert shown(app)[-1] == f"a{count - 1}"


async def test_what_is_read_stays_where_it_is_while_more_comes() -> None:
    app = Host(Canvas)
    async with app.run_test(size=(40, 10)) as pilot:
        canvas = await canvas_of(pilot)
        for number in range(10):
            canvas.add(Words(f"b{number}-", 5))
        canvas.scroll_lines(-12)
        await pilot.pause()
        before = shown(app)
        for number in range(10, 20):
            canvas.add(Words(f"b{number}-", 5))
        await pilot.pause()
        assert shown(app) == before
        assert not canvas.is_following
        assert canvas.new_lines == 10 * 5
        canvas.follow()
        await pilot.pause()
        assert shown(app)[-1] == "b19-4" and canvas.new_lines == 0


async def test_growth_below_is_counted_and_told() -> None:
    app = Host(Canvas)
    async with app.run_test(size=(40, 10)) as pilot:
        canvas = await canvas_of(pilot)
        block = Words("c", 30)
        canvas.add(block)
        canvas.scroll_lines(-5)
        block.count = 37
        block.changed()
        canvas.redraw(block)
        await pilot.pause()
        assert [event.new_lines for event in app.of(Canvas.TailChanged)][-1] == 7


async def test_scrolling_back_to_the_end_follows_again() -> None:
    app = Host(Canvas)
    async with app.run_test(size=(40, 10)) as pilot:
        canvas = await canvas_of(pilot)
        canvas.add(Words("d", 30))
        canvas.scroll_lines(-3)
        assert not canvas.is_following
        canvas.scroll_lines(3)
        assert canvas.is_following


async def test_wrong_guesses_do_not_make_pages_skip_or_repeat() -> None:
    app = Host(Canvas)
    async with app.run_test(size=(40, 10)) as pilot:
        canvas = await canvas_of(pilot)
        canvas.load([Words(f"e{number:02}-", 1 + number % 7, guess=1 + number * 5 % 13) for number in range(60)])
        await pilot.pause()
        read: list[str] = shown(app)
        while canvas.scroll_y > 0:
            canvas.scroll_lines(-canvas.rows)
            await pilot.pause()
            page = shown(app)
            overlap = [line for line in page if line in read]
            read = [line for line in page if line not in overlap] + read
        expected = [line for number in range(60) for line in Words(f"e{number:02}-", 1 + number % 7).source.split()]
        assert read == expected


async def test_only_what_is_near_is_laid_out() -> None:
    app = Host(Canvas)
    async with app.run_test(size=(40, 10)) as pilot:
        canvas = await canvas_of(pilot)
        blocks = [Words(f"f{number}-", 5, guess=5) for number in range(3000)]
        canvas.load(blocks)
        await pilot.pause()
        assert sum(block.layouts for block in blocks) < 20
        canvas.scroll_lines(-9000)
        await pilot.pause()
        assert sum(block.layouts for block in blocks) < 60


async def test_a_block_that_is_folded_above_moves_nothing_in_view() -> None:
    app = Host(Canvas)
    async with app.run_test(size=(40, 10)) as pilot:
        canvas = await canvas_of(pilot)
        blocks = [Words(f"g{number}-", 6) for number in range(10)]
        canvas.load(blocks)
        canvas.scroll_lines(-20)
        await pilot.pause()
        before = shown(app)
        blocks[0].count = 1
        blocks[0].changed()
        canvas.redraw(blocks[0])
        canvas.take_out(blocks[1])
        await pilot.pause()
        assert shown(app) == before


async def test_resizing_keeps_the_place() -> None:
    app = Host(Canvas)
    async with app.run_test(size=(40, 12)) as pilot:
        canvas = await canvas_of(pilot)
        canvas.load([Words(f"h{number}-", 6) for number in range(30)])
        canvas.scroll_lines(-60)
        await pilot.pause()
        top = shown(app)[0]
        for size in ((60, 20), (25, 6), (100, 40), (40, 12)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert shown(app)[0] == top


async def test_selected_text_is_source_text_across_blocks() -> None:
    app = Host(Canvas)
    async with app.run_test(size=(40, 30)) as pilot:
        canvas = await canvas_of(pilot)
        canvas.load([Words("i", 2), Words("j", 2)])
        await pilot.pause()
        await pilot.mouse_down(Canvas, offset=(2, 0))
        await pilot.hover(Canvas, offset=(2, 4))
        await pilot.mouse_up(Canvas, offset=(2, 4))
        await until(pilot, lambda: app.screen.get_selected_text())
        assert app.screen.get_selected_text() == "0\ni1\n\nj0\nj1"


async def test_a_block_of_a_conversation_that_is_gone_is_left_alone() -> None:
    app = Host(Canvas)
    async with app.run_test(size=(40, 10)) as pilot:
        canvas = await canvas_of(pilot)
        block = Words("k", 3)
        canvas.add(block)
        canvas.clear()
        canvas.redraw(block)
        await pilot.pause()
        assert screen_text(app).strip() == ""


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (5, 2), (200, 60)])
async def test_no_size_is_too_odd(size: tuple[int, int]) -> None:
    app = Host(Canvas)
    async with app.run_test(size=size) as pilot:
        canvas = await canvas_of(pilot)
        canvas.load([Words(f"l{number}-", 6) for number in range(30)])
        canvas.scroll_lines(-10)
        await pilot.pause()


operations = st.lists(st.tuples(st.sampled_from("isr"), st.integers(0, 30), st.integers(1, 9)), max_size=60)


@given(operations)
def test_extents_agree_with_a_plain_list(steps: list[tuple[str, int, int]]) -> None:
    extents, plain = Extents(), list[int]()
    for kind, place, height in steps:
        if kind == "i" or not plain:
            index = place % (len(plain) + 1)
            plain.insert(index, height)
            extents.insert(index, height)
        elif kind == "s":
            plain[place % len(plain)] = height
            extents.set(place % len(plain), height, exact=True)
        else:
            extents.remove(place % len(plain))
            plain.pop(place % len(plain))
        assert extents.total == sum(plain)
    rows = [(index, line) for index, height in enumerate(plain) for line in range(height)]
    assert [extents.locate(y) for y in range(len(rows))] == rows
    assert [extents.top(index) for index in range(len(plain))] == [sum(plain[:index]) for index in range(len(plain))]
