"""The two rows of chrome: what they say, what fits, and that a click presses a key."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType

from oi_tui.styles.themes import tokens_for
from oi_tui.widgets.key_bar import KeyBar
from oi_tui.widgets.status_bar import KernelState, Mode, Status, dollars, tokens
from oi_tui.widgets.top_bar import TopBar

STATUS = Status(
    mode=Mode.ASK,
    model="openai/gpt-5",
    kernel="py3.12",
    kernel_state=KernelState.IDLE,
    context_used=960,
    context_window=8000,
    cost=0.031,
)


class Host(App[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f4", "panel", "Panel"),
        Binding("f5", "hidden", "Hidden", show=False),
        Binding("f6", "off", "Off"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.pressed = 0

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return tokens_for(self.current_theme)

    def compose(self) -> ComposeResult:
        yield TopBar()
        yield KeyBar()

    def action_panel(self) -> None:
        self.pressed += 1

    def action_hidden(self) -> None: ...

    def action_off(self) -> None: ...

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "off"


def row(app: App[None], y: int) -> str:
    return "".join(segment.text for segment in app.screen._compositor.render_strips()[y])


async def test_the_top_row_says_where_one_is() -> None:
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        bar = app.query_one(TopBar)
        bar.heading, bar.status = "sales report", STATUS
        await pilot.pause()
        assert row(app, 0).startswith(" OI  sales report ")
        assert row(app, 0).endswith("ask · gpt-5 · py3.12 idle ")
        assert len(row(app, 0)) == 80


async def test_a_long_title_gives_way() -> None:
    app = Host()
    async with app.run_test(size=(60, 24)) as pilot:
        bar = app.query_one(TopBar)
        bar.heading, bar.status = "an endless title " * 10, STATUS
        await pilot.pause()
        assert "…" in row(app, 0)
        assert row(app, 0).endswith("ask · gpt-5 · py3.12 idle ")


async def test_a_title_has_no_power_over_the_terminal_or_the_row() -> None:
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        bar = app.query_one(TopBar)
        bar.heading = "a\x1b]0;evil\x07b\n[/x]\u202ec"
        bar.status = replace(STATUS, model="m\x1b[2Jx", kernel="[bold]k")
        await pilot.pause()
        shown = row(app, 0)
        assert "\x1b" not in shown and "\n" not in shown and "\u202e" not in shown
        assert "ab⏎[/x]" in shown
        assert "mx · [bold]k idle" in shown


async def test_running_everything_is_said_in_words_too() -> None:
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        app.query_one(TopBar).status = replace(STATUS, mode=Mode.RUN_ALL)
        await pilot.pause()
        assert " run all  · gpt-5" in row(app, 0)


async def test_the_last_row_shows_what_keys_do_here_and_what_it_cost() -> None:
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        app.query_one(KeyBar).status = STATUS
        await pilot.pause()
        shown = row(app, 23)
        assert shown.split() == ["f4", "panel", "ctx", "12%", "·", "$0.03"]


async def test_a_click_on_a_key_presses_it() -> None:
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.click(KeyBar, offset=(row(app, 23).index("panel"), 0))
        await pilot.pause()
        assert app.pressed == 1


def test_estimates_are_marked() -> None:
    assert replace(STATUS, estimated=True).usage == "ctx ≈12% · ≈$0.03"


def test_nothing_is_said_before_the_first_request() -> None:
    assert Status().usage == ""


def test_without_a_known_window_tokens_are_counted() -> None:
    assert replace(STATUS, context_window=None, cost=None, context_used=12_345).usage == "ctx 12.3k tokens"


@pytest.mark.parametrize(
    ("amount", "shown"), [(0.0, "$0.00"), (0.0001, "<$0.01"), (0.006, "$0.01"), (1.5, "$1.50"), (1234.5, "$1234.50")]
)
def test_a_price_never_shows_as_nothing(amount: float, shown: str) -> None:
    assert dollars(amount) == shown


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0"), (999, "999"), (1000, "1.0k"), (999_949, "999.9k"), (2_000_000, "2.0M")]
)
def test_token_counts_are_short(count: int, shown: str) -> None:
    assert tokens(count) == shown


def test_modes_go_round_and_safe_mode_leaves_out_running_everything() -> None:
    assert [Mode.ASK.following(safe=False), Mode.RULES.following(safe=False), Mode.RUN_ALL.following(safe=False)] == [
        Mode.RULES,
        Mode.RUN_ALL,
        Mode.ASK,
    ]
    assert Mode.RULES.following(safe=True) is Mode.ASK
    assert Mode.RUN_ALL.following(safe=True) is Mode.ASK
