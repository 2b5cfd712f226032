"""The promised numbers of the screen: the real command in a pseudo-terminal, a loopback server as its model.

python -m benchmarks.screen            all rows
python -m benchmarks.screen output     those whose function's name contains the word

What is timed is what a user sees: from a key written to the terminal, or a token sent by the server, until the text was
written by the program. A machine that is busy with other things shows in all of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import screen_programs
from benchmarks.kernel import HUNDRED_MEGABYTES, PRINTS, bare_kernel
from benchmarks.rows import Row
from benchmarks.terminal import (
    Terminal,
    Typist,
    family,
    internet_sockets,
    p95,
    processor_time,
    proportional,
    resident,
)
from tests.openai_replies import Exchange, Reply, Slow, chunk, event, pieces, text, tool_call
from tests.openai_server import OpenAIServer, Recorded

PROMPT = "sk for something"
"""The empty prompt of an idle session; its first letter is under the cursor."""
ANSWERED = "That was it."
PAINTS = 9
FIRST_TOKENS = 25
APPROVALS = 10
INTERRUPTS = 15
ARMED = 1.3
"""Seconds after which a run bar takes `y`: it ignores keys that may have been meant for the prompt."""


@dataclass(frozen=True)
class Tokens(Reply):
    """These tokens, one delta each, as fast as the socket takes them or `rate` per second."""

    tokens: Sequence[str]
    rate: float | None = None

    async def __call__(self, exchange: Exchange) -> None:
        body = exchange.request.body
        events = [event(chunk(body, {"content": token})) for token in self.tokens]
        await exchange.start(200, {"Content-Type": "text/event-stream"}, chunked=True)
        begun = time.monotonic()
        for number, data in enumerate(events):
            if self.rate:
                await asyncio.sleep(max(0.0, begun + number / self.rate - time.monotonic()))
            exchange.mark_first_delta()
            await exchange.send(data)
        await exchange.send(event(chunk(body, {}, "stop")) + b"data: [DONE]\n\n")
        await exchange.finish()


@contextlib.contextmanager
def empty_home() -> Iterator[dict[str, str]]:
    """A home that nobody has used. Yields the environment."""
    home = tempfile.mkdtemp(prefix="oi-tui-bench-")
    environ = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    environ |= {"HOME": home, "TMPDIR": home, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
    environ |= {"OI_TUI_API_KEY": "sk-benchmark", "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
    environ |= {"PYTHONPATH": str(Path(__file__).parents[1])}
    try:
        yield environ
    finally:
        shutil.rmtree(home, ignore_errors=True)


class User:
    """Sits at the terminal of an oi-tui whose model is the server."""

    def __init__(self, terminal: Terminal, server: OpenAIServer, home: Path) -> None:
        self.terminal, self.server, self.home = terminal, server, home

    async def turn(self, reply: Reply | Callable[[Recorded], Reply], wanted: str) -> tuple[float, float]:
        """Send a message. Returns when it was sent and when the wanted words of the answer were seen."""
        self.server.use(reply)
        mark = self.terminal.mark()
        self.terminal.type("go")
        await self.terminal.seen("go", mark)
        sent = self.terminal.type("\r")
        return sent, await self.terminal.seen(wanted, mark)

    async def is_idle(self, mark: int) -> float:
        return await self.terminal.seen(PROMPT, mark)

    async def ends(self, mark: int) -> None:
        """Wait for the end of the turn, and a little for what is drawn after it."""
        await self.is_idle(mark)
        await asyncio.sleep(0.15)


async def settled(terminal: Terminal) -> None:
    """Wait until nothing of the program works any more: all that is started ahead of time is warm."""
    quiet = 0
    before = -1.0
    while quiet < 4:
        await asyncio.sleep(0.15)
        now = sum(_time_of(pid) for pid in family(terminal.pid))
        quiet = quiet + 1 if now - before < 0.02 else 0
        before = now


def _time_of(pid: int) -> float:
    try:
        return processor_time(pid)
    except OSError:  # it has just ended
        return 0.0


@contextlib.asynccontextmanager
async def session(*flags: str) -> AsyncIterator[User]:
    """A session in which everything is warm and nothing was said yet."""
    with empty_home() as environ:
        async with OpenAIServer(text("Hello.")) as server:
            command = [sys.executable, "-m", "oi_tui", "--model", "openai/test", "--api_base", server.url, *flags]
            home = Path(environ["HOME"])
            with Terminal(command, environ, cwd=home) as terminal:
                user = User(terminal, server, home)
                await terminal.seen(PROMPT)
                await settled(user.terminal)
                yield user


def code(source: str) -> Callable[[Recorded], Reply]:
    """A model that wants this run, and says a word when it has its output."""

    def script(request: Recorded) -> Reply:
        is_asked = str(request.messages[-1].get("content")).endswith("go")
        return tool_call(source) if is_asked else text(ANSWERED)

    return script


# -- the start


async def first_paint() -> list[Row]:
    """From the start of the process to a prompt that shows what was typed into it, in alternation."""

    async def seconds(command: list[str], wanted: str, *, mute: bool = False) -> float:
        with empty_home() as environ:
            terminal = Terminal(command, environ, cwd=Path(environ["HOME"]), mute=mute)
            try:
                await terminal.seen(wanted)
                mark = terminal.mark()
                terminal.type("qzx")
                return await terminal.seen("qzx", mark) - terminal.started_at
            finally:
                terminal.end(at_once=True)

    own = [sys.executable, "-m", "oi_tui", "--model", "openai/test", "--api_base", "http://127.0.0.1:9/v1"]
    minimal = [sys.executable, "-c", screen_programs.MINIMAL]
    await seconds(own, PROMPT), await seconds(minimal, PROMPT)  # warm the file cache
    ours, reference, silent = [], [], []
    for _ in range(PAINTS):
        ours.append(await seconds(own, PROMPT))
        reference.append(await seconds(minimal, PROMPT))
        silent.append(await seconds(own, PROMPT, mute=True))
    ratio = statistics.median(a / b for a, b in zip(ours, reference, strict=True))
    added = statistics.median(a - b for a, b in zip(silent, ours, strict=True))
    value, other = statistics.median(ours), statistics.median(reference)
    return [
        Row("first paint, typing accepted", value, "s", other, ratio, "≤ 1.8x a minimal Textual app", ratio <= 1.8),
        Row.at_most("first paint: a mute terminal adds", added * 1000, "ms", 100),
    ]


async def at_the_prompt() -> list[Row]:
    """Memory, connections and processor time of a session that nobody has typed into."""
    with empty_home() as environ:
        with Terminal([sys.executable, "-c", screen_programs.MINIMAL], environ) as terminal:
            await terminal.seen(PROMPT)
            await asyncio.sleep(1)
            minimal, minimal_shared = resident(terminal.pid), proportional(terminal.pid)
        connections = 0
        async with OpenAIServer(text("Hello.")) as server:
            command = [sys.executable, "-m", "oi_tui", "--model", "openai/test", "--api_base", server.url]
            with Terminal(command, environ, cwd=Path(environ["HOME"])) as terminal:
                await terminal.seen(PROMPT)
                started = time.monotonic()
                while time.monotonic() < started + 4:
                    connections = max(connections, internet_sockets(terminal.pid)[0])
                    await asyncio.sleep(0.005)
                connections = max(connections, server.open_connections, len(server.requests))
                await settled(terminal)
                listening = internet_sockets(terminal.pid)[1]
                memory, shared = resident(terminal.pid), proportional(terminal.pid)
                before, begun, wrote = processor_time(terminal.pid), time.monotonic(), terminal.bytes_written
                await asyncio.sleep(10)
                idle = 100 * (processor_time(terminal.pid) - before) / (time.monotonic() - begun)
                wrote = terminal.bytes_written - wrote
    ratio = memory / minimal
    return [
        Row("memory at the prompt, resident", memory, "MB", minimal, ratio, "≤ 60 MB", memory <= 60),
        Row.plain("memory at the prompt, shared pages divided", shared, "MB", minimal_shared),
        Row.at_most("connections before the first key, all processes", connections, "", 0),
        Row.at_most("listening internet sockets, all processes", listening, "", 0),
        Row.at_most("idle CPU, over 10 s", idle, "%", 0.5),
        Row.plain("idle: bytes written, over 10 s", wrote, "B"),
    ]


# -- the answer


async def first_token() -> list[Row]:
    """From the server's first delta to the terminal. The model thinks before it, and goes on after the first word."""
    late = []
    async with session() as user:
        for number in range(FIRST_TOKENS + 1):
            mark = user.terminal.mark()
            answer = Tokens([f"answer{number:02}q", " and", " more."], rate=5)
            _, seen = await user.turn(Slow(0.15, answer), f"answer{number:02}q")
            sent = user.server.requests[-1].first_delta_at
            assert sent is not None
            late.append((seen - sent) * 1000)
            await user.ends(mark)
    first, *rest = late
    return [
        Row.at_most("first token visible, first of a session", first, "ms", 100),
        Row.at_most("first token visible, p50", statistics.median(rest), "ms", 20),
        Row.at_most("first token visible, p95", p95(rest), "ms", 40),
    ]


