"""Coming from Open Interpreter: every message that can be read is taken, originals stay, nothing hangs."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from oi_tui.engine.history import CodeFate
from oi_tui.engine.store.open_interpreter import file_name, files_in, find_folder, import_all, parse, to_messages
from oi_tui.engine.store.store import Store
from tests.engine.store.desk import PICTURE, StoredDesk, everything, python

PRESENT = [
    {"role": "user", "type": "message", "content": "plot it"},
    {"role": "assistant", "type": "message", "content": "Sure."},
    {"role": "assistant", "type": "code", "format": "python", "content": "plot()"},
    {"role": "computer", "type": "console", "format": "output", "content": "zanzibar\n"},
    {"role": "computer", "type": "image", "format": "base64.png", "content": PICTURE},
    {"role": "assistant", "type": "message", "content": "Done."},
]
OLD = [
    {"role": "user", "message": "list files"},
    {"role": "assistant", "message": "I'll look.", "language": "shell", "code": "ls", "output": "a b\n"},
    {"role": "assistant", "message": "Two files."},
]


def write(folder: Path, name: str, content: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def digests(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir() if p.is_file()}


def test_both_formats_are_imported_with_their_dates_and_found_by_their_words(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "conversations"
    write(folder, "plot_it__March_03_2024_10-20-30.json", PRESENT)
    write(folder, "list__December_24_2023_01-02-03.json", OLD)
    before = digests(folder)
    seen: list[tuple[int, int]] = []
    report = import_all(store, files_in(folder), progress=lambda done, total: seen.append((done, total)))
    assert (report.imported, report.messages, report.problems) == (2, 11, [])
    assert seen == [(1, 2), (2, 2)]
    assert digests(folder) == before
    newest, oldest = store.listing()
    assert (newest.title, oldest.title) == ("plot it", "list files")
    assert oldest.created < newest.created
    stored = store.load(oldest.id)
    assert [(m.role, m.type, m.format) for m in stored.messages] == [
        ("user", "message", None),
        ("assistant", "message", None),
        ("assistant", "code", "shell"),
        ("computer", "console", "output"),
        ("assistant", "message", None),
    ]
    assert stored.messages[2].meta["state"] == CodeFate.RUN
    assert [hit.line for hit in store.search("zanzib")] == ["zanzibar"]


def test_importing_again_adds_nothing(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "conversations"
    write(folder, "a.json", PRESENT)
    import_all(store, files_in(folder))
    report = import_all(store, files_in(folder))
    assert (report.imported, report.known) == (0, 1)
    assert len(store.listing()) == 1


@pytest.mark.skipif(os.name != "posix", reason="FIFOs and links are POSIX's")
def test_odd_files_harm_nothing_and_are_named(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "conversations"
    write(folder, "good.json", PRESENT)
    write(folder, "cut.json", json.dumps(PRESENT)[:200])
    write(folder, "empty.json", "[]")
    write(folder, "nothing.json", "")
    write(folder, "text.json", "hello")
    write(folder, "deep.json", "[" * 200_000)
    write(folder, "mixed.json", [*PRESENT[:2], 7, {"role": "nobody", "content": "x"}, {"role": "user", "content": []}])
    (folder / "bytes.json").write_bytes(b"\xff\xfe\x00[")
    os.mkfifo(folder / "fifo.json")
    (folder / "folder.json").mkdir()
    (folder / "passwd.json").symlink_to("/etc/passwd")
    (folder / "dangling.json").symlink_to(folder / "not-there")
    write(folder, "…odd\nname \x1b[31m.json", PRESENT)
    write(folder, "notes.txt", "not a conversation")
    report = import_all(store, files_in(folder))
    named = {path.name for path, _ in report.problems}
    assert named == {
        "cut.json",
        "empty.json",
        "nothing.json",
        "text.json",
        "deep.json",
        "mixed.json",
        "bytes.json",
        "fifo.json",
        "folder.json",
        "passwd.json",
        "dangling.json",
    }
    assert report.imported == 4, "good, odd name, and what is readable of cut and mixed"
    assert any("line 1" in problem for path, problem in report.problems if path.name == "cut.json")


def test_a_40_mb_file_is_read(store: Store, tmp_path: Path) -> None:
    big = [*PRESENT[:3], {"role": "computer", "type": "console", "format": "output", "content": "x" * 80 + "\n"}]
    big[3]["content"] *= 500_000
    path = write(tmp_path / "conversations", "big.json", big)
    assert path.stat().st_size > 40_000_000
    assert import_all(store, [path]).messages == 4


def test_code_that_was_last_waits_again_and_other_code_does_not() -> None:
    messages, _ = to_messages([PRESENT[0], PRESENT[2], {"role": "user", "content": "no"}, PRESENT[2]])
    assert [m.meta.get("state") for m in messages if m.type == "code"] == [CodeFate.SKIPPED, CodeFate.PENDING]


def test_a_file_that_was_cut_gives_what_is_before_the_cut() -> None:
    read = parse(json.dumps(PRESENT, indent=1)[:-150].encode())
    assert [m["content"] for m in read.messages][:3] == ["plot it", "Sure.", "plot()"]
    assert "messages before it were read" in read.problems[0]


def test_its_folder_is_found(empty_machine: Path) -> None:
    assert find_folder() is None
    write(empty_machine / ".config" / "open-interpreter" / "conversations", "a.json", PRESENT)
    assert find_folder() == empty_machine / ".config" / "open-interpreter" / "conversations"


def test_names_are_those_of_open_interpreter_and_lead_nowhere() -> None:
    assert file_name("what is the weather like in Paris", 0).startswith("what_is_the_weather_like__January_01_1970")
    assert "/" not in file_name("../../etc/passwd and more words", 0)


async def test_open_interpreters_file_is_written_too_where_the_settings_say_so(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "oi"
    desk = StoredDesk(
        store, python("plot()"), "Done.", script=everything, conversation_history_path=str(folder), llm=_keyed()
    )
    await desk.ask("draw the sk-1234567890abcdef of sales")
    await desk.loaded()
    (path,) = folder.iterdir()
    assert path.name.startswith("draw_the__")
    wire = json.loads(path.read_text())
    assert [m["type"] for m in wire] == ["message", "code", "console", "image", "image", "message"]
    assert "sk-1234567890abcdef" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def _keyed() -> object:
    from oi_tui.engine.settings import ModelSettings

    return ModelSettings(api_key="sk-1234567890abcdef")
