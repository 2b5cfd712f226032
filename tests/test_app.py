"""The app around the conversation: starting, keys, modes, themes, panel, quitting."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from textual.command import CommandPalette
from textual.pilot import Pilot

from oi_tui import clipboard, keymap
from oi_tui.app import OiApp
from oi_tui.engine.private_files import config_folder
from oi_tui.engine.settings import ModelSettings, Settings
from oi_tui.notifications import Notifier
from oi_tui.screens.help import HelpScreen, KeySheet
from oi_tui.screens.opening import OpeningScreen
from oi_tui.screens.quit_guard import QuitGuard
from oi_tui.screens.settings import SettingsScreen
from oi_tui.screens.too_small import TooSmall
from oi_tui.screens.welcome import WelcomeScreen
from oi_tui.widgets.side_panel import SidePanel
from oi_tui.widgets.status_bar import Mode
from oi_tui.widgets.top_bar import TopBar
from tests.fakes import Code, FakeSession

SETTINGS = Settings(llm=ModelSettings(model="fake"))


@asynccontextmanager
async def opened(
    session: FakeSession | None = None, settings: Settings = SETTINGS, size: tuple[int, int] = (100, 30)
) -> AsyncIterator[tuple[OiApp, Pilot[None], FakeSession]]:
    """The app with a scripted session, as soon as it can be used."""
    fake = session or FakeSession(settings=settings)
    app = OiApp(settings, make_session=lambda _settings: fake)  # type: ignore[arg-type, return-value]
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.session is not None)
        await pilot.pause()
        yield app, pilot, fake


async def until(pilot: Pilot[Any], condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await pilot.pause(0.01)


async def send(pilot: Pilot[None], text: str) -> None:
    await pilot.press(*("space" if character == " " else character for character in text), "enter")


def shown(app: OiApp) -> str:
    return "\n".join("".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips())


def said(app: OiApp) -> str:
    return " ".join(notification.message for notification in app._notifications)


def profile() -> dict[str, Any]:
    path = config_folder() / "profiles" / "default.yaml"
    return yaml.safe_load(path.read_text()) if path.exists() else {}


# -- starting --------------------------------------------------------------------------------------------------------


def test_the_first_frame_loads_nothing_it_does_not_need() -> None:
    code = (
        "import sys, oi_tui.app\n"
        "heavy = {'litellm', 'jupyter_client', 'zmq', 'pygments', 'markdown_it', 'PIL', 'yaml', 'pyperclip', 'keyring',"
        " 'oi_tui.engine.session', 'oi_tui.screens.chat', 'oi_tui.screens.welcome'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


async def test_what_is_typed_into_the_first_frame_is_not_lost() -> None:
    fake = FakeSession(["Hello."], settings=SETTINGS)
    app = OiApp(SETTINGS, make_session=lambda _settings: fake)  # type: ignore[arg-type, return-value]
    async with app.run_test(size=(100, 30)) as pilot:
        assert isinstance(app.screen, OpeningScreen)
        app.screen.composer.send("sent early")
        app.screen.composer.fill("half a sent")
        await until(pilot, lambda: fake.messages_sent == ["sent early"])
        assert app.chat.composer.text == "half a sent"
        await pilot.press("e")
        assert app.chat.composer.text == "half a sente"


async def test_what_was_typed_and_not_sent_is_there_next_time_and_only_once() -> None:
    async with opened() as (app, pilot, _):
        await pilot.press(*"half")
        app.leave(143)
    async with opened() as (app, pilot, _):
        assert app.chat.composer.text == "half"
        await pilot.press("ctrl+c")
        app.leave(0)
    async with opened() as (app, pilot, _):
        assert app.chat.composer.text == ""


async def test_without_history_nothing_is_kept(empty_machine: Path) -> None:
    private = replace(SETTINGS, conversation_history=False)
    async with opened(settings=private) as (app, pilot, _):
        await send(pilot, "secret question")
        await until(pilot, lambda: not app.what_runs)
        await pilot.press(*"secret draft")
        app.leave(0)
    kept = [path for path in empty_machine.rglob("*") if path.is_file() and b"secret" in path.read_bytes()]
    assert kept == []


async def test_the_first_request_names_the_conversation() -> None:
    async with opened(FakeSession(["Fine."], settings=SETTINGS)) as (app, pilot, fake):
        fake.messages = [{"role": "user", "type": "message", "content": "which month sold best?\nreally"}]
        await send(pilot, "which month sold best?")
        await until(pilot, lambda: app.chat.query_one(TopBar).heading)
        assert app.chat.query_one(TopBar).heading == "which month sold best?"


async def test_notes_about_the_settings_are_told() -> None:
    async with opened(settings=replace(SETTINGS, notes=("Unknown setting [/x] modle.",))) as (app, pilot, _):
        await until(pilot, lambda: said(app))
        assert said(app) == "Unknown setting [/x] modle."


async def test_without_a_model_the_first_thing_is_to_choose_one(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = Settings()
    async with opened(FakeSession(settings=nobody), settings=nobody) as (app, pilot, fake):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        await until(pilot, lambda: "Demo" in shown(app))
        await pilot.click("#demo")
        await until(pilot, lambda: fake.settings.llm.model == "demo")
        await until(pilot, lambda: "demo" in shown(app).splitlines()[0])
        assert app.focused is app.chat.composer.prompt


# -- keys ------------------------------------------------------------------------------------------------------------


async def test_the_palette_finds_and_does_things_by_name() -> None:
    async with opened() as (app, pilot, _):
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette))
        await pilot.press(*"settin")
        await until(pilot, lambda: "Settings" in shown(app) and "Choose model" not in shown(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen))


async def test_help_and_key_sheet_open_close_and_give_the_focus_back() -> None:
    async with opened() as (app, pilot, _):
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, KeySheet))
        await until(pilot, lambda: "Send the message." in shown(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert app.focused is app.chat.composer.prompt
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, KeySheet))


async def test_the_users_own_keys_count_and_their_mistakes_are_told() -> None:
    keymap.keymap_path().parent.mkdir(parents=True, exist_ok=True)
    keymap.keymap_path().write_text("app.help: f12\napp.panel: ctrl+n\nno.such: f9\n")
    async with opened() as (app, pilot, _):
        await until(pilot, lambda: "no.such" in said(app))
        assert "^N is both" in said(app)
        await pilot.press("f12")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.press("escape", "f1")
        await pilot.pause()
        assert not isinstance(app.screen, HelpScreen)


def test_every_key_of_the_app_has_an_id_of_a_known_place() -> None:
    import oi_tui.screens.chat
    import oi_tui.screens.settings
    import oi_tui.screens.welcome  # noqa: F401

    entries = keymap.catalogue()
    assert {entry.place for entry in entries} <= set(keymap.PLACES)


# -- modes -----------------------------------------------------------------------------------------------------------


async def test_shift_tab_walks_through_the_modes_and_running_everything_is_framed() -> None:
    async with opened() as (app, pilot, fake):
        assert not app.chat.has_class("-run-all")
        await pilot.press("shift+tab")
        assert app.chat.mode is Mode.RULES
        await pilot.press("shift+tab")
        assert app.chat.mode is Mode.RUN_ALL and app.chat.has_class("-run-all") and fake.settings.auto_run
        await pilot.pause()
        assert shown(app)[0] == "┏"
        assert "run all" in shown(app).splitlines()[1]
        await pilot.press("shift+tab")
        assert app.chat.mode is Mode.ASK and not fake.settings.auto_run


async def test_safe_mode_forbids_running_everything() -> None:
    async with opened(settings=replace(SETTINGS, safe_mode="ask")) as (app, pilot, fake):
        for _ in range(5):
            await pilot.press("shift+tab")
            assert app.chat.mode is not Mode.RUN_ALL
            assert not fake.settings.auto_run


async def test_what_the_first_row_says_can_be_clicked() -> None:
    async with opened() as (app, pilot, _):
        row = shown(app).splitlines()[0]
        await pilot.click(TopBar, offset=(row.index("ask"), 0))
        assert app.chat.mode is Mode.RULES
        await pilot.pause()
        row = shown(app).splitlines()[0]
        await pilot.click(TopBar, offset=(row.index("fake"), 0))
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))


# -- quitting --------------------------------------------------------------------------------------------------------


async def test_quitting_is_quick_while_nothing_runs_and_closes_the_session() -> None:
    async with opened() as (app, pilot, fake):
        await pilot.press("ctrl+q")
        await until(pilot, lambda: app._exit)
    assert not fake.is_open
    assert app.return_code == 0


async def test_control_c_quits_only_twice() -> None:
    async with opened() as (app, pilot, _):
        await pilot.press("ctrl+c")
        await until(pilot, lambda: "again" in said(app))
        assert not app._exit
        await pilot.press("ctrl+c")
        await until(pilot, lambda: app._exit)


async def test_quitting_asks_while_something_runs() -> None:
    release = asyncio.Event()
    fake = FakeSession([release, "Done."], settings=SETTINGS)
    async with opened(fake) as (app, pilot, _):
        await send(pilot, "go")
        await until(pilot, lambda: app.what_runs)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: isinstance(app.screen, QuitGuard))
        await pilot.press("n")
        await until(pilot, lambda: app.screen is app.chat)
        assert not app._exit
        await pilot.press("ctrl+q")
        await until(pilot, lambda: isinstance(app.screen, QuitGuard))
        await pilot.press("enter")  # the harmless answer has the focus
        await until(pilot, lambda: app.screen is app.chat)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: isinstance(app.screen, QuitGuard))
        await pilot.press("y")
        await until(pilot, lambda: app._exit)


# -- looks -----------------------------------------------------------------------------------------------------------


async def test_starting_saves_nothing_and_choosing_a_theme_saves_it() -> None:
    async with opened() as (app, pilot, _):
        assert profile() == {}
        app.theme = "oi-light"
        await until(pilot, lambda: profile().get("theme") == "oi-light")
    async with opened(settings=replace(SETTINGS, theme="oi-light")) as (app, pilot, _):
        assert app.theme == "oi-light"


@pytest.mark.parametrize(
    "theme", ["oi-dark", "oi-light", "oi-ansi", "textual-dark", "dracula", "ansi-light", "no-such"]
)
async def test_every_theme_draws(theme: str) -> None:
    fake = FakeSession(["# Hi\n\nthere `code`", Code("print(1)", "python", ("1\n",))], settings=SETTINGS)
    async with opened(fake, settings=replace(SETTINGS, theme=theme)) as (app, pilot, _):
        await send(pilot, "go")
        await until(pilot, lambda: "print(1)" in shown(app))


async def test_a_terminal_that_is_too_small_says_so_and_recovers() -> None:
    async with opened() as (app, pilot, _):
        await pilot.press(*"draft")
        await pilot.resize_terminal(30, 8)
        await until(pilot, lambda: isinstance(app.screen, TooSmall))
        await until(pilot, lambda: "Too small: 30×8." in shown(app))
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: app.screen is app.chat)
        assert app.chat.composer.text == "draft"
        await pilot.press("s")
        assert app.chat.composer.text == "drafts"


async def test_a_terminal_that_is_too_small_at_first_opens_when_it_has_grown() -> None:
    app = OiApp(SETTINGS, make_session=lambda settings: FakeSession(settings=settings))  # type: ignore[arg-type, return-value]
    async with app.run_test(size=(20, 5)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, TooSmall))
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: app.session is not None and app.screen is app.chat)


# -- the panel -------------------------------------------------------------------------------------------------------


async def test_the_panel_lists_runs_and_leads_to_them() -> None:
    fake = FakeSession([Code("total = 1 + 1", "python", ("2\n",))], settings=replace(SETTINGS, auto_run=True))
    async with opened(fake, settings=fake.settings, size=(120, 40)) as (app, pilot, _):
        await send(pilot, "go")
        await until(pilot, lambda: not app.what_runs)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: app.chat.query(SidePanel) and app.chat.query_one(SidePanel).sections)
        runs = {section.title: section.rows for section in app.chat.query_one(SidePanel).sections}["Runs"]
        assert runs[0].text == "total = 1 + 1"
        panel = app.chat.query_one(SidePanel)
        panel.focus()
        await pilot.press("end", "enter")
        await until(pilot, lambda: app.chat.transcript.cursor is not None)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: not panel.is_open)


async def test_a_wide_terminal_has_the_panel_open_until_it_is_closed() -> None:
    async with opened(size=(200, 50)) as (app, pilot, _):
        await until(pilot, lambda: app.chat.query(SidePanel) and app.chat.query_one(SidePanel).is_open)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: not app.chat.query_one(SidePanel).is_open)
        await pilot.resize_terminal(190, 50)
        await pilot.pause(0.1)
        assert not app.chat.query_one(SidePanel).is_open


async def test_what_a_panel_shows_has_no_power_over_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(size=(120, 40)) as (app, pilot, _):
        (tmp_path / "evil\x1b]0;x\x07\u202e.txt").touch()
        await pilot.press("ctrl+t")
        await until(pilot, lambda: "evil" in shown(app))
        assert "\x1b" not in shown(app) and "\u202e" not in shown(app)


# -- copying, telling, new conversations, settings ---------------------------------------------------------------------


async def test_copying_says_which_way_it_went(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []

    async def copy(text: str, write: object) -> str:
        copied.append(text)
        return "Copied it somewhere."

    monkeypatch.setattr(clipboard, "copy", copy)
    async with opened() as (app, pilot, _):
        await pilot.press("ctrl+y")
        await until(pilot, lambda: "Nothing is selected" in said(app))
        await pilot.press(*"word", "shift+home", "ctrl+y")
        await until(pilot, lambda: copied == ["word"])
        await until(pilot, lambda: "Copied it somewhere." in said(app))
        assert app.chat.composer.text == "word"


async def test_a_user_who_looks_elsewhere_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(Notifier, "notify", lambda self, what: told.append(what))
    fake = FakeSession([Code("1", "python", ())], ["Fine."], settings=SETTINGS)
    async with opened(fake) as (app, pilot, _):
        await send(pilot, "go")
        await until(pilot, lambda: told == ["waits for you"])
        app.chat.transcript.decline()
        await until(pilot, lambda: told == ["waits for you", "done"])


async def test_a_new_conversation_has_a_new_session_and_keeps_the_draft() -> None:
    made: list[FakeSession] = []

    def make(settings: Settings) -> FakeSession:
        made.append(FakeSession(["First answer."], settings=settings))
        return made[-1]

    app = OiApp(SETTINGS, make_session=make)  # type: ignore[arg-type]
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: app.session is not None)
        await send(pilot, "hello")
        await until(pilot, lambda: "First answer." in shown(app) and not app.what_runs)
        await pilot.press(*"draft", "ctrl+n")
        await until(pilot, lambda: len(made) == 2 and not made[0].is_open)
        await until(pilot, lambda: "First answer." not in shown(app))
        assert app.chat.composer.text == "draft"
        assert app.session is made[1]  # type: ignore[comparison-overlap]


async def test_a_setting_is_changed_used_and_saved() -> None:
    async with opened() as (app, pilot, fake):
        app.action_settings()
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen) and "max_output" in shown(app))
        await pilot.press(*["down"] * shown_index(app, "max_output"), "enter")
        await pilot.press("end", *["backspace"] * 6, *"999", "enter")
        await until(pilot, lambda: fake.settings.max_output == 999)
        await until(pilot, lambda: profile().get("max_output") == 999)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)


def shown_index(app: OiApp, name: str) -> int:
    screen = app.screen
    assert isinstance(screen, SettingsScreen)
    return screen._names.index(name)


async def test_a_value_that_cannot_be_is_refused_in_words() -> None:
    async with opened() as (app, pilot, fake):
        app.action_settings()
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen) and "max_output" in shown(app))
        await pilot.press(*["down"] * shown_index(app, "max_output"), "enter", *"x", "enter")
        await until(pilot, lambda: "max_output" in str(app.screen.query_one("#outcome").render()))
        assert fake.settings.max_output == SETTINGS.max_output
        assert profile() == {}


async def test_a_fault_in_the_background_is_a_calm_word_and_the_app_goes_on() -> None:
    async with opened() as (app, pilot, _):

        async def fail() -> None:
            raise RuntimeError("boom")

        app.run_worker(fail(), name="some job", exit_on_error=False)
        await until(pilot, lambda: "A fault of oi-tui (some job)" in said(app))
        await send(pilot, "still here")
        assert app.is_running
