"""Choosing a model: what was found, what can be typed, a test, and the demo. The first thing a new user sees."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from time import monotonic
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, OptionList
from textual.widgets.option_list import Option

from oi_tui.engine.errors import EngineError, SettingsError
from oi_tui.engine.llm.local import Found, FoundKind, look_around
from oi_tui.engine.settings import ModelSettings
from oi_tui.rendering.sanitise import sanitise_line
from oi_tui.styles import STYLES

DEMO = "demo"
ONE_WORD = "Answer with the single word: ready"
TEST_PATIENCE = 90.0
"""Seconds for the test; a local model may have to be loaded first."""

LookAround = Callable[[], AsyncGenerator[Found, None]]
Ask = Callable[[ModelSettings], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Choice:
    """The model to use from now on. `api_key` is None unless it was typed. `note` says where things were saved."""

    model: str
    api_base: str | None = None
    api_key: str | None = None
    note: str = ""


async def ask_for_one_word(settings: ModelSettings) -> str:
    """The beginning of the model's answer to a request for one word. Raises `EngineError`."""
    from oi_tui.engine.llm.base import ModelRequest
    from oi_tui.engine.llm.choose import choose_model

    model = choose_model(settings)
    stream = model.stream(ModelRequest(messages=[{"role": "user", "content": ONE_WORD}], settings=settings))
    answer = ""
    try:
        async for delta in stream:
            answer += delta.text
            if len(answer) >= 20 or delta.reasoning:
                break
    finally:
        await stream.aclose()
        await model.aclose()
    return answer.strip()


