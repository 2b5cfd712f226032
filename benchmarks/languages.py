"""Every language that is installed: how long a warm block takes to its output, a cold one, and what watching costs."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.rows import Row
from oi_tui.engine.approval import CodeProposal, Decision, no_answer
from oi_tui.engine.languages.base import Language
from oi_tui.engine.languages.place import Place
from oi_tui.engine.languages.registry import Registry

PROMISED = {"shell": 50.0, "javascript": 50.0}
"""Milliseconds from approval to output, p95, in a warm process."""

RUNS = 30

HELLO = {
    "shell": "echo hello",
    "javascript": "console.log('hello')",
    "ruby": "puts 'hello'",
    "r": "cat('hello\\n')",
    "java": 'System.out.println("hello");',
    "powershell": "'hello'",
}

SHELL_SCRIPT = "for i in {1..200}; do\n  /bin/true\n  x=$i\ndone"
SHELL_LOOP = "i=0\nwhile ((i < 300000)); do\n  ((i++))\n  x=$i\ndone"
NODE_LOOP = "let t = 0;\nfor (let i = 0; i < 6e8; i++) t += i % 7;\n"


async def first_output(language: Language, code: str) -> float:
    """Milliseconds from the call to the first output; the run is ended."""
    approved = CodeProposal("bench", language.name, code).approve(Decision.run())
    started, seen = time.perf_counter(), 0.0
    async with aclosing(language.run(approved, answer=no_answer)) as chunks:
        async for chunk in chunks:
            if chunk.format == "output" and not seen:
                seen = time.perf_counter() - started
    return seen * 1000


async def whole_run(language: Language, code: str) -> float:
    """Milliseconds to the end of the run."""
    approved = CodeProposal("bench", language.name, code).approve(Decision.run())
    started = time.perf_counter()
    async with aclosing(language.run(approved, answer=no_answer)) as chunks:
        async for _ in chunks:
            pass
    return (time.perf_counter() - started) * 1000


def program(command: list[str]) -> float:
    """Milliseconds of a program that runs by itself."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - started) * 1000


async def rows() -> AsyncIterator[Row]:
    with TemporaryDirectory() as folder:
        registry = Registry(place=Place(cwd=Path(folder)))
        try:
            for name, code in HELLO.items():
                if (language := registry.get(name)) is not None:
                    async for row in _speed(language, code):
                        yield row
            async for row in _watching(registry, Path(folder)):
                yield row
        finally:
            await registry.aclose()


async def _speed(language: Language, code: str) -> AsyncIterator[Row]:
    yield Row.plain(f"{language.name}: first block, cold → output", await first_output(language, code), "ms")
    times = [await first_output(language, code) for _ in range(RUNS)]
    p95 = statistics.quantiles(times, n=20)[-1]
    name = f"{language.name}: warm block → output, p95 of {RUNS}"
    limit = PROMISED.get(language.name)
    yield Row.plain(name, p95, "ms") if limit is None else Row.at_most(name, p95, "ms", limit)


async def _watching(registry: Registry, folder: Path) -> AsyncIterator[Row]:
    """The active line against the same code in a process of its own; the best of three each."""
    if (shell := registry.get("shell")) is not None:
        for what, code in (("200 programs", SHELL_SCRIPT), ("600,000 builtins", SHELL_LOOP)):
            watched = min([await whole_run(shell, code) for _ in range(3)])
            alone = min(program(["bash", "-c", code]) for _ in range(3))
            yield Row.plain(f"shell: {what}, lines watched, vs bash", watched, "ms", alone)
    if (javascript := registry.get("javascript")) is not None:
        (folder / "loop.js").write_text(NODE_LOOP)
        watched = min([await whole_run(javascript, NODE_LOOP) for _ in range(3)])
        alone = min(program(["node", str(folder / "loop.js")]) for _ in range(3))
        yield Row.plain("javascript: 600 million turns, lines watched, vs node", watched, "ms", alone)
