"""Finding files to complete a path: what is offered, what is left out, and where it stops."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from oi_tui.file_search import best_matches, list_folder, walk


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


def test_nearest_first_and_folders_have_a_slash(tmp_path: Path) -> None:
    make(tmp_path, "a/b/deep.txt", "top.txt", "a/mid.txt")
    index = walk(tmp_path)
    assert index.paths == ("a/", "top.txt", "a/b/", "a/mid.txt", "a/b/deep.txt")
    assert index.is_complete


def test_hidden_generated_and_ignored_files_are_left_out(tmp_path: Path) -> None:
    make(tmp_path, ".git/x", "node_modules/x.js", "__pycache__/y", "logs/z.log", "a.log", "kept/a.py", "env/bin/python")
    (tmp_path / ".gitignore").write_text("# comment\n*.log\nlogs/\n!important\nsome/path\n")
    assert walk(tmp_path).paths == ("kept/", "kept/a.py")


def test_a_huge_folder_is_cut_off_and_says_so(tmp_path: Path) -> None:
    make(tmp_path, *(f"{number}.txt" for number in range(50)))
    index = walk(tmp_path, most=10)
    assert len(index.paths) == 10
    assert not index.is_complete


@pytest.mark.skipif(os.name != "posix", reason="links and modes")
def test_links_in_a_circle_and_locked_folders_do_no_harm(tmp_path: Path) -> None:
    make(tmp_path, "a/file.txt", "locked/x")
    (tmp_path / "a" / "round").symlink_to(tmp_path)
    (tmp_path / "locked").chmod(0)
    try:
        assert set(walk(tmp_path).paths) >= {"a/", "locked/", "a/round", "a/file.txt"}
    finally:
        (tmp_path / "locked").chmod(0o700)


def test_a_folder_that_is_gone_has_no_files(tmp_path: Path) -> None:
    assert walk(tmp_path / "gone").paths == ()


def test_names_come_before_paths_and_scattered_letters_last() -> None:
    paths = ("src/composer.py", "compose/other.py", "docs/sales_composition.md", "c/o/m/p.txt", "README")
    assert best_matches(paths, "compo") == [
        "src/composer.py",
        "compose/other.py",
        "docs/sales_composition.md",
    ]
    assert best_matches(paths, "rdme") == ["README"]
    assert best_matches(paths, "zzz") == []
    assert best_matches(paths, "", limit=2) == ["src/composer.py", "compose/other.py"]


def test_a_path_that_names_its_folder_is_completed_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "home/data/sales.csv", "home/data/.hidden", "work/x")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    assert list_folder(tmp_path / "work", "~/da") == ["~/data/"]
    assert list_folder(tmp_path / "work", "~/data/") == ["~/data/sales.csv"]
    assert list_folder(tmp_path / "work", "~/data/.h") == ["~/data/.hidden"]
    assert list_folder(tmp_path / "work", "../ho") == ["../home/"]
    assert list_folder(tmp_path / "work", f"{tmp_path}/wo") == [f"{tmp_path}/work/"]
