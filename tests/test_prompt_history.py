"""What was typed, kept over sessions."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from oi_tui.prompt_history import LIMIT, HistoryCursor, PromptHistory


def test_entries_come_back_in_the_next_session(tmp_path: Path) -> None:
    path = tmp_path / "new" / "history"
    history = PromptHistory(path)
    for text in ("one", "two\nlines", "zwei ✓ \u2028", "two\nlines"):
        history.add(text)
    assert PromptHistory(path).entries == ["one", "two\nlines", "zwei ✓ \u2028", "two\nlines"]


def test_blank_and_repeated_entries_are_left_out(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path / "history")
    for text in ("a", "a", "  \n", "a"):
        history.add(text)
    assert history.entries == ["a"]


@pytest.mark.skipif(os.name != "posix", reason="modes")
def test_nobody_else_can_read_it_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        PromptHistory(tmp_path / "h").add("secret")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "h").stat().st_mode) == 0o600


def test_a_torn_line_costs_itself_alone(tmp_path: Path) -> None:
    path = tmp_path / "h"
    path.write_bytes(b'"one"\n"tw\n{"x": 1}\n\xff\xfe\n"three"\n')
    assert PromptHistory(path).entries == ["one", "three"]


def test_the_file_does_not_grow_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "h"
    path.write_text("".join(json.dumps(f"entry {number}") + "\n" for number in range(3 * LIMIT)))
    history = PromptHistory(path)
    assert len(history.entries) == LIMIT
    assert history.entries[-1] == f"entry {3 * LIMIT - 1}"
    assert len(path.read_text().splitlines()) == LIMIT


def test_two_windows_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "h"
    one, two = PromptHistory(path), PromptHistory(path)
    one.add("from one")
    two.add("from two")
    assert PromptHistory(path).entries == ["from one", "from two"]


@pytest.mark.skipif(os.name != "posix", reason="needs a FIFO")
def test_odd_files_neither_hang_nor_raise(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    for name in ("fifo", "folder"):
        history = PromptHistory(tmp_path / name)
        history.add("still works")
        assert history.entries == ["still works"]


def test_searching_wants_all_words_and_shows_each_text_once() -> None:
    history = PromptHistory(None)
    for text in ("Plot the sales", "count", "plot the costs", "Plot the sales"):
        history.add(text)
    assert history.search("plot THE") == ["Plot the sales", "plot the costs"]
    assert history.search("") == ["Plot the sales", "plot the costs", "count"]


def test_walking_up_and_down_returns_to_the_draft() -> None:
    history = PromptHistory(None)
    history.add("one")
    history.add("two")
    cursor = HistoryCursor(history)
    assert [cursor.previous("draft"), cursor.previous(""), cursor.previous("")] == ["two", "one", None]
    assert [cursor.following(), cursor.following(), cursor.following()] == ["two", "draft", None]


def test_walking_in_an_empty_history_goes_nowhere() -> None:
    cursor = HistoryCursor(PromptHistory(None))
    assert cursor.previous("draft") is None
    assert cursor.following() is None
