"""Many small pieces become few lines, the first at once, never more ahead than the window."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from oi_tui.engine.llm.base import Delta, ToolCallDelta
from oi_tui.engine.llm.outbox import FULL, LINE, Outbox
from oi_tui.engine.llm.secret_filter import SecretFilter
from oi_tui.engine.llm.worker_protocol import WINDOW, decode, deltas_from_pieces, encode

Lines = list[list[Any]]


def text_of(lines: Lines) -> str:
    return "".join(piece[1] for line in lines for piece in line if piece[0] == "t")


async def test_the_first_piece_goes_at_once_and_the_rest_together() -> None:
    lines: Lines = []
    outbox = Outbox(lines.append)
    for word in ("a", "b", "c"):
        outbox.add(["t", word])
    assert lines == [[["t", "a"]]]
    await outbox.drain()
    assert lines == [[["t", "a"]], [["t", "bc"]]]


async def test_the_rest_is_sent_without_being_asked_for() -> None:
    sent = asyncio.Event()
    lines: Lines = []

    def send(line: list[Any]) -> None:
        lines.append(line)
        if len(lines) == 2:
            sent.set()

    outbox = Outbox(send)
    outbox.add(["t", "a"])
    outbox.add(["t", "b"])
    await asyncio.wait_for(sent.wait(), 20)
    assert text_of(lines) == "ab"


async def test_order_between_kinds_and_calls_is_kept() -> None:
    lines: Lines = []
    outbox = Outbox(lines.append)
    pieces: Lines = [
        ["r", "hm"],
        ["r", "m"],
        ["t", "I'll "],
        ["t", "do it"],
        ["c", 0, "a", "execute", ""],
        ["c", 0, None, None, '{"x'],
        ["c", 0, None, None, '": 1}'],
        ["c", 1, "b", "execute", "{}"],
        ["c", 0, None, None, " "],
        ["t", "done"],
        ["f", "stop"],
        ["u", {"prompt_tokens": 1}],
    ]
    for piece in pieces:
        outbox.add(piece)
    await outbox.drain()
    assert [piece for line in lines for piece in line] == [
        ["r", "hm"],
        ["r", "m"],
        ["t", "I'll do it"],
        ["c", 0, "a", "execute", '{"x": 1}'],
        ["c", 1, "b", "execute", "{}"],
        ["c", 0, None, None, " "],
        ["t", "done"],
        ["f", "stop"],
        ["u", {"prompt_tokens": 1}],
    ]


async def test_no_more_lines_than_the_window_until_they_are_taken() -> None:
    lines: Lines = []
    outbox = Outbox(lines.append)
    text = "x" * (LINE * (WINDOW + 3))
    outbox.add(["t", text])
    assert len(lines) == WINDOW
    draining = asyncio.create_task(outbox.drain())
    while not draining.done():
        outbox.acknowledge()
        await asyncio.sleep(0)
    assert text_of(lines) == text and max(map(len, (p[1] for line in lines for p in line))) <= LINE


async def test_a_consumer_that_stands_still_holds_the_producer() -> None:
    lines: Lines = []
    outbox = Outbox(lines.append)
    outbox.add(["t", "x" * (LINE * WINDOW + FULL + 1)])
    waiting = asyncio.create_task(outbox.room())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    outbox.acknowledge()
    await asyncio.wait_for(waiting, 20)


async def test_a_long_call_is_cut_without_becoming_two() -> None:
    lines: Lines = []
    outbox = Outbox(lines.append)
    arguments = "y" * (LINE * 2 + 5)
    outbox.add(["c", 0, "a", "execute", arguments])
    await outbox.drain()
    calls = [call for line in lines for delta in deltas_from_pieces(line) for call in delta.tool_calls]
    assert "".join(call.arguments for call in calls) == arguments
    assert [call.name for call in calls] == ["execute", None, None]


async def test_nothing_is_sent_after_it_was_discarded() -> None:
    lines: Lines = []
    outbox = Outbox(lines.append)
    outbox.add(["t", "a"])
    outbox.add(["t", "b"])
    outbox.discard()
    await outbox.drain()
    await asyncio.sleep(0.03)
    assert lines == [[["t", "a"]]]


@pytest.mark.parametrize("text", ["plain", "né 漢字 🙂", "\ud800 lone", "a\nb\r\u2028c", "\x00"])
def test_any_text_survives_the_protocol(text: str) -> None:
    line = encode({"is": "pieces", "pieces": [["t", text]]})
    assert line.count(b"\n") == 1 and decode(line)["pieces"] == [["t", text]]


KEY = "sk-the-secret-key-0123456789"


def test_an_echoed_key_never_reaches_the_answer() -> None:
    secrets = SecretFilter(KEY)
    cut = KEY[:12], KEY[12:]
    deltas = [
        Delta(reasoning=f"they sent {cut[0]}"),
        Delta(reasoning=f"{cut[1]}, hm"),
        Delta(text=f"Your key: {cut[0]}"),
        Delta(text=cut[1]),
        Delta(tool_calls=(ToolCallDelta(0, "a", "execute", f'{{"code": "{cut[0]}'),)),
        Delta(tool_calls=(ToolCallDelta(0, None, None, f'{cut[1]}"}}'),)),
        Delta(finish_reason="stop"),
    ]
    shown = [*secrets.feed(deltas), *secrets.flush()]
    whole = "".join(d.text + d.reasoning + "".join(c.arguments for c in d.tool_calls) for d in shown)
    assert KEY not in whole and KEY[3:] not in whole and whole.count("[key removed]") == 3
    assert shown[-1] == Delta(finish_reason="stop")


def test_what_only_looked_like_a_key_comes_in_order() -> None:
    secrets = SecretFilter(KEY)
    shown = secrets.feed([Delta(reasoning="about sk-the"), Delta(text="text sk-the"), Delta(finish_reason="stop")])
    joined = [(d.reasoning, d.text, d.finish_reason) for d in shown]
    assert joined == [
        ("about ", "", None),
        ("sk-the", "", None),
        ("", "text ", None),
        ("", "sk-the", None),
        ("", "", "stop"),
    ]
