"""The command line: quick answers, flags as users know them, and one helpful line for everything that is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import oi_tui.launch as launch_module
from oi_tui import __version__
from oi_tui.cli import main
from oi_tui.engine import profiles
from oi_tui.engine.errors import SettingsError
from oi_tui.engine.settings import Settings
from oi_tui.engine.settings_sources import schema
from oi_tui.flags import UsageError, all_flags, help_text, parse
from oi_tui.launch import gather


def oi_tui(*arguments: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    """The program itself, without a terminal."""
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(
        [sys.executable, "-m", "oi_tui", *arguments], capture_output=True, text=True, timeout=60, check=False, **kwargs
    )


def settings_of(*arguments: str, environ: Mapping[str, str] | None = None, ask: Any = None) -> Settings:
    return gather(parse(arguments), environ or {}, ask=ask)


# -- quick answers --


@pytest.mark.parametrize("flag", ["--version", "-V", "--help", "-h"])
def test_version_and_help_load_next_to_nothing(flag: str) -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "from oi_tui.cli import main\n"
        f"status = main([{flag!r}])\n"
        "new = sorted(set(sys.modules) - before)\n"
        "print(status, *new, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    status, *loaded = ran.stderr.split()
    assert status == "0"
    assert __version__ in ran.stdout or "--profile NAME" in ran.stdout
    assert set(loaded) <= {"__future__", "oi_tui", "oi_tui._version", "oi_tui.cli", "oi_tui.flags"}


def test_help_names_every_flag_once() -> None:
    text = help_text()
    for flag in all_flags():
        if not flag.hidden:
            assert text.count(f"--{flag.name} ") + text.count(f"--{flag.name}\n") >= 1, flag.name


def test_every_flag_that_is_a_setting_sets_one_and_no_name_is_used_twice() -> None:
    names = [flag.name for flag in all_flags()]
    shorts = [flag.short for flag in all_flags() if flag.short]
    assert len(set(names)) == len(names)
    assert len(set(shorts)) == len(shorts)
    for flag in all_flags():
        if flag.setting:
            spec = schema()[flag.setting]
            assert (spec.kind == "bool") == flag.is_setting_switch, flag.name


def test_help_into_a_closed_pipe_is_quiet() -> None:
    ran = subprocess.run(
        f"{sys.executable} -m oi_tui --help | head -1; exit ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.stderr == ""
    assert ran.stdout.startswith("usage: oi-tui")


def test_a_terminal_without_our_characters_gets_replacements_not_a_traceback() -> None:
    ran = oi_tui("--help", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (ran.returncode, ran.stderr) == (0, "")


def test_closed_standard_streams_are_no_reason_to_crash() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "import os, sys\nos.close(1); os.close(2)\n"
         "os.execv(sys.executable, [sys.executable, '-m', 'oi_tui', '--version'])"],
        timeout=60, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ran.returncode == 0


# -- flags --


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("-y", {"auto_run": True}),
        ("--no_auto_run", {"auto_run": False}),
        ("--no-auto-run", {"auto_run": False}),
        ("--auto_run=false", {"auto_run": "false"}),
        ("-m ollama/x -t 0.5", {"llm.model": "ollama/x", "llm.temperature": "0.5"}),
        ("--api_base http://x --api-base=http://y", {"llm.api_base": "http://y"}),
        ("-safe ask", {"safe_mode": "ask"}),
        ("-lsf --no_llm_supports_vision", {"llm.supports_functions": True, "llm.supports_vision": False}),
        ("-cw 1 -x 2", {"llm.context_window": "1", "llm.max_tokens": "2"}),
        ("-b 3 -xo 4", {"llm.max_budget": "3", "max_output": "4"}),
        ("-t -1", {"llm.temperature": "-1"}),
        ("--no_history", {"conversation_history": False}),
        ("-nhl", {"highlight_active_line": False}),
        ("--debug", {"verbose": True}),
    ],
)  # fmt: skip
def test_flags_are_read_in_every_spelling(arguments: str, expected: dict[str, object]) -> None:
    line = parse(arguments.split())
    assert line.settings == expected
    assert line.words == []


def test_the_task_is_p_or_bare_words_and_may_look_like_a_flag_after_two_dashes() -> None:
    assert parse(["-p", "--what is this"]).text("prompt") == "--what is this"
    assert parse(["what", "is", "here?"]).words == ["what", "is", "here?"]
    assert parse(["--", "-y"]).words == ["-y"]
    assert parse(["--demo", "-y", "2+2"]).settings == {"llm.model": "demo", "auto_run": True}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--modal", "x"], "unknown flag --modal; did you mean --model?"),
        (["--auto-rum"], "unknown flag --auto-rum; did you mean --auto_run?"),
        (["--no_lop"], "unknown flag --no_lop; did you mean --no_loop?"),
        (["-zz"], "unknown flag -zz"),
        (["--zzzzzzzz"], "unknown flag --zzzzzzzz"),
        (["--model"], "--model needs a value: --model NAME"),
        (["--model", "-y"], "--model needs a value: --model NAME"),
        (["--plain=yes"], "--plain takes no value"),
        (["--no_loop=yes"], "--no_loop takes no value"),
    ],
)
def test_a_wrong_flag_is_named_with_the_nearest_one(arguments: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(arguments)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--safe_mode", "asc"], "Did you mean ask?"),
        (["--max_output", "lots"], "max_output should be a whole number, not 'lots'."),
        (["--modal", "x"], "did you mean --model?"),
        (["-t", "9"], "temperature should be from 0 to 2, not '9'."),
        (["-t", "-0.1"], "temperature should be from 0 to 2, not '-0.1'."),
        (["--languages", "cobol"], "'cobol' is no language here. There are: python, "),
        (["--languages", "python,javascrpt"], "'javascrpt' is no language here. Did you mean javascript?"),
        (["--cwd", "/nowhere/at/all"], "--cwd /nowhere/at/all: No such file or directory"),
        (["-p", " "], "the task is empty"),
        (["-p", "a", "b"], "the task is given twice"),
        (["--json"], "--json needs a task"),
        (["profiles"], "did you mean --profiles?"),
        (["--profile", "fats", "-p", "x"], "There is no profile fats. Did you mean fast?"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.startswith("oi-tui: ")
    assert len(err.splitlines()) <= 2


def test_languages_go_by_all_their_names() -> None:
    assert settings_of("--languages", "Python,bash,js").languages == ("Python", "bash", "js")


def test_a_language_in_a_profile_that_is_not_there_is_a_note(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("languages: [python, rubi]\n")
    settings = settings_of("--profile", str(path))
    assert settings.languages == ("python", "rubi")
    assert len(settings.notes) == 1
    assert settings.notes[0].endswith("'rubi' is no language here. Did you mean ruby?")
    assert settings_of("--profile", str(path), "--languages", "ruby").notes == ()


def test_the_full_screen_does_not_wait_for_the_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Settings) -> Settings:
        raise AssertionError("asked before the first paint")

    def run(settings: Settings, **_: Any) -> int:
        started.append(settings)
        return 0

    started: list[Settings] = []
    monkeypatch.setattr(launch_module, "with_stored_key", refuse)
    monkeypatch.setattr(launch_module, "_has_terminal", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("oi_tui.app.run_app", run)
    assert main(["-m", "openai/x"]) == 0
    assert started[0].llm.model == "openai/x"


def test_output_that_cannot_be_written_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "oi_tui", "--demo", "-y", "-p", "hello"],
            stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True, timeout=100, check=False,
        )  # fmt: skip
    assert ran.returncode == 1
    assert ran.stderr == "oi-tui: the output cannot be written: No space left on device.\n"


def test_flags_of_the_original_that_are_needless_say_so() -> None:
    line = parse(["--disable_telemetry", "-dt", "-ml", "-y"])
    assert line.settings == {"auto_run": True}
    assert len(line.notes) == 3


# -- settings together --


def test_command_line_environment_and_profile_are_merged_in_this_order(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("llm:\n  model: p\n  temperature: 0.9\nmax_output: 5\n")
    environ = {"OI_TUI_TEMPERATURE": "0.7", "OI_TUI_MAX_OUTPUT": "6", "OI_TUI_PROFILE": str(path)}
    settings = settings_of("--max_output", "7", environ=environ)
    assert (settings.llm.model, settings.llm.temperature, settings.max_output) == ("p", 0.7, 7)
    assert settings.profile == str(path)


def test_safe_mode_beats_auto_run() -> None:
    assert settings_of("-y", "--safe_mode", "ask").auto_run is False
    assert settings_of("-y", environ={"OI_TUI_SAFE_MODE": "auto"}).auto_run is False


def test_the_demo_flag_wins_over_a_model_in_the_environment() -> None:
    assert settings_of("--demo", environ={"OI_TUI_MODEL": "gpt-4o"}).llm.model == "demo"


def test_a_key_on_the_command_line_works_and_is_warned_about_without_being_shown() -> None:
    settings = settings_of("--api_key", "sk-secret")
    assert settings.llm.api_key == "sk-secret"
    (note,) = settings.notes
    assert "OI_TUI_API_KEY" in note
    assert "sk-secret" not in note


def test_what_a_strangers_profile_may_not_do_is_asked_or_left_out(tmp_path: Path) -> None:
    path = tmp_path / "found.yaml"
    path.write_text("auto_run: true\nverbose: true\n")
    left_out = settings_of("--profile", str(path))
    assert (left_out.auto_run, left_out.verbose) == (False, True)
    assert "--trust-profile" in left_out.notes[0]

    asked = []

    def refuse(file: object, digest: str, wanted: tuple[str, ...]) -> bool:
        asked.append((digest, wanted))
        return False

    assert settings_of("--profile", str(path), ask=refuse).auto_run is False
    assert settings_of("--profile", str(path), ask=lambda *_: True).auto_run is True
    assert settings_of("--profile", str(path)).auto_run is True  # it is remembered
    assert asked[0][1] == ("set auto_run",)
    assert len(asked[0][0]) == 64


def test_a_python_profile_is_refused_until_it_is_trusted_by_the_flag(tmp_path: Path) -> None:
    path = tmp_path / "p.py"
    path.write_text("interpreter.llm.model = 'from-python'\ninterpreter.llm.completions = print\n")
    with pytest.raises(SettingsError, match="have not trusted it yet"):
        settings_of("--profile", str(path))
    assert main(["--trust-profile", str(path)]) == 0
    settings = settings_of("--profile", str(path))
    assert settings.llm.model == "from-python"
    assert settings.llm.completions is print


# -- commands that need no session --


def test_settings_are_printed_with_their_origins_and_without_keys() -> None:
    ran = oi_tui("--settings", "--model", "m", env={**os.environ, "OI_TUI_API_KEY": "sk-secret", "OI_TUI_MODAL": "x"})
    assert ran.returncode == 0
    rows = [line.split(None, 1) for line in ran.stdout.splitlines()]
    assert [row[0] for row in rows] == list(schema())
    assert dict(rows)["llm.model"].split() == ["command", "line", "m"]
    assert "OI_TUI_API_KEY" in dict(rows)["llm.api_key"]
    assert "sk-secret" not in ran.stdout + ran.stderr
    assert "Did you mean OI_TUI_MODEL?" in ran.stderr


def test_profiles_are_listed_with_their_folders(capsys: pytest.CaptureFixture[str]) -> None:
    profiles.user_folder().mkdir(parents=True)
    (profiles.user_folder() / "work.yaml").write_text("")
    assert main(["--profiles"]) == 0
    out = capsys.readouterr().out
    assert str(profiles.user_folder()) in out
    assert "work" in out and "yours" in out
    assert "demo" in out and "shipped" in out


def test_resetting_a_profile_keeps_the_old_one(capsys: pytest.CaptureFixture[str]) -> None:
    profiles.user_folder().mkdir(parents=True)
    (profiles.user_folder() / "default.yaml").write_text("verbose: true")
    assert main(["--reset_profile"]) == 0
    assert "kept as" in capsys.readouterr().out
    assert main(["--reset_profile", "nonsense"]) == 2
    assert "not a shipped profile" in capsys.readouterr().err


# -- which front end --


def test_without_a_terminal_and_without_a_task_it_says_what_to_do() -> None:
    ran = oi_tui()
    assert ran.returncode == 2
    assert "needs a terminal" in ran.stderr and "-p" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_no_model_in_a_script_is_one_line_and_exit_1() -> None:
    ran = oi_tui("-p", "hello")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        "oi-tui: No model is chosen. Name one with --model, or see the embedded demo with --profile demo. "
        "oi-tui --help lists all.\n"
    )
