"""Java in one persistent JShell."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from oi_tui.engine.languages.java import Java
from oi_tui.engine.languages.place import Place
from tests.engine.languages.running import run

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.skipif(shutil.which("jshell") is None, reason="no JDK is installed: Java is not tried"),
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("java"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def java(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Java]:
    made = Java(place=Place(cwd=tmp_path_factory.mktemp("work")))
    yield made
    await made.aclose()


CASES: list[tuple[str, list[tuple[str, str]]]] = [
    ("expressions without a semicolon are shown", [("1 + 1", "2\n"), ('"a" + 1', '"a1"\n')]),
    ("statements are not", [("int x = 3;", ""), ("x = 4;", ""), ("Math.abs(-1);", "")]),
    ("state", [("int v = 40;\nint plus(int n) { return n + 2; }", ""), ("System.out.println(plus(v));", "42\n")]),
    (
        "a class with main is run",
        [
            (
                "package a.b;\nimport java.util.*;\npublic class Hello {\n  public static void main(String[] args) {\n"
                '    System.out.println("main " + args.length);\n  }\n}',
                "main 0\n",
            ),
            ("Hello.main(null == null ? new String[2] : null);", "main 2\n"),
        ],
    ),
    (
        "but not twice",
        [
            (
                'class Once {\n  public static void main(String[] a) {\n    System.out.println("once");\n  }\n}\n'
                "Once.main(null);",
                "once\n",
            ),
        ],
    ),
    (
        "classes, records, generics",
        [
            ("record Point(int x, int y) {}\nvar points = new ArrayList<Point>(List.of(new Point(1, 2)));", ""),
            ("points.stream().map(Point::x).toList()", "[1]\n"),
        ],
    ),
    ("several statements on a line", [("int a = 1; int b = 2; System.out.println(a + b);", "3\n")]),
    ("stderr comes too", [("System.out.println(1); System.err.println(2);", "1\n2\n")]),
    ("comments only", [("// nothing\n/* at all */", "")]),
]


@pytest.mark.parametrize("blocks", [blocks for _, blocks in CASES], ids=[name for name, _ in CASES])
async def test_blocks(java: Java, blocks: list[tuple[str, str]]) -> None:
    for code, output in blocks:
        assert (await run(java, code)).output == output


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ('int n = 1;\nint m = "a";', [":2: error: incompatible types", 'int m = "a";\n        ^']),
        ("for (int i = 0;", ["error: reached end of file"]),
        ("// one\n\nnot_there();", [":3: error: cannot find symbol"]),
        (
            "\nint f(int n) {\n  int z = 0;\n  return n / z;\n}\nf(1);",
            [":6 java.lang.ArithmeticException", "f (block-", ":4)"],
        ),
        (
            'class T {\n  public static void main(String[] a) {\n    throw new IllegalStateException("bad");\n  }\n}',
            ["IllegalStateException: bad", ":3)"],
        ),
        ("int g() { return not_there(); }", ["not_there"]),
    ],
)
async def test_errors_name_the_line(java: Java, code: str, says: list[str]) -> None:
    ran = await run(java, code)
    for words in says:
        assert words in ran.output
    if "g()" not in code:  # what is only declared may be completed later
        assert ran.output.endswith("exit status 1\n")
    assert (await run(java, "1 + 1")).output == "2\n"


async def test_lines_are_those_of_the_statements(java: Java) -> None:
    ran = await run(
        java, "// first\nThread.sleep(200);\nfor (int i = 0; i < 2; i++) {\n  Thread.sleep(100);\n}\nThread.sleep(200);"
    )
    assert list(dict.fromkeys(ran.lines)) == [2, 3, 6]
