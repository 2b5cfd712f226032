"""Ruby in one persistent process."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from oi_tui.engine.languages.place import Place
from oi_tui.engine.languages.ruby import Ruby
from tests.engine.languages.running import Answers, Running, run

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.skipif(shutil.which("ruby") is None, reason="Ruby is not installed: it is not tried"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ruby(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ruby]:
    made = Ruby(place=Place(cwd=tmp_path_factory.mktemp("work")))
    yield made
    await made.aclose()


CASES: list[tuple[str, list[tuple[str, str]]]] = [
    ("values of expressions are shown", [("[1, 2].map { |x| x * 2 }", "=> [2, 4]\n"), ("'a'.upcase", '=> "A"\n')]),
    (
        "by-products of statements are not",
        [
            ("x = 3", ""),
            ("def twice(n) = n * 2", ""),
            ("require 'json'", ""),
            ("[1].each { |n| n }", ""),
            ("3.times do |n|\n  n\nend", ""),
            ("nil", ""),
            ("puts 'a'", "a\n"),
            ("class K; end", ""),
        ],
    ),
    (
        "locals, methods, classes and constants stay",
        [
            ("v = 40\ndef plus(n) = n + 2\nLIMIT = 1", ""),
            ("puts plus(v), LIMIT", "42\n1\n"),
        ],
    ),
    ("the word nil is no trouble", [("a = nil\nputs a.nil?", "true\n")]),
    ("here-documents", [("puts <<~TEXT\n  one\n    two\nTEXT", "one\n  two\n")]),
    ("if this is the program", [("puts 'main' if __FILE__ == $0", "main\n")]),
    (
        "exit ends the block, not the state",
        [("kept = 1; exit 3", "exit status 3\n"), ("puts kept", "1\n"), ("exit", "")],
    ),
    ("abort says why", [("abort 'enough'", "enough\nexit status 1\n")]),
    ("stdout and stderr in order", [("puts 1; warn 2; $stdout.print 3; system('echo 4')\nnil", "1\n2\n34\n")]),
    ("text that only looks like control", [("puts 'end 0', 'line 7'", "end 0\nline 7\n")]),
    ("UTF-8", [("puts 'é✓'", "é✓\n")]),
]


@pytest.mark.parametrize("blocks", [blocks for _, blocks in CASES], ids=[name for name, _ in CASES])
async def test_blocks(ruby: Ruby, blocks: list[tuple[str, str]]) -> None:
    for code, output in blocks:
        assert (await run(ruby, code)).output == output


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("x = (1\n", "syntax error"),
        ("1\nundefined_name_here", ":2:"),
        ("def f\n  raise ArgumentError, 'bad'\nend\nf", ":2:in "),
        ("def deep(n) = deep(n + 1)\ndeep(0)", "stack level too deep"),
        ("raise Class.new(StandardError) { def message = raise('no') }", ""),
    ],
)
async def test_errors_show_the_code_s_own_lines(ruby: Ruby, code: str, says: str) -> None:
    ran = await run(ruby, code)
    assert says in ran.output
    assert ran.output.endswith("exit status 1\n")
    assert "drivers" not in ran.output
    assert (await run(ruby, "puts 1")).output == "1\n"


async def test_lines_inside_methods_and_blocks(ruby: Ruby) -> None:
    ran = await run(ruby, "def work\n  sleep 0.2\nend\nwork\n[1, 2].each do |n|\n  sleep 0.15\nend\nsleep 0.2")
    assert [line for line in dict.fromkeys(ran.lines) if line in (2, 6, 8)] == [2, 6, 8]


async def test_code_that_catches_an_interrupt_gets_another(ruby: Ruby) -> None:
    running = Running(ruby, "puts 'started'\nbegin; loop {}; rescue Interrupt; puts 'once'; loop {}; end")
    await running.prints("started")
    await ruby.interrupt()
    assert (await running.end()).output.endswith("once\ninterrupted\n")
    assert (await run(ruby, "puts 1")).output == "1\n"


async def test_a_trap_of_the_code_does_not_outlive_its_block(ruby: Ruby) -> None:
    await run(ruby, "trap('INT', 'IGNORE')")
    running = Running(ruby, "puts 'started'; loop {}")
    await running.prints("started")
    await ruby.interrupt()
    ran = await running.end()
    assert not ran.notices


async def test_a_password_is_masked(ruby: Ruby) -> None:
    answers = Answers("hush")
    ran = await run(ruby, "require 'io/console'\nputs STDIN.getpass('Word: ').size", answer=answers)
    assert answers.requests[0].password
    assert "hush" not in ran.output
    assert ran.output.endswith("4\n")
