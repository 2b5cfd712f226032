"""Languages that are shown, not run: a page for the user's browser, a picture of it for the model."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import shutil
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from pathlib import Path

from oi_tui.engine.approval import Answerer, ApprovedCode
from oi_tui.engine.errors import LanguageError
from oi_tui.engine.languages.catalogue import find_executable
from oi_tui.engine.languages.place import Place
from oi_tui.engine.languages.process_tree import Process, spawn
from oi_tui.engine.lmc import Chunk, notice

WIDTH, HEIGHT = 960, 540

RENDER_TIMEOUT = 20.0
"""Seconds that a browser has to draw a page."""

_BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "msedge",
    "brave-browser",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)


def find_browser() -> str | None:
    """A browser of the Chromium family that can draw a page into a file."""
    return next((path for name in _BROWSERS if (path := find_executable(name))), None)


class PageLanguage(ABC):
    """A `Language` whose blocks are pages. It has no state and no process, but for a browser that draws."""

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    file_extension: str

    def __init__(self, *, place: Place | None = None) -> None:
        self._place = place or Place()
        self._running = False
        self._stop = asyncio.Event()

    @abstractmethod
    def page(self, code: str) -> str:
        """The whole page for a block."""

    @property
    def description(self) -> str:
        browser = find_browser()
        return f"{self.title}, drawn for the model by {browser}" if browser else f"{self.title}, opened in the browser"

    @property
    def is_running(self) -> bool:
        return self._running

    async def warm(self) -> None:  # noqa: B027 (nothing to override)
        """There is nothing to start."""

    async def run(self, code: ApprovedCode, *, answer: Answerer) -> AsyncGenerator[Chunk, None]:
        if self._running:
            raise LanguageError(f"{self.title} is still busy with another page.", "Wait for it, or stop it first.")
        self._running = True
        self._stop.clear()
        try:
            page = self.page(code.code)
            yield Chunk("computer", "code", "html", page, recipient="user", id=code.id)
            said = "The page is there for the user, who opens it in a browser."
            browser = find_browser()
            picture = None
            if browser is not None:
                picture = await self._draw(browser, page)
                if picture is not None:
                    yield Chunk("computer", "image", "base64.png", picture, id=code.id)
                    said += " The picture shows how it looks."
                elif not self._stop.is_set():
                    yield notice("kernel", f"{Path(browser).name} could not draw the page; the model sees no picture.")
            yield Chunk("computer", "console", "output", f"{said}\n", recipient="assistant", id=code.id)
        finally:
            self._running = False

    async def interrupt(self) -> None:
        self._stop.set()

    async def restart(self) -> None:
        self._stop.set()

    async def aclose(self) -> None:
        self._stop.set()

    async def _draw(self, browser: str, page: str) -> str | None:
        """A PNG of the page in base64; None if the browser fails, takes too long, or is stopped."""
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="oi-tui-page-"))
        process: Process | None = None
        try:
            source, picture = folder / "page.html", folder / "page.png"
            _write_private(source, page)
            process = await spawn(_drawing(browser, folder, source, picture), env=self._place.environment, cwd=folder)
            await self._ended(process)
            return base64.b64encode(picture.read_bytes()).decode("ascii") if picture.exists() else None
        except OSError:
            return None
        finally:
            if process is not None:
                await process.kill_tree(grace=0)
            await asyncio.to_thread(shutil.rmtree, folder, True)

    async def _ended(self, process: Process) -> None:
        waits = [asyncio.ensure_future(process.wait()), asyncio.ensure_future(self._stop.wait())]
        try:
            await asyncio.wait(waits, timeout=RENDER_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)


def _drawing(browser: str, folder: Path, source: Path, picture: Path) -> list[str]:
    options = [
        "--headless=new",
        "--disable-gpu",
        "--hide-scrollbars",
        "--no-first-run",
        "--no-default-browser-check",
        "--disable-extensions",
        "--disable-sync",
        "--disable-background-networking",
        "--mute-audio",
        "--virtual-time-budget=5000",
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={WIDTH},{HEIGHT}",
        f"--screenshot={picture}",
    ]
    if sys.platform != "win32" and os.geteuid() == 0:
        options.append("--no-sandbox")  # it refuses to run as root otherwise
    return [browser, *options, source.as_uri()]


def _write_private(path: Path, text: str) -> None:
    with contextlib.closing(os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")) as file:
        file.write(text.encode("utf-8", "replace"))
