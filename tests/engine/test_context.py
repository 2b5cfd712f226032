"""The context window: what a request takes of it, and what is left out when it takes too much."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oi_tui.engine.context import (
    IMAGE_TOKENS,
    SMALLEST_BUDGET,
    UNKNOWN_WINDOW,
    Trimmed,
    estimate_tokens,
    input_budget,
    repair,
    trim,
)
from oi_tui.engine.history import CodeFate
from oi_tui.engine.llm.base import Capabilities
from oi_tui.engine.llm.openai_messages import to_openai
from oi_tui.engine.lmc import Message
from oi_tui.engine.settings import ModelSettings, Settings
from tests.openai_validation import validate_request


def text(content: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": content}


def exchange(name: str, steps: int = 1, size: int = 100, mark: str = "") -> list[Message]:
    """What the user asked, and the code that ran for it; each output has about `size` characters."""
    messages = [Message("user", "message", f"ask {name}")]
    for step in range(steps):
        code = Message("assistant", "code", f"run {name}{step}", "python", meta={"state": CodeFate.RUN})
        out = f"out {name}{step} " + "x " * (size // 2) + mark
        messages += [code, Message("computer", "console", out, "output", meta={"code_id": code.id})]
    return messages


def sent(messages: list[Message], *, tool_mode: bool = True) -> list[dict[str, Any]]:
    settings = Settings(max_output=10**9)
    return to_openai(messages, system="System.", tool_mode=tool_mode, settings=settings, supports_vision=False)


def trimmed(messages: list[dict[str, Any]], budget: int) -> tuple[str, Trimmed | None, list[dict[str, Any]]]:
    """The kept messages as text, what was left out, and the messages, checked."""
    before = json.dumps(messages)
    kept, what = trim(messages, budget)
    assert json.dumps(messages) == before, "changed in place"
    validate_request({"model": "m", "messages": json.loads(json.dumps(kept))})
    assert repair(kept) == kept
    assert what is None or what.fits == (estimate_tokens(kept) <= budget)
    return json.dumps(kept, ensure_ascii=False), what, kept


# Estimates.


def test_four_ascii_characters_are_a_token_and_so_is_one_chinese() -> None:
    assert estimate_tokens([text("x" * 4000)]) == 1004
    assert estimate_tokens([text("中" * 1000)]) == 1004
    assert 2.0 < estimate_tokens([text("ж" * 3000)]) / 1000 < 2.1
    assert estimate_tokens([]) == 0 and estimate_tokens([text("")]) == 4


def test_pictures_cost_a_fixed_amount_whatever_their_size() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_000_000}}
    message = {"role": "user", "content": [{"type": "text", "text": "x" * 400}, image]}
    assert estimate_tokens([message]) == 104 + IMAGE_TOKENS


def test_calls_count_with_their_arguments() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "execute", "arguments": "x" * 393}}
    assert estimate_tokens([{"role": "assistant", "content": None, "tool_calls": [call]}]) == 108


def test_lone_surrogates_do_not_break_the_estimate() -> None:
    assert estimate_tokens([text("\ud83d")]) == 5


# The budget.


@pytest.mark.parametrize(
    ("settings", "capabilities", "low", "high"),
    [
        ({}, {}, UNKNOWN_WINDOW, UNKNOWN_WINDOW),
        ({"context_window": 10_000}, {}, 7_600, 7_800),
        ({}, {"context_window": 200_000, "max_output_tokens": 8_000}, 185_000, 187_000),
        ({}, {"context_window": 200_000, "max_output_tokens": 64_000}, 150_000, 155_000),
        ({"context_window": 10_000, "max_tokens": 4_000}, {"context_window": 99_999}, 5_600, 5_800),
        ({"context_window": 10_000, "max_tokens": 20_000}, {}, 7_600, 7_800),
        ({"context_window": 500}, {}, 300, 400),
        ({"context_window": 8_000, "max_tokens": 7_990}, {}, SMALLEST_BUDGET, SMALLEST_BUDGET),
    ],
)
def test_the_input_budget(settings: dict[str, int], capabilities: dict[str, int], low: int, high: int) -> None:
    llm = ModelSettings(**settings)  # type: ignore[arg-type]
    known = Capabilities(**capabilities)  # type: ignore[arg-type]
    assert low <= input_budget(known, llm) <= high
    assert input_budget(known, Settings(llm=llm)) == input_budget(known, llm)


# Trimming.


def test_what_fits_is_left_alone() -> None:
    messages = sent(exchange("a"))
    assert trim(messages, 1000) == (messages, None)


@pytest.mark.parametrize("tool_mode", [True, False])
def test_the_oldest_exchanges_go_first_and_whole(tool_mode: bool) -> None:
    history = [message for name in "abcdef" for message in exchange(name, 2, 1000)]
    kept, what, _ = trimmed(sent(history, tool_mode=tool_mode), 1400)
    assert what is not None and what.fits and what.messages == 20
    assert "System." in kept and "ask f" in kept and "out f1" in kept
    for name in "abcd":
        assert f"ask {name}" not in kept and f"run {name}" not in kept and f"out {name}" not in kept
    assert "beginning of this conversation is left out" in kept


@pytest.mark.parametrize("tool_mode", [True, False])
def test_a_long_run_for_one_request_loses_its_oldest_steps_but_not_the_request(tool_mode: bool) -> None:
    messages = sent([*exchange("old"), *exchange("new", 30, 1000)], tool_mode=tool_mode)
    kept, what, _ = trimmed(messages, 3000)
    assert what is not None and what.fits
    assert "ask new" in kept and "out new29" in kept and "run new29" in kept
    assert "ask old" not in kept and "run new0\\" not in kept


def test_long_outputs_are_shortened_before_steps_are_dropped() -> None:
    messages = sent([*exchange("a", 2, 40_000, mark="END"), *exchange("b")[1:]])
    kept, what, _ = trimmed(messages, 11_000)
    assert what is not None and what.fits and what.shortened == 1 and what.messages == 0
    assert "out a0" in kept and "left out here" in kept and kept.count("END") == 2


def test_a_pasted_book_is_cut_to_what_fits() -> None:
    messages = sent([*exchange("old"), Message("user", "message", "Read this: " + "word " * 100_000 + "the end")])
    kept, what, _ = trimmed(messages, 20_000)
    assert what is not None and what.fits and what.shortened == 1
    assert "Read this" in kept and "the end" in kept
    assert estimate_tokens(json.loads(kept)) > 18_000


def test_what_cannot_fit_is_sent_as_small_as_it_gets_and_says_so() -> None:
    kept, what, _ = trimmed(sent([Message("user", "message", "x" * 2000)]), 10)
    assert what is not None and not what.fits and "may still be too long" in str(what)
    assert "xxx" in kept


def test_the_line_for_the_user() -> None:
    assert str(Trimmed(12, 34_567)) == (
        "Trimmed to the model's context window: the oldest 12 messages left out (about 34,567 tokens)."
    )
    assert "1 message left out and 2 long texts shortened" in str(Trimmed(1, 5, 2))


def test_two_thousand_messages_are_trimmed_in_one_go() -> None:
    history = [message for n in range(500) for message in exchange(f"n{n}-", 1, 400)]
    kept, what, _ = trimmed(sent(history), 8000)
    assert what is not None and what.fits and "ask n499-" in kept and "ask n0-" not in kept


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 50, 3000])), min_size=1, max_size=6),
    st.integers(1, 3000),
    st.booleans(),
)
def test_whatever_is_trimmed_stays_valid_and_keeps_the_last_request(
    shape: list[tuple[int, int]], budget: int, tool_mode: bool
) -> None:
    history = [m for n, (steps, size) in enumerate(shape) for m in exchange(f"n{n}-", steps, size)]
    messages = sent(history, tool_mode=tool_mode)
    kept, what, _ = trimmed(messages, budget)
    assert f"ask n{len(shape) - 1}-" in kept and "System." in kept
    assert (what is None) == (estimate_tokens(messages) <= budget)
    if what is not None and what.fits:
        assert estimate_tokens(json.loads(kept)) <= budget
