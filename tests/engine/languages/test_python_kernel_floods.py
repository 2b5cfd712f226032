"""Floods of output: all of it, in order, in bounded memory, without keeping the rest of the program waiting."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio

from oi_tui.engine.approval import no_answer
from oi_tui.engine.languages.python_kernel import PythonKernel
from oi_tui.engine.output import OutputCapture
from tests.engine.languages.running import Running, approved, run, until

pytestmark = [pytest.mark.kernel, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kernel(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PythonKernel]:
    home = tmp_path_factory.mktemp("home")
    kernel = PythonKernel(cwd=home, env={**os.environ, "HOME": str(home)})
    await kernel.warm()
    yield kernel
    await kernel.aclose()


FLOODS = {
    "many prints": ("for n in range(100_000): print(n)", "".join(f"{n}\n" for n in range(100_000))),
    "one huge print": ("print('ä' * 5_000_000)", "ä" * 5_000_000 + "\n"),
    "many flushes": ("for n in range(3_000): print(n, flush=True)", "".join(f"{n}\n" for n in range(3_000))),
    "two streams by turns": (
        "import sys\nfor n in range(20_000):\n    print(n)\n    print(-n, file=sys.stderr)",
        "".join(f"{n}\n{-n}\n" for n in range(20_000)),
    ),
    "a program": (
        "import subprocess; _ = subprocess.run('seq 1 300000', shell=True)",
        "".join(f"{n}\n" for n in range(1, 300_001)),
    ),
}


@pytest.mark.parametrize(("code", "expected"), FLOODS.values(), ids=FLOODS.keys())
async def test_all_of_a_flood_arrives_in_order(kernel: PythonKernel, code: str, expected: str) -> None:
    ran = await run(kernel, code)
    assert hashlib.sha256(ran.output.encode()).digest() == hashlib.sha256(expected.encode()).digest()
    assert all(len(chunk.text) <= 65536 for chunk in ran)


async def test_a_slow_reader_makes_the_code_wait_and_loses_nothing(kernel: PythonKernel, tmp_path: Path) -> None:
    assert kernel._kernel is not None
    capture = OutputCapture(tmp_path / "out.txt")
    await run(kernel, "written = 0")
    code = "for written in range(400_000): print('x' * 99)"
    async with aclosing(kernel.run(approved(code), answer=no_answer)) as chunks:
        async for chunk in chunks:
            if chunk.format == "output":
                capture.feed(chunk.text)
                break
        channels = kernel._kernel.channels
        await until(lambda: channels.is_paused)
        for _ in range(50):  # nobody reads for a while: what waits here and in the sockets is bounded
            await asyncio.sleep(0.01)
            assert channels.is_paused
        async for chunk in chunks:
            if chunk.format == "output":
                capture.feed(chunk.text)
    capture.close()
    assert capture.length == 400_000 * 100
    assert capture.path is not None and capture.path.stat().st_size == 400_000 * 100


async def test_an_interrupt_gets_through_although_nobody_reads(kernel: PythonKernel) -> None:
    await run(kernel, "kept = 1")
    chunks = kernel.run(approved("while True: print('x' * 1000)"), answer=no_answer)
    assert kernel._kernel is not None
    async for chunk in chunks:
        if chunk.format == "output":
            break
    channels = kernel._kernel.channels
    await until(lambda: channels.is_paused)
    await kernel.interrupt()
    rest = [chunk async for chunk in chunks]
    assert rest[-1].content is None and "KeyboardInterrupt" in "".join(chunk.text for chunk in rest)
    assert (await run(kernel, "kept")).output == "1\n"


async def test_the_rest_of_the_program_goes_on_during_a_flood(kernel: PythonKernel) -> None:
    running = Running(kernel, "for n in range(300_000): print('x' * 99)")
    await running.prints("x")
    turns = 0
    while not running.task.done():
        await asyncio.sleep(0)
        turns += 1
    assert len((await running.end()).output) == 300_000 * 100
    assert turns > 100


async def test_output_does_not_pile_up_in_the_kernel(kernel: PythonKernel) -> None:
    statm = Path(f"/proc/{kernel.pid}/statm")
    if not statm.exists():
        pytest.skip("needs /proc")

    def pages() -> int:
        return int(statm.read_text().split()[1])

    await run(kernel, "print('x' * 99)\nprint('y')")
    before = pages()
    ran = await run(kernel, "for n in range(400_000): print('x' * 99)")
    assert len(ran.output) == 40_000_000
    assert (pages() - before) * os.sysconf("SC_PAGE_SIZE") < 30e6


async def test_a_program_that_floods_in_the_background_waits_and_disturbs_nobody(kernel: PythonKernel) -> None:
    code = "import subprocess\nbackground = subprocess.Popen(['yes'])\nprint('started')"
    assert "started" in (await run(kernel, code)).output
    assert kernel._kernel is not None
    channels = kernel._kernel.channels
    await until(lambda: channels.is_paused)
    assert await kernel.evaluate("1 + 1") == "2\n"
    ran = await run(kernel, "background.kill()\nbackground.wait()\nprint('ended')")
    assert "ended" in ran.output
    assert (await run(kernel, "print('quiet')")).output.endswith("quiet\n")
