"""Conversations as files: everything that was said and shown is in them, and nothing that was not run runs."""

from __future__ import annotations

import base64
import json
import re
import stat
from pathlib import Path

import nbformat
import pytest

from oi_tui.engine.approval import digest_of
from oi_tui.engine.errors import SettingsError
from oi_tui.engine.exporters import ExportError, PathExists, export, format_for, format_named, notebook, render
from oi_tui.engine.exporters.base import Conversation
from oi_tui.engine.history import CodeFate
from oi_tui.engine.lmc import Message
from tests.engine.store.desk import PICTURE

RUN = {"state": CodeFate.RUN}


def everything() -> Conversation:
    """Edits, errors, pictures, two languages, and code that nobody ran."""
    edited = Message("assistant", "code", "x = 2\nx", "python", meta={**RUN, "original": "x = 1\nx", "digest": "d"})
    failed = Message("assistant", "code", "1/0", "python", meta={**RUN, "error_line": 1})
    shell = Message("assistant", "code", "echo hi", "shell", meta=RUN)
    plot = Message("assistant", "code", "plot()", "python", meta=RUN)
    declined = Message(
        "assistant", "code", "remove('all')", "python", meta={"state": CodeFate.DECLINED, "note": "never"}
    )
    return Conversation(
        "sales <report> & more",
        [
            Message("user", "message", "which month sold best?\nand why"),
            Message("assistant", "message", "I'll **look**.\n\n```\nfence\n```"),
            edited,
            Message("computer", "console", "\x1b[31m2\x1b[0m\n", "output", meta={"code_id": edited.id}),
            failed,
            Message(
                "computer",
                "console",
                "before\n---------------------------------------------------------------------------\n"
                "ZeroDivisionError                         Traceback (most recent call last)\n"
                "Cell In[1], line 1\n----> 1 1/0\n\nZeroDivisionError: division by zero\n",
                "output",
                meta={"code_id": failed.id},
            ),
            Message("server", "error", "The model was busy.", "overloaded"),
            shell,
            Message("computer", "console", "hi\n", "output", meta={"code_id": shell.id}),
            plot,
            Message("computer", "image", PICTURE, "base64.png", meta={"code_id": plot.id}),
            Message("computer", "code", "<b onclick='x()'>bold</b>", "html", meta={"code_id": plot.id}),
            declined,
            Message("assistant", "message", "June, see </script><script>alert(1)</script> ![x](http://evil/x.png)"),
        ],
        created=1_700_000_000.0,
        model="fake",
    )


def test_the_notebook_is_valid_and_has_outputs_pictures_and_prompts() -> None:
    book = nbformat.reads(render(everything(), "notebook"), as_version=4)
    nbformat.validate(book)
    assert (book.nbformat, book.nbformat_minor) == (4, 5)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.source for cell in code] == ["x = 2\nx", "1/0", "%%bash\necho hi", "plot()"]
    assert code[0].outputs[0].text == "2\n"
    assert [output.output_type for output in code[1].outputs] == ["stream", "error"]
    assert (code[1].outputs[1].ename, code[1].outputs[1].evalue) == ("ZeroDivisionError", "division by zero")
    assert "raises-exception" in code[1].metadata.tags
    assert code[3].outputs[0].data["image/png"] == PICTURE
    texts = "\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown")
    assert "> which month sold best?" in texts
    assert "remove('all')" in texts, "what was not run is text"


@pytest.mark.kernel
def test_the_notebook_executes() -> None:
    import warnings

    from nbclient import NotebookClient

    conversation = everything()
    messages = [m for m in conversation.messages if m.text != "plot()"]
    book = nbformat.reads(render(Conversation("t", messages), "notebook"), as_version=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        NotebookClient(book, timeout=60, kernel_name="python3").execute()
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert code[0].outputs[0].data["text/plain"] == "2"
    assert code[2].outputs[0].text == "hi\n"


def test_a_notebook_of_ours_opens_as_the_conversation_it_was(tmp_path: Path) -> None:
    path = tmp_path / "book.ipynb"
    conversation = everything()
    export(conversation, "notebook", path)
    back = notebook.read(path)
    assert back.title == conversation.title
    wanted = [m for m in conversation.messages if m.role != "server"]
    assert [(m.role, m.type) for m in back.messages] == [(m.role, m.type) for m in wanted]
    edited = next(m for m in back.messages if m.type == "code")
    assert edited.meta["original"] == "x = 1\nx"
    assert edited.meta["digest"] == digest_of("x = 2\nx")
    assert [m.meta["state"] for m in back.messages if m.type == "code" and m.role != "computer"] == [
        CodeFate.RUN,
        CodeFate.RUN,
        CodeFate.RUN,
        CodeFate.RUN,
        CodeFate.DECLINED,
    ]
    assert [m.text for m in back.messages if m.type == "image"] == [PICTURE]
    assert back.messages[0].text == "which month sold best?\nand why"


def test_a_notebook_of_somebody_else_opens(tmp_path: Path) -> None:
    book = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "x", "display_name": "x", "language": "python"}})
    book.cells = [
        nbformat.v4.new_markdown_cell("# Title\nsome notes"),
        nbformat.v4.new_code_cell(
            "df",
            execution_count=3,
            outputs=[
                nbformat.v4.new_output("stream", text="loading\n"),
                nbformat.v4.new_output("execute_result", data={"text/plain": "1", "text/html": "<table></table>"}),
            ],
        ),
        nbformat.v4.new_code_cell("never_run()"),
        nbformat.v4.new_raw_cell("raw"),
    ]
    path = tmp_path / "theirs.ipynb"
    nbformat.write(book, path)
    back = notebook.read(path)
    assert [(m.role, m.type, m.format) for m in back.messages] == [
        ("user", "message", None),
        ("user", "code", "python"),
        ("computer", "console", "output"),
        ("computer", "code", "html"),
        ("user", "code", "python"),
        ("user", "message", None),
    ]
    assert back.messages[4].meta["state"] == CodeFate.SKIPPED, "opening a notebook offers nothing to run"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"cells": [\n  1,\n  {oops}', "line 3"),
        (b'{"cells": [1]}', "cell 1"),
        (b"[]", "no list of cells"),
        (b'{"worksheets": []}', "old format"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"[" * 100_000, "no notebook"),
    ],
)
def test_a_file_that_is_no_notebook_says_where(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "bad.ipynb"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=said):
        notebook.read(path)


