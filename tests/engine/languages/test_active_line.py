"""The line that runs, found by looking: right for loops, functions, await, magics, and free of charge for the code."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
import pytest_asyncio

from oi_tui.engine.languages.active_line import ActiveLineFile, Lines, first_line
from oi_tui.engine.languages.in_kernel.tracker import LAYOUT, line_map, offset_in
from oi_tui.engine.languages.python_kernel import PythonKernel
from tests.engine.languages.running import Ran, Running, approved, run, until

Story = TypeVar("Story", bound=Callable[..., Awaitable[None]])


def kernel_story(story: Story) -> Story:
    return pytest.mark.kernel(pytest.mark.asyncio(loop_scope="module")(story))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kernel(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PythonKernel]:
    home = tmp_path_factory.mktemp("home")
    kernel = PythonKernel(cwd=home, env={**os.environ, "HOME": str(home)})
    await kernel.warm()
    yield kernel
    await kernel.aclose()


class Stages:
    """Code that waits at `wait('name')` until the test lets it go on, which it does when it has seen the line."""

    def __init__(self, kernel: PythonKernel, folder: Path, code: str) -> None:
        self.folder = folder
        self.running = Running(kernel, code)

    @property
    def ran(self) -> Ran:
        return self.running.ran

    async def at(self, line: int, *, statement: int | None = None, then: str) -> None:
        """Until this line is lit (reached from this statement); then let the code go on past `then`."""
        await until(lambda: self.running.task.done() or self.ran.lines[-1:] == [line])
        assert self.ran.lines[-1:] == [line], (line, self.ran)
        if statement is not None:
            await until(lambda: self.running.task.done() or self.ran.contents("active_statement")[-1:] == [statement])
            assert self.ran.contents("active_statement")[-1:] == [statement], self.ran
        (self.folder / then).touch()

    async def end(self) -> Ran:
        ran = await self.running.end()
        assert "Traceback" not in ran.output, ran.output
        return ran


@pytest_asyncio.fixture(loop_scope="module")
async def gates(kernel: PythonKernel, tmp_path: Path) -> Path:
    """A folder: `wait('a')` in the kernel waits for the file `a` in it."""
    wait = f"""
import asyncio, os, time
def gate(name): return os.path.exists({str(tmp_path)!r} + "/" + name)
def wait(name):
    while not gate(name): time.sleep(0.001)
async def pause(name):
    while not gate(name): await asyncio.sleep(0.001)
"""
    await run(kernel, wait)
    return tmp_path


@kernel_story
async def test_the_first_statement_is_announced_at_once(kernel: PythonKernel) -> None:
    chunks = kernel.run(approved("# a comment\n\nx = 1"), answer=None)  # type: ignore[arg-type]
    first = await anext(chunks)
    assert (first.format, first.content) == ("active_line", 3)
    await chunks.aclose()


@kernel_story
async def test_each_statement_lights_up_as_it_runs(kernel: PythonKernel, gates: Path) -> None:
    stages = Stages(kernel, gates, "wait('a')\nx = 1\nwait('b')\n\n# more\nwait('c')")
    await stages.at(1, then="a")
    await stages.at(3, then="b")
    await stages.at(6, then="c")
    assert (await stages.end()).lines == [1, 3, 6]


@kernel_story
async def test_lines_in_loops_and_functions_light_up_with_the_statement_that_led_there(
    kernel: PythonKernel, gates: Path
) -> None:
    code = """def inner(name):
    x = 1
    wait(name)

for name in ("a", "b"):
    inner(name)
    wait("loop" + name)
inner("c")"""
    stages = Stages(kernel, gates, code)
    await stages.at(3, statement=6, then="a")
    await stages.at(7, then="loopa")
    await stages.at(3, statement=6, then="b")
    await stages.at(7, then="loopb")
    await stages.at(3, statement=8, then="c")
    ran = await stages.end()
    assert ran.contents("active_statement")[-1] is None or ran.contents("active_statement")[-1] == 8


@kernel_story
async def test_a_function_of_an_earlier_block_shows_the_line_that_calls_it(kernel: PythonKernel, gates: Path) -> None:
    await run(kernel, "def earlier(name):\n\n\n\n\n    wait(name)")
    stages = Stages(kernel, gates, "x = 1\nearlier('a')")
    await stages.at(2, then="a")
    assert (await stages.end()).contents("active_statement") == []


@kernel_story
async def test_await_at_top_level_and_in_functions(kernel: PythonKernel, gates: Path) -> None:
    code = """async def deep(name):
    await asyncio.sleep(0)
    await pause(name)

await pause("a")
async with asyncio.timeout(60):
    await deep("b")
