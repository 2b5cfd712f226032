"""The run bar approves what it is asked to approve, and nothing by accident."""

from __future__ import annotations

import pytest
from textual import events
from textual.pilot import Pilot

from oi_tui.engine.scopes import Scope
from oi_tui.widgets.run_bar import QUIET_TIME, SWALLOW_ENTER, TYPING_PAUSE, BarMode, RunBar
from tests.widgets.hosts import Clock, Host, screen_text, until


class Stage:
    """A run bar on a stage, with a clock of its own."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.app = Host(lambda: RunBar(clock=self.clock))

    @property
    def bar(self) -> RunBar:
        return self.app.query_one(RunBar)

    async def press(self, pilot: Pilot[None], *keys: str, apart: float = 0.2) -> None:
        for key in keys:
            self.clock.forward(apart)
            await pilot.press(key)
        await pilot.pause(0.06)

    def runs(self) -> int:
        return len(self.app.of(RunBar.RunRequested))


async def test_y_runs_the_code_when_the_user_came_here() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.bar.focus()
        await stage.press(pilot, "y")
        await until(pilot, stage.runs)
        assert stage.runs() == 1


async def test_letters_mean_nothing_without_the_focus() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        pilot.app.set_focus(None)
        await stage.press(pilot, "y", "n", "e", "a")
        assert not stage.app.of(RunBar.Asked)


async def test_a_bar_that_took_the_focus_is_deaf_for_a_moment() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.bar.take_focus(last_keystroke=0.0)
        await stage.press(pilot, "y", apart=0.1)
        assert stage.runs() == 0
        stage.clock.forward(TYPING_PAUSE + QUIET_TIME)
        await stage.press(pilot, "y")
        await until(pilot, stage.runs)


async def test_it_waits_for_a_second_of_quiet_after_the_last_keystroke() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.bar.take_focus(last_keystroke=stage.clock())
        stage.clock.forward(QUIET_TIME + 0.1)
        await stage.press(pilot, "y", apart=0)
        assert stage.runs() == 0, "half a second is not enough for someone who was typing"


async def test_y_held_down_never_approves() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.bar.take_focus(last_keystroke=stage.clock())
        await stage.press(pilot, *"y" * 60, apart=0.033)
        assert stage.runs() == 0


async def test_keys_that_come_in_a_burst_are_a_paste() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.bar.focus()
        stage.clock.forward(5)
        for key in "yes":
            stage.app.post_message(events.Key(key, key))
        await pilot.pause(0.1)
        assert stage.runs() == 0


async def test_a_paste_never_approves() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.bar.focus()
        stage.app.post_message(events.Paste("y\ny\n"))
        await pilot.pause(0.1)
        assert not stage.app.of(RunBar.Asked)


async def test_enter_right_after_y_is_swallowed() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.bar.focus()
        await stage.press(pilot, "y")
        await until(pilot, stage.runs)
        stage.bar.mode = BarMode.RUNNING
        await stage.press(pilot, "enter")
        assert not stage.app.of(RunBar.EditRequested)
        assert SWALLOW_ENTER >= 0.5


async def test_choosing_a_scope_approves_nothing() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.bar.focus()
        stage.bar.language = "python"
        await stage.press(pilot, "1")
        assert not stage.app.of(RunBar.ScopeChosen), "numbers mean nothing until the scopes are shown"
        await stage.press(pilot, "a")
        assert "all python" in screen_text(stage.app)
        await stage.press(pilot, "y", "2")
        assert [event.scope for event in stage.app.of(RunBar.ScopeChosen)] == [Scope.LANGUAGE]
        assert stage.runs() == 0
        assert stage.bar.mode is BarMode.WAITING


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("n", RunBar.Declined),
        ("escape", RunBar.InsteadRequested),
        ("e", RunBar.EditRequested),
        ("enter", RunBar.EditRequested),
        ("up", RunBar.EditRequested),
        ("ctrl+g", RunBar.ExternalEditRequested),
        ("f5", RunBar.RunRequested),
    ],
)
async def test_what_the_other_keys_ask_for(key: str, kind: type[RunBar.Asked]) -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.bar.focus()
        await stage.press(pilot, key)
        assert len(stage.app.of(kind)) == len(stage.app.of(RunBar.Asked)) == 1


async def test_diff_and_original_are_there_only_for_edited_code() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(100, 5)) as pilot:
        stage.bar.focus()
        await stage.press(pilot, "d", "u")
        assert not stage.app.of(RunBar.Asked)
        stage.bar.is_edited = True
        await stage.press(pilot, "d", "u")
        assert len(stage.app.of(RunBar.Asked)) == 2
        assert "my diff" in screen_text(stage.app)


async def test_while_code_runs_typing_goes_to_the_prompt_and_y_does_nothing() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.bar.focus()
        stage.bar.mode = BarMode.RUNNING
        await stage.press(pilot, "y")
        assert stage.runs() == 0
        assert [event.character for event in stage.app.of(RunBar.TypedElsewhere)] == ["y"]


async def test_a_key_that_is_still_held_after_the_run_is_not_typed_into_the_prompt() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.bar.focus()
        await stage.press(pilot, "y")
        await until(pilot, stage.runs)
        stage.bar.mode = BarMode.RUNNING
        await stage.press(pilot, "y", apart=0.66)
        await stage.press(pilot, *"y" * 40, apart=0.04)
        assert not stage.app.of(RunBar.TypedElsewhere)
        await stage.press(pilot, "y", apart=1.0)
        assert [event.character for event in stage.app.of(RunBar.TypedElsewhere)] == ["y"]


async def test_who_leaves_the_editor_may_go_on_at_once_but_not_run() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.bar.is_edited = True
        stage.bar.listen()
        await stage.press(pilot, "y", "f5", "enter", "escape", apart=0.05)
        assert not stage.app.of(RunBar.Asked)
        await stage.press(pilot, "d", "u", "n", apart=0.05)
        assert [type(event) for event in stage.app.of(RunBar.Asked)] == [
            RunBar.DiffRequested,
            RunBar.RevertRequested,
            RunBar.Declined,
        ]


async def test_a_click_on_a_hint_does_what_the_hint_says() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.bar.focus()
        await pilot.pause()
        column = screen_text(stage.app).splitlines()[0].index("n no")
        await pilot.click(RunBar, offset=(column, 0))
        await pilot.pause()
        assert stage.app.of(RunBar.Declined)


async def test_the_bar_fits_into_any_width() -> None:
    for width in (20, 40, 80, 200):
        stage = Stage()
        async with stage.app.run_test(size=(width, 3)) as pilot:
            await pilot.pause()
            row = screen_text(stage.app).splitlines()[0]
            assert len(row) == width and row.startswith("╰ y run") and row.endswith("╯")
