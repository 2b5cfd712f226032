"""What is promised of every language, told once and tried with the real runtimes.

A runtime that is missing here skips its row, with the reason.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from oi_tui.engine.languages.base import Language
from oi_tui.engine.languages.catalogue import built_in_entries
from oi_tui.engine.languages.jupyter_kernels import installed_kernels, with_kernels
from oi_tui.engine.languages.place import Place, environment_for_code
from oi_tui.engine.languages.registry import Registry
from tests.engine.languages.running import Answers, Running, approved, run, until

pytestmark = pytest.mark.terminal

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Story:
    """How one language says the things that every language has to be able to say."""

    name: str
    needs: str
    hello: str
    remember: str
    """Sets a state of 41."""
    recall: str
    """Prints it, plus one."""
    fail: str
    """Fails in its third line."""
    fails_with: str
    says_line: str
    loop: str
    """Prints "started", then goes on for ever."""
    wait: str
    """Prints "started", then sleeps for ever."""
    ask: str
    """Asks "name? " and greets."""
    flood: str
    """Prints a hundred megabytes of x."""
    slow_lines: str
    """Takes 0.25 s in each of lines 1 and 3, and no time in line 2."""
    suicide: str
    env: str
    """Prints OPENAI_API_KEY, or nothing."""


STORIES = [
    Story(
        name="shell",
        needs="bash",
        hello="echo hello",
        remember="x=41",
        recall="echo $((x + 1))",
        fail="true\ntrue\nset -e; no_such_thing",
        fails_with="no_such_thing: command not found",
        says_line="",
        loop="echo started; while :; do :; done",
        wait="echo started; sleep 600",
        ask="read -p 'name? ' n; echo hello $n",
        flood="head -c 100000000 /dev/zero | tr '\\0' x",
        slow_lines="sleep 0.25\ntrue\nsleep 0.25",
        suicide="kill -9 $$",
        env="echo $OPENAI_API_KEY",
    ),
    Story(
        name="javascript",
        needs="node",
        hello="console.log('hello')",
        remember="const x = 41;",
        recall="console.log(`${x + 1}`)",
        fail="1;\n2;\nthrow new Error('bad thing');",
        fails_with="Error: bad thing",
        says_line=".js:3:",
        loop="console.log('started'); while (true) {}",
        wait="console.log('started'); await new Promise((done) => setTimeout(done, 600000))",
        ask="const rl = require('readline').createInterface({ input: process.stdin, output: process.stdout });\n"
        "rl.question('name? ', (name) => { console.log(`hello ${name}`); rl.close(); });",
        flood="const piece = 'x'.repeat(1000000);\nfor (let i = 0; i < 100; i++) process.stdout.write(piece);\n0;",
        slow_lines="await new Promise((done) => setTimeout(done, 250));\n1;\n"
        "for (let end = Date.now() + 250; Date.now() < end; ) Math.sqrt(end);",
        suicide="process.kill(process.pid, 'SIGKILL')",
        env="process.env.OPENAI_API_KEY",
    ),
    Story(
        name="ruby",
        needs="ruby",
        hello="puts 'hello'",
        remember="x = 41",
        recall="puts x + 1",
        fail="1\n2\nraise 'bad thing'",
        fails_with="bad thing (RuntimeError)",
        says_line=".rb:3:",
        loop="puts 'started'; loop {}",
        wait="puts 'started'; sleep",
        ask="print 'name? '; puts \"hello #{gets}\"",
        flood="100.times { print 'x' * 1_000_000 }",
        slow_lines="sleep 0.25\n1\nsleep 0.25",
        suicide="Process.kill(:KILL, $$)",
        env="puts ENV['OPENAI_API_KEY']",
    ),
    Story(
        name="r",
        needs="R",
        hello="cat('hello\\n')",
        remember="x <- 41",
        recall="cat(x + 1, '\\n', sep = '')",
        fail="a <- 1\nb <- 2\nstop('bad thing')",
        fails_with="Error: bad thing",
        says_line=".r:3",
        loop="cat('started\\n'); repeat {}",
        wait="cat('started\\n'); Sys.sleep(600)",
        ask="n <- readline('name? '); cat('hello', n, '\\n')",
        flood="for (i in 1:100) cat(strrep('x', 1e6))",
        slow_lines="Sys.sleep(0.25)\na <- 1\nSys.sleep(0.25)",
        suicide="tools::pskill(Sys.getpid(), 9)",
        env="cat(Sys.getenv('OPENAI_API_KEY'), '\\n')",
    ),
    Story(
        name="java",
        needs="jshell",
        hello='System.out.println("hello");',
        remember="int x = 41;",
        recall="System.out.println(x + 1);",
        fail='int a = 1;\nint b = 2;\nthrow new IllegalStateException("bad thing");',
        fails_with="IllegalStateException: bad thing",
        says_line=".java:3",
        loop='System.out.println("started"); while (true) {}',
        wait='System.out.println("started"); Thread.sleep(600000);',
        ask='System.out.print("name? "); System.out.println("hello " + new Scanner(System.in).nextLine());',
        flood='String piece = "x".repeat(1000000);\nfor (int i = 0; i < 100; i++) System.out.print(piece);',
        slow_lines="Thread.sleep(250);\nint a = 1;\nThread.sleep(250);",
        suicide="System.exit(9);",
        env='System.out.println(System.getenv("OPENAI_API_KEY"));',
    ),
    Story(
        name="jupyter:ir",
        needs="R",
        hello="cat('hello\\n')",
        remember="x <- 41",
        recall="cat(x + 1, '\\n', sep = '')",
        fail="a <- 1\nb <- 2\nstop('bad thing')",
        fails_with="bad thing",
        says_line="",
        loop="cat('started\\n'); repeat {}",
        wait="cat('started\\n'); Sys.sleep(600)",
        ask="n <- readline('name? '); cat('hello', n, '\\n')",
        flood="",
        slow_lines="",
        suicide="tools::pskill(Sys.getpid(), 9)",
        env="cat(Sys.getenv('OPENAI_API_KEY'), '\\n')",
    ),
]


def stories(need: str = "hello") -> pytest.MarkDecorator:
    """The stories that tell this."""
    told = [story for story in STORIES if getattr(story, need)]
    return pytest.mark.parametrize("story", told, ids=[story.name for story in told])


@pytest_asyncio.fixture
async def language(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Language]:
    if shutil.which(story.needs) is None:
        pytest.skip(f"{story.needs} is not installed: {story.name} is not tried")
    kernels = installed_kernels()
    if story.name.startswith("jupyter:") and story.name.removeprefix("jupyter:") not in {k.name for k in kernels}:
        pytest.skip(f"the Jupyter kernel of {story.name} is not installed: it is not tried")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    place = Place(cwd=tmp_path, environment=environment_for_code())
    registry = Registry(with_kernels(built_in_entries(), kernels), place=place)
    made = registry.get(story.name)
    assert made is not None, registry.explain(story.name)
    yield made
    await registry.aclose()


@stories()
async def test_hello_and_nothing_else(story: Story, language: Language) -> None:
    ran = await run(language, story.hello)
    assert ran.output == "hello\n"
    assert ran.contents("active_line")[-1] is None
    assert not language.is_running


@stories()
async def test_state_is_kept_and_the_model_s_key_is_not_passed_on(story: Story, language: Language) -> None:
    await run(language, story.remember)
    assert (await run(language, story.recall)).output == "42\n"
    assert "sk-secret" not in (await run(language, story.env)).output


@stories()
async def test_an_error_names_message_line_and_status(story: Story, language: Language) -> None:
    ran = await run(language, story.fail)
    assert story.fails_with in ran.output
    assert story.says_line in ran.output
    if not story.name.startswith("jupyter:"):  # where the traceback says it all
        assert ran.output.splitlines()[-1].startswith("exit status ")
    assert (await run(language, story.hello)).output == "hello\n"


@stories()
@pytest.mark.parametrize("how", ["loop", "wait"])
async def test_an_interrupt_ends_the_code_and_keeps_the_state(story: Story, language: Language, how: str) -> None:
    await run(language, story.remember)
    running = Running(language, getattr(story, how))
    await running.prints("started")
    await language.interrupt()
    ran = await running.end()
    assert not ran.notices
    assert (await run(language, story.recall)).output == "42\n"


@stories()
async def test_leaving_the_iterator_interrupts_and_the_next_block_works(story: Story, language: Language) -> None:
    await run(language, story.remember)
    running = Running(language, story.loop)
    await running.prints("started")
    running.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.task
    assert not language.is_running
    assert (await run(language, story.recall)).output == "42\n"


@stories()
async def test_questions_are_answered(story: Story, language: Language) -> None:
    answers = Answers("Ada")
    ran = await run(language, story.ask, answer=answers)
    assert [request.prompt.strip() for request in answers.requests] == ["name?"]
    assert "hello Ada" in ran.output


@stories("slow_lines")
async def test_the_line_is_lit_while_it_runs(story: Story, language: Language) -> None:
    await run(language, story.hello)
    ran = await run(language, story.slow_lines)
    assert list(dict.fromkeys(line for line in ran.lines if line != 2)) == [1, 3]
    times = ran.contents("line_times")[0]
    assert isinstance(times, dict)
    assert times["1"] > 0.1
    assert times["3"] > 0.1


@stories("flood")
async def test_a_hundred_megabytes_in_bounded_memory(story: Story, language: Language) -> None:
    await run(language, story.hello)
    before, most, total = _resident(), 0, 0
    async for chunk in language.run(approved(story.flood), answer=Answers()):
        total += chunk.text.count("x")
        most = max(most, _resident())
    assert total == 100 * MEGABYTE
    assert most - before < 80 * MEGABYTE


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@stories()
async def test_a_process_that_dies_is_replaced_and_the_user_told(story: Story, language: Language) -> None:
    await run(language, story.remember)
    told = ""
    try:
        ran = await run(language, story.suicide)
        told = ran.output + "".join(ran.notices)
    except Exception as error:  # a kernel that dies is an error of the language
        told = str(error)
    assert "are gone" in told
    assert (await run(language, story.hello)).output == "hello\n"


@stories()
async def test_restarting_loses_the_state_only(story: Story, language: Language) -> None:
    await run(language, story.remember)
    await language.restart()
    assert "42" not in (await run(language, story.recall)).output
    assert (await run(language, story.hello)).output == "hello\n"


@stories()
async def test_closing_leaves_nothing_behind(story: Story, language: Language, tmp_path: Path) -> None:
    await run(language, story.hello)
    await language.aclose()
    await language.aclose()
    await until(lambda: not _working_in(tmp_path))


def _working_in(folder: Path) -> list[int]:
    """Processes whose working directory is this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.readlink(entry / "cwd") == str(folder):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
