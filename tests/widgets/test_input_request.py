"""The field that answers a program: Enter sends, Esc refuses, nothing is sent by accident."""

from __future__ import annotations

from textual.pilot import Pilot

from oi_tui.engine.approval import InputRequest
from oi_tui.widgets.input_request import QUIET_TIME, InputRequestField
from tests.widgets.hosts import Clock, Host, screen_text, until


class Stage:
    def __init__(self, prompt: str = "Name? ", *, password: bool = False) -> None:
        self.clock = Clock()
        self.app = Host(lambda: InputRequestField(InputRequest("c", prompt, password), clock=self.clock))

    @property
    def field(self) -> InputRequestField:
        return self.app.query_one(InputRequestField)

    async def type(self, pilot: Pilot[None], *keys: str) -> None:
        await pilot.press(*keys)
        await pilot.pause()


async def test_enter_answers_once() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.field.field.focus()
        await stage.type(pilot, *"Ada", "enter")
        assert [event.text for event in stage.app.of(InputRequestField.Answered)] == ["Ada"]


async def test_an_empty_line_is_an_answer() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.field.field.focus()
        await stage.type(pilot, "enter")
        assert [event.text for event in stage.app.of(InputRequestField.Answered)] == [""]


async def test_an_enter_typed_ahead_answers_nothing() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.field.take_focus()
        await stage.type(pilot, "enter")
        assert not stage.app.of(InputRequestField.Answered)
        stage.clock.forward(QUIET_TIME + 0.1)
        await stage.type(pilot, "enter")
        assert stage.app.of(InputRequestField.Answered)


async def test_escape_refuses() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        stage.field.field.focus()
        await stage.type(pilot, "x", "escape")
        await until(pilot, lambda: stage.app.of(InputRequestField.Refused))
        assert not stage.app.of(InputRequestField.Answered)


async def test_a_password_is_never_drawn() -> None:
    stage = Stage("Password: ", password=True)
    async with stage.app.run_test() as pilot:
        stage.field.field.focus()
        await stage.type(pilot, *"geheim")
        assert "geheim" not in screen_text(stage.app) and "••••••" in screen_text(stage.app)
        await stage.type(pilot, "enter")
        assert stage.app.of(InputRequestField.Answered)[0].text == "geheim"


async def test_the_prompt_of_a_stranger_is_one_line_of_text() -> None:
    stage = Stage("first line\n[bold]\x1b[2Jlast line\u202e? ")
    async with stage.app.run_test() as pilot:
        await pilot.pause()
        [row] = [row for row in screen_text(stage.app).splitlines() if row.strip()]
        assert row.startswith("├ input: [bold]last line⟨U+202E⟩?") and row.endswith("┤")
