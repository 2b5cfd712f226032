"""Python in a real kernel: what it prints, shows, asks and remembers."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from oi_tui.engine.approval import InputCancelled, no_answer
from oi_tui.engine.errors import LanguageError
from oi_tui.engine.languages.kernel_setup import PARTS
from oi_tui.engine.languages.python_kernel import PythonKernel
from tests.engine.languages.running import Answers, Ran, Running, run, until

pytestmark = [pytest.mark.kernel, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kernel(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PythonKernel]:
    home = tmp_path_factory.mktemp("home")
    kernel = PythonKernel(cwd=home, env={**os.environ, "HOME": str(home)})
    await kernel.warm()
    yield kernel
    await kernel.aclose()


def plain(text: str) -> str:
    """Without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


async def test_a_run_is_told_from_its_first_line_to_its_end(kernel: PythonKernel) -> None:
    ran = await run(kernel, "# add\nprint(34/24)")
    assert [(c.type, c.format) for c in ran] == [
        ("console", "active_line"),
        ("console", "output"),
        ("console", "line_times"),
        ("console", "active_line"),
    ]
    assert [c.content for c in ran if c.format != "line_times"] == [2, "1.4166666666666667\n", None]
    assert {c.id for c in ran} == {"c0de"} and {c.role for c in ran} == {"computer"}


async def test_state_lives_from_run_to_run(kernel: PythonKernel) -> None:
    await run(kernel, "import math\nradius = 2")
    assert (await run(kernel, "round(math.pi * radius, 3)")).output == "6.283\n"
    assert (await run(kernel, "_ + 1")).output == "7.283\n"


async def test_the_last_expression_is_shown_unless_a_semicolon_says_no(kernel: PythonKernel) -> None:
    assert (await run(kernel, "'a'\n'b'")).output == "'b'\n"
    assert (await run(kernel, "'b';")).output == ""


async def test_code_that_says_nothing_still_ends(kernel: PythonKernel) -> None:
    for code in ("x = 1", "# nothing", "", "   \n"):
        ran = await run(kernel, code)
        assert ran.output == "" and ran[-1].format == "active_line" and ran[-1].content is None
        assert ran.contents("active_line").count(None) == 1


async def test_everything_that_prints_is_seen_in_the_order_of_printing(kernel: PythonKernel) -> None:
    code = """
import os, subprocess, sys, ctypes
here = ctypes.PyDLL(None)
for turn in range(20):
    print("python", turn)
    print("error", turn, file=sys.stderr)
    subprocess.run(["echo", f"child {turn}"])
    os.system(f"echo system {turn}")
    subprocess.run(["echo", f"file {turn}"], stdout=sys.stdout)
    here.write(1, f"raw {turn}\\n".encode(), len(f"raw {turn}\\n"))  # keeps the interpreter to itself
    here.usleep(100)
print("done")
"""
    words = ("python {n}", "error {n}", "child {n}", "system {n}", "file {n}", "raw {n}")
    expected = [word.format(n=n) for n in range(20) for word in words] + ["done"]
    assert (await run(kernel, code)).output.splitlines() == expected


async def test_what_c_code_prints_is_not_lost_with_its_buffer(kernel: PythonKernel) -> None:
    ran = await run(kernel, "import ctypes\nctypes.CDLL(None).printf(b'from C\\n');")
    assert "from C\n" in ran.output


async def test_forked_children_print_too(kernel: PythonKernel) -> None:
    code = """
import multiprocessing
def child(n):
    for line in range(100):
        print("child", n, line)
fork = multiprocessing.get_context("fork")
children = [fork.Process(target=child, args=(n,)) for n in range(3)]
for c in children: c.start()
for c in children: c.join()
"""
    lines = (await run(kernel, code)).output.splitlines()
    assert sorted(lines) == sorted(f"child {n} {line}" for n in range(3) for line in range(100))


async def test_text_that_is_hard_to_encode_arrives(kernel: PythonKernel) -> None:
    ran = await run(kernel, r"print('\udc80', '\0', '\x1b[31mred', '日本', '😀')")
    assert ran.output == "\\udc80 \0 \x1b[31mred 日本 😀\n"


