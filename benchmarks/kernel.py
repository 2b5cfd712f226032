"""The promised numbers of the Python kernel. The reference is a bare Jupyter kernel, driven by jupyter_client.

python -m benchmarks.kernel            all rows
python -m benchmarks.kernel prints     those whose function's name contains the word
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from jupyter_client.manager import AsyncKernelManager

from benchmarks.rows import Row
from oi_tui.engine.approval import ApprovedCode, CodeProposal, Decision, no_answer
from oi_tui.engine.languages.python_kernel import PythonKernel
from oi_tui.engine.lmc import Chunk
from oi_tui.engine.output import OutputCapture

PRINTS = "for i in range(200_000): print(i)"
FLUSHED = """
import time
begun = time.perf_counter()
for i in range(300):
    print(i, flush=True)
    time.sleep(0.005)
own = time.perf_counter() - begun
"""
HUNDRED_MEGABYTES = "line = 'x' * 99\nfor _ in range(1_000_000): print(line)"
TIGHT_LOOP = """
import time
begun = time.perf_counter()
total = 0
for i in range(800_000):
    total += i * i
    if total > 10**9:
        total = 0
own = time.perf_counter() - begun
"""


def approved(code: str) -> ApprovedCode:
    return CodeProposal("bench", "python", code).approve(Decision.run())


async def run(kernel: PythonKernel, code: str) -> list[Chunk]:
    return [chunk async for chunk in kernel.run(approved(code), answer=no_answer)]


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def memory(pid: int | str = "self") -> float:
    """Resident memory of a process, MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.asynccontextmanager
async def warm_kernel() -> AsyncIterator[PythonKernel]:
    kernel = PythonKernel()
    await kernel.warm()
    await run(kernel, "pass")
    try:
        yield kernel
    finally:
        await kernel.aclose()


@contextlib.asynccontextmanager
async def watched() -> AsyncIterator[tuple[list[float], list[float]]]:
    """How late the event loop is (ms) and how much memory there is (MB), looked at every 5 ms."""
    late: list[float] = []
    megabytes: list[float] = []

    async def watch() -> None:
        while True:
            due = time.perf_counter() + 0.005
            await asyncio.sleep(0.005)
            late.append((time.perf_counter() - due) * 1e3)
            megabytes.append(memory())

    watching = asyncio.create_task(watch())
    try:
        yield late, megabytes
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


@contextlib.asynccontextmanager
async def bare_kernel() -> AsyncIterator[Callable[[str], Awaitable[float]]]:
    """A kernel as jupyter_client starts it. The function runs code and returns the seconds until all was drained."""
    manager = AsyncKernelManager(kernel_name="python3")
    await manager.start_kernel(stderr=subprocess.DEVNULL)  # it warns of its open TCP ports
    client = manager.client()
    client.start_channels()
    await client.wait_for_ready(timeout=60)

    async def drain(code: str) -> float:
        begun = time.perf_counter()
        message_id = client.execute(code)
        while True:
            message = await client.get_iopub_msg(timeout=120)
            if message["parent_header"].get("msg_id") == message_id and message["msg_type"] == "status":
                if message["content"]["execution_state"] == "idle":
                    return time.perf_counter() - begun

    try:
        await drain("pass")
        yield drain
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


async def start() -> list[Row]:
    """From nothing to a kernel that is ready."""
    begun = time.perf_counter()
    async with bare_kernel():
        bare = time.perf_counter() - begun
    begun = time.perf_counter()
    async with warm_kernel():
        ours = time.perf_counter() - begun
    return [Row.plain("kernel start, cold", ours, "s", bare)]


async def warm_print() -> list[Row]:
    """An approved `print` in a warm kernel until its output is there."""
    times = []
    async with warm_kernel() as kernel:
        for _ in range(100):
            begun = time.perf_counter()
            async for chunk in kernel.run(approved("print(1)"), answer=no_answer):
                if chunk.format == "output":
                    times.append((time.perf_counter() - begun) * 1e3)
    return [Row.at_most("approved print → output, warm, p95", p95(times), "ms", 50)]


