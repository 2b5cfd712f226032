"""JavaScript in Node.js: a script's habits at a prompt's convenience."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from oi_tui.engine.approval import InputCancelled, InputRequest
from oi_tui.engine.languages.javascript import JavaScript
from oi_tui.engine.languages.place import Place
from tests.engine.languages.running import Answers, Running, run

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed: JavaScript is not tried"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def javascript(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[JavaScript]:
    made = JavaScript(place=Place(cwd=tmp_path_factory.mktemp("work")))
    yield made
    await made.aclose()


module_loop = pytest.mark.asyncio(loop_scope="module")

CASES: list[tuple[str, list[tuple[str, str]]]] = [
    ("the last value is shown", [("1 + 1", "2\n"), ("'text'", "'text'\n"), ("({ a: [1, 2] })", "{ a: [ 1, 2 ] }\n")]),
    ("undefined is not", [("undefined", ""), ("let quiet = 5;", ""), ("console.log('once')", "once\n")]),
    ("const may be declared again", [("const again = 1;", ""), ("const again = 2;", ""), ("again", "2\n")]),
    ("so may let and class", [("let l = 1; class C {}", ""), ("let l = 2; class C {}", ""), ("l", "2\n")]),
    ("functions stay", [("function twice(n) { return n * 2; }", ""), ("twice(4)", "8\n")]),
    ("await at the top", [("const v = await Promise.resolve(7);", ""), ("v", "7\n")]),
    ("require", [("const os = require('os'); typeof os.cpus", "'function'\n")]),
    (
        "import declarations",
        [
            (
                "import fs, { existsSync as there } from 'fs';\nimport * as path from \"node:path\";\n"
                "console.log(there('/'), typeof fs.readFileSync, path.sep.length)",
                "true function 1\n",
            ),
            ("there('/nowhere at all')", "false\n"),
        ],
    ),
    ("import()", [("(await import('node:path')).basename('/a/b')", "'b'\n")]),
    (
        "import inside strings is text",
        [
            (
                "`import x from 'y' ${'import(' + `import(${1})`}` + /import\\(/.source // import('no')",
                "\"import x from 'y' import(import(1)import\\\\(\"\n",
            ),
        ],
    ),
    (
        "a module of the working directory",
        [
            ("require('fs').writeFileSync('mine.mjs', 'export const answer = 42; export default 1;')", ""),
            ("import one, { answer } from './mine.mjs';\nanswer + one", "43\n"),
            ("require('fs').writeFileSync('ours.js', 'module.exports = { a: 1 }'); require('./ours').a", "1\n"),
        ],
    ),
    ("if this is the main module", [("if (require.main === module) console.log('main')", "main\n")]),
    ("callbacks belong to their block", [("setTimeout(() => console.log('later'), 50); 0", "0\nlater\n")]),
    ("files too", [("require('fs').readdir('.', () => console.log('read'))", "read\n")]),
    ("children too", [("require('child_process').exec('echo child', (e, out) => console.log(out.trim()))", "child\n")]),
    (
        "main() is waited for",
        [
            (
                "async function main() { await new Promise((d) => setTimeout(d, 30)); console.log('done'); }\nmain();",
                "done\n",
            ),
        ],
    ),
    (
        "exit ends the block, not the state",
        [
            ("var kept = 1; setTimeout(() => console.log('never'), 30); process.exit(3)", "exit status 3\n"),
            ("kept", "1\n"),
            ("process.exit()", ""),
        ],
    ),
    ("stderr comes too", [("console.error('oops')", "oops\n")]),
    ("text that only looks like control", [("console.log('end 0\\nline 5')", "end 0\nline 5\n")]),
    ("strict mode and regular expressions", [("'use strict'; /a\\/[/]b/.test('a//b') / 1", "1\n")]),
    ("comments only", [("// nothing\n/* at all */", "")]),
]


@pytest.mark.parametrize("blocks", [blocks for _, blocks in CASES], ids=[name for name, _ in CASES])
@module_loop
async def test_blocks(javascript: JavaScript, blocks: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    for code, output in blocks:
        ran = await run(javascript, code)
        assert _plain(ran.output) == output


def _plain(text: str) -> str:
    """Without the colours of numbers and booleans."""
    return re.sub(r"\x1b\[\d+m", "", text)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("const a = ;", ["block-", ":1\nconst a = ;\n          ^", "SyntaxError: Unexpected token ';'"]),
        ("1;\nnull.x", ["TypeError: Cannot read properties of null", ".js:2:"]),
        ("throw 'words'", ["Uncaught 'words'"]),
        ("throw 5", ["Uncaught 5"]),
        ("1;\nsetTimeout(() => { throw new Error('late') }, 10)", ["Uncaught Error: late", ".js:2:"]),
        ("Promise.reject(new Error('lost'))", ["Uncaught (in promise) Error: lost"]),
        ("await Promise.reject(new Error('kept'))", ["Uncaught Error: kept"]),
        ("import x from 'no-such-module-at-all'", ["Cannot find package 'no-such-module-at-all'"]),
        ("function f() { f() } f()", ["RangeError: Maximum call stack size exceeded"]),
        ("({ get a() { throw new Error('shown') } }).a", ["Error: shown"]),
    ],
)
@module_loop
async def test_errors_are_told_with_their_line_and_only_the_code_s_own_frames(
    javascript: JavaScript, code: str, says: list[str]
) -> None:
    ran = await run(javascript, code)
    for words in says:
        assert words in ran.output
    assert ran.output.endswith("exit status 1\n")
    assert "drivers" not in ran.output
    assert _plain((await run(javascript, "40 + 2")).output) == "42\n"


@module_loop
async def test_lines_are_lit_in_waiting_and_in_computing_code(javascript: JavaScript) -> None:
    code = (
        "function work(ms) {\n"
        "  const end = Date.now() + ms;\n"
        "  while (Date.now() < end) Math.sqrt(end);\n"
        "}\n"
        "await new Promise((done) => setTimeout(done, 250));\n"
        "work(400);\n"
        "for (let i = 0; i < 2; i++) {\n"
        "  await new Promise((done) => setTimeout(done, 150));\n"
        "}\n"
    )
    ran = await run(javascript, code)
    assert set(ran.lines) & {2, 3}
    assert 5 in ran.lines
    assert 8 in ran.lines
    times = ran.contents("line_times")[0]
    assert isinstance(times, dict)
    assert times["5"] > 0.1
    assert times["8"] > 0.1


@module_loop
async def test_watching_does_not_slow_a_loop_at_the_top(javascript: JavaScript) -> None:
    """V8 does not optimise functions that have breakpoints: ours must go when the code computes."""
    loop = "let t{0} = 0;\nfor (let i = 0; i < 2e8; i++) t{0} += i % 7;\n"
    watched = await run(javascript, "const a = performance.now();\n" + loop.format(1) + "performance.now() - a")
    reference = await run(
        javascript,
        "const fn = new Function("
        + repr(loop.format(2))
        + ");\nconst b = performance.now(); fn(); performance.now() - b",
    )
    assert float(_plain(watched.output)) < 5 * float(_plain(reference.output)) + 500


@pytest.mark.parametrize(
    "code",
    [
        "await new Promise(() => {})",
        "await new Promise((done) => setTimeout(done, 600000)); console.log('never')",
        "setInterval(() => {}, 10)",
        "require('child_process').execSync('sleep 600')",
        "require('child_process').spawn('sleep', ['600'])",
        "require('http').createServer().listen(0, '127.0.0.1'); setInterval(() => {}, 1000)",
        "try { while (true) {} } finally { while (true) {} }",
        "require('fs').readFileSync(0)",
        "process.stdin.on('data', () => {})",
    ],
)
@module_loop
async def test_an_interrupt_stops_whatever_it_is(javascript: JavaScript, code: str) -> None:
    await run(javascript, "var kept = 'kept'")

    async def wait_for_ever(request: InputRequest) -> str:
        await asyncio.Event().wait()
        raise InputCancelled

    running = Running(javascript, f"console.log('started'); {code}", answer=wait_for_ever)
    await running.prints("started")
    await javascript.interrupt()
    ran = await running.end()
    assert ran.output.endswith("interrupted\n")
    assert not ran.notices
    assert (await run(javascript, "kept")).output == "'kept'\n"


@module_loop
async def test_interrupted_code_does_not_go_on_later(javascript: JavaScript) -> None:
    running = Running(
        javascript, "console.log('started'); await new Promise((d) => setTimeout(d, 200)); console.log('never')"
    )
    await running.prints("started")
    await javascript.interrupt()
    await running.end()
    assert (await run(javascript, "await new Promise((d) => setTimeout(d, 400))")).output == ""


@module_loop
async def test_a_server_goes_on_while_the_next_block_talks_to_it(javascript: JavaScript) -> None:
    serve = "const server = require('http').createServer((q, r) => r.end('served')).listen(0, '127.0.0.1');"
    await run(javascript, serve + "\nawait new Promise((up) => server.on('listening', up));")
    ask = (
        "const address = { port: server.address().port, host: '127.0.0.1', agent: false };\n"
        "const get = (done) => require('http').get(address, (r) => r.on('data', (d) => done(String(d))));\n"
        "console.log(await new Promise(get)); server.close();"
    )
    assert (await run(javascript, ask)).output == "served\n"


@module_loop
async def test_reading_by_line(javascript: JavaScript) -> None:
    lines = (
        "const rl = require('readline').createInterface({ input: process.stdin });\n"
        "for await (const line of rl) { console.log(`<${line}>`); if (line === 'b') break; }\nrl.close();"
    )
    answers = Answers("a", "b")
    ran = await run(javascript, lines, answer=answers)
    assert "<a>" in ran.output
    assert "<b>" in ran.output
    again = "const { createInterface } = require('readline/promises');\n"
    again += "const q = createInterface(process.stdin, process.stdout); console.log(await q.question('? ')); q.close();"
    assert "yes\n" in (await run(javascript, again, answer=Answers("yes"))).output


async def test_reading_all_of_stdin_at_once(tmp_path: Path) -> None:
    """In a process of its own: Node cannot do it any more once `process.stdin` was used."""
    javascript = JavaScript(place=Place(cwd=tmp_path))
    try:
        ran = await run(javascript, "require('fs').readFileSync(0, 'utf8').length", answer=Answers("four", "\x04"))
        assert _plain(ran.output).endswith("5\n")
    finally:
        await javascript.aclose()