class WelcomeScreen(ModalScreen[Choice | None]):
    """Returns a `Choice`, or None when the user puts it off. The choice is saved before it is returned."""

    CSS_PATH = STYLES / "dialogues.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "later", "later", tooltip="Choose later.", id="welcome.later"),
        Binding("ctrl+t", "test", "test", tooltip="Ask the model for one word.", id="welcome.test"),
    ]
    AUTO_FOCUS = "#found"

    def __init__(
        self,
        current: ModelSettings | None = None,
        *,
        look: LookAround = look_around,
        ask: Ask = ask_for_one_word,
    ) -> None:
        super().__init__(classes="dialogue")
        self._current = current or ModelSettings()
        self._look = look
        self._ask = ask
        self._found: list[Found] = []
        self._is_looking = True

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialogue-box -tall", can_focus=False) as box:
            box.border_title = "Choose a model"
            box.border_subtitle = "esc later"
            yield Label(
                "A language model writes the code. It can run here, or be reached with a key.", classes="dialogue-text"
            )
            yield OptionList(id="found", markup=False, compact=True)
            yield Label("", id="looking", classes="dialogue-hint", markup=False)
            with Horizontal(classes="form-row"):
                yield Label("model", classes="form-name")
                yield Input(self._current.model or "", placeholder="provider/name", id="model", compact=True)
            with Horizontal(classes="form-row"):
                yield Label("endpoint", classes="form-name")
                yield Input(
                    self._current.api_base or "", placeholder="only for your own server", id="api-base", compact=True
                )
            with Horizontal(classes="form-row"):
                yield Label("key", classes="form-name")
                yield Input(placeholder="only if none is found", password=True, id="api-key", compact=True)
            yield Label("", id="outcome", markup=False)
            with Horizontal(classes="dialogue-buttons"):
                yield Button("Use it", id="use", compact=True)
                yield Button("Test", id="test", compact=True)
                yield Button("Demo, no AI", id="demo", compact=True)
                yield Button("Later", id="later", compact=True)

    def on_mount(self) -> None:
        for line in self.query(Input):
            line.cursor_blink = False
        self._look_for_models()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_found)

    # -- what is there -----------------------------------------------------------------------------------------------

    @work(exclusive=True, group="look", exit_on_error=False)
    async def _look_for_models(self) -> None:
        async for found in self._look():
            self._found.append(found)
            self._show_found()
        self._is_looking = False
        self._show_found()

    def _show_found(self) -> None:
        """Rows keep their order as they come in, so that the highlight stays on what the user looks at."""
        rows = self.query_one("#found", OptionList)
        highlighted = rows.highlighted
        width = max(20, rows.content_size.width)
        options = [Option(_row(found, width), id=f"found-{index}") for index, found in enumerate(self._found)]
        options.append(Option(Content("Demo: scripted, no AI, no network, but real code in a real kernel"), id=DEMO))
        rows.set_options(options)
        rows.highlighted = highlighted if highlighted is not None else 0
        looking = self.query_one("#looking", Label)
        if self._is_looking:
            looking.update("Looking for Ollama, LM Studio, Jan and llamafile on this machine…")
        elif not any(found.kind is not FoundKind.ENVIRONMENT for found in self._found):
            looking.update("No model server answers on this machine (Ollama, LM Studio, Jan, llamafile).")
        else:
            looking.update("")

    @on(OptionList.OptionSelected, "#found")
    def _picked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_id == DEMO:
            self.dismiss(Choice(DEMO))
            return
        found = self._found[int((event.option_id or "found-0").removeprefix("found-"))]
        self.query_one("#model", Input).value = found.model
        self.query_one("#api-base", Input).value = found.api_base or ""
        self._say("")
        self.query_one("#use", Button).focus()

    # -- what is typed -----------------------------------------------------------------------------------------------

    def _typed(self, name: str) -> str | None:
        return self.query_one(f"#{name}", Input).value.strip() or None

    def _settings(self) -> ModelSettings | None:
        """The model settings as the form stands, or None (and a word to the user) without a model."""
        model, api_base = self._typed("model"), self._typed("api-base")
        if model is None:
            self._say("Which model? For example openai/gpt-5.4, ollama_chat/qwen3:8b.", "problem")
            self.query_one("#model", Input).focus()
            return None
        if api_base is not None and not api_base.startswith(("http://", "https://")):
            self._say("The endpoint is an address that begins with http:// or https://.", "problem")
            self.query_one("#api-base", Input).focus()
            return None
        same_place = (model, api_base) == (self._current.model, self._current.api_base)
        kept = self._current if same_place else ModelSettings()
        return replace(kept, model=model, api_base=api_base, api_key=self._typed("api-key") or kept.api_key)

    @on(Input.Submitted)
    def _line_entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.screen.focus_next()

    @on(Button.Pressed)
    async def _button(self, event: Button.Pressed) -> None:
        event.stop()
        match event.button.id:
            case "use":
                self._use()
            case "test":
                self.action_test()
            case "demo":
                self.dismiss(Choice(DEMO))
            case "later":
                self.action_later()

    def action_later(self) -> None:
        self.dismiss(None)

    # -- test --------------------------------------------------------------------------------------------------------

    def action_test(self) -> None:
        if (settings := self._settings()) is not None:
            self._test(settings)

    @work(exclusive=True, group="test", exit_on_error=False)
    async def _test(self, settings: ModelSettings) -> None:
        self._say(f"Asking {settings.model} for one word…")
        started = monotonic()
        try:
            async with asyncio.timeout(TEST_PATIENCE):
                answer = await self._ask(settings)
        except EngineError as error:
            self._say(str(error), "problem")
        except TimeoutError:
            self._say(f"No answer within {TEST_PATIENCE:.0f} seconds.", "problem")
        else:
            said = f"“{sanitise_line(answer, 30)}”" if answer else "(thinking)"
            self._say(f"It answers: {said}, after {monotonic() - started:.1f} s.", "good")

    def _say(self, text: str, kind: str = "") -> None:
        outcome = self.query_one("#outcome", Label)
        outcome.update(sanitise_line(text, 400))
        outcome.set_classes(f"-{kind}" if kind else "")

    # -- the choice --------------------------------------------------------------------------------------------------

    @work(exclusive=True, group="use", exit_on_error=False)
    async def _use(self) -> None:
        settings = self._settings()
        if settings is None or settings.model is None:
            return
        key = self._typed("api-key")
        try:
            note = await asyncio.to_thread(_save, settings.model, settings.api_base, key)
        except SettingsError as error:
            note = f"Used for this session only: {error}"
        self.dismiss(Choice(settings.model, settings.api_base, key, note))


def _row(found: Found, width: int) -> Content:
    """The model at the left, where it was found at the right."""
    where = sanitise_line(f"key in {found.env_var}" if found.env_var else found.api_base or "", max(8, width // 2))
    title = Content(sanitise_line(found.title, max(8, width - len(where) - 2)))
    return Content.assemble(title, " " * max(2, width - title.cell_length - len(where)), (where, "$text-quiet"))


def _save(model: str, api_base: str | None, key: str | None) -> str:
    """Save the choice and say where. May wait for the keyring: for a thread. Raises `SettingsError`."""
    from oi_tui.engine.profile_saving import save_default
    from oi_tui.engine.secrets import slot_for, store_key

    place = f" The key is in {store_key(slot_for(model, api_base), key)}." if key else ""
    path = save_default({"llm.model": model, "llm.api_base": api_base})
    return f"Saved in {path}.{place}"