async def active_line() -> list[Row]:
    """A tight loop with and without the tracker, alternately, in one kernel."""
    switch = "import sys; sys.modules['_oi_tui.tracker'].current.is_on = {}"
    ratios = []
    async with warm_kernel() as kernel:
        for pair in range(26):
            own = {}
            for state in (True, False) if pair % 2 else (False, True):
                await kernel.evaluate(switch.format(state))
                await run(kernel, TIGHT_LOOP)
                own[state] = float(await kernel.evaluate("own"))
            ratios.append(own[True] / own[False])
    ratio = statistics.median(ratios)
    return [Row("active line, tight loop, median of 26 pairs", ratio, "x", 1.0, ratio, "≤ 1.02x", ratio <= 1.02)]


async def prints() -> list[Row]:
    """200,000 prints until the last one was yielded."""
    async with bare_kernel() as drain:
        bare = statistics.median([await drain(PRINTS) for _ in range(3)])
    ours = []
    async with warm_kernel() as kernel:
        for _ in range(3):
            async with watched() as (late, megabytes):
                before = memory()
                begun = time.perf_counter()
                length = 0
                async for chunk in kernel.run(approved(PRINTS), answer=no_answer):
                    length += len(chunk.text) if chunk.format == "output" else 0
                ours.append(time.perf_counter() - begun)
            assert length == sum(len(f"{n}\n") for n in range(200_000)), length
    return [
        Row.against("200,000 prints", statistics.median(ours), "s", bare, 1.25),
        Row.at_most("200,000 prints: loop late, p95", p95(late), "ms", 50),
        Row.at_most("200,000 prints: memory growth", max(megabytes) - before, "MB", 60),
    ]


async def flushed_lines() -> list[Row]:
    """300 flushed lines, 5 ms apart, against the time that the code itself takes."""
    async with warm_kernel() as kernel:
        begun = time.perf_counter()
        await run(kernel, FLUSHED)
        wall = time.perf_counter() - begun
        own = float(await kernel.evaluate("own"))
    return [Row.against("300 flushed lines, 5 ms apart", wall, "s", own, 1.05)]


async def hundred_megabytes() -> list[Row]:
    """100 MB of lines, captured as the engine does: both ends in memory, all of it on disk."""
    with tempfile.TemporaryDirectory() as folder:
        async with bare_kernel() as drain:
            bare = await drain(HUNDRED_MEGABYTES)
        async with warm_kernel() as kernel:
            capture = OutputCapture(Path(folder) / "out.txt")
            before, kernel_before = memory(), memory(kernel.pid or 0)
            begun = time.perf_counter()
            async with watched() as (late, megabytes):
                async for chunk in kernel.run(approved(HUNDRED_MEGABYTES), answer=no_answer):
                    if chunk.format == "output":
                        capture.feed(chunk.text)
            wall = time.perf_counter() - begun
            kernel_growth = memory(kernel.pid or 0) - kernel_before
            capture.close()
        whole = capture.path is not None and capture.path.stat().st_size == 100_000_000
        return [
            Row.plain("100 MB of output", wall, "s", bare),
            Row.at_most("100 MB of output: memory growth", max(megabytes) - before, "MB", 80),
            Row.at_most("100 MB of output: memory growth of the kernel", kernel_growth, "MB", 80),
            Row.at_most("100 MB of output: loop late, p95", p95(late), "ms", 100),
            Row("100 MB of output: on disk", 100.0 if whole else 0.0, "MB", None, None, "all", whole),
        ]


async def interrupt() -> list[Row]:
    """From the interrupt to a kernel that is idle."""
    times = []
    async with warm_kernel() as kernel:
        for code in ("while True: pass", "import time; time.sleep(600)", "while True: print('x')") * 10:
            running = asyncio.create_task(run(kernel, code))
            await asyncio.sleep(0.3)
            begun = time.perf_counter()
            await kernel.interrupt()
            times.append((time.perf_counter() - begun) * 1e3)
            await running
    return [Row.at_most("interrupt → kernel idle, p95", p95(times), "ms", 150)]


ALL = (start, warm_print, active_line, prints, flushed_lines, hundred_megabytes, interrupt)


async def rows() -> AsyncIterator[Row]:
    for measure in ALL:
        for row in await measure():
            yield row
