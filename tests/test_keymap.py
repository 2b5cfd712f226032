"""Keys: how they are written, the user's own file, and what is said about mistakes in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from oi_tui import keymap
from oi_tui.keymap import KeyEntry, check, display, is_key, read_keymap, without_conflicts
from oi_tui.widgets import composer  # noqa: F401 - its bindings belong to the catalogue


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("ctrl+p", "^P"),
        ("question_mark", "?"),
        ("f1", "F1"),
        ("escape", "esc"),
        ("shift+tab", "Shift+Tab"),
        ("ctrl+shift+z", "Ctrl+Shift+Z"),
        ("alt+up", "Alt+↑"),
        ("y", "y"),
        ("left_square_bracket", "["),
        ("pageup", "PgUp"),
    ],
)
def test_keys_are_written_as_people_read_them(key: str, shown: str) -> None:
    assert display(key) == shown


@pytest.mark.parametrize("key", ["a", "?", "ctrl+o", "alt+enter", "f12", "ctrl+shift+left", "space", "+"])
def test_these_are_keys(key: str) -> None:
    assert is_key(key)


@pytest.mark.parametrize("key", ["", "f25", "control+o", "ctrl+", "nonsense", "ctrl+nonsense"])
def test_these_are_none(key: str) -> None:
    assert not is_key(key)


def write(folder: Path, text: str) -> Path:
    path = folder / "keymap.yaml"
    path.write_text(text)
    return path


def test_no_file_is_no_problem(tmp_path: Path) -> None:
    assert read_keymap(tmp_path / "keymap.yaml") == keymap.UserKeys({})


def test_a_key_or_a_list_of_keys(tmp_path: Path) -> None:
    keys = read_keymap(write(tmp_path, "prompt.newline: ctrl+o\napp.help: [f2, '?']\n"))
    assert keys.keymap == {"prompt.newline": "ctrl+o", "app.help": "f2,question_mark"}
    assert keys.problems == ()


def test_a_mistyped_key_is_named_with_the_nearest_and_the_rest_counts(tmp_path: Path) -> None:
    keys = read_keymap(write(tmp_path, "app.help: [escpe, f2]\nprompt.send: 3\n"))
    assert keys.keymap == {"app.help": "f2"}
    assert keys.problems == (
        "keymap.yaml: 'escpe' is not a key (app.help). Did you mean escape?",
        "keymap.yaml: prompt.send has no keys.",
    )


def test_broken_yaml_leaves_the_usual_keys(tmp_path: Path) -> None:
    keys = read_keymap(write(tmp_path, "a: b\n  c: : d\n"))
    assert keys.keymap == {}
    assert "line 2" in keys.problems[0]


@pytest.mark.parametrize("text", ["- a\n- b\n", "just words\n", "!!python/object/apply:os.system ['true']\n"])
def test_odd_content_is_reported(tmp_path: Path, text: str) -> None:
    keys = read_keymap(write(tmp_path, text))
    assert keys.keymap == {}
    assert len(keys.problems) == 1


@pytest.mark.skipif(os.name != "posix", reason="needs a FIFO")
def test_a_fifo_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "keymap.yaml")
    assert read_keymap(tmp_path / "keymap.yaml").problems


ENTRIES = [
    KeyEntry("prompt.send", ("enter",), "send"),
    KeyEntry("prompt.search", ("ctrl+r",), "search"),
    KeyEntry("prompt.copy", ("ctrl+c",), "copy"),
    KeyEntry("prompt.clear", ("ctrl+c",), "clear"),
    KeyEntry("code.run", ("y",), "run"),
    KeyEntry("app.help", ("f1",), "help"),
]


def test_an_unknown_id_is_named_with_the_nearest() -> None:
    assert check({"code.rum": "x"}, ENTRIES) == ["keymap.yaml: there is no code.rum. Did you mean code.run?"]


def test_a_key_for_two_things_in_one_place_is_a_conflict() -> None:
    (problem,) = check({"prompt.search": "enter"}, ENTRIES)
    assert problem.startswith("keymap.yaml: enter is both prompt.send and prompt.search;")


def test_a_key_that_acts_everywhere_conflicts_with_every_place() -> None:
    (problem,) = check({"app.help": "y"}, ENTRIES)
    assert problem.startswith("keymap.yaml: y is both code.run and app.help;")


def test_a_conflict_never_makes_a_key_run_code() -> None:
    entries = [*ENTRIES, KeyEntry("code.decline", ("n",), "no")]
    assert without_conflicts({"code.run": "n", "app.help": "f8"}, entries) == {"app.help": "f8"}


def test_the_same_key_in_two_places_that_never_meet_is_fine() -> None:
    assert check({"code.run": "enter"}, ENTRIES) == []


def test_what_was_meant_to_share_a_key_may_share_it() -> None:
    assert check({"prompt.copy": "ctrl+c,ctrl+insert"}, ENTRIES) == []


def test_every_binding_of_the_prompt_is_in_the_catalogue_with_words() -> None:
    entries = {entry.id: entry for entry in keymap.catalogue()}
    assert entries["prompt.newline"].keys == ("ctrl+j", "shift+enter", "alt+enter")
    ours = [entry for entry in entries.values() if entry.place in ("prompt", "search")]
    assert all(entry.tooltip for entry in ours)
