"""HTML and React: shown, drawn for the model where a browser can, never run here."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
from pathlib import Path

import pytest
from PIL import Image

from oi_tui.engine.languages import page as page_module
from oi_tui.engine.languages.html import Html
from oi_tui.engine.languages.page import HEIGHT, WIDTH, find_browser
from oi_tui.engine.languages.react import React
from tests.engine.languages.running import Running, run, until


@pytest.fixture
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "find_browser", lambda: None)


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A program in the place of the browser, to see how it is called and what becomes of its faults."""
    program = tmp_path / "browser"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(page_module, "find_browser", lambda: str(program))


async def test_the_page_goes_to_the_user_and_a_word_to_the_model(no_browser: None) -> None:
    source = "<h1>Hi</h1><script>document.title = 'x'</script>"
    ran = await run(Html(), source)
    pages = [chunk for chunk in ran if chunk.type == "code"]
    assert [(p.format, p.content, p.recipient) for p in pages] == [("html", source, "user")]
    assert "opens it in a browser" in ran.for_model
    assert ran.images == []


@pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed: drawing pages is not tried")
async def test_a_real_browser_draws_the_page() -> None:
    ran = await run(Html(), "<body style='margin:0;background:rgb(255,0,0)'><h1>Hi</h1>")
    picture = Image.open(io.BytesIO(base64.b64decode(ran.images[0].text)))
    assert picture.size == (WIDTH, HEIGHT)
    assert picture.convert("RGB").getpixel((WIDTH - 5, HEIGHT - 5)) == (255, 0, 0)


async def test_the_browser_gets_a_private_file_and_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(
        tmp_path,
        monkeypatch,
        f'for last; do :; done; echo "$last" > {tmp_path}/seen; stat -c %a "${{last#file://}}" >> {tmp_path}/seen',
    )
    ran = await run(Html(), "<p>x")
    address, mode = (tmp_path / "seen").read_text().split()
    assert mode == "600"
    assert not Path(address.removeprefix("file://")).exists()
    assert ran.images == []
    assert "could not draw" in ran.notices[0]


async def test_a_browser_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, f"touch {tmp_path}/started; sleep 600")
    html = Html()
    running = Running(html, "<p>x")
    await until((tmp_path / "started").exists)
    assert html.is_running
    await html.interrupt()
    ran = await running.end()
    assert ran.for_model
    assert not html.is_running


async def test_leaving_ends_the_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(
        tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; exec sleep 600"
    )
    running = Running(Html(), "<p>x")
    await until((tmp_path / "pid").exists)
    running.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.task
    browser = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}")
    await until(lambda: not browser.exists())


@pytest.mark.parametrize(
    ("code", "drawn"),
    [
        ("function App() { return <b>hi</b> }", "<App />"),
        ("const Card = () => <i/>;\nconst Page = () => <Card/>;", "<Page />"),
        ("export default function Chart() { return null }", "<Chart />"),
        ("function Main() { return null }\nexport default Main;", "<Main />"),
        ("export default () => <p/>", "<App />"),
        ("import ReactDOM from 'react-dom/client';\nReactDOM.createRoot(document.body).render(<p/>);", None),
    ],
)
def test_a_component_is_mounted_unless_it_mounts_itself(code: str, drawn: str | None) -> None:
    page = React().page(code)
    mounts = re.findall(r"getElementById\(\"root\"\)\)\.render\((.*?)\);", page)
    assert mounts == ([drawn] if drawn else [])


def test_what_a_component_imports_can_be_found() -> None:
    code = "import React, { useState } from 'react';\nimport { LineChart } from \"recharts\";\nimport './x.css';"
    page = React().page(code + "\nfunction App() { return null }")
    imports = json.loads(re.findall(r'<script type="importmap">(.*?)</script>', page)[0])["imports"]
    assert imports["react"].startswith("https://")
    assert "react@" in imports["recharts"]
    assert not any("css" in name for name in imports)
    assert page.count("import React") == 1


def test_code_cannot_end_the_script_it_is_in() -> None:
    page = React().page("const App = () => <p>{'</script><script>alert(1)</script>'}</p>")
    assert page.count("</script>") == 3