await asyncio.gather(deep("c"), asyncio.sleep(0))
wait("d")"""
    stages = Stages(kernel, gates, code)
    await stages.at(5, then="a")
    await stages.at(3, statement=7, then="b")
    await until(lambda: stages.ran.lines[-1] in (3, 8))
    (gates / "c").touch()
    await stages.at(9, then="d")
    await stages.end()


@kernel_story
async def test_other_threads_do_not_distract(kernel: PythonKernel, gates: Path) -> None:
    code = """import threading
def work():
    sum(range(10_000_000))
    wait("a")
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
wait("b")
for thread in threads: thread.join()"""
    stages = Stages(kernel, gates, code)
    await stages.at(7, then="b")
    await stages.at(8, then="a")
    assert set((await stages.end()).lines) <= {1, 2, 5, 6, 7, 8}


@kernel_story
@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("\n\n\nwait('a')", 4),
        ("!echo \\\n  one \\\n  two\nx = 1\nwait('a')", 5),
        ("%timeit -n1 -r1 pass\nwait('a')", 2),
        ("x = '''\nlong\n'''\nwait('a')", 4),
        ("%%time\nx = 1\nwait('a')", 3),
        ("%%capture caught\nx = 1\n\nwait('a')", 4),
        ("\n\n%%capture caught\nx = 1\n\nwait('a')", 6),
    ],
)
async def test_shell_lines_and_magics_do_not_shift_the_lines(
    kernel: PythonKernel, gates: Path, code: str, line: int
) -> None:
    stages = Stages(kernel, gates, code)
    await stages.at(line, then="a")
    await stages.end()


@kernel_story
async def test_the_end_is_announced_exactly_once_whatever_happens(kernel: PythonKernel) -> None:
    for code in ("x = 1", "1/0", "x y", "raise SystemExit", "%%time\n1/0", ""):
        ran = await run(kernel, code)
        assert ran.contents("active_line").count(None) == 1 and ran[-1].format == "active_line", code


@kernel_story
async def test_time_per_line_adds_up(kernel: PythonKernel) -> None:
    code = """import time
def slow():
    time.sleep(0.4)

for _ in range(2):
    slow()
time.sleep(0.2)"""
    times = (await run(kernel, code)).contents("line_times")[0]
    assert isinstance(times, dict)
    assert {"3", "6", "7"} <= set(times)
    assert times["6"] >= 0.7 and times["7"] >= 0.2 and times["3"] <= times["6"] + 0.01
    assert times["6"] > times["7"]


@kernel_story
async def test_the_code_and_its_tools_see_nothing_of_it(kernel: PythonKernel) -> None:
    code = """
import inspect, sys, traceback
def where(): return [frame.function for frame in inspect.stack()]
print(sys.gettrace(), sys.getprofile(), inspect.getsource(where).strip()[:10])
try:
    1/0
except ZeroDivisionError:
    print(len(traceback.extract_tb(sys.exc_info()[2])))
"""
    assert (await run(kernel, code)).output == "None None def where(\n1\n"


def test_the_first_line_is_the_first_that_is_not_empty() -> None:
    assert first_line("\n\n  # no\nx = 1") == 4
    assert first_line("%%time\nx") == 1
    assert first_line("") is None and first_line("# only\n\n") is None


def test_lines_that_ipython_rewrote_are_found_again() -> None:
    assert line_map("a\nb\n", "a\nb") == {}
    assert line_map("x = 1\ny = 2\n", "\n\nx = 1\ny = 2") == {1: 3, 2: 4}
    joined = line_map("get_ipython().system('echo  a  b')\nx = 1\n1/0\n", "!echo \\\n a \\\n b\nx = 1\n1/0")
    assert (joined[1], joined[2], joined[3]) == (1, 4, 5)


def test_the_body_of_a_cell_magic_starts_where_it_stands() -> None:
    assert offset_in("%%capture x\na = 1\nb = 2", "a = 1\nb = 2") == 1
    assert offset_in("\n\n%%capture x\na = 1", "a = 1\n") == 3
    assert offset_in("a = 1", "something else") == 0


def test_the_shared_file_is_private_and_read_without_asking(tmp_path: Path) -> None:
    file = ActiveLineFile(tmp_path / "line")
    assert file.path.stat().st_mode & 0o777 == 0o600 and file.read() == Lines(0, 0)
    with open(file.path, "r+b") as out:
        out.write(LAYOUT.pack(1, 7, 12))
    assert file.read() == Lines(statement=7, inner=12)
    file.close()
    with pytest.raises(FileExistsError):
        ActiveLineFile(tmp_path / "line")
