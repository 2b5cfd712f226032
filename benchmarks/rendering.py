"""From foreign text to lines: what drawing costs, without a screen. Processor time, one core."""

from __future__ import annotations

import gc
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from textual.strip import Strip

from benchmarks.rows import Row
from oi_tui.engine.hidden_text import find_hidden
from oi_tui.rendering.highlight import Highlighter
from oi_tui.rendering.markdown import MarkdownDocument
from oi_tui.rendering.sanitise import sanitise
from oi_tui.rendering.terminal_text import TerminalText
from oi_tui.rendering.terminal_view import TerminalView
from oi_tui.rendering.theme import RenderTheme

MIB = 1 << 20
WIDTH, HEIGHT = 100, 40
FRAMES = 30
"""Frames per second."""
FRAME = 64 * 1024
"""The most that the bridge between engine and screen puts into a frame."""
CODE = "def area(radius: float) -> float:\n    '''Of a circle.'''\n    return 3.14159 * radius ** 2  # square units\n\n"
ANSWER = f"""\
## A heading of the answer

Some **bold** words, `inline code` and a [link](https://example.com) in a paragraph that is long enough to be wrapped
over a few lines of the terminal, as paragraphs of answers are.

- an item with *emphasis* that goes on for a while
- another one
  1. nested and numbered

| month | amount | share |
|-------|--------|-------|
| May   | 41,883 | 12.5 % |
| June  | 39,120 | 11.7 % |

```python
{CODE}```

> And a quotation at the end of it.

"""

FLOODS = {
    "words": "some ordinary output of a program\n",
    "words of other scripts": "déjà vu 漢字 привет\n",
    "colours": "\x1b[31mred\x1b[0m ",
    "unfinished sequences": "\x1b[1;2",
    "titles": "\x1b]0;title\x07x",
    "escapes": "\x1b",
    "bells": "\x07a",
}


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def paint(strip: Strip, console: Console) -> None:
    """What Textual does with a line that has not been drawn before."""
    strip.render(console)


def stream_markdown(text: str, characters: int) -> float:
    """Seconds to draw an answer that comes in frames of so many characters, the visible lines painted each time."""
    document = MarkdownDocument()
    theme, console = RenderTheme.ansi(), Console(width=WIDTH, color_system="truecolor", force_terminal=True)
    started = time.process_time()
    for start in range(0, len(text), characters):
        document.append(text[start : start + characters])
        lines = document.render(WIDTH, theme)
        for index in range(max(0, len(lines) - HEIGHT), len(lines)):
            paint(lines[index].strip, console)
    return time.process_time() - started


def share_of_core(text: str, tokens_per_second: int = 1000) -> float:
    """Percent of a core that drawing takes while this text streams at this speed. A token is four characters."""
    characters = tokens_per_second * 4 // FRAMES
    return stream_markdown(text, characters) / (len(text) / (tokens_per_second * 4)) * 100


def print_lines(text: str, size: int) -> list[float]:
    """Seconds to take in and draw each frame of output that comes in frames of `size` characters, sorted."""
    terminal = TerminalText()
    view = TerminalView(terminal, WIDTH)
    theme = RenderTheme.ansi()
    taken: list[float] = []
    gc.collect()
    for start in range(0, len(text), size):
        begun = time.process_time()
        terminal.feed(text[start : start + size])
        view.update()
        for row in range(max(0, view.height - HEIGHT), view.height):
            view.line(row, theme)
        taken.append(time.process_time() - begun)
    return sorted(taken)


def steps(step: Callable[[], bool]) -> list[float]:
    """Milliseconds of each step of work that is done in steps."""
    gc.collect()
    taken: list[float] = []
    goes_on = True
    while goes_on:
        started = time.process_time()
        goes_on = step()
        taken.append((time.process_time() - started) * 1000)
    return sorted(taken)


def growth_for_output() -> float:
    """MiB that a process grows by while 100 MB of output go through it, measured in one of its own."""
    code = "from benchmarks.rendering import grow_with_output; grow_with_output()"
    folder = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return float(done.stdout)


def grow_with_output() -> None:
    """Feed 100 MB of output and print the growth of the peak memory in MiB."""
    print_lines("warm\n" * 100, 100)
    before = _peak()
    terminal = TerminalText()
    view = TerminalView(terminal, WIDTH)
    piece = ("x" * 99 + "\n") * 2000
    for _ in range(500):
        terminal.feed(piece)
        view.update()
    print((_peak() - before) / MIB)


def _peak() -> int:
    """Bytes of the most memory this process has had. What `getrusage` says on Linux begins with that of its parent."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.findall(r"VmHWM:\s*(\d+)", status.read_text())[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _five_megabytes() -> MarkdownDocument:
    return MarkdownDocument(ANSWER * (5 * MIB // len(ANSWER)))


def rows() -> Iterator[Row]:
    """The promises about drawing."""
    for name, flood in FLOODS.items():
        text = flood * (MIB // len(flood))
        spent = min(seconds(lambda text=text: sanitise(text, keep_sgr=True)) for _ in range(3))  # type: ignore[misc]
        yield Row.at_most(f"sanitise 1 MiB of {name}", spent * 1000, "ms", 50)
    code = CODE * 2500
    yield Row.plain("hidden characters in 10,000 lines", seconds(lambda: find_hidden(code)) * 1000, "ms")
    foreign = code + "# é\n"
    yield Row.plain("the same with a letter that is not ASCII", seconds(lambda: find_hidden(foreign)) * 1000, "ms")
    yield Row.at_most("Markdown at 1,000 tokens/s", share_of_core(ANSWER * 40), "% core", 40)
    fence = "```python\n" + CODE * 400 + "```\n"
    yield Row.at_most("a fence of 1,600 lines at 1,000 tokens/s", share_of_core(fence), "% core", 40)
    short, long = ANSWER * 20, ANSWER * 100
    stream_markdown(short, 133)
    yield Row.against(
        "Markdown: five times the tokens", stream_markdown(long, 133), "s", stream_markdown(short, 133), 6
    )
    highlighter = Highlighter("python", code)
    yield Row.at_most("10,000 lines of code: longest step", steps(highlighter.advance)[-1], "ms", 50)
    taken = steps(_five_megabytes().advance)
    yield Row.at_most("5 MiB message: 95 of 100 steps", taken[int(len(taken) * 0.95)], "ms", 50)
    # The longest has a collection of garbage in it, which takes longer the more there is in the whole program.
    yield Row.plain("5 MiB message: longest step", taken[-1], "ms")
    printed = "".join(f"{number}\n" for number in range(200_000))
    yield Row.at_most("200,000 lines of output, drawn at 30 fps", sum(print_lines(printed, 14_000)), "s", 1)
    megabytes = ("\x1b[32m" + "x" * 90 + "\x1b[0m\n") * 200_000
    frames = print_lines(megabytes, FRAME)
    yield Row.plain("20 MB of coloured output", sum(frames), "s")
    yield Row.at_most("the same: 95 of 100 frames of 64 KiB", frames[int(len(frames) * 0.95)] * 1000, "ms", 33)
    yield Row.at_most("100 MB of output: growth", growth_for_output(), "MiB", 80)
