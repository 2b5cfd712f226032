"""The first run: what was found, what can be typed, the test, and what is saved where."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Button, Input, Label, OptionList

from oi_tui.engine import secrets
from oi_tui.engine.errors import AuthenticationFailed
from oi_tui.engine.llm.local import Found, FoundKind
from oi_tui.engine.private_files import config_folder
from oi_tui.engine.settings import ModelSettings
from oi_tui.screens.welcome import Choice, WelcomeScreen
from oi_tui.styles import STYLES
from oi_tui.styles.themes import tokens_for

FROM_ENVIRONMENT = Found(FoundKind.ENVIRONMENT, "OpenAI: openai/gpt-5.4", "openai/gpt-5.4", env_var="OPENAI_API_KEY")
FROM_OLLAMA = Found(FoundKind.OLLAMA, "Ollama: qwen3:8b", "ollama_chat/qwen3:8b", "http://127.0.0.1:11434")


class Host(App[None]):
    CSS_PATH = STYLES / "dialogues.tcss"

    def __init__(self, screen: WelcomeScreen) -> None:
        super().__init__()
        self.welcome = screen
        self.answers: list[Choice | None] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return tokens_for(self.current_theme)

    def on_mount(self) -> None:
        self.push_screen(self.welcome, self.answers.append)

    def outcome(self) -> str:
        return str(self.welcome.query_one("#outcome", Label).content)

    def rows(self) -> list[str]:
        options = self.welcome.query_one("#found", OptionList).options
        return [" ".join(str(option.prompt).split()) for option in options]


def finds(*found: Found, then: asyncio.Event | None = None) -> Callable[[], AsyncGenerator[Found, None]]:
    async def look() -> AsyncGenerator[Found, None]:
        for one in found:
            yield one
        if then is not None:
            await then.wait()

    return look


async def until(pilot: Pilot[Any], condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await pilot.pause(0.01)


def saved() -> dict[str, Any]:
    content = yaml.safe_load((config_folder() / "profiles" / "default.yaml").read_text())
    assert isinstance(content, dict)
    return content


async def test_what_was_found_is_offered_as_it_answers_and_the_demo_always() -> None:
    more = asyncio.Event()
    host = Host(WelcomeScreen(look=finds(FROM_ENVIRONMENT, FROM_OLLAMA, then=more)))
    async with host.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(host.rows()) == 3)
        assert host.rows()[0] == "OpenAI: openai/gpt-5.4 key in OPENAI_API_KEY"
        assert host.rows()[1] == "Ollama: qwen3:8b http://127.0.0.1:11434"
        assert host.rows()[2].startswith("Demo: scripted, no AI")
        assert "Looking for" in str(host.welcome.query_one("#looking", Label).content)
        more.set()
        await until(pilot, lambda: str(host.welcome.query_one("#looking", Label).content) == "")


async def test_finding_nothing_is_said() -> None:
    host = Host(WelcomeScreen(look=finds()))
    async with host.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "No model server" in str(host.welcome.query_one("#looking", Label).content))


async def test_two_keys_use_what_was_found_and_it_is_saved() -> None:
    host = Host(WelcomeScreen(look=finds(FROM_OLLAMA)))
    async with host.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(host.rows()) == 2)
        await pilot.press("enter")
        assert host.focused is not None and host.focused.id == "use"
        await pilot.press("enter")
        await until(pilot, lambda: bool(host.answers))
        choice = host.answers[0]
        assert choice is not None
        assert (choice.model, choice.api_base, choice.api_key) == (FROM_OLLAMA.model, FROM_OLLAMA.api_base, None)
        assert saved()["llm"]["model"] == FROM_OLLAMA.model
        assert saved()["llm"]["api_base"] == FROM_OLLAMA.api_base


async def test_the_demo_is_one_choice_away_and_is_not_saved() -> None:
    host = Host(WelcomeScreen(look=finds()))
    async with host.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(host.rows()) == 1)
        await pilot.press("enter")
        await until(pilot, lambda: bool(host.answers))
        assert host.answers == [Choice("demo")]
        assert not (config_folder() / "profiles" / "default.yaml").exists()


async def test_a_typed_key_is_masked_stored_apart_and_in_no_profile(empty_machine: Path) -> None:
    host = Host(WelcomeScreen(look=finds()))
    async with host.run_test(size=(80, 24)) as pilot:
        host.welcome.query_one("#model", Input).value = "openai/gpt-5.4"
        host.welcome.query_one("#api-key", Input).focus()
        await pilot.press(*"sk-typed-secret-0123")
        screen = "\n".join(strip.text for strip in host.screen._compositor.render_strips())
        assert "secret" not in screen
        await pilot.click("#use")
        await until(pilot, lambda: bool(host.answers))
        assert host.answers[0] is not None and host.answers[0].api_key == "sk-typed-secret-0123"
    assert secrets.load_key("openai") == "sk-typed-secret-0123"
    holders = [path for path in empty_machine.rglob("*") if path.is_file() and b"typed-secret" in path.read_bytes()]
    assert [path.name for path in holders] == ["keys.json"]
    if os.name == "posix":
        assert stat.S_IMODE(holders[0].stat().st_mode) == 0o600


async def test_the_test_shows_what_the_model_answers() -> None:
    asked: list[ModelSettings] = []

    async def ask(settings: ModelSettings) -> str:
        asked.append(settings)
        return "ready\x1b[2J"

    host = Host(WelcomeScreen(look=finds(), ask=ask))
    async with host.run_test(size=(80, 24)) as pilot:
        host.welcome.query_one("#model", Input).value = "x/y"
        host.welcome.query_one("#api-base", Input).value = "http://127.0.0.1:9/v1"
        await pilot.press("ctrl+t")
        await until(pilot, lambda: "answers" in host.outcome())
        assert host.outcome().startswith("It answers: “ready”")
        assert (asked[0].model, asked[0].api_base) == ("x/y", "http://127.0.0.1:9/v1")


async def test_a_test_that_fails_says_why_in_plain_words() -> None:
    async def ask(settings: ModelSettings) -> str:
        raise AuthenticationFailed("The key was refused.", "Type it again.")

    host = Host(WelcomeScreen(look=finds(), ask=ask))
    async with host.run_test(size=(80, 24)) as pilot:
        host.welcome.query_one("#model", Input).value = "x/y"
        await pilot.click("#test")
        await until(pilot, lambda: "refused" in host.outcome())
        assert host.outcome() == "The key was refused. Type it again."
        assert host.answers == []


@pytest.mark.parametrize(
    ("model", "api_base", "word"), [("", "", "Which model?"), ("x/y", "localhost:8080", "begins with http")]
)
async def test_what_cannot_work_is_said_before_anything_is_asked_or_saved(model: str, api_base: str, word: str) -> None:
    host = Host(WelcomeScreen(look=finds()))
    async with host.run_test(size=(80, 24)) as pilot:
        host.welcome.query_one("#model", Input).value = model
        host.welcome.query_one("#api-base", Input).value = api_base
        await pilot.click("#use")
        await until(pilot, lambda: word in host.outcome())
        assert host.answers == []
        assert not (config_folder() / "profiles" / "default.yaml").exists()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_that_cannot_be_written_does_not_stop_the_session(empty_machine: Path) -> None:
    config_folder().parent.mkdir(parents=True, exist_ok=True)
    config_folder().parent.chmod(0o500)
    host = Host(WelcomeScreen(look=finds()))
    async with host.run_test(size=(80, 24)) as pilot:
        host.welcome.query_one("#model", Input).value = "x/y"
        await pilot.click("#use")
        await until(pilot, lambda: bool(host.answers))
        assert host.answers[0] is not None
        assert host.answers[0].note.startswith("Used for this session only")


async def test_escape_puts_it_off() -> None:
    host = Host(WelcomeScreen(look=finds()))
    async with host.run_test(size=(80, 24)) as pilot:
        await pilot.press("escape")
        await until(pilot, lambda: bool(host.answers))
        assert host.answers == [None]


async def test_everything_can_be_reached_in_a_small_terminal() -> None:
    host = Host(WelcomeScreen(look=finds(*[FROM_OLLAMA] * 20)))
    async with host.run_test(size=(60, 16)) as pilot:
        await until(pilot, lambda: len(host.rows()) == 21)
        host.welcome.query_one("#later", Button).focus()
        await pilot.pause()
        assert host.screen.region.contains_region(host.welcome.query_one("#later", Button).region)
