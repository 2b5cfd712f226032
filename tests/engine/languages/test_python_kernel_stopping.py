"""Stopping code, losing kernels, ending everything: the promises of reliability.md about processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio

from oi_tui.engine.approval import no_answer
from oi_tui.engine.errors import KernelDied
from oi_tui.engine.languages import guardian, kernel_language
from oi_tui.engine.languages.python_kernel import PythonKernel
from tests.engine.languages.running import Answers, Ran, Running, approved, run, until

pytestmark = [pytest.mark.kernel, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kernel(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PythonKernel]:
    home = tmp_path_factory.mktemp("home")
    kernel = PythonKernel(cwd=home, env={**os.environ, "HOME": str(home)})
    await kernel.warm()
    yield kernel
    await kernel.aclose()


def family_of(kernel: PythonKernel) -> tuple[str, list[int]]:
    """The mark of everything the kernel starts, and all that lives with it now."""
    assert kernel._kernel is not None and kernel._kernel.process._process is not None
    mark = kernel._kernel.process._process.mark
    return mark, marked(mark)


def marked(mark: str) -> list[int]:
    return [e.pid for e in guardian.process_table(mark).values() if e.marked and not e.zombie]


ENDED = "The code did not stop when it was interrupted, so the Python kernel was ended. Its variables are gone."
STUBBORN = "import time\nprint('on')\nwhile True:\n    try: time.sleep(600)\n    except KeyboardInterrupt: print('no')"

ENDLESS = {
    "a loop": "print('on')\nwhile True: pass",
    "a loop that prints": "while True: print('on')",
    "a loop that flushes": "while True: print('on', flush=True)",
    "sleep": "import time\nprint('on')\ntime.sleep(600)",
    "a subprocess": "import subprocess\nprint('on', flush=True)\nsubprocess.run(['sleep', '600'])",
    "os.system": "import os\nprint('on', flush=True)\nos.system('sleep 600')",
    "a shell line": "print('on')\n!sleep 600",
    "a program that floods": "import subprocess\nprint('on', flush=True)\nsubprocess.run(['yes'])",
    "await": "import asyncio\nprint('on')\nawait asyncio.sleep(600)",
    "a loop after await": "import asyncio\nawait asyncio.sleep(0)\nprint('on')\nwhile True: pass",
    "tasks": "import asyncio\nasync def f():\n    while True: await asyncio.sleep(0.01)\nprint('on')\n"
    "await asyncio.gather(f(), f())",
    "a thread": "import threading, time\nt = threading.Thread(target=time.sleep, args=(3,), daemon=True)\n"
    "print('on')\nt.start(); t.join()",
    "a C call that notices signals": "import re\nprint('on', flush=True)\nre.match(r'(a+)+b', 'a' * 40)",
}


@pytest.mark.parametrize("code", ENDLESS.values(), ids=ENDLESS.keys())
async def test_an_interrupt_stops_the_code_and_keeps_the_state(kernel: PythonKernel, code: str) -> None:
    await run(kernel, "kept = 'still here'")
    running = Running(kernel, code)
    await running.prints("on")
    await kernel.interrupt()
    assert not kernel.is_running
    ran = await running.end()
    assert ran[-1].format == "active_line" and ran[-1].content is None and ran.contents("active_line").count(None) == 1
    assert ran.contents("error_line") == []
    assert (await run(kernel, "print(kept)")).output.endswith("still here\n")


@pytest.mark.parametrize("code", [ENDLESS["sleep"], ENDLESS["a loop that prints"], ENDLESS["await"]])
async def test_cancelling_the_run_stops_the_code_and_keeps_the_state(kernel: PythonKernel, code: str) -> None:
    await run(kernel, "kept = 'still here'")
    running = Running(kernel, code)
    await running.prints("on")
    running.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.end()
    assert not kernel.is_running
    ran = await run(kernel, "print(kept)")
    assert ran.output.endswith("still here\n") and ran.notices == []


async def test_closing_the_iterator_stops_the_code(kernel: PythonKernel) -> None:
    async with aclosing(kernel.run(approved("while True: print('on')"), answer=no_answer)) as chunks:
        async for chunk in chunks:
            if chunk.format == "output":
                break
    assert not kernel.is_running
    assert (await run(kernel, "print('next')")).output == "next\n"


async def test_cancelling_twice_does_not_break_the_stopping_off(kernel: PythonKernel) -> None:
    await run(kernel, "kept = 'still here'")
    slow = "import time\nprint('on')\ntry: time.sleep(600)\nexcept KeyboardInterrupt: time.sleep(0.3)"
    running = Running(kernel, slow)
    await running.prints("on")
    for _ in range(2):
        running.task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await running.end()
    assert (await run(kernel, "print(kept)")).output == "still here\n"


async def test_code_may_clean_up_when_it_is_interrupted(kernel: PythonKernel) -> None:
    running = Running(kernel, "import time\ntry:\n    print('on'); time.sleep(600)\nfinally:\n    print('saved')")
    await running.prints("on")
    await kernel.interrupt()
    assert "saved\n" in (await running.end()).output


async def test_an_interrupt_while_nothing_runs_does_nothing(kernel: PythonKernel) -> None:
    await run(kernel, "kept = 1")
    for _ in range(3):
        await kernel.interrupt()
    assert (await run(kernel, "kept")).output == "1\n"


async def test_an_interrupt_works_while_the_code_waits_for_an_answer(kernel: PythonKernel) -> None:
    asked = asyncio.Event()

    async def never(request: object) -> str:
        asked.set()
        return await asyncio.Future()

    running = Running(kernel, "input('? ')", answer=never)
    await asked.wait()
    await kernel.interrupt()
    assert "KeyboardInterrupt" in (await running.end()).output
    answers = Answers("fresh")
    assert (await run(kernel, "print(input())", answer=answers)).output == "fresh\nfresh\n"


async def test_children_are_interrupted_with_the_code(kernel: PythonKernel) -> None:
    running = Running(kernel, "import subprocess\nprint('on', flush=True)\nsubprocess.run(['sleep', '654321'])")
    await running.prints("on")
    await until(lambda: b"654321" in b"".join(_command_line(pid) for pid in family_of(kernel)[1]))
    await kernel.interrupt()
    await running.end()
    await until(lambda: b"654321" not in b"".join(_command_line(pid) for pid in family_of(kernel)[1]))


async def test_code_that_ignores_the_interrupt_loses_its_kernel(
    kernel: PythonKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_language, "PATIENCE", (0.3, 0.3))
    await run(kernel, "kept = 1")
    _, before = family_of(kernel)
    running = Running(kernel, STUBBORN)
    await running.prints("on")
    await kernel.interrupt()
    stopped = await running.end()
    assert "no\n" in stopped.output and stopped.contents("active_line").count(None) == 1
    still, lost = stopped.notices
    assert still == "Still stopping; the kernel will be ended if it does not react."
    assert lost == ENDED and stopped[-1].format == "kernel"
    ran = await run(kernel, "'kept' in globals()")
    assert ran.output == "False\n" and ran.notices == []
    assert not set(before) & set(marked(family_of(kernel)[0]))


async def test_a_c_call_that_holds_the_interpreter_is_ended_too(
    kernel: PythonKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_language, "PATIENCE", (0.3, 0.3))
    running = Running(kernel, "print('on', flush=True)\nsum(range(10**13))")
    await running.prints("on")
    running.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.end()
    assert [(told.format, told.text) for told in kernel.take_notices()] == [("kernel", ENDED)]
    assert kernel.take_notices() == []
    ran = await run(kernel, "print('usable')")
    assert ran.output == "usable\n" and ran.notices == []


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
        ("import os\nos._exit(7)", "status 7"),
        ("import ctypes\nctypes.string_at(0)", "SIGSEGV"),
    ],
)
async def test_a_kernel_that_dies_is_told_and_replaced(kernel: PythonKernel, code: str, how: str) -> None:
    await run(kernel, "kept = 1")
    ran = Ran()
    with pytest.raises(KernelDied, match=how):
        await run(kernel, "import time\nprint('last words')\ntime.sleep(0.1)\n" + code, into=ran)
    assert ran.output.startswith("last words\n")
    assert ran[-1].format == "active_line" and ran[-1].content is None
    if how == "SIGSEGV":
        assert "Fatal Python error: Segmentation fault" in ran.output
    again = await run(kernel, "print('kept' in globals())")
    assert again.output == "False\n" and len(again.notices) == 1 and "variables are gone" in again.notices[0]


async def test_a_kernel_that_dies_between_two_runs_is_replaced(kernel: PythonKernel) -> None:
    await run(kernel, "kept = 1")
    assert kernel.pid is not None
    old = kernel.pid
    os.kill(old, signal.SIGKILL)
    await until(lambda: kernel.pid not in (old, None))
    ran = await run(kernel, "print('kept' in globals())")
    assert ran.output == "False\n" and "SIGKILL" in ran.notices[0]


async def test_code_may_end_its_kernel(kernel: PythonKernel) -> None:
    ran = await run(kernel, "kept = 1\nexit()")
    assert ran[-1].content is None
    again = await run(kernel, "print('kept' in globals())")
    assert again.output == "False\n" and "variables are gone" in again.notices[0]


async def test_a_restart_while_code_runs_ends_the_run(kernel: PythonKernel) -> None:
    running = Running(kernel, "kept = 1\nprint('on')\nwhile True: pass")
    await running.prints("on")
    await kernel.restart()
    with pytest.raises(KernelDied):
        await running.end()
    ran = await run(kernel, "print('kept' in globals())")
    assert ran.output == "False\n" and "variables are gone" in ran.notices[0]


async def test_restarts_at_any_moment_leave_one_usable_kernel(kernel: PythonKernel) -> None:
    warming = asyncio.create_task(kernel.warm())
    await asyncio.gather(kernel.restart(), kernel.restart(), kernel.interrupt(), warming)
    assert (await run(kernel, "print('usable')")).output == "usable\n"
    await kernel.restart()
    assert (await run(kernel, "print('usable')")).output == "usable\n"


async def test_stopping_works_while_the_kernel_is_still_starting(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nwhile [ ! -e {gate} ]; do sleep 0.01; done\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    kernel = PythonKernel(str(python), env={**os.environ, "HOME": str(tmp_path)})
    for stop in (kernel.interrupt, kernel.restart):
        running = Running(kernel, "print('ran')")
        await until(lambda: kernel.is_running)
        await stop()
        ran = await running.end()
        assert "before it began" in ran.output and ran[-1].content is None and not kernel.is_running
    cancelled = Running(kernel, "print('ran')")
    await until(lambda: kernel.is_running)
    cancelled.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled.end()
    gate.touch()
    assert (await run(kernel, "print('ran')")).output == "ran\n"
    await kernel.aclose()


async def test_a_debugger_can_be_used(kernel: PythonKernel) -> None:
    answers = Answers("p secret + 1", "c")
    ran = await run(kernel, "def f():\n    secret = 41\n    breakpoint()\n    print('after')\nf()", answer=answers)
    assert "42" in ran.output and "after\n" in ran.output and len(answers.requests) == 2


DAEMONS = """
import os, subprocess
subprocess.Popen(["sleep", "600"])
subprocess.Popen(["sleep", "600"], start_new_session=True)
os.system("setsid -f sleep 600 </dev/null >/dev/null 2>&1")
os.system("nohup sleep 600 >/dev/null 2>&1 &")
print("on")
"""


async def test_closing_ends_every_child_and_removes_the_folder(tmp_path: Path) -> None:
    kernel = PythonKernel(env={**os.environ, "HOME": str(tmp_path)})
    ran = await run(kernel, DAEMONS)
    assert ran.output == "on\n" and kernel._kernel is not None
    folder = kernel._kernel.process.folder
    mark, family = family_of(kernel)
    assert len(family) >= 6
    await kernel.aclose()
    assert marked(mark) == [] and not folder.exists()
    await kernel.aclose()


async def test_closing_while_code_runs_or_a_kernel_starts_leaves_nothing(tmp_path: Path) -> None:
    kernel = PythonKernel(env={**os.environ, "HOME": str(tmp_path)})
    running = Running(kernel, "print('on')\nwhile True: pass")
    await running.prints("on")
    mark, _ = family_of(kernel)
    await kernel.aclose()
    with pytest.raises(KernelDied):
        await running.end()
    assert marked(mark) == []
    starting = PythonKernel(env={**os.environ, "HOME": str(tmp_path), "WHO": "closed-early"})
    warming = asyncio.create_task(starting.warm())
    await asyncio.sleep(0.05)
    await starting.aclose()
    await asyncio.gather(warming, return_exceptions=True)
    assert not [pid for pid in guardian.process_table() if b"WHO=closed-early" in _environment(pid)]


PARENT = """
import asyncio, sys
from oi_tui.engine.languages.python_kernel import PythonKernel
from tests.engine.languages.running import run

async def main():
    kernel = PythonKernel()
    print((await run(kernel, sys.argv[1])).output, end="")
    print(kernel._kernel.process._process.mark, kernel._kernel.process.folder, flush=True)
    await run(kernel, "while True: pass")

asyncio.run(main())
"""


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
async def test_nothing_survives_oi_tui(signum: int, tmp_path: Path) -> None:
    parent = await asyncio.to_thread(_start_parent, tmp_path)
    assert parent.stdout is not None
    assert await asyncio.to_thread(parent.stdout.readline) == b"on\n"
    mark, folder = (await asyncio.to_thread(parent.stdout.readline)).decode().split()
    assert len(marked(mark)) >= 6
    parent.send_signal(signum)
    await asyncio.to_thread(parent.wait)
    await until(lambda: marked(mark) == [] and not os.path.exists(folder))
    parent.stdout.close()


def _start_parent(home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", PARENT, DAEMONS],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "HOME": str(home)},
    )


def _command_line(pid: int) -> bytes:
    return _read(f"/proc/{pid}/cmdline")


def _environment(pid: int) -> bytes:
    return _read(f"/proc/{pid}/environ")


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