async def flat_out() -> list[Row]:
    """Thousands of tokens as fast as the socket takes them, each answer in a session of its own."""
    seconds: dict[int, list[float]] = {2_000: [], 10_000: []}
    written = []
    for _ in range(3):
        for count, taken in seconds.items():
            async with session() as user:
                await user.turn(text("Hello there."), "Hello there.")
                await settled(user.terminal)
                before = user.terminal.bytes_written
                sent, seen = await user.turn(Tokens(["token "] * (count - 1) + ["thelastq"]), "thelastq")
                taken.append(seen - sent)
                if count == 2_000:
                    await asyncio.sleep(0.2)
                    written.append((user.terminal.bytes_written - before) / 1e6)
    small, large = (statistics.median(taken) for taken in seconds.values())
    ratio = large / small
    return [
        Row.at_most("2,000 tokens flat out, all visible", small, "s", 1.0),
        Row.at_most("2,000 tokens flat out: written to the terminal", statistics.median(written), "MB", 2),
        Row("10,000 tokens against 2,000", large, "s", small, ratio, "≤ 6x", ratio <= 6),
    ]


async def markdown() -> list[Row]:
    """An answer with everything in it at 1,000 tokens a second, while the user types."""
    async with session() as user:
        await user.turn(text("Hello there."), "Hello there.")
        await settled(user.terminal)
        tokens = pieces(screen_programs.MARKDOWN)
        user.server.use(Tokens((tokens * (8_000 // len(tokens) + 1))[:8_000], rate=1_000))
        user.terminal.type("go\r")
        await asyncio.sleep(0.5)
        request = user.server.requests[-1]
        typist = Typist(user.terminal)
        before, begun = processor_time(user.terminal.pid), time.monotonic()
        typing = asyncio.create_task(asyncio.sleep(6))
        await typist.until(typing, 0.08)
        share = 100 * (processor_time(user.terminal.pid) - before) / (time.monotonic() - begun)
        assert not request.finished, "the answer was over before the typing"
    return [
        Row.at_most("Markdown at 1,000 tokens/s: processor, with typing", share, "%", 40),
        Row.at_most("Markdown at 1,000 tokens/s: key, p95", p95(typist.late), "ms", 50),
        Row.plain("Markdown at 1,000 tokens/s: key, p50", statistics.median(typist.late), "ms"),
    ]


# -- running


async def approved_print() -> list[Row]:
    """From the approval to the output of a `print`, in a warm kernel. F5 approves at once; `y` first waits 25 ms to see
    whether it is part of a paste."""
    late: dict[str, list[float]] = {"\x1b[15~": [], "y": []}
    async with session() as user:
        for number in range(2 * APPROVALS + 2):
            key = ("y", "\x1b[15~")[number % 2]
            mark = user.terminal.mark()
            await user.turn(code(f"print('out' + 'put{number:02}q')"), "y run")
            await asyncio.sleep(ARMED)
            typed = user.terminal.type(key)
            late[key].append((await user.terminal.seen(f"output{number:02}q", mark) - typed) * 1000)
            await user.ends(mark)
    at_once, careful = (values[1:] for values in late.values())
    return [
        Row.at_most("approved print → output visible, warm, p95", p95(at_once), "ms", 50),
        Row.plain("approved print → output visible, warm, p50", statistics.median(at_once), "ms"),
        Row.plain("the same from `y`, which waits 25 ms, p95", p95(careful), "ms"),
        Row.plain("the same from `y`, which waits 25 ms, p50", statistics.median(careful), "ms"),
    ]


async def interrupt() -> list[Row]:
    """From Esc to a prompt that sends again."""
    late = []
    async with session("-y") as user:
        for number in range(INTERRUPTS):
            body = ("while True: pass", "time.sleep(600)", "while True: print('words')")[number % 3]
            mark = user.terminal.mark()
            await user.turn(
                code(f"import time\nprint('beg' + 'un{number:02}q')\ntime.sleep(0.3)\n{body}"), f"begun{number:02}q"
            )
            await asyncio.sleep(0.4)
            mark = user.terminal.mark()
            typed = user.terminal.type("\x1b[27u")
            late.append((await user.is_idle(mark) - typed) * 1000)
            await asyncio.sleep(0.3)
    return [
        Row.at_most("interrupt → prompt back, p95", p95(late), "ms", 150),
        Row.plain("interrupt → prompt back, p50", statistics.median(late), "ms"),
    ]


async def _flood(user: User, source: str, wanted: str) -> tuple[float, float, list[float]]:
    """Seconds from Enter to the last words, growth of memory in MB, how late keys were in ms."""
    base = resident(user.terminal.pid)
    typist = Typist(user.terminal)
    mark = user.terminal.mark()
    running = asyncio.create_task(user.turn(code(source), wanted))
    await user.terminal.seen("running", mark)
    highest = base

    async def watch() -> None:
        nonlocal highest
        while True:
            highest = max(highest, resident(user.terminal.pid))
            await asyncio.sleep(0.02)

    watching = asyncio.create_task(watch())
    await typist.until(running, 0.02)
    sent, seen = await running
    await asyncio.sleep(0.5)
    watching.cancel()
    await typist.clear()
    await user.is_idle(mark)
    return seen - sent, highest - base, typist.late


async def output_of_prints() -> list[Row]:
    """200,000 prints, with keys typed all the time."""
    async with bare_kernel() as drain:
        bare = statistics.median([await drain(PRINTS) for _ in range(3)])
    seconds, growth, late = [], [], []
    for _ in range(3):
        async with session("-y") as user:
            await user.turn(code("print('he' + 'llo')"), "hello")
            await settled(user.terminal)
            one = await _flood(user, PRINTS, "199999")
            seconds.append(one[0])
            growth.append(one[1])
            late += one[2]
    return [
        Row.against("200,000 prints, all visible, with typing", statistics.median(seconds), "s", bare, 1.25),
        Row.at_most("200,000 prints: key, p95", p95(late), "ms", 50),
        Row.plain("200,000 prints: key, p50", statistics.median(late), "ms"),
        Row.at_most("200,000 prints: memory growth", max(growth), "MB", 60),
    ]


async def output_of_100_megabytes() -> list[Row]:
    """A million lines of a hundred bytes."""
    async with session("-y") as user:
        await user.turn(code("print('he' + 'llo')"), "hello")
        await settled(user.terminal)
        seconds, growth, late = await _flood(user, f"{HUNDRED_MEGABYTES}\nprint('all', 'out')", "all out")
        sizes = [path.stat().st_size for path in user.home.rglob("*") if path.is_file()]
        whole = 100_000_000 + len("all out\n") in sizes
    return [
        Row.plain("100 MB of output, last line visible, with typing", seconds, "s"),
        Row.at_most("100 MB of output: memory growth", growth, "MB", 80),
        Row.at_most("100 MB of output: key, p95", p95(late), "ms", 100),
        Row("100 MB of output: on disk", 100.0 if whole else 0.0, "MB", None, None, "all", whole),
    ]


# -- long conversations


async def long_conversation() -> list[Row]:
    """F1 puts 2,000 messages on the screen, ^T adds one: this program's only difference from the real one."""
    opened, appended = [], []
    for _ in range(5):
        with (
            empty_home() as environ,
            Terminal(
                [sys.executable, "-c", screen_programs.LONG_CONVERSATION], environ, cwd=Path(environ["HOME"])
            ) as terminal,
        ):
            await terminal.seen(PROMPT)
            await settled(terminal)
            mark = terminal.mark()
            typed = terminal.type("\x1bOP")
            opened.append((await terminal.seen("message 1999", mark) - typed) * 1000)
            await asyncio.sleep(0.5)
            for number in range(8):
                mark = terminal.mark()
                typed = terminal.type("\x14")
                appended.append((await terminal.seen(f"added {number}.", mark) - typed) * 1000)
                await asyncio.sleep(0.05)
    return [
        Row.at_most("2,000 messages: open, from the key", statistics.median(opened), "ms", 300),
        Row.at_most("2,000 messages: append, p50", statistics.median(appended), "ms", 20),
        Row.plain("2,000 messages: append, p95", p95(appended), "ms"),
    ]


ALL: tuple[Callable[[], Any], ...] = (
    first_paint,
    at_the_prompt,
    first_token,
    flat_out,
    markdown,
    approved_print,
    interrupt,
    output_of_prints,
    output_of_100_megabytes,
    long_conversation,
)


async def rows(*words: str) -> AsyncIterator[Row]:
    """All rows, or those of the functions whose name contains one of the words."""
    for measure in ALL:
        if not words or any(word in measure.__name__ for word in words):
            for row in await measure():
                yield row


async def _main(words: list[str]) -> None:
    from benchmarks.__main__ import show

    async for row in rows(*words):
        show(row)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
