"""Output of any size: bounded in memory, whole on disk."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from oi_tui.engine.output import OutputCapture


def test_short_output_is_kept_as_it_is_and_touches_no_disk(tmp_path: Path) -> None:
    capture = OutputCapture(tmp_path / "out.txt", head=10, window=10)
    for piece in ("12345", "67890", "", "abcdefghij"):
        capture.feed(piece)
    capture.close()
    assert capture.text == "1234567890abcdefghij"
    assert capture.path is None and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_long_output_keeps_both_ends_and_is_whole_on_disk(tmp_path: Path, size: int) -> None:
    lines = "".join(f"line {n}\n" for n in range(5000))
    capture = OutputCapture(tmp_path / "out.txt", head=200, window=1000)
    for start in range(0, len(lines), size):
        capture.feed(lines[start : start + size])
    capture.close()
    assert capture.path is not None and capture.path.read_text() == lines
    assert stat.S_IMODE(capture.path.stat().st_mode) == 0o600
    text = capture.text
    assert text.startswith(lines[:200]) and text.endswith("line 4998\nline 4999\n")
    assert len(text) < 1500 and not capture.is_whole
    note = text[200:].split("\n")[1]
    shown = 200 + len(text[200:].split("\n", 2)[2])
    assert f"{len(lines) - shown:,} characters left out" in note and str(capture.path) in note
    assert text[200:].split("\n", 2)[2].startswith("line ")


def test_fifty_megabytes_without_a_newline_stay_small_in_memory(tmp_path: Path) -> None:
    capture = OutputCapture(tmp_path / "out.txt")
    for _ in range(50):
        capture.feed("x" * 1_000_000)
    capture.close()
    assert len(capture.text) < 400_000
    assert capture.path is not None and capture.path.stat().st_size == 50_000_000


def test_what_is_not_valid_text_is_kept_readable(tmp_path: Path) -> None:
    capture = OutputCapture(tmp_path / "out.txt", head=1, window=1)
    capture.feed("a\udcff\0b")
    capture.close()
    assert capture.path is not None and capture.path.read_bytes() == b"a\\udcff\0b"


def test_a_folder_that_cannot_be_written_costs_the_file_only(tmp_path: Path) -> None:
    capture = OutputCapture(tmp_path / "missing" / "out.txt", head=5, window=10)
    for _ in range(100):
        capture.feed("0123456789\n")
    capture.close()
    assert capture.path is None and "No such file" in capture.error
    assert capture.text.startswith("01234\n[… 1,0") and "could not be saved" in capture.text


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_costs_the_file_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = OutputCapture(tmp_path / "out.txt", head=5, window=10)
    monkeypatch.setattr(capture, "_create", lambda: open("/dev/full", "wb", buffering=16))
    for n in range(1000):
        capture.feed(f"{n}\n")
    capture.close()
    assert capture.path is None and "No space left" in capture.error
    assert capture.text.endswith("999\n")


def test_an_existing_file_or_link_is_never_overwritten(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "out.txt").symlink_to(precious)
    capture = OutputCapture(tmp_path / "out.txt", head=1, window=1)
    capture.feed("too long")
    capture.close()
    assert capture.path is None and precious.read_text() == "mine"
