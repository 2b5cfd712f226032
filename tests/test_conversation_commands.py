"""`oi-tui export`, `import` and `open`, as they are typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from oi_tui.cli import main
from oi_tui.conversation_commands import notebook_named
from oi_tui.engine.store.sessions import StoredSessions
from oi_tui.engine.store.store import Store
from oi_tui.flags import parse
from tests.engine.store.desk import StoredDesk, everything, python


@pytest.fixture
async def stored(empty_machine: Path) -> str:
    """A conversation in the usual place."""
    store = Store()
    desk = StoredDesk(store, "Look.\n" + python("plot()"), "Done.", script=everything)
    await desk.ask("draw the sales")
    await desk.session.aclose()
    store.close()
    return desk.session.conversation


async def test_export_last_and_by_id(
    stored: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["export", "last", "notebook", str(tmp_path / "a.ipynb")]) == 0
    nbformat.validate(nbformat.read(tmp_path / "a.ipynb", as_version=4))
    assert main(["export", stored[:6], "md", str(tmp_path / "a.md")]) == 0
    assert "draw the sales" in (tmp_path / "a.md").read_text()
    assert main(["export", "last", "md", str(tmp_path / "a.md")]) == 1
    assert "exists" in capsys.readouterr().err
    assert main(["export", "last", "md", str(tmp_path / "a.md"), "--force"]) == 0
    assert main(["export", "--all", "html", str(tmp_path / "all")]) == 0
    (page,) = (tmp_path / "all").iterdir()
    assert page.name == f"draw-the-sales-{stored[:8]}.html"


async def test_what_cannot_be_exported_says_why(
    empty_machine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "last", "md", str(tmp_path / "a.md")]) == 1
    assert "no conversation yet" in capsys.readouterr().err
    assert main(["export", "abcdef12", "md", str(tmp_path / "a.md")]) == 1
    assert main(["export", "last", "pdf", str(tmp_path / "a.pdf")]) == 2
    assert "markdown, notebook, html" in capsys.readouterr().err
    assert main(["--resume", "abcdef12", "--model", "demo"]) in (1, 2)


def test_words_that_are_a_task_stay_a_task() -> None:
    from oi_tui.conversation_commands import run_command

    for words in ("export this csv file", "import the data and plot it", "open my file", "export"):
        assert run_command(parse(words.split())) is None
    assert notebook_named(parse(["open", "x.ipynb"])) == Path("x.ipynb")
    assert notebook_named(parse(["open", "x.ipynb", "please"])) is None


def test_import_reports(empty_machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = empty_machine / ".config" / "open-interpreter" / "conversations"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text(json.dumps([{"role": "user", "type": "message", "content": "hello"}]))
    (folder / "bad.json").write_text("{")
    assert main(["import"]) == 1
    out = capsys.readouterr().out
    assert "1 conversations with 1 messages were imported" in out
    assert "bad.json: line 1" in out
    assert [c.title for c in Store().listing()] == ["hello"]


async def test_a_notebook_is_opened_as_a_conversation(stored: str, tmp_path: Path) -> None:
    from oi_tui.conversation_commands import open_notebook

    main(["export", "last", "notebook", str(tmp_path / "a.ipynb")])
    sessions = StoredSessions()
    open_notebook(sessions, tmp_path / "a.ipynb", keep=True)
    assert [c.title for c in sessions.store.listing()] == ["draw the sales", "draw the sales"]
    stored_again = sessions._next
    assert stored_again is not None
    assert [m.type for m in stored_again.messages] == [
        "message",
        "message",
        "code",
        "console",
        "image",
        "image",
        "message",
    ]
    sessions.close()


@pytest.mark.kernel
def test_a_conversation_in_lines_is_stored_and_gone_on_with(empty_machine: Path) -> None:
    first = oi_tui("--demo", "-y", "hello")
    assert first.returncode == 0, first.stderr
    assert oi_tui("--demo", "-y", "--resume", "last", "-p", "hello again").returncode == 0
    (info,) = Store().listing()
    assert info.title == "hello"
    texts = [m.text for m in Store().load(info.id).messages if m.role == "user" and m.type == "message"]
    assert texts == ["hello", "hello again"]


def test_nothing_is_written_with_no_history(empty_machine: Path) -> None:
    assert oi_tui("--demo", "-y", "--no_history", "hello").returncode == 0
    assert list(empty_machine.rglob("conversations*")) == []


def oi_tui(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "oi_tui", *arguments],
        capture_output=True,
        text=True,
        timeout=90,
        stdin=subprocess.DEVNULL,
    )
