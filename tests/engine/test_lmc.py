"""LMC: what goes over the wire, and how pieces become messages."""

from __future__ import annotations

import dataclasses

import pytest

from oi_tui.engine.lmc import Chunk, Framer, Message, accumulate


def framed(*chunks: Chunk) -> list[dict]:
    framer = Framer()
    out = [piece for chunk in chunks for piece in framer.feed(chunk)]
    return [chunk.to_dict() for chunk in out + framer.close()]


def code(text: str, id: str = "c1") -> Chunk:
    return Chunk("assistant", "code", "python", text, id=id)


def output(text: str) -> Chunk:
    return Chunk("computer", "console", "output", text, id="c1")


def active_line(line: int | None) -> Chunk:
    return Chunk("computer", "console", "active_line", line, id="c1")


def image(data: str) -> Chunk:
    return Chunk("computer", "image", "base64.png", data, id="c1")


def test_a_turn_is_bracketed_as_documented() -> None:
    confirmation = {"type": "code", "format": "python", "content": "34 / 24"}
    assert framed(
        code("34 /"),
        code(" 24"),
        Chunk("computer", "confirmation", "execution", confirmation, id="c1"),
        active_line(1),
        output("1.4166666666666667\n"),
        active_line(None),
        Chunk("assistant", "message", None, "About 1.42."),
    ) == [
        {"role": "assistant", "type": "code", "format": "python", "start": True},
        {"role": "assistant", "type": "code", "format": "python", "content": "34 /"},
        {"role": "assistant", "type": "code", "format": "python", "content": " 24"},
        {"role": "assistant", "type": "code", "format": "python", "end": True},
        {"role": "computer", "type": "confirmation", "format": "execution", "content": confirmation},
        {"role": "computer", "type": "console", "start": True},
        {"role": "computer", "type": "console", "format": "active_line", "content": 1},
        {"role": "computer", "type": "console", "format": "output", "content": "1.4166666666666667\n"},
        {"role": "computer", "type": "console", "format": "active_line", "content": None},
        {"role": "computer", "type": "console", "end": True},
        {"role": "assistant", "type": "message", "start": True},
        {"role": "assistant", "type": "message", "content": "About 1.42."},
        {"role": "assistant", "type": "message", "end": True},
    ]


def test_two_figures_stay_two() -> None:
    wire = framed(image("AAAA"), image("BBBB"))
    assert [m["content"] for m in accumulate(wire)] == ["AAAA", "BBBB"]
    assert sum(1 for chunk in wire if chunk.get("start")) == 2


def test_two_code_blocks_of_one_language_stay_two() -> None:
    assert [m["content"] for m in accumulate(framed(code("a", "1"), code("b", "1"), code("c", "2")))] == ["ab", "c"]


def test_a_recipient_makes_a_block_of_its_own() -> None:
    for_user = Chunk("computer", "console", "output", "secret", recipient="user", id="c1")
    messages = accumulate(framed(output("all"), for_user, output("all again")))
    assert [m.get("recipient") for m in messages] == [None, "user", None]


def test_a_notice_interrupts_no_block() -> None:
    wire = framed(code("a"), Chunk("server", "notice", "retry", "trying again"), code("b"))
    assert sum(1 for chunk in wire if chunk.get("start")) == 1


def test_empty_text_makes_no_message() -> None:
    assert framed(output(""), Chunk("assistant", "message", None, "")) == []


def test_console_text_is_joined_and_active_lines_are_left_out() -> None:
    messages = accumulate(framed(active_line(1), output("a\n"), active_line(2), output("b\n"), active_line(None)))
    assert messages == [{"role": "computer", "type": "console", "format": "output", "content": "a\nb\n"}]


def test_a_stream_that_was_cut_loses_nothing() -> None:
    assert accumulate(framed(code("prin"), code("t(1)"))[:-1])[0]["content"] == "print(1)"


def test_what_a_consumer_does_to_the_wire_form_does_not_reach_the_engine() -> None:
    chunk = Chunk("computer", "confirmation", "execution", {"type": "code", "format": "python", "content": "1"})
    wire = chunk.to_dict()
    wire["content"]["content"] = "rm -rf /"
    assert chunk.to_dict()["content"]["content"] == "1"
    with pytest.raises(dataclasses.FrozenInstanceError):
        chunk.content = "other"  # type: ignore[misc]


def test_a_message_replays_as_its_chunks() -> None:
    message = Message("computer", "console", "hello\n", "output", meta={"code_id": "c1"})
    chunks = message.to_chunks()
    assert accumulate(chunks) == [message.to_dict()]
    assert {chunk.id for chunk in chunks} == {"c1"}


@pytest.mark.parametrize("wire", [{}, {"role": "root", "type": "message"}, {"role": "user", "type": 3}])
def test_what_is_no_lmc_is_refused(wire: dict) -> None:
    with pytest.raises(ValueError, match="not an LMC"):
        Message.from_dict(wire)
    with pytest.raises(ValueError, match="not an LMC"):
        Chunk.from_dict(wire)
