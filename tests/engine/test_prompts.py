"""What the model is told first: honest about the machine, in the user's order, and never executing foreign braces."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from oi_tui.engine import prompts
from oi_tui.engine.llm.fenced import FencedParser
from oi_tui.engine.llm.pieces import CodeStart
from oi_tui.engine.prompts import Machine, fill, system_message, template_spans, templates
from oi_tui.engine.settings import ModelSettings, Settings

MACHINE = Machine("Testix 1.0", "/bin/tsh", "/home/u/work", "Python 3.12.1, /opt/py/bin/python")
DAY = date(2026, 3, 14)


def message(settings: Settings | None = None, *, tool_mode: bool = True, **more: object) -> str:
    given = {"languages": ["python", "shell"], "machine": MACHINE, "today": DAY, **more}
    return system_message(settings or Settings(), tool_mode=tool_mode, **given)  # type: ignore[arg-type]


def test_the_model_knows_the_machine() -> None:
    told = message()
    for fact in ("Testix 1.0", "/bin/tsh", "/home/u/work", "Python 3.12.1, /opt/py/bin/python", "2026-03-14"):
        assert fact in told
    assert "call the tool execute" in told and "python, shell" in told and "```" not in told


def test_this_machine_is_described_without_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHELL", "/bin/zsh")
    told = system_message(Settings(), languages=["python"], tool_mode=True, python="Python 9.9, /x/python")
    assert str(tmp_path) in told and "/bin/zsh" in told and "Python 9.9, /x/python" in told
    assert date.today().isoformat() in told
    monkeypatch.delenv("SHELL")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert "the folder is gone" in system_message(Settings(), languages=["python"], tool_mode=True)


def test_it_is_short_enough_for_small_models() -> None:
    assert len(message(tool_mode=False)) < 2500


def test_text_mode_shows_how_to_write_code_that_our_parser_runs() -> None:
    instructions = prompts.execution_instructions(Settings(), ["python", "shell"])
    assert message(tool_mode=False).endswith(instructions.strip())
    parser = FencedParser(lambda tag: tag if tag in ("python", "shell") else None)
    pieces = parser.feed(instructions) + parser.finish()
    assert [piece.language for piece in pieces if isinstance(piece, CodeStart)] == ["python"]


def test_the_example_is_in_a_language_that_can_run() -> None:
    assert "```shell\necho hello\n```" in prompts.execution_instructions(Settings(), ["shell", "ruby"])
    assert "```ruby\n" in prompts.execution_instructions(Settings(), ["ruby"])
    assert prompts.execution_instructions(Settings(), []) == ""


def test_the_parts_come_in_open_interpreters_order() -> None:
    settings = Settings(
        system_message="MINE",
        custom_instructions="CUSTOM",
        llm=ModelSettings(execution_instructions="HOW"),
    )
    assert message(settings, tool_mode=False, language_notes=["R NOTE", " "]) == "MINE\n\nR NOTE\n\nCUSTOM\n\nHOW"
    assert message(settings, language_notes=["R NOTE"]) == "MINE\n\nR NOTE\n\nCUSTOM"


def test_empty_instructions_mean_none() -> None:
    settings = Settings(system_message="", llm=ModelSettings(execution_instructions=""))
    assert message(settings, tool_mode=False) == ""


def test_spans_are_found_and_filled_once() -> None:
    text = "a {{ 1 + 1 }} b {{x['y']}} {{ }} {not} {{ open"
    assert template_spans(text) == ["1 + 1", "x['y']"]
    assert fill(text, {"1 + 1": "2", "x['y']": "{{ evil() }}"}) == "a 2 b {{ evil() }} {{ }} {not} {{ open"
    assert fill(text, {}) == text
    assert template_spans("{{ a\n+ b }}") == ["a\n+ b"]


def test_only_the_users_own_settings_are_templates() -> None:
    settings = Settings(custom_instructions="Now {{ now() }} and {{ now() }}, {{ user }}")
    assert templates(settings) == ["now()", "user"]
    machine = Machine("os", "sh", "/tmp/{{ evil() }}", "py")
    told = message(settings, machine=machine, template_values={"now()": "12:00", "evil()": "BOOM"})
    assert "Now 12:00 and 12:00, {{ user }}" in told
    assert "/tmp/{{ evil() }}" in told and "BOOM" not in told
    assert templates(Settings(system_message="{{ a }}", custom_instructions="{{ b }}")) == ["a", "b"]
    assert templates(Settings()) == []
