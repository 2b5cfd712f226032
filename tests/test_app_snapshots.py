"""How the app around the conversation looks: three sizes, dark, light and the terminal's own colours.

After a meant change: pytest tests/test_app_snapshots.py --snapshot-update, and look at the pictures.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from oi_tui.app import OiApp
from oi_tui.engine.llm.local import Found, FoundKind
from oi_tui.engine.settings import ModelSettings, Settings
from oi_tui.screens.welcome import WelcomeScreen
from oi_tui.widgets.side_panel import PanelRow, PanelSection, SidePanel
from tests.fakes import FakeSession

Compare = Callable[..., bool]
Steps = Callable[[Pilot[Any]], Awaitable[None]]


@pytest.fixture(autouse=True)
def with_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLORTERM", "truecolor")


def app(theme: str) -> OiApp:
    settings = Settings(llm=ModelSettings(model="openai/gpt-5"), theme=theme)
    return OiApp(settings, make_session=lambda given: FakeSession(settings=given))  # type: ignore[arg-type, return-value]


def after(steps: Steps) -> Steps:
    """Wait until the app can be used, take the steps, and wait until nothing changes any more."""

    async def run(pilot: Pilot[Any]) -> None:
        running = pilot.app
        assert isinstance(running, OiApp)
        async with asyncio.timeout(30):
            while running.session is None:
                await pilot.pause(0.01)
        await pilot.pause()
        await steps(pilot)
        await pilot.pause(0.1)

    return run


async def nothing(pilot: Pilot[Any]) -> None:
    """Just the prompt."""


@pytest.mark.parametrize("theme", ["oi-dark", "oi-light", "oi-ansi"])
def test_the_prompt(snap_compare: Compare, theme: str) -> None:
    assert snap_compare(app(theme), terminal_size=(80, 24), run_before=after(nothing))


def test_a_message_is_typed_and_others_wait(snap_compare: Compare) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        composer = pilot.app.chat.composer  # type: ignore[attr-defined]
        composer.busy = True
        composer.send("then plot it")
        composer.send("and save the picture\nas sales.png")
        composer.fill("what about\nthe costs?\n" + "x\n" * 60)
        await pilot.pause()
        await pilot.press(*"see %")

    assert snap_compare(app("oi-dark"), terminal_size=(80, 24), run_before=after(steps))


def test_everything_runs_without_asking(snap_compare: Compare) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.press("shift+tab", "shift+tab")

    assert snap_compare(app("oi-dark"), terminal_size=(80, 24), run_before=after(steps))


def test_the_panel_in_a_middle_width(snap_compare: Compare) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.press("ctrl+t")
        async with asyncio.timeout(30):
            while not pilot.app.screen.query(SidePanel) or not pilot.app.screen.query_one(SidePanel).sections:
                await pilot.pause(0.01)
        pilot.app.screen.query_one(SidePanel).sections = (
            PanelSection("Variables", (PanelRow("df", "12,000 × 4"), PanelRow("total", "41883.2"))),
            PanelSection("Images"),
            PanelSection("Files", (PanelRow("report.xlsx", "18 kB"),)),
            PanelSection(
                "Runs", (PanelRow("import pandas as pd", "done 0.8 s", "0"), PanelRow("df.plot()", "failed", "1"))
            ),
        )

    assert snap_compare(app("oi-dark"), terminal_size=(120, 40), run_before=after(steps))


def test_choosing_a_model(snap_compare: Compare) -> None:
    async def look() -> AsyncGenerator[Found, None]:
        yield Found(FoundKind.ENVIRONMENT, "OpenAI: openai/gpt-5.4", "openai/gpt-5.4", env_var="OPENAI_API_KEY")
        yield Found(FoundKind.OLLAMA, "Ollama: qwen3:8b", "ollama_chat/qwen3:8b", "http://127.0.0.1:11434")

    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.app.push_screen(WelcomeScreen(look=look))
        await pilot.pause(0.2)

    assert snap_compare(app("oi-light"), terminal_size=(80, 24), run_before=after(steps))


def test_a_terminal_that_is_too_small(snap_compare: Compare) -> None:
    async def steps(pilot: Pilot[Any]) -> None:
        await pilot.resize_terminal(32, 8)
        await pilot.pause(0.1)

    assert snap_compare(app("oi-dark"), terminal_size=(80, 24), run_before=after(steps))
