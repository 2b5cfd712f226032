"""Typing a message: sending, newlines, pastes, history, completion, the queue."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Input

from oi_tui.prompt_history import PromptHistory
from oi_tui.styles.themes import tokens_for
from oi_tui.widgets.completion import CompletionList
from oi_tui.widgets.composer import Composer
from oi_tui.widgets.history_search import HistorySearch
from oi_tui.widgets.message_queue import MessageQueue


class Host(App[None]):
    CSS: ClassVar[str] = "Composer { dock: bottom; }"

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []
        self.asked_for_keys = 0

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return tokens_for(self.current_theme)

    def compose(self) -> ComposeResult:
        yield Composer()

    def on_mount(self) -> None:
        self.composer.focus()

    def on_composer_submitted(self, event: Composer.Submitted) -> None:
        self.sent.append(event.text)

    def action_key_sheet(self) -> None:
        self.asked_for_keys += 1

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    @property
    def completions(self) -> CompletionList:
        return self.query_one("#completions", CompletionList)


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await pilot.pause(0.01)


async def type_text(pilot: Pilot[None], text: str) -> None:
    await pilot.press(*("space" if character == " " else character for character in text))


def paste(host: Host, text: str) -> None:
    host.composer.prompt.post_message(events.Paste(text))


def labels(host: Host) -> list[str]:
    return [item.label for item in host.completions.items]


async def test_enter_sends_and_empties_the_prompt() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await type_text(pilot, "which month sold best?")
        await pilot.press("enter")
        assert host.sent == ["which month sold best?"]
        assert host.composer.is_empty


async def test_a_blank_prompt_sends_nothing() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press("enter", "space", "enter")
        assert host.sent == []


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter", "alt+enter"])
async def test_a_newline_has_three_keys(key: str) -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press("a", key, "b", "enter")
        assert host.sent == ["a\nb"]


async def test_the_prompt_grows_to_a_third_of_the_screen() -> None:
    host = Host()
    async with host.run_test(size=(80, 24)) as pilot:
        heights = []
        for _ in range(12):
            await pilot.press("x", "ctrl+j")
            heights.append(host.composer.prompt.size.height)
        assert heights[:3] == [2, 3, 4]
        assert heights[-1] in (7, 8)


async def test_a_paste_with_newlines_is_one_paste_and_sends_nothing() -> None:
    host = Host()
    async with host.run_test() as pilot:
        paste(host, "one\r\ntwo\rthree\n")
        await pilot.pause()
        assert host.sent == []
        assert host.composer.text == "one\ntwo\nthree\n"


async def test_a_long_paste_folds_and_is_sent_in_full() -> None:
    long = "\n".join(f"line {number}" for number in range(120))
    host = Host()
    async with host.run_test() as pilot:
        await type_text(pilot, "look: ")
        paste(host, long)
        await pilot.pause()
        assert host.composer.prompt.text == "look: [pasted 120 lines]"
        await pilot.press("enter")
        assert host.sent == [f"look: {long}"]


async def test_two_long_pastes_keep_their_own_text() -> None:
    first, second = "\n".join("a" * 50), "\n".join("b" * 50)
    host = Host()
    async with host.run_test() as pilot:
        paste(host, first)
        paste(host, second)
        await pilot.pause()
        assert host.composer.prompt.text == "[pasted 50 lines][pasted 50 lines #2]"
        assert host.composer.text == first + second


async def test_a_chip_is_one_thing_to_the_keys_and_unfolds_on_enter() -> None:
    long = "\n".join(str(number) for number in range(60))
    host = Host()
    async with host.run_test() as pilot:
        paste(host, long)
        await pilot.pause()
        await pilot.press("left")
        assert host.composer.prompt.cursor_location == (0, 0)
        await pilot.press("enter")
        assert host.sent == []
        assert host.composer.prompt.text == long

        await pilot.press("ctrl+z")
        await pilot.press("right", "backspace")
        assert host.composer.is_empty


async def test_a_chip_unfolds_on_a_click() -> None:
    long = "\n".join(str(number) for number in range(60))
    host = Host()
    async with host.run_test() as pilot:
        paste(host, long)
        await pilot.pause()
        await pilot.click(host.composer.prompt, offset=(4, 0))
        assert host.composer.prompt.text == long


async def test_a_huge_line_folds_too() -> None:
    host = Host()
    async with host.run_test() as pilot:
        paste(host, "x" * 1_000_000)
        await pilot.pause()
        assert host.composer.prompt.text == "[pasted 1,000,000 characters]"
        assert len(host.composer.text) == 1_000_000


async def test_control_characters_never_reach_the_prompt() -> None:
    host = Host()
    async with host.run_test() as pilot:
        paste(host, "a\x1b]52;c;ZXZpbA==\x07b\x9b31mc\ud800")
        await pilot.pause()
        assert host.composer.text == "a]52;c;ZXZpbA==b31mc"


async def test_text_that_looks_like_a_chip_is_just_text() -> None:
    host = Host()
    async with host.run_test() as pilot:
        paste(host, "[pasted 99 lines]")
        await pilot.pause()
        await pilot.press("enter")
        assert host.sent == ["[pasted 99 lines]"]


async def test_up_brings_back_what_was_sent_and_down_returns_to_the_draft() -> None:
    host = Host()
    async with host.run_test() as pilot:
        for text in ("first", "second"):
            await type_text(pilot, text)
            await pilot.press("enter")
        await type_text(pilot, "draft")
        await pilot.press("up")
        assert host.composer.text == "second"
        await pilot.press("up")
        assert host.composer.text == "first"
        await pilot.press("up")
        assert host.composer.text == "first"
        await pilot.press("down", "down")
        assert host.composer.text == "draft"


async def test_up_first_moves_within_a_message_of_several_lines() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await type_text(pilot, "old")
        await pilot.press("enter", "a", "ctrl+j", "b", "up")
        assert host.composer.text == "a\nb"
        await pilot.press("up")
        assert host.composer.text == "old"


async def test_history_survives_the_session_in_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "data" / "history.jsonl"
    host = Host()
    async with host.run_test() as pilot:
        host.composer.history = PromptHistory(path)
        paste(host, "two\nlines ✓")
        await pilot.pause()
        await pilot.press("enter")
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    host = Host()
    async with host.run_test() as pilot:
        host.composer.history = PromptHistory(path)
        await pilot.press("up")
        assert host.composer.text == "two\nlines ✓"


async def test_searching_the_history() -> None:
    host = Host()
    async with host.run_test() as pilot:
        for text in ("plot the sales", "count the rows", "plot the costs"):
            host.composer.history.add(text)
        await pilot.press("ctrl+r")
        await type_text(pilot, "plot")
        await pilot.press("up", "enter")
        assert host.composer.text == "plot the sales"
        assert host.focused is host.composer.prompt
        assert host.sent == []


async def test_leaving_the_search_keeps_the_draft() -> None:
    host = Host()
    async with host.run_test() as pilot:
        host.composer.history.add("older")
        await type_text(pilot, "dra")
        await pilot.press("ctrl+r")
        assert host.query_one(HistorySearch).query_one(Input).value == "dra"
        await pilot.press("escape", "f", "t")
        assert host.composer.text == "draft"


async def test_files_are_completed_after_an_at_sign(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").touch()
    (tmp_path / "my report.txt").touch()
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "sales.js").touch()
    (tmp_path / ".hidden-sales").touch()
    host = Host()
    async with host.run_test() as pilot:
        host.composer.completer.folder = tmp_path
        await type_text(pilot, "read @sal")
        await until(pilot, lambda: host.completions.is_open)
        assert labels(host) == ["sales.csv"]
        await pilot.press("tab")
        assert host.composer.text == "read @sales.csv "
        assert not host.completions.is_open

        await type_text(pilot, "@repo")
        await until(pilot, lambda: host.completions.is_open)
        await pilot.press("enter")
        assert host.composer.text == 'read @sales.csv @"my report.txt" '
        assert host.sent == []


async def test_a_folder_goes_on_completing(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").touch()
    host = Host()
    async with host.run_test() as pilot:
        host.composer.completer.folder = tmp_path
        await type_text(pilot, "@dat")
        await until(pilot, lambda: host.completions.is_open)
        await pilot.press("tab")
        await until(pilot, lambda: labels(host) == ["data/a.csv"] or "data/a.csv" in labels(host))
        assert host.composer.text == "@data/"


async def test_escape_closes_the_suggestions_and_enter_then_sends(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").touch()
    host = Host()
    async with host.run_test() as pilot:
        host.composer.completer.folder = tmp_path
        await type_text(pilot, "@sal")
        await until(pilot, lambda: host.completions.is_open)
        await pilot.press("escape", "enter")
        assert host.sent == ["@sal"]


async def test_variables_of_the_kernel_are_completed_like_files(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").touch()
    host = Host()
    async with host.run_test() as pilot:
        host.composer.completer.folder = tmp_path
        host.composer.completer.variables = [("sales", "12,000 × 4"), ("other", "1")]
        await type_text(pilot, "plot @sal")
        await until(pilot, lambda: labels(host) == ["sales", "sales.csv"])
        await pilot.press("tab")
        assert host.composer.text == "plot sales "


async def test_an_address_is_not_a_file() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await type_text(pilot, "mail me@example.org")
        assert not host.completions.is_open


async def test_commands_are_completed_after_a_percent_sign() -> None:
    host = Host()
    async with host.run_test() as pilot:
        host.composer.completer.commands = [("help", "All commands"), ("reset", "Start again"), ("run", "Run again")]
        await pilot.press("%", "r")
        assert labels(host) == ["%reset", "%run"]
        await pilot.press("down", "tab", "enter")
        assert host.sent == ["%run "]


async def test_a_command_that_is_written_out_is_sent_by_enter() -> None:
    host = Host()
    async with host.run_test() as pilot:
        host.composer.completer.commands = [("help", "All commands")]
        await type_text(pilot, "%help")
        await pilot.press("enter")
        assert host.sent == ["%help"]


async def test_while_busy_messages_wait_and_can_be_taken_back() -> None:
    host = Host()
    async with host.run_test() as pilot:
        host.composer.busy = True
        for text in ("one", "two"):
            await type_text(pilot, text)
            await pilot.press("enter")
        assert host.sent == []
        assert host.composer.queued == ("one", "two")
        await pilot.press("up")
        assert host.composer.text == "two"
        assert host.composer.queued == ("one",)
        assert host.composer.take_queued() == "one"
        assert host.composer.take_queued() is None


async def test_a_queued_message_is_edited_or_removed_with_the_mouse() -> None:
    host = Host()
    async with host.run_test() as pilot:
        host.composer.busy = True
        for text in ("one", "two", "three"):
            host.composer.send(text)
        await pilot.pause()
        queue = host.query_one(MessageQueue)
        await pilot.click(queue, offset=(queue.size.width - 2, 1))
        assert host.composer.queued == ("one", "three")
        await pilot.click(queue, offset=(10, 0))
        assert host.composer.text == "one"
        assert host.composer.queued == ("three",)


async def test_enter_on_an_empty_prompt_sends_what_still_waits() -> None:
    host = Host()
    async with host.run_test() as pilot:
        host.composer.busy = True
        host.composer.send("waiting")
        host.composer.busy = False
        await pilot.press("enter")
        assert host.sent == ["waiting"]


async def test_clearing_keeps_the_text_in_the_history() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await type_text(pilot, "never mind")
        await pilot.press("ctrl+c")
        assert host.composer.is_empty
        await pilot.press("up")
        assert host.composer.text == "never mind"


async def test_a_question_mark_asks_for_the_keys_only_on_an_empty_prompt() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press("question_mark")
        assert host.asked_for_keys == 1
        await pilot.press("a", "question_mark")
        assert host.asked_for_keys == 1
        assert host.composer.text == "a?"


async def test_control_d_quits_only_on_an_empty_prompt() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await pilot.press("a", "home", "ctrl+d")
        assert host.composer.is_empty
        assert host.is_running
        await pilot.press("ctrl+d")
        await pilot.pause()
        assert host._exit


async def test_the_message_can_be_written_in_an_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Headless there is no terminal to hand over: the user is told, and the text stays.
    monkeypatch.setenv("EDITOR", "true")
    host = Host()
    async with host.run_test() as pilot:
        await type_text(pilot, "keep me")
        await pilot.press("ctrl+g")
        await until(pilot, lambda: len(host._notifications) > 0)
        assert host.composer.text == "keep me"


@pytest.mark.parametrize(
    ("keys", "sent"),
    [
        (["a", "b", "backspace", "c", "enter"], ["ac"]),
        (["a", "enter", "b", "enter", "c"], ["a", "b"]),
        (["a", "ctrl+j", "b", "left", "x", "enter"], ["a\nxb"]),
        (["%", "h", "e", "tab", "m", "e", "enter"], ["%help me"]),
    ],
)
async def test_keys_that_come_all_at_once_act_in_their_order(keys: list[str], sent: list[str]) -> None:
    host = Host()
    async with host.run_test() as pilot:
        host.composer.completer.commands = [("help", "All commands")]
        for key in keys:  # without waiting in between, as `pilot.press` does
            host.post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: host.sent == sent)


async def test_nothing_ticks_while_nobody_types() -> None:
    host = Host()
    async with host.run_test() as pilot:
        await type_text(pilot, "abc")
        await pilot.pause()
        prompt = host.composer.prompt
        assert not prompt.blink_timer._active.is_set()
