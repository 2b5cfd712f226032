"""The line front end against a real OpenAI-compatible server, through the real worker and the real kernel."""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import groupby
from typing import Any

import pytest

from tests.openai_replies import Failure, conversation, echo_key, text
from tests.openai_server import OpenAIServer

pytestmark = [pytest.mark.server, pytest.mark.kernel]

KEY = "sk-very-secret-key-of-mine-1234567890"


async def oi_tui(*arguments: str) -> tuple[int, str, str]:
    """Run the program; its exit status, output and errors."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "oi_tui", *arguments,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def kinds(lines: str) -> list[str]:
    """The chunks as words, runs of content of one kind joined."""
    words = []
    for line in lines.splitlines():
        chunk: dict[str, Any] = json.loads(line)
        flag = "start" if chunk.get("start") else "end" if chunk.get("end") else chunk.get("format") or "…"
        words.append(f"{chunk['role']} {chunk['type']} {flag}")
    return [word for word, _ in groupby(words)]


@pytest.mark.parametrize("mode", ["--llm_supports_functions", "--no_llm_supports_functions"])
async def test_json_is_the_documented_sequence_of_chunks(mode: str) -> None:
    async with OpenAIServer(conversation("34 / 24", "The result is 1.42.")) as server:
        status, out, err = await oi_tui(
            "--json", "-y", "-p", "What's 34/24?", "--model", "openai/test", "--api_base", server.url, mode
        )
        assert server.problems == []
    assert (status, err) == (0, "")
    assert kinds(out) == [
        "assistant code start",
        "assistant code python",
        "assistant code end",
        "computer console start",
        "computer console active_line",
        "computer console output",
        "computer console active_line",
        "computer console end",
        "assistant message start",
        "assistant message …",
        "assistant message end",
    ]
    chunks = [json.loads(line) for line in out.splitlines()]
    assert "".join(c["content"] for c in chunks if c["type"] == "code" and "content" in c) == "34 / 24"
    output = next(c for c in chunks if c.get("format") == "output")
    assert output == {"role": "computer", "type": "console", "format": "output", "content": "1.4166666666666667\n"}
    assert [c["content"] for c in chunks if c.get("format") == "active_line"] == [1, None]


async def test_a_refused_key_is_one_line_without_the_key() -> None:
    async with OpenAIServer(echo_key()) as server:
        status, out, err = await oi_tui(
            "-p", "hi", "--model", "openai/test", "--api_base", server.url, "--api_key", KEY
        )
    assert (status, out) == (1, "")
    warning, error = err.splitlines()
    assert "can be read by every user" in warning
    assert error.startswith("error: ")
    assert KEY not in err


async def test_a_server_that_is_not_there_is_one_line() -> None:
    async with OpenAIServer(text("")) as server:
        address = server.url
    status, out, err = await oi_tui("-p", "hi", "--model", "openai/test", "--api_base", address)
    assert (status, out) == (1, "")
    assert err.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in err


async def test_json_reports_a_fault_as_a_chunk_and_as_exit_status() -> None:
    async with OpenAIServer(Failure(404, "no such model")) as server:
        status, out, _ = await oi_tui("--json", "-p", "hi", "--model", "openai/test", "--api_base", server.url)
    assert status == 1
    (chunk,) = [json.loads(line) for line in out.splitlines()]
    assert (chunk["role"], chunk["type"], chunk["format"]) == ("server", "error", "model_not_found")
