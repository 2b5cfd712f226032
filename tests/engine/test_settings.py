"""Settings from every source: one schema, one precedence, and an origin for each value."""

from __future__ import annotations

import pytest

from oi_tui.engine.errors import SettingsError
from oi_tui.engine.settings import ModelSettings, Settings
from oi_tui.engine.settings_sources import (
    Layer,
    canonical,
    checked,
    explain,
    from_environment,
    merge,
    nearest_setting,
    schema,
    with_values,
)


def test_the_command_line_beats_the_environment_beats_the_profile_beats_the_default() -> None:
    profile = Layer("profile fast", {"llm.model": "p", "max_output": 1, "verbose": True})
    environment = Layer("environment", {"llm.model": "e", "max_output": 2}, {"llm.model": "OI_TUI_MODEL"})
    settings = merge([Layer("command line", {"llm.model": "c"}), environment, profile])
    assert (settings.llm.model, settings.max_output, settings.verbose, settings.loop) == ("c", 2, True, False)
    origins = {name: origin for name, _, origin in explain(settings)}
    assert origins["llm.model"] == "command line"
    assert origins["max_output"] == "environment"
    assert origins["verbose"] == "profile fast"
    assert origins["loop"] == "default"


def test_every_field_is_a_setting_and_can_be_explained() -> None:
    assert "llm.model" in schema()
    assert "kernel" in schema()
    assert not {"origins", "notes", "profile", "llm", "llm.completions"} & set(schema())
    assert [name for name, _, _ in explain(Settings())] == list(schema())


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("auto_run", "yes", True),
        ("auto_run", "Off", False),
        ("auto_run", 1, True),
        ("max_output", "4000", 4000),
        ("max_output", 4000.0, 4000),
        ("llm.temperature", "0.5", 0.5),
        ("llm.temperature", 0, 0.0),
        ("llm.temperature", None, None),
        ("safe_mode", False, "off"),  # YAML reads a bare `off` as false
        ("safe_mode", " ASK ", "ask"),
        ("images", False, "off"),
        ("languages", "python, shell", ("python", "shell")),
        ("languages", ["python"], ("python",)),
        ("languages", None, None),
        ("llm.model", 7, "7"),
        ("custom_instructions", "", ""),
        ("llm.execution_instructions", "", ""),
    ],
)
def test_values_are_read_as_people_write_them(name: str, written: object, value: object) -> None:
    assert checked(name, written) == value
    assert type(checked(name, written)) is type(value)


@pytest.mark.parametrize(
    ("name", "written", "said"),
    [
        ("auto_run", "maybe", "auto_run should be true or false, not 'maybe'."),
        ("auto_run", 2, "auto_run should be true or false, not 2."),
        ("auto_run", None, "auto_run is empty. It should be true or false."),
        ("max_output", "much", "max_output should be a whole number, not 'much'."),
        ("max_output", 1.5, "max_output should be a whole number, not 1.5."),
        ("max_output", True, "max_output should be a whole number, not True."),
        ("max_output", 0, "max_output should be more than 0, not 0."),
        ("llm.temperature", "hot", "temperature should be a number, not 'hot'."),
        ("llm.temperature", "nan", "temperature should be a number, not 'nan'."),
        ("llm.max_budget", -1, "max_budget cannot be less than 0, and it is -1."),
        ("safe_mode", "asc", "safe_mode should be one of off, ask, auto, not 'asc'."),
        ("llm.model", ["a"], "model should be text, not a list."),
        ("languages", {"python": True}, "languages should be a list of names, not a mapping."),
        ("languages", [["a"]], "languages should be a list of names, not a list."),
        ("llm.api_key", ["sk-secret"], "api_key should be text."),
        ("max_output", "9" * 5000, None),
    ],
)
def test_a_value_that_cannot_be_used_says_what_is_wanted(name: str, written: object, said: str | None) -> None:
    with pytest.raises(SettingsError) as caught:
        checked(name, written)
    assert said is None or str(caught.value) == said
    assert len(str(caught.value)) < 200


def test_safe_mode_means_no_auto_run_whatever_else_is_set() -> None:
    settings = merge([Layer("command line", {"auto_run": True}), Layer("profile default", {"safe_mode": "ask"})])
    assert settings.auto_run is False
    assert "safe mode" in settings.origins["auto_run"]
    assert merge([Layer("command line", {"auto_run": True, "safe_mode": "off"})]).auto_run is True


def test_the_environment_sets_settings_and_names_the_variable() -> None:
    layer, notes = from_environment(
        {
            "OI_TUI_MODEL": "m",
            "OI_TUI_LLM_API_BASE": "http://x",
            "OI_TUI_AUTO_RUN": "1",
            "HOME": "/",
            "OI_TUI_PROFILE": "p",
        }
    )
    assert layer.values == {"llm.model": "m", "llm.api_base": "http://x", "auto_run": True}
    assert layer.origins["llm.model"] == "OI_TUI_MODEL"
    assert notes == []


def test_a_variable_that_means_nothing_is_reported_with_the_nearest_one() -> None:
    _, notes = from_environment({"OI_TUI_TEMPRATURE": "1"})
    assert notes == ["The environment variable OI_TUI_TEMPRATURE is no setting. Did you mean OI_TUI_TEMPERATURE?"]
    with pytest.raises(SettingsError, match="OI_TUI_MAX_OUTPUT: max_output should be a whole number"):
        from_environment({"OI_TUI_MAX_OUTPUT": "x"})


def test_open_interpreters_names_mean_the_same() -> None:
    assert canonical("model") == "llm.model"
    assert canonical("llm_supports_functions") == "llm.supports_functions"
    assert canonical("computer.languages") == "languages"
    assert canonical("modal") is None
    assert nearest_setting("llm.modal") == "llm.model"
    assert nearest_setting("autorun") == "auto_run"
    assert nearest_setting("zzzzzz") is None


def test_a_key_is_never_part_of_an_explanation() -> None:
    settings = Settings(llm=ModelSettings(api_key="sk-secret", api_base="https://me:hunter2@host/v1"))
    text = str(explain(settings)) + repr(settings)
    assert "sk-secret" not in text
    assert "hunter2" not in str(explain(settings))
    assert "set, not shown" in str(explain(settings))


def test_settings_can_be_changed_by_name_and_remember_by_whom() -> None:
    settings = with_values(Settings(), {"llm.model": "m", "auto_run": True}, "welcome screen")
    assert (settings.llm.model, settings.auto_run) == ("m", True)
    assert settings.origins == {"llm.model": "welcome screen", "auto_run": "welcome screen"}
