"""R in one persistent process: values as at a prompt, plots as pictures."""

from __future__ import annotations

import base64
import io
import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from PIL import Image

from oi_tui.engine.languages.place import Place
from oi_tui.engine.languages.r import R
from tests.engine.languages.running import Answers, Ran, run

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.skipif(shutil.which("R") is None, reason="R is not installed: it is not tried"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def r(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[R]:
    made = R(place=Place(cwd=tmp_path_factory.mktemp("work")))
    yield made
    await made.aclose()


CASES: list[tuple[str, list[tuple[str, str]]]] = [
    (
        "visible values are shown",
        [("1 + 1", "[1] 2\n"), ("'a'", '[1] "a"\n'), ("TRUE; FALSE", "[1] TRUE\n[1] FALSE\n")],
    ),
    ("invisible ones are not", [("x <- 3", ""), ("invisible(5)", ""), ("f <- function() 1", "")]),
    ("state", [("v <- 40\nplus <- function(n) n + 2", ""), ("plus(v)", "[1] 42\n")]),
    ("data frames", [("data.frame(a = 1:2, b = c('x', 'y'))", "  a b\n1 1 x\n2 2 y\n")]),
    (
        "S4 objects",
        [
            ("setClass('P', representation(a = 'numeric'))", ""),
            ("new('P', a = 1)", 'An object of class "P"\nSlot "a":\n[1] 1\n\n'),
        ],
    ),
    ("a block over many lines", [("for (i in 1:2) {\n  cat(i, '')\n}\ncat('\\n')", "1 2 \n")]),
    ("warnings at once", [("as.integer('a')", "Warning: NAs introduced by coercion\n[1] NA\n")]),
    ("warnings of functions", [("f <- function() { warning('w'); 1 }\nf()", "Warning in f() : w\n[1] 1\n")]),
    ("quit ends the block, not the state", [("kept <- 1; q(status = 3)", "exit status 3\n"), ("kept", "[1] 1\n")]),
    ("a forgotten sink", [("sink(tempfile())\n1", ""), ("2", "[1] 2\n")]),
    ("text that only looks like control", [("cat('end 0\\nline 4\\n')", "end 0\nline 4\n")]),
    ("UTF-8", [("cat('é✓\\n')", "é✓\n")]),
    ("comments only", [("# nothing", "")]),
]


@pytest.mark.parametrize("blocks", [blocks for _, blocks in CASES], ids=[name for name, _ in CASES])
async def test_blocks(r: R, blocks: list[tuple[str, str]]) -> None:
    for code, output in blocks:
        assert (await run(r, code)).output == output


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("x <- (1", "unexpected end of input"),
        ("1\n2 +* 3", ":2:4"),
        ("a <- 1\nnot_there", "Error: object 'not_there' not found\n  at block-"),
        ("f <- function(n) stop('bad ', n)\n\nf(2)", ":3\n"),
        ("stop()", "Error: \n"),
    ],
)
async def test_errors_name_the_line(r: R, code: str, says: str) -> None:
    ran = await run(r, code)
    assert says in ran.output
    assert ran.output.endswith("exit status 1\n")
    assert (await run(r, "1")).output == "[1] 1\n"


def sizes(ran: Ran) -> list[tuple[int, int]]:
    return [Image.open(io.BytesIO(base64.b64decode(chunk.text))).size for chunk in ran.images]


async def test_a_plot_is_a_picture(r: R) -> None:
    ran = await run(r, "plot(1:10)")
    assert sizes(ran) == [(900, 600)]
    assert ran.images[0].format == "base64.png"
    assert ran.output == ""


async def test_several_plots_are_several_pictures_and_panels_are_one(r: R) -> None:
    assert len((await run(r, "plot(1)\nplot(2)\nhist(c(1, 2, 2))")).images) == 3
    assert len((await run(r, "par(mfrow = c(1, 2)); plot(1); plot(2); par(mfrow = c(1, 1))")).images) == 1


async def test_grid_graphics_are_pictures_too(r: R) -> None:
    """What ggplot2 and lattice draw with."""
    ran = await run(r, "library(grid)\nfor (i in 1:2) {\n  grid.newpage()\n  grid.rect(width = i / 3)\n}")
    assert len(ran.images) == 2


async def test_a_later_block_adds_to_the_plot(r: R) -> None:
    first = await run(r, "plot(1:10)")
    second = await run(r, "lines(10:1)")
    third = await run(r, "1 + 1")
    assert len(first.images) == len(second.images) == 1
    assert first.images[0].content != second.images[0].content
    assert third.images == []


async def test_closing_the_device_shows_the_plot_once(r: R) -> None:
    assert len((await run(r, "pie(1:3); dev.off()")).images) == 1
    assert len((await run(r, "pie(1:3)")).images) == 1
    assert (await run(r, "dev.off()")).images == []
    assert len((await run(r, "barplot(1:3); graphics.off()")).images) == 1


async def test_a_plot_into_a_file_of_the_code_s_own_is_not_shown(r: R) -> None:
    assert (await run(r, "f <- tempfile(); png(f); plot(1); dev.off(); file.exists(f)")).images == []


async def test_a_plot_before_an_error_is_still_shown(r: R) -> None:
    ran = await run(r, "plot(1)\nstop('later')")
    assert len(ran.images) == 1
    assert "later" in ran.output


async def test_questions_of_readline_scan_and_stdin(r: R) -> None:
    answers = Answers("Ada", "4", "line")
    ran = await run(
        r,
        "n <- readline('Name: ')\ns <- scan(n = 1, quiet = TRUE)\nl <- readLines('stdin', 1)\ncat(n, s, l)",
        answer=answers,
    )
    assert ran.output.endswith("Ada 4 line")
    assert answers.requests[0].prompt == "Name: "
