"""Profiles: found, read strictly, never more powerful than their user allowed, and saved with comments kept."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest
import yaml

from oi_tui.engine import profiles, trust
from oi_tui.engine.errors import SettingsError
from oi_tui.engine.profile_saving import reset, save_default
from oi_tui.engine.profiles import Home, NotTrusted, Profile, ProfileFile
from oi_tui.engine.settings_sources import canonical, checked, merge


def user_profile(name: str, text: str) -> Path:
    folder = profiles.user_folder()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def read_text(tmp_path: Path, text: str, name: str = "mine.yaml") -> Profile:
    user_profile(name, text)
    return profiles.read(profiles.find(name))


# -- shipped --


@pytest.mark.parametrize("name", ["default", "fast", "local", "vision", "demo"])
def test_every_shipped_profile_reads_without_a_word(name: str) -> None:
    file = profiles.find(name)
    profile = profiles.read(file)
    assert file.home is Home.SHIPPED
    assert profile.notes == []
    assert merge([profile.layer]).auto_run is False


def test_the_default_profile_shows_only_settings_that_exist() -> None:
    text = (profiles.shipped_folder() / "default.yaml").read_text(encoding="utf-8")
    shown = re.findall(r"^( *)# ([a-z_]+): ?(.*?)(?: +#.*)?$", text, re.MULTILINE)
    assert len(shown) > 10
    for indent, name, value in shown:
        setting = canonical(f"llm.{name}" if indent else name)
        assert setting is not None, name
        checked(setting, yaml.safe_load(value) if value != "|" else "text")


# -- finding --


def test_a_profile_of_the_user_takes_the_place_of_a_shipped_one() -> None:
    path = user_profile("fast.yaml", "verbose: true")
    assert profiles.find("fast") == ProfileFile(path, Home.USER)
    assert profiles.find("fast.yaml").path == path
    assert [f.home for f in profiles.available() if f.name == "fast"] == [Home.USER]


def test_a_name_is_never_looked_up_in_the_working_folder_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fast").write_text("auto_run: true")
    (tmp_path / "fast.yaml").write_text("auto_run: true")
    assert profiles.find("fast").home is Home.SHIPPED
    assert profiles.find("fast.yaml").home is Home.SHIPPED
    assert profiles.find("./fast.yaml").home is Home.ELSEWHERE


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fats", "There is no profile fats. Did you mean fast?"),
        ("./nowhere.yaml", "There is no profile ./nowhere.yaml."),
        ("https://example.org/x.yaml", "Profiles are not loaded from the network"),
        ("  ", "A profile needs a name."),
        ("a\0b", "A profile needs a name."),
    ],
)
def test_a_profile_that_is_not_there(name: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        profiles.find(name)
    assert str(caught.value).startswith(said)


# -- reading --


def test_nested_and_flat_names_are_read_and_known_needless_ones_pass_without_a_word(tmp_path: Path) -> None:
    profile = read_text(
        tmp_path,
        "version: 0.2.5\ntemperature: 0.3\nllm:\n  model: gpt-4o\n  supports_functions: false\n"
        "computer:\n  languages: [python]\nsafe_mode: off\ndisable_telemetry: true\n",
    )
    assert profile.layer.values == {
        "llm.temperature": 0.3,
        "llm.model": "gpt-4o",
        "llm.supports_functions": False,
        "languages": ("python",),
        "safe_mode": "off",
    }
    assert profile.notes == []
    assert profile.layer.origin == "profile mine"


def test_unknown_keys_are_named_with_their_line_and_the_nearest_known_one(tmp_path: Path) -> None:
    profile = read_text(tmp_path, "# hello\nauto_rum: true\nllm:\n  modal: x\nblah: 1\nstart_script: |\n  import os\n")
    path = profile.file.path
    assert profile.notes[:3] == [
        f"Profile {path}, line 2: unknown key auto_rum; did you mean auto_run?",
        f"Profile {path}, line 4: unknown key llm.modal; did you mean llm.model?",
        f"Profile {path}, line 5: unknown key blah, ignored.",
    ]
    assert "start_script is not run" in profile.notes[3]
    assert profile.layer.values == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nmax_output: lots\n", "line 2: max_output should be a whole number, not 'lots'."),
        ("llm:\n  temperature: warm\n", "line 2: temperature should be a number, not 'warm'."),
        ("auto_run: [1, 2\n", "line 2: "),
        ("- a\n- b\n", ": it should hold lines such as `auto_run: false`."),
        ("just words", ": it should hold lines such as `auto_run: false`."),
        ("llm: gpt-4\n", "line 1: below `llm:` there should be settings, indented."),
        ("verbose: !!python/object/apply:os.system ['true']\n", "only plain data is allowed"),
        ("? [a]\n: b\n", "line 1: a key should be a word."),
        ("verbose: " + "[" * 20_000, "nested too deeply"),
        ("max_output: " + "9" * 6000, ""),
        ("verbose: \x00", ""),
        ("verbose: *nobody", "line 1: "),
        ("verbose: 2001-13-45\n", "line 1: this value cannot be read"),
        ("verbose: 2001-12-24\n", "line 1: verbose should be true or false, not a date."),
        ("a: 1\n---\nb: 2\n", "line 2: "),
    ],
)
def test_a_broken_profile_says_where_and_never_what_is_not_so(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_text(tmp_path, text)
    line = str(caught.value)
    assert "mine.yaml" in line
    assert said in line
    assert "\n" not in line.strip() and len(line) < 400


def test_aliases_that_would_explode_cost_nothing(tmp_path: Path) -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"{chr(c + 1)}: &{chr(c + 1)} [*{chr(c)}, *{chr(c)}]\n" for c in range(97, 121))
    with pytest.raises(SettingsError, match="custom_instructions should be text, not a list"):
        read_text(tmp_path, bomb + "custom_instructions: *y\n")


def test_json_profiles_are_read_too(tmp_path: Path) -> None:
    profile = read_text(tmp_path, '{"llm": {"model": "m"}, "loop": true}', "j.json")
    assert profile.layer.values == {"llm.model": "m", "loop": True}
    with pytest.raises(SettingsError, match="line 2: "):
        read_text(tmp_path, '{\n"llm": }', "j.json")


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    assert read_text(tmp_path, "\ufeffverbose: true").layer.values == {"verbose": True}


def test_what_is_not_text_says_so(tmp_path: Path) -> None:
    user_profile("mine.yaml", "").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(SettingsError, match="line 2: it is not UTF-8 text"):
        profiles.read(profiles.find("mine"))


@pytest.mark.skipif(os.name != "posix", reason="FIFOs")
def test_a_fifo_a_folder_and_a_huge_file_are_refused_without_hanging(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.yaml")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "huge.yaml").write_bytes(b"#" * (1 << 20))
    (tmp_path / "device.yaml").symlink_to("/dev/zero")
    for name in ("fifo", "folder", "huge", "device"):
        with pytest.raises(SettingsError):
            profiles.read(profiles.find(str(tmp_path / f"{name}.yaml")))


# -- trust --

POWERFUL = "auto_run: true\nkernel: /tmp/evil\nverbose: true\nllm:\n  api_base: https://evil.example\n"


def test_a_profile_from_elsewhere_cannot_take_what_needs_trust(tmp_path: Path) -> None:
    path = tmp_path / "found.yaml"
    path.write_text(POWERFUL)
    file = profiles.find(str(path))
    profile = profiles.read(file)
    assert profile.layer.values == {"verbose": True}
    assert set(profile.withheld) == {"auto_run", "kernel", "llm.api_base"}

    trust.trust(profiles.digest_of_file(file), path)
    assert profiles.read(file).layer.values["auto_run"] is True

    path.write_text(POWERFUL + "# one byte more\n")
    assert "auto_run" not in profiles.read(file).layer.values


def test_a_server_on_this_machine_needs_no_trust(tmp_path: Path) -> None:
    path = tmp_path / "found.yaml"
    for address in ("http://127.0.0.1:1234/v1", "http://localhost:1234", "localhost:1234"):
        path.write_text(f"llm:\n  api_base: {address}\n")
        assert profiles.read(profiles.find(str(path))).withheld == {}


def test_the_users_own_profiles_are_trusted(tmp_path: Path) -> None:
    assert read_text(tmp_path, POWERFUL).withheld == {}


PYTHON = """\
from interpreter import interpreter
interpreter.llm.model = "ollama/" + "llama3"
interpreter.custom_instructions += "Be nice."
interpreter.computer.languages = ["python"]
interpreter.llm.completions = lambda **params: iter(())
interpreter.nonsense = 1
if interpreter.auto_run is False:
    interpreter.max_output = 600