async def test_an_error_is_the_plain_traceback_and_says_where(kernel: PythonKernel) -> None:
    ran = await run(kernel, "def divide(a):\n    return a / 0\n\nprint('before')\ndivide(1)\nprint('after')")
    assert ran.output.startswith("before\n") and "after" not in ran.output.splitlines()
    text = re.sub(r"\x1b\[[\d;]*m", "", ran.output)
    assert text != ran.output and text.endswith("ZeroDivisionError: division by zero\n")
    assert ", line 5\n" in text and ", line 2, in divide" in text and "oi-tui" not in text and "oi_tui" not in text
    assert ran.contents("error_line") == [2]


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("x = 1\n\ny = = 2", 3),
        ("\n\n\n1/0", 4),
        ("if True:\nprint(1)", 2),
        ("!echo \\\n  hi\nx = 1\n1/0", 4),
        ("import json\njson.loads('{')", 2),
        ("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    raise ValueError\nawait f()", 4),
    ],
)
async def test_the_failing_line_is_counted_as_on_the_screen(kernel: PythonKernel, code: str, line: int) -> None:
    assert (await run(kernel, code)).contents("error_line") == [line]


async def test_after_an_error_the_next_run_is_as_if_nothing_had_been(kernel: PythonKernel) -> None:
    await run(kernel, "1/0")
    ran = await run(kernel, "print('fine')")
    assert ran.output == "fine\n" and ran.contents("error_line") == []


