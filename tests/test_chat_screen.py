"""Stories of a conversation on the screen: a user, a scripted session, and what passes between them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot

from oi_tui.app import OiApp
from oi_tui.engine.approval import Decision, Verdict
from oi_tui.engine.lmc import Chunk, Message, notice
from oi_tui.engine.settings import ModelSettings, Settings
from oi_tui.screens.chat import ChatScreen
from oi_tui.screens.output import OutputScreen
from oi_tui.widgets.code_block import CodeBlock
from oi_tui.widgets.code_editor import CodeEditor
from oi_tui.widgets.code_state import CodeState
from oi_tui.widgets.input_request import AnswerField
from oi_tui.widgets.prompt_area import PromptArea
from oi_tui.widgets.run_bar import RunBar
from oi_tui.widgets.status_bar import Mode
from tests.fakes import Ask, Code, FakeSession
from tests.widgets.hosts import screen_text, until


class Talk:
    """An app with a scripted session, and the hands of its user."""

    def __init__(self, app: OiApp, session: FakeSession, pilot: Pilot[None]) -> None:
        self.app, self.session, self.pilot = app, session, pilot

    @property
    def chat(self) -> ChatScreen:
        return self.app.chat

    @property
    def text(self) -> str:
        return screen_text(self.app)

    @property
    def is_idle(self) -> bool:
        return not self.chat.what_runs

    async def until(self, condition: Any, what: str = "") -> None:
        await until(self.pilot, condition, what=what)

    async def say(self, text: str) -> None:
        self.chat.composer.fill(text)
        self.chat.composer.focus()
        await self.pilot.press("enter")

    async def sees(self, text: str) -> None:
        await self.until(lambda: text in self.text, what=f"{text!r} on the screen")

    async def ends(self) -> None:
        await self.until(lambda: self.is_idle, what="the end of the turn")

    async def is_asked(self) -> None:
        """Code waits; go there on purpose, so that keys count at once."""
        await self.until(lambda: self.chat.transcript.is_pending and self.app.screen.query(RunBar), what="a proposal")
        assert self.chat.transcript.live is not None
        bar = self.chat.transcript.live.run_bar
        self.chat.transcript.point_at(self.chat.transcript.live.block)
        await self.until(lambda: bar.has_focus and bar.is_armed, what="the focus on the run bar")

    def block(self, index: int = -1) -> CodeBlock:
        return [block for block in self.chat.transcript.canvas.blocks if isinstance(block, CodeBlock)][index]


@asynccontextmanager
async def talk(*turns: Any, size: tuple[int, int] = (100, 40), **settings: Any) -> AsyncIterator[Talk]:
    session = FakeSession(*turns, settings=Settings(llm=ModelSettings(model="fake"), **settings))
    app = OiApp(session.settings, make_session=lambda _: session)  # type: ignore[arg-type,return-value]
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.session is not None)
        yield Talk(app, session, pilot)


async def test_a_question_and_its_answer() -> None:
    async with talk(["It was *March*."]) as user:
        await user.say("which month sold best?")
        await user.sees("● It was March.")
        await user.ends()
        assert "You  which month sold best?" in user.text
        assert user.session.messages_sent == ["which month sold best?"]
        assert user.chat.composer.is_empty and isinstance(user.app.focused, PromptArea)


async def test_code_is_asked_for_run_and_answered() -> None:
    async with talk([Code("print(6*7)", results=("42\n",)), "It is 42."]) as user:
        await user.say("six times seven")
        await user.is_asked()
        await user.pilot.press("y")
        await user.sees("It is 42.")
        await user.ends()
        assert user.session.decisions == [Decision.run()]
        assert user.block().state is CodeState.DONE and user.block().output.text == "42\n"
        assert isinstance(user.app.focused, PromptArea)


async def test_a_proposal_takes_the_focus_from_an_empty_prompt_but_is_deaf_at_first() -> None:
    async with talk([Code("print(1)")]) as user:
        await user.say("go")
        await user.until(lambda: isinstance(user.app.focused, RunBar))
        await user.pilot.press("y")
        await user.pilot.pause(0.1)
        assert not user.session.decisions
        bar = user.app.focused
        assert isinstance(bar, RunBar)
        await user.until(lambda: bar.is_armed)
        await user.pilot.press("y")
        await user.ends()
        assert user.session.decisions == [Decision.run()]


async def test_a_proposal_never_takes_the_focus_from_a_prompt_with_text() -> None:
    gate = asyncio.Event()
    async with talk(["Wait.", gate, Code("print(1)")]) as user:
        await user.say("go")
        await user.sees("Wait.")
        user.chat.composer.focus()
        await user.pilot.press(*"yes")
        gate.set()
        await user.until(lambda: user.chat.transcript.is_pending)
        await user.pilot.press("y", "e", "s")
        assert isinstance(user.app.focused, PromptArea)
        assert user.chat.composer.text == "yesyes" and not user.session.decisions
        assert "tab to decide" in user.text
        await user.pilot.press("tab")
        bar = user.app.focused
        assert isinstance(bar, RunBar)
        await user.until(lambda: bar.is_armed)
        await user.pilot.press("n")
        await user.ends()
        assert user.chat.composer.text == "yesyes" and user.session.decisions == [Decision.decline()]


async def test_declining_with_words_sends_the_words() -> None:
    async with talk([Code("rm -rf build")]) as user:
        await user.say("clean up")
        await user.is_asked()
        await user.pilot.press("escape")
        await user.until(lambda: isinstance(user.app.focused, PromptArea))
        await user.say("use git clean")
        await user.ends()
        assert user.session.decisions == [Decision.decline("use git clean")]
        assert "You  use git clean" in user.text and "declined" in user.text


async def test_escape_twice_goes_back_to_the_code() -> None:
    async with talk([Code("print(1)")]) as user:
        await user.say("go")
        await user.is_asked()
        await user.pilot.press("escape")
        await user.until(lambda: isinstance(user.app.focused, PromptArea))
        await user.pilot.press("escape")
        await user.is_asked()
        await user.pilot.press("n")
        await user.ends()
        assert user.session.decisions == [Decision.decline()]


async def test_editing_before_running() -> None:
    async with talk([Code("print(1)", results=("2\n",))]) as user:
        await user.say("go")
        await user.is_asked()
        await user.pilot.press("e")
        await user.until(lambda: isinstance(user.app.focused, CodeEditor))
        await user.pilot.press("right", "right", "right", "right", "right", "right", "delete", "2", "f5")
        await user.ends()
        assert user.session.decisions == [Decision.run("print(2)")]
        assert "edited by you +1 −1" in user.text


async def test_editing_in_the_users_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    async def edit(app: Any, text: str, *, extension: str) -> str:
        assert (text, extension) == ("print(1)", "py")
        return "print('from vim')"

    monkeypatch.setattr("oi_tui.screens.chat.edit_text", edit)
    async with talk([Code("print(1)")]) as user:
        await user.say("go")
        await user.is_asked()
        await user.pilot.press("ctrl+g")
        await user.sees("from vim")
        await user.is_asked()
        await user.pilot.press("y")
        await user.ends()
        assert user.session.decisions == [Decision.run("print('from vim')")]


async def test_a_scope_answers_later_blocks_of_its_kind_only() -> None:
    turns = [Code("a = 1"), Code("b = 2"), Code("ls", language="shell")]
    async with talk(turns) as user:
        await user.say("go")
        await user.is_asked()
        await user.pilot.press("a", "2")
        await user.until(lambda: user.chat.mode is Mode.RULES)
        assert not user.session.decisions
        await user.pilot.press("y")
        await user.until(lambda: len(user.session.proposals) == 3, what="the shell block")
        await user.is_asked()
        assert len(user.session.decisions) == 2, "the second python block was not asked for, the shell block is"
        await user.pilot.press("n")
        await user.ends()


async def test_ask_mode_asks_whatever_was_allowed() -> None:
    async with talk([Code("a = 1"), Code("b = 2")]) as user:
        await user.say("go")
        await user.is_asked()
        await user.pilot.press("a", "3")
        await user.until(lambda: user.chat.mode is Mode.RULES)
        user.chat._set_mode(Mode.ASK)
        await user.pilot.press("y")
        await user.until(lambda: len(user.session.proposals) == 2)
        await user.is_asked()
        assert len(user.session.decisions) == 1


async def test_running_all_shows_a_red_frame_and_safe_mode_forbids_it() -> None:
    async with talk() as user:
        for mode in (Mode.RULES, Mode.RUN_ALL, Mode.ASK):
            await user.pilot.press("shift+tab")
            assert user.chat.mode is mode
            assert user.chat.has_class("-run-all") is (mode is Mode.RUN_ALL) is user.session.settings.auto_run
    async with talk(safe_mode="ask", auto_run=True) as user:
        await user.pilot.press("shift+tab", "shift+tab")
        assert not user.session.settings.auto_run and not user.chat.has_class("-run-all")


async def test_a_click_on_code_that_waits_edits_it_but_not_the_click_that_brought_the_window() -> None:
    async with talk([Code("print(1)")]) as user:
        await user.say("go")
        await user.is_asked()
        row = next(n for n, line in enumerate(user.text.splitlines()) if "print(1)" in line)
        user.app.post_message(events.AppBlur())
        await user.until(lambda: not user.app.app_focus)
        user.app.post_message(events.AppFocus())
        await user.pilot.click(offset=(12, row))
        assert not user.app.screen.query(CodeEditor)
        guard = user.chat.transcript._click_guard
        await user.until(guard.allows)
        await user.pilot.click(offset=(12, row))
        await user.until(lambda: isinstance(user.app.focused, CodeEditor))


async def test_a_wait_for_the_model_is_said_counted_and_ends_with_the_first_words() -> None:
    words = asyncio.Event()
    async with talk([words, "Here it is."]) as user:
        await user.say("hello")
        await user.sees("· waiting for fake …")
        await user.sees("· waiting for fake … 2 s")
        words.set()
        await user.sees("● Here it is.")
        assert "waiting for" not in user.text


async def test_stopping_while_nothing_has_come_leaves_a_word() -> None:
    async with talk([asyncio.Event()]) as user:
        await user.say("hello")
        await user.sees("waiting for fake")
        await user.pilot.press("escape")
        await user.ends()
        await user.sees("· stopped")
        assert "waiting for" not in user.text


async def test_declining_with_words_shows_what_comes_next() -> None:
    long = "\n".join(f"line_{n} = {n}" for n in range(80))
    async with talk([Code(long)], size=(80, 24)) as user:
        await user.say("do it")
        await user.is_asked()
        assert not user.chat.transcript.canvas.is_following
        await user.pilot.press("escape")
        await user.say("shorter, please")
        await user.ends()
        await user.sees("You  shorter, please")
        assert user.chat.transcript.canvas.is_following


async def test_stopping_the_answer() -> None:
    async with talk(["First part.", asyncio.Event(), "Never."]) as user:
        await user.say("go")
        await user.sees("First part.")
        await user.pilot.press("escape")
        await user.ends()
        assert user.session.cancelled == 1 and "Never." not in user.text


async def test_interrupting_code_keeps_the_program() -> None:
    async with talk([Code("loop()", results=("working\n", asyncio.Event(), "never\n"))]) as user:
        await user.say("go")
        await user.is_asked()
        await user.pilot.press("y")
        await user.sees("working")
        await user.pilot.press("ctrl+c")
        await user.ends()
        assert (user.session.interrupted, user.session.killed) == (1, 0)
        assert user.app.is_running and user.block().state in (CodeState.STOPPED, CodeState.DONE)


async def test_code_that_ignores_an_interrupt_is_killed_by_the_second() -> None:
    async with talk([Code("loop()", results=("working\n", asyncio.Event()))]) as user:

        async def deaf() -> None:
            user.session.interrupted += 1

        user.session.interrupt = deaf  # type: ignore[method-assign]
        await user.say("go")
        await user.is_asked()
        await user.pilot.press("y")
        await user.sees("working")
        await user.pilot.press("escape")
        await user.until(lambda: user.session.interrupted)
        await user.pilot.press("escape")
        await user.ends()
        assert (user.session.interrupted, user.session.killed) == (1, 1)


async def test_answering_a_program() -> None:
    async with talk([Code("input()", results=(Ask("Your name? "),))]) as user:
        await user.say("go")
        await user.is_asked()
        await user.pilot.press("y")
        await user.until(lambda: isinstance(user.app.focused, AnswerField), what="the field takes the focus")
        await user.pilot.press("A", "d", "a")
        field = user.chat.transcript.live.input_field  # type: ignore[union-attr]
        assert field is not None
        await user.until(lambda: field._clock() > field._armed_at)
        await user.pilot.press("enter")
        await user.ends()
        assert user.session.answers == ["Ada"] and "Your name? <Ada>" in user.text


async def test_messages_sent_meanwhile_wait_their_turn() -> None:
    gate = asyncio.Event()
    async with talk(["One.", gate], ["Two."], ["Three."]) as user:
        await user.say("first")
        await user.sees("One.")
        await user.say("second")
        await user.say("third")
        assert user.session.messages_sent == ["first"]
        gate.set()
        await user.sees("Three.")
        assert user.session.messages_sent == ["first", "second", "third"]


async def test_a_failed_turn_can_be_tried_again() -> None:
    error = [notice("retry", "trying again in 3 s"), Chunk("server", "error", "connection", "Refused. Is it running?")]
    async with talk(error, ["Here I am."]) as user:
        await user.say("hello")
        await user.sees("✗ Refused. Is it running?")
        await user.ends()
        assert "trying again" not in user.text, "what was transient is gone"
        await user.pilot.press("f5")
        await user.sees("Here I am.")
        assert user.session.messages_sent == ["hello", None]


async def test_a_fault_of_ours_is_a_calm_line_and_the_next_turn_works() -> None:
    async with talk(["Before.", ValueError("a [bug]")], ["After."]) as user:
        await user.say("go")
        await user.sees("A fault of oi-tui ended the turn: ValueError: a [bug]")
        await user.ends()
        await user.say("again")
        await user.sees("After.")


async def test_run_again_goes_through_approval() -> None:
    async with talk([Code("print(1)", results=("1\n",))]) as user:
        await user.say("go")
        await user.is_asked()
        await user.pilot.press("y")
        await user.ends()
        await user.pilot.press("alt+up", "r")
        await user.is_asked()
        assert len(user.session.decisions) == 1
        await user.pilot.press("y")
        await user.sees("ran again")
        await user.ends()
        assert "yours" in user.text


async def test_editing_a_copy_opens_the_editor_on_a_new_block() -> None:
    async with talk([Code("print(1)", results=("1\n",))]) as user:
        await user.say("go")
        await user.is_asked()
        await user.pilot.press("y")
        await user.ends()
        await user.pilot.press("alt+up", "e")
        await user.until(lambda: isinstance(user.app.focused, CodeEditor))
        await user.pilot.press("#", "f5")
        await user.ends()
        assert user.session.decisions[-1] == Decision.run("#print(1)")
        assert user.block(0).code == "print(1)", "the first block is what it was"


async def test_a_typed_shell_line_runs_unless_it_hides_something() -> None:
    async with talk() as user:
        await user.say("!echo hello")
        await user.ends()
        assert [proposal.code for proposal in user.session.proposals] == ["echo hello"]
        assert user.session.decisions == [Decision.run()]
        await user.say("!echo '\u202ehello'")
        await user.is_asked()
        assert len(user.session.decisions) == 1
        await user.pilot.press("n")
        await user.ends()


async def test_typing_while_code_runs_goes_to_the_prompt() -> None:
    gate = asyncio.Event()
    async with talk([Code("loop()", results=(gate,))]) as user:
        await user.say("go")
        await user.is_asked()
        await user.pilot.press("y")
        await user.until(lambda: user.session.decisions)
        await user.pilot.press("enter")
        await user.pilot.press("n", "e", "x", "t")
        await user.until(lambda: user.chat.composer.text == "next")
        gate.set()
        await user.ends()
        assert user.chat.composer.text == "next" and isinstance(user.app.focused, PromptArea)


async def test_reading_above_is_not_disturbed_and_new_lines_are_counted() -> None:
    gate = asyncio.Event()
    long = "\n\n".join(f"Paragraph {n}." for n in range(60))
    async with talk([long, gate, "And more.\n\nAnd more."]) as user:
        await user.say("go")
        await user.sees("Paragraph 59.")
        await user.pilot.press("pageup", "pageup")
        await user.pilot.pause()
        before = [row[:98] for row in user.text.splitlines()[1:20]]
        gate.set()
        await user.ends()
        await user.sees("↓ 4 new")
        assert [row[:98].rstrip() for row in user.text.splitlines()[1:20]] == [row.rstrip() for row in before]


async def test_the_whole_output_on_the_whole_screen() -> None:
    output = "".join(f"row {n}\n" for n in range(500))
    async with talk([Code("print()", results=(output,))]) as user:
        await user.say("go")
        await user.is_asked()
        await user.pilot.press("y")
        await user.ends()
        await user.pilot.press("alt+up", "enter")
        await user.until(lambda: isinstance(user.app.screen, OutputScreen))
        await user.sees("row 499")
        await user.pilot.press("g")
        await user.sees("row 0")
        await user.pilot.press("escape")
        await user.until(lambda: user.app.screen is user.chat)


async def test_finding_a_word() -> None:
    async with talk(["Many words, one needle."]) as user:
        await user.say("go")
        await user.ends()
        await user.pilot.press("ctrl+f", *"needle")
        await user.sees("1/1")
        await user.pilot.press("escape")
        await user.until(lambda: isinstance(user.app.focused, PromptArea))
        assert "find:" not in user.text


async def test_a_stored_conversation_is_shown_and_nothing_runs_by_itself() -> None:
    session = FakeSession(settings=Settings(llm=ModelSettings(model="fake"), auto_run=True))
    session.messages = [
        Message("user", "message", "hello").to_dict(),
        Message("assistant", "message", "Let me see.").to_dict(),
        Message("assistant", "code", "print('unrun')", "python").to_dict(),
    ]
    app = OiApp(session.settings, make_session=lambda _: session)  # type: ignore[arg-type,return-value]
    async with app.run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: app.session is not None)
        await until(pilot, lambda: "print('unrun')" in screen_text(app))
        assert "not run" in screen_text(app) and not session.messages_sent


async def test_random_keys_run_nothing() -> None:
    """Nobody looks at the screen: keys come at random while proposals come and go."""
    dice = random.Random(7)
    keys = ["y", "Y", "enter", "n", "a", "1", "2", "3", "e", "space", "tab", "up", "x", "escape", "alt+up"]
    async with talk(*([Code(f"run({n})")] for n in range(8))) as user:
        for number in range(8):
            await user.say(f"request {number}")
            for _ in range(60):
                key = dice.choice(keys)
                user.app.post_message(events.Key(key, key if len(key) == 1 else None))
                await user.pilot.pause(0.005)
            if not user.is_idle:
                await user.chat._turn.stop()  # type: ignore[union-attr]
            await user.ends()
            user.chat.composer.prompt.load_text("")
        verdicts = [decision.verdict for decision in user.session.decisions]
        assert Verdict.RUN not in verdicts


async def test_refused_input_ends_in_a_calm_turn() -> None:
    async with talk([Code("input()", results=(Ask("? "),))]) as user:
        await user.say("go")
        await user.is_asked()
        await user.pilot.press("y")
        await user.until(lambda: isinstance(user.app.focused, AnswerField))
        await user.pilot.press("escape")
        await user.ends()
        assert user.app.is_running and not user.session.answers and "KeyboardInterrupt" in user.text


async def test_any_size_at_any_moment() -> None:
    dice = random.Random(11)
    gate = asyncio.Event()
    code = "\n".join(f"line_{n} = '{'wide 漢字 ' * 20}'" for n in range(30))
    async with talk(
        ["# Title\n\n" + "Some words. " * 80, Code(code, results=("out " * 200 + "\n", gate, Ask("? ")))]
    ) as user:

        async def shake(times: int) -> None:
            for _ in range(times):
                await user.pilot.resize_terminal(dice.randint(1, 200), dice.randint(1, 60))
            await user.pilot.resize_terminal(100, 40)
            await user.pilot.pause()

        await user.say("go")
        await user.until(lambda: user.chat.transcript.is_pending)
        await shake(6)
        await user.is_asked()
        await user.pilot.press("e")
        await user.until(lambda: isinstance(user.app.focused, CodeEditor))
        await shake(6)
        assert "line_29" in user.text or "line_0" in user.text
        await user.pilot.press("escape")
        await user.is_asked()
        bar = user.chat.transcript.live.run_bar  # type: ignore[union-attr]
        while not user.session.decisions:
            await user.until(lambda: bar.is_armed or user.session.decisions, what="the bar to listen")
            await user.pilot.press("y")
            await user.pilot.pause(0.1)
        await shake(6)
        gate.set()
        await user.until(lambda: user.app.screen.query(AnswerField))
        await shake(6)
        assert user.app.is_running and "esc interrupt" in user.text
        user.chat.transcript.live.focus()  # type: ignore[union-attr]
        await user.pilot.press("escape")
        await user.ends()