"""


def test_a_python_profile_runs_only_after_its_very_bytes_were_trusted(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    path = user_profile("program.py", PYTHON + f"open({str(ran)!r}, 'w').close()\n")
    file = profiles.find("program")
    with pytest.raises(NotTrusted) as caught:
        profiles.read(file)
    assert not ran.exists()
    assert profiles.digest_of_file(file) in str(caught.value)

    trust.trust(profiles.digest_of_file(file), path)
    profile = profiles.read(file)
    assert ran.exists()
    assert profile.layer.values == {
        "llm.model": "ollama/llama3",
        "custom_instructions": "Be nice.",
        "languages": ("python",),
        "max_output": 600,
    }
    assert callable(profile.completions)
    assert profile.notes == [f"Profile {path}, line 6: unknown key nonsense, ignored."]

    path.write_text(path.read_text() + "\n")
    with pytest.raises(NotTrusted):
        profiles.read(file)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\n1 / 0\n", "line 2: ZeroDivisionError"),
        ("def\n", "line 1: "),
        ("import sys\nsys.exit(3)\n", "line 2: SystemExit: 3"),
        ("interpreter.chat('hi')\n", "line 1: AttributeError: interpreter.chat does not exist"),
        ("interpreter.max_output = 'x'\n", "line 1: max_output should be a whole number"),
    ],
)
def test_a_python_profile_that_fails_says_in_which_line(source: str, said: str) -> None:
    path = user_profile("program.py", source)
    file = profiles.find("program")
    trust.trust(profiles.digest_of_file(file), path)
    with pytest.raises(SettingsError) as caught:
        profiles.read(file)
    assert said in str(caught.value)


def test_trust_is_kept_in_a_private_file_and_a_damaged_one_trusts_nothing(empty_machine: Path) -> None:
    trust.trust("0" * 64, Path("x.py"))
    (store,) = empty_machine.rglob("trusted.json")
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    assert trust.is_trusted("0" * 64)
    store.write_text("{[")
    assert not trust.is_trusted("0" * 64)


# -- saving --

COMMENTED = """\
# mine
llm:
  # which one
  model: gpt-4o  # the best
  temperature: 0