def test_markdown_has_everything() -> None:
    text = render(everything(), "markdown")
    assert text.startswith("# sales <report> & more\n\n## User\n\nwhich month sold best?")
    assert "```python\nx = 2\nx\n```\n\n*(edited by the user)*\n\n```output\n2\n```" in text
    assert f"data:image/png;base64,{PICTURE}" in text
    assert "*(declined: never)*" in text
    assert "The model was busy." in text


def test_markdown_fences_cannot_be_broken_by_what_is_in_them() -> None:
    code = Message("assistant", "code", 'print("```")', "python", meta=RUN)
    text = render(Conversation("t", [code]), "markdown")
    assert '````python\nprint("```")\n````' in text


def test_html_is_one_page_that_fetches_and_runs_nothing() -> None:
    page = render(everything(), "html")
    assert "<title>sales &lt;report&gt; &amp; more</title>" in page
    assert "<script" not in page
    assert not re.findall(r"<(?:img|link|iframe)[^>]+(?:src|href)=\"(?!data:)", page)
    assert "<strong>look</strong>" in page
    assert 'sandbox=""' in page and "&lt;b onclick" in page
    assert f"data:image/png;base64,{PICTURE}" in page
    assert "default-src 'none'" in page


def test_open_interpreters_json_is_plain_lmc() -> None:
    wire = json.loads(render(everything(), "json"))
    assert wire[0] == {"role": "user", "type": "message", "content": "which month sold best?\nand why"}
    assert wire[2] == {"role": "assistant", "type": "code", "format": "python", "content": "x = 2\nx"}
    assert all(set(m) <= {"role", "type", "format", "content", "recipient"} for m in wire)


def test_scripts_hold_only_what_was_run(tmp_path: Path) -> None:
    written = export(everything(), "scripts", tmp_path / "out")
    assert sorted(path.name for path in written) == ["script.py", "script.sh"]
    python = (tmp_path / "out" / "script.py").read_text()
    assert "x = 2" in python and "plot()" in python
    assert "remove" not in python and "x = 1" not in python
    compile(python, "script.py", "exec")
    assert "echo hi" in (tmp_path / "out" / "script.sh").read_text()


def test_a_path_that_exists_is_not_replaced_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "there.md"
    path.write_text("mine")
    with pytest.raises(PathExists):
        export(everything(), "markdown", path)
    assert path.read_text() == "mine"
    export(everything(), "markdown", path, force=True)
    assert path.read_text().startswith("# sales")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no folder"):
        export(everything(), "markdown", tmp_path / "none" / "x.md")
    with pytest.raises(ExportError, match="is a folder"):
        export(everything(), "markdown", tmp_path)


def test_keys_are_in_no_export(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ACME_API_KEY", "very-secret-0123456789")
    conversation = Conversation(
        "very-secret-0123456789",
        [
            Message("user", "message", "very-secret-0123456789"),
            Message("assistant", "code", "k = 'very-secret-0123456789'", "python", meta=RUN),
            Message("computer", "console", "very-secret-0123456789\n", "output"),
        ],
    )
    for format in ("markdown", "notebook", "html", "json", "python"):
        (path,) = export(conversation, format, tmp_path / f"x-{format}")
        assert "very-secret" not in path.read_text()


def test_formats_have_the_names_people_use() -> None:
    assert [format_named(n) for n in ("md", "ipynb", "jupyter", ".html", "JSON", "py", "bash", "script")] == [
        "markdown",
        "notebook",
        "notebook",
        "html",
        "json",
        "python",
        None,
        "scripts",
    ]
    assert format_for(Path("x.rb")) == "ruby"
    with pytest.raises(ExportError, match="There are: markdown"):
        format_for(Path("x.pdf"))


def test_odd_bytes_do_not_stop_an_export() -> None:
    odd = Conversation(
        "\ud800", [Message("user", "message", "a\ud800b\x00c"), Message("computer", "image", "%%%", "x")]
    )
    for format in ("markdown", "notebook", "html", "json"):
        assert render(odd, format)
    assert base64.b64decode(PICTURE)
