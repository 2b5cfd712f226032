"""Keys never show: not in errors, not in logs, not in an answer that says them back."""

from __future__ import annotations

import base64
import re

import pytest

from oi_tui.engine.redaction import STAND_IN, StreamRedactor, known_keys, redact

KEY = "my-very-own-key-1234567890"


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {KEY}.",
        f"https://example.com/v1?key={KEY}&alt=sse",
        f'{{"authorization": "Bearer {KEY}"}}',
        f"Basic {base64.b64encode(f':{KEY}'.encode()).decode()}",
        f"{KEY}{KEY} twice",
    ],
)
def test_the_configured_key_is_removed_wherever_it_stands(text: str) -> None:
    assert KEY not in redact(text, [KEY], environment={})
    assert STAND_IN in redact(text, [KEY], environment={})


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-abcdefghijklmnopqrstuvwx",
        "sk-ant-api03-AAAABBBBCCCC-dddd_eeee",
        "sk-abcd****************wxyz",
        "gsk_abcdefghijklmnop1234",
        "AIzaSyA1234567890abcdefghijk",
        "hf_abcdefghijklmnopqrst",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc",
        "github_pat_11ABCDEFG0123456789_abcdef",
    ],
)
def test_a_key_nobody_told_us_about_is_known_by_its_shape(key: str) -> None:
    assert redact(f"rejected {key} today", environment={}) == f"rejected {STAND_IN} today"


def test_keys_in_the_environment_are_removed_and_other_variables_are_not() -> None:
    environment = {"ACME_API_KEY": "acme-0123456789", "SOME_TOKEN": "tok-tok-tok-9", "HOME": "/home/someone"}
    text = redact("acme-0123456789 tok-tok-tok-9 /home/someone", environment=environment)
    assert text == f"{STAND_IN} {STAND_IN} /home/someone"


def test_short_values_and_placeholders_are_no_keys() -> None:
    environment = {"MAX_TOKEN": "4096", "LOCAL_API_KEY": "lm-studio", "X_TOKEN": "true", "Y_TOKEN": "20240101"}
    assert known_keys("dummy", "ollama", environment=environment) == ()


@pytest.mark.parametrize("text", ["API key: missing", "the bearer of this", "risk-free", "task-force", "a disk-shaped"])
def test_ordinary_words_stay(text: str) -> None:
    assert redact(text, environment={}) == text


def test_passwords_in_addresses_are_removed() -> None:
    assert redact("http://bob:hunter2222@proxy:3128", environment={}) == f"http://{STAND_IN}@proxy:3128"


def test_redacting_twice_changes_nothing() -> None:
    once = redact(f"Authorization: Bearer {KEY} and ?key={KEY} and sk-12345678901234", [KEY], environment={})
    assert redact(once, [KEY], environment={}) == once


@pytest.mark.parametrize("cut", range(1, len(KEY) + 12))
def test_a_key_in_an_answer_is_removed_wherever_the_stream_is_cut(cut: int) -> None:
    text = f"Your key {KEY} is fine."
    redactor = StreamRedactor(known_keys(KEY, environment={}))
    out = redactor.feed(text[:cut]) + redactor.feed(text[cut:]) + redactor.flush()
    assert KEY[3:] not in out
    assert out.endswith(" is fine.") and STAND_IN in out


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_a_key_in_tiny_pieces_is_removed_and_the_text_around_it_is_whole(size: int) -> None:
    text = f"a {KEY}{KEY} my-very own {KEY[:-1]} end {KEY}"
    redactor = StreamRedactor([KEY])
    out = "".join(redactor.feed(text[i : i + size]) for i in range(0, len(text), size)) + redactor.flush()
    assert re.sub(r"(my-|my|m)?" + re.escape(STAND_IN), "", out) == f"a  my-very own {KEY[:-1]} end "


def test_nothing_is_held_back_that_cannot_begin_a_key() -> None:
    redactor = StreamRedactor([KEY])
    assert [redactor.feed(piece) for piece in ("m", "y dog", " is ", "my")] == ["m", "y dog", " is ", "my"]
    assert redactor.flush() == ""


def test_the_end_of_a_text_that_only_looked_like_a_key_is_given_out() -> None:
    redactor = StreamRedactor([KEY])
    assert redactor.feed("see my-very") + redactor.flush() == "see my-very"
