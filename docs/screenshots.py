"""Draw the pictures of the README: the real program with the embedded demo, photographed by Textual.

python docs/screenshots.py
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parent / "images"
os.environ["HOME"] = os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp()
os.chdir(tempfile.mkdtemp())

from oi_tui.app import OiApp  # noqa: E402  (the empty home has to be there first)
from oi_tui.engine.settings import ModelSettings, Settings  # noqa: E402
from oi_tui.styles.themes import ANSI, DARK, LIGHT  # noqa: E402

KEYS = {" ": "space", "?": "question_mark", "*": "asterisk", ".": "full_stop", ",": "comma", "'": "apostrophe"}
Story = Callable[[Any], Awaitable[None]]


async def say(pilot: Any, text: str) -> None:
    await pilot.press(*(KEYS.get(c, c) for c in text), "enter")


async def until(pilot: Any, text: str, seconds: float = 30) -> None:
    """Wait until this is on the screen, and a moment longer."""
    async with asyncio.timeout(seconds):
        while text not in _visible(pilot.app):
            await pilot.pause(0.1)
    await pilot.pause(1.2)


def _visible(app: Any) -> str:
    width, height = app.size
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips[:height]) if width else ""


async def approval(pilot: Any) -> None:
    await say(pilot, "which are the biggest files here?")
    await until(pilot, "y run")


async def running(pilot: Any) -> None:
    await say(pilot, "run a long loop")
    await until(pilot, "y run")
    await pilot.press("y")
    await until(pilot, "step  6")


async def repaired(pilot: Any) -> None:
    await say(pilot, "make an error and repair it")
    await until(pilot, "y run")
    await pilot.press("y")
    await until(pilot, "It failed")
    await until(pilot, "y run")


async def picture(pilot: Any) -> None:
    await say(pilot, "draw a picture")
    await until(pilot, "y run")
    await pilot.press("y")
    await until(pilot, "There it is")


async def editing(pilot: Any) -> None:
    await say(pilot, "what is 2380*3875?")
    await until(pilot, "y run")
    await pilot.press("e")
    await pilot.pause(0.5)
    await pilot.press("end", *" + 1")
    await pilot.pause(0.5)
    await pilot.press("escape")
    await pilot.pause(1)


PICTURES: dict[str, tuple[tuple[int, int], str, Story]] = {
    "approval": ((100, 30), DARK, approval),
    "running": ((120, 40), DARK, running),
    "repaired": ((80, 24), LIGHT, repaired),
    "editing": ((80, 24), DARK, editing),
    "picture": ((200, 50), DARK, picture),
    "ansi": ((80, 24), ANSI, approval),
}


async def draw(name: str) -> None:
    size, theme, story = PICTURES[name]
    app = OiApp(Settings(llm=ModelSettings(model="demo"), theme=theme))
    async with app.run_test(size=size) as pilot:
        await pilot.pause(0.5)
        await story(pilot)
        (IMAGES / f"{name}.svg").write_text(app.export_screenshot(title="oi-tui"), encoding="utf-8")
    print(name)


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    for picture_name in PICTURES:
        asyncio.run(draw(picture_name))