async def test_shell_lines_and_magics_work_as_in_ipython(kernel: PythonKernel, tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    ran = await run(kernel, f"%cd -q {tmp_path}\nnames = !ls\nprint(names)\n!echo $((1+1)) {{names[0]}}")
    assert ran.output.splitlines() == ["['a file']", "2 a file"]
    assert kernel.cwd == tmp_path
    assert "3" in (await run(kernel, "%%bash\necho $((1+2))")).output
    assert (await run(kernel, "%%capture caught\nprint('hidden')")).output == ""
    assert (await run(kernel, "print(caught.stdout)")).output == "hidden\n\n"


async def test_help_comes_as_text(kernel: PythonKernel) -> None:
    assert "Docstring" in (await run(kernel, "len?")).output


async def test_questions_are_asked_and_answered(kernel: PythonKernel) -> None:
    answers = Answers("Anna", "s3cret")
    code = "import getpass\nname = input('Name? ')\nword = getpass.getpass('Word: ')\nprint(name, len(word))"
    ran = await run(kernel, "print('first')\n" + code, answer=answers)
    assert [(r.prompt, r.password, r.id) for r in answers.requests] == [
        ("Name? ", False, "c0de"),
        ("Word: ", True, "c0de"),
    ]
    assert ran.output == "first\nName? Anna\nWord: \nAnna 6\n"
    await run(kernel, "del word")


@pytest.mark.parametrize("question", ["input('Really? ')", "__import__('getpass').getpass('Word: ')"])
async def test_refusing_to_answer_interrupts_the_code_at_its_line(kernel: PythonKernel, question: str) -> None:
    async def refuse(request: object) -> str:
        raise InputCancelled

    ran = await run(kernel, f"{question}\nprint('went on')", answer=refuse)
    shown = plain(ran.output)
    assert "KeyboardInterrupt" in shown and f"----> 1 {question}" in shown
    assert "went on" not in shown.replace("print('went on')", "")
    assert "File" not in shown and "oi-tui" not in shown and "Interrupted by user" not in shown


@pytest.mark.parametrize("question", ["input('Really? ')", "__import__('getpass').getpass('Word: ')"])
async def test_the_end_of_input_is_python_s_own_error(kernel: PythonKernel, question: str) -> None:
    shown = plain((await run(kernel, f"def f():\n    return {question}\nf()", answer=no_answer)).output)
    assert shown.endswith("EOFError: EOF when reading a line\n") and "----> 3 f()" in shown
    assert "File" not in shown and "oi-tui" not in shown
    careful = f"try:\n    {question}\nexcept EOFError as error:\n    print('no more:', error)"
    assert (await run(kernel, careful, answer=no_answer)).output.endswith("no more: EOF when reading a line\n")
    wrapped = f"try:\n    {question}\nexcept EOFError as error:\n    raise ValueError('nothing read') from error"
    shown = plain((await run(kernel, wrapped, answer=no_answer)).output)
    assert "ValueError: nothing read" in shown and "EOFError" in shown and "oi-tui" not in shown


async def test_a_broken_answerer_is_an_error_of_the_front_end_and_stops_the_code(kernel: PythonKernel) -> None:
    async def broken(request: object) -> str:
        raise RuntimeError("no field")

    with pytest.raises(RuntimeError, match="no field"):
        await run(kernel, "input('?')", answer=broken)
    assert (await run(kernel, "print('usable')")).output == "usable\n"


async def test_html_goes_to_the_user_and_its_text_to_the_model(kernel: PythonKernel) -> None:
    code = """
class Table:
    def _repr_html_(self): return "<table><tr><th>a</th><td>1</td></tr></table>"
    def __repr__(self): return "a 1"
Table()
"""
    ran = await run(kernel, code)
    assert [(c.format, c.content, c.recipient) for c in ran if c.recipient] == [
        ("html", "<table><tr><th>a</th><td>1</td></tr></table>", "user"),
        ("output", "a 1\n", "assistant"),
    ]
    assert ran.output == ""


async def test_html_without_a_text_form_is_read_to_the_model(kernel: PythonKernel) -> None:
    ran = await run(kernel, "from IPython.display import HTML, Javascript, Latex\nHTML('<p>Hello <b>there</b></p>')")
    assert ran.for_model == "Hello there\n"
    assert (await run(kernel, "Latex('$x^2$')")).output == "$x^2$\n"
    scripts = [c for c in await run(kernel, "Javascript('alert(1)')") if c.format == "javascript"]
    assert [(c.type, c.content, c.recipient) for c in scripts] == [("code", "alert(1)", "user")]


PICTURE = """
from PIL import Image
def picture(colour):
    return Image.new("RGB", (8, 8), colour)
"""


async def test_each_picture_is_an_image_of_its_own(kernel: PythonKernel) -> None:
    await run(kernel, PICTURE)
    ran = await run(kernel, "display(picture('red'))\nprint('between')\npicture('blue')")
    assert [c.format for c in ran.images] == ["base64.png", "base64.png"]
    assert all(base64.b64decode(c.text, validate=True).startswith(b"\x89PNG") for c in ran.images)
    kinds = [c.type if c.type == "image" else c.text for c in ran if c.type == "image" or c.format == "output"]
    assert kinds == ["image", "between\n", "image"]


async def test_an_animation_costs_its_last_picture_only(kernel: PythonKernel) -> None:
    await run(kernel, PICTURE)
    code = """
from IPython.display import clear_output
for n in range(50):
    clear_output(wait=True)
    print("frame", n)
    display(picture((n, 0, 0)))
"""
    ran = await run(kernel, code)
    assert len(ran.images) == 1 and ran.contents("clear_output")[:1] == [True]
    assert ran.output.endswith("frame 49\n")
    updated = "shown = display(picture('red'), display_id=True)\nfor n in range(50): shown.update(picture('blue'))"
    assert len((await run(kernel, updated)).images) == 2


async def test_matplotlib_draws_inline_without_being_asked(kernel: PythonKernel) -> None:
    assert (await run(kernel, "import sys; 'matplotlib' in sys.modules")).output == "False\n"
    if (await run(kernel, "import importlib.util; importlib.util.find_spec('matplotlib') is None")).output == "True\n":
        assert (await run(kernel, "import os; os.environ['MPLBACKEND']")).output.startswith("'module://matplotlib_inl")
        return
    ran = await run(kernel, "import matplotlib.pyplot as p\np.plot([1,2])\np.figure()\np.plot([2,1]);")
    assert len(ran.images) == 2


async def test_what_threads_print_later_comes_with_the_next_run(kernel: PythonKernel) -> None:
    code = """
import threading
threading.Timer(0.2, print, ["from the thread"]).start()
"""
    assert (await run(kernel, code)).output == ""
    running = kernel._kernel
    assert running is not None
    await until(lambda: "".join(running._late) == "from the thread\n")
    assert (await run(kernel, "print('next')")).output == "[from earlier code]\nfrom the thread\nnext\n"


async def test_what_a_thread_of_earlier_code_prints_is_not_taken_for_the_present_code_s(kernel: PythonKernel) -> None:
    await run(
        kernel,
        "import threading\ngo, done = threading.Event(), threading.Event()\n"
        "def late():\n    go.wait()\n    print('late')\n    print('later')\n    done.set()\n"
        "threading.Thread(target=late).start()",
    )
    ran = await run(kernel, "print('mine', end='')\ngo.set()\ndone.wait()\nprint('mine again')")
    assert ran.output == "mine\n[from earlier code]\nlate\nlater\nmine again\n"
    assert (await run(kernel, "print('next')")).output == "next\n"


async def test_threads_and_programs_of_the_present_code_are_its_own(kernel: PythonKernel) -> None:
    await run(
        kernel,
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\n"
        "pool.submit(print, 'begun').result()",
    )
    code = """
import subprocess, threading
thread = threading.Thread(target=lambda: print("a thread"))
thread.start()
thread.join()
pool.submit(print, "the pool").result()
subprocess.run(["echo", "a program"]);
"""
    assert (await run(kernel, code)).output == "a thread\nthe pool\na program\n"


async def test_two_runs_at_once_come_one_after_the_other(kernel: PythonKernel) -> None:
    first = Running(kernel, "import time\nprint('a'); time.sleep(0.2); print('b')")
    await first.prints("a\n")
    assert kernel.is_running
    second = await run(kernel, "print('c')")
    assert first.task.done() and (await first.end()).output == "a\nb\n" and second.output == "c\n"
    assert not kernel.is_running


async def test_chunks_come_while_the_code_runs_and_not_one_for_each_line(kernel: PythonKernel) -> None:
    answers = Answers("go on")
    ran = Ran()
    running = run(kernel, "print('early')\ninput()\nfor n in range(20000): print(n)", answer=answers, into=ran)
    await running
    assert ran.output == "early\ngo on\n" + "".join(f"{n}\n" for n in range(20000))
    outputs = ran.contents("output")
    assert outputs[0] == "early\n" and len(outputs) < 500


async def test_the_engine_can_ask_without_being_seen(kernel: PythonKernel) -> None:
    await run(kernel, "count = 3")
    before = (await run(kernel, "get_ipython().execution_count")).output
    assert await kernel.evaluate("count * 2") == "6\n"
    assert await kernel.evaluate("print('a'); 'b'") == "a\nb\n"
    assert await kernel.evaluate("import platform; platform.python_implementation()") == "CPython\n"
    with pytest.raises(LanguageError, match="NameError"):
        await kernel.evaluate("no_such_name")
    assert int((await run(kernel, "get_ipython().execution_count")).output) == int(before) + 1
    assert "count" in await kernel.complete("coun", 4)


async def test_variables_are_listed_without_touching_them(kernel: PythonKernel) -> None:
    code = """
class Trap:
    def __repr__(self): raise SystemExit
    def __getattr__(self, name): raise SystemExit
    def __len__(self): raise SystemExit
    @property
    def __class__(self): raise SystemExit
trap, number, text, huge, items, big = Trap(), 5, "x" * 500, 10**10_000, [1, 2], list(range(1000))
import os as module
_private = 1
"""
    await run(kernel, code)
    rows = {row["name"]: (row["type"], row["value"]) for row in await kernel.variables()}
    assert rows["trap"] == ("Trap", "") and rows["number"] == ("int", "5") and rows["items"] == ("list", "[1, 2]")
    assert rows["text"][1].endswith("500 characters") and rows["huge"] == ("int", "33,220 bits")
    assert rows["big"] == ("list", "1,000 items") and rows["Trap"][0] == "type"
    assert not {"module", "_private", "In", "exit", "_oi_tui"} & set(rows)
    await run(kernel, "del trap, huge, big")


async def test_asking_while_code_runs_does_not_wait_for_it(kernel: PythonKernel) -> None:
    known = await kernel.variables()
    running = Running(kernel, "import time\nprint('busy')\ntime.sleep(600)")
    await running.prints("busy")
    assert await kernel.variables() == known and await kernel.complete("pri", 3) == []
    with pytest.raises(LanguageError, match="busy"):
        await kernel.evaluate("1")
    await kernel.interrupt()
    await running.end()


async def test_the_environment_is_a_program_s_own(kernel: PythonKernel) -> None:
    code = """
import os, sys
print(os.getsid(0) == os.getpid(), sys.stdin.read() if sys.stdin else None)
try:
    open("/dev/tty")
except OSError as error:
    print("no terminal", error.errno)
"""
    assert (await run(kernel, code)).output.splitlines() == ["True ", "no terminal 6"]


async def test_nobody_else_can_reach_the_kernel(kernel: PythonKernel) -> None:
    process = kernel._kernel.process if kernel._kernel else None
    assert process is not None
    assert process.folder.stat().st_mode & 0o777 == 0o700
    assert (process.folder / "connection.json").stat().st_mode & 0o777 == 0o600
    assert (process.folder / "line").stat().st_mode & 0o777 == 0o600
    code = "import psutil\n[c.laddr for c in psutil.Process().net_connections() if c.status == 'LISTEN']"
    assert (await run(kernel, code)).output == "[]\n"


async def test_all_parts_of_the_set_up_fit_this_ipykernel(kernel: PythonKernel) -> None:
    assert kernel._kernel is not None
    assert kernel._kernel.report == dict.fromkeys(PARTS, "")


async def test_two_hundred_turns_leave_nothing_behind(kernel: PythonKernel) -> None:
    assert kernel.pid is not None
    folders = [Path("/proc/self/fd"), Path(f"/proc/{kernel.pid}/fd")]
    if not folders[0].exists():
        pytest.skip("needs /proc")
    await run(kernel, "1/0")
    before = [len(list(folder.iterdir())) for folder in folders]
    for turn in range(200):
        ran = await run(kernel, f"print({turn})\n1/({turn} % 3)")
        assert ran.output.startswith(f"{turn}\n")
    await until(lambda: [len(list(folder.iterdir())) for folder in folders] <= before)