custom_instructions: |
  Keep
  this.

# the end
"""


def saved(text: str | None, changes: dict[str, object]) -> tuple[str, dict[str, object]]:
    if text is not None:
        user_profile("default.yaml", text)
    path = save_default(changes)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    profile = profiles.read(profiles.find("default"))
    assert profile.notes == []
    return path.read_text(encoding="utf-8"), dict(profile.layer.values)


def test_saving_changes_the_value_and_keeps_the_comments() -> None:
    text, values = saved(
        COMMENTED, {"llm.model": "ollama/qwen3", "llm.api_base": "http://localhost:1", "auto_run": True}
    )
    assert "  # which one\n  model: ollama/qwen3  # the best\n" in text
    assert "# the end" in text
    assert values == {
        "llm.model": "ollama/qwen3",
        "llm.api_base": "http://localhost:1",
        "llm.temperature": 0.0,
        "custom_instructions": "Keep\nthis.\n",
        "auto_run": True,
    }


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "# only a comment",
        "llm:\n",
        "llm: {temperature: 1}\n",
        "model: old\nverbose: true\n",
        "---\nllm:\n  model: |\n    old\n  temperature: 1\nverbose: yes\n...\n",
        "llm:\n    model: 'old'",
        '"llm":\n  "model": old\n',
    ],
)
def test_saving_works_on_any_layout(text: str | None) -> None:
    _, values = saved(text, {"llm.model": "new: # one", "theme": "off", "llm.max_tokens": None})
    assert (values["llm.model"], values["theme"], values["llm.max_tokens"]) == ("new: # one", "off", None)
    again, _ = saved(None, {"llm.model": "newer"})
    assert "new: # one" not in again


def test_the_first_save_starts_from_the_shipped_default() -> None:
    text, values = saved(None, {"llm.model": "demo"})
    assert "oi-tui --reset_profile" in text
    assert values["llm.model"] == "demo"


def test_a_broken_profile_is_not_overwritten() -> None:
    path = user_profile("default.yaml", "llm: [")
    with pytest.raises(SettingsError, match="Nothing was changed"):
        save_default({"llm.model": "m"})
    assert path.read_text() == "llm: ["


def test_what_cannot_be_used_or_is_secret_is_not_saved() -> None:
    with pytest.raises(SettingsError):
        save_default({"max_output": "lots"})
    with pytest.raises(SettingsError, match="key is not saved"):
        save_default({"llm.api_key": "sk-secret"})
    assert not profiles.user_folder().exists()


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_a_linked_profile_stays_a_link(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.yaml"
    target.write_text("verbose: true\n")
    profiles.user_folder().mkdir(parents=True)
    (profiles.user_folder() / "default.yaml").symlink_to(target)
    path = save_default({"loop": True})
    assert path.is_symlink()
    assert yaml.safe_load(target.read_text()) == {"verbose": True, "loop": True}


def test_resetting_keeps_the_users_file_beside_the_shipped_one() -> None:
    user_profile("fast.yaml", "verbose: true")
    old = reset("fast")
    assert old is not None and old.read_text() == "verbose: true"
    assert profiles.find("fast").home is Home.SHIPPED
    assert reset("fast") is None
    with pytest.raises(SettingsError, match="not a shipped profile"):
        reset("../../x")
