"""Event streams as endpoints really send them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oi_tui.engine.llm.sse import EventReader, Unreadable


def read(*parts: bytes) -> tuple[list[Any], bool]:
    reader = EventReader()
    out: list[Any] = []
    for part in parts:
        out += reader.feed(part)
    out += reader.finish()
    return out, reader.is_done


STREAM = (
    b': hello\n\ndata: {"a": "\xc3\xa9"}\n\nevent: x\r\ndata:{"b":\r\ndata: [1]}\r\n\r\n'
    b'data: {"c": 3}\ndata: [DONE]\n\n'
)


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_events_are_the_same_wherever_the_bytes_are_cut(cut: int) -> None:
    assert read(STREAM[:cut], STREAM[cut:]) == ([{"a": "é"}, {"b": [1]}, {"c": 3}], True)


def test_byte_by_byte_and_with_other_newlines() -> None:
    assert read(*(STREAM[i : i + 1] for i in range(len(STREAM))))[0] == [{"a": "é"}, {"b": [1]}, {"c": 3}]
    crlf = STREAM.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    assert read(crlf)[0] == [{"a": "é"}, {"b": [1]}, {"c": 3}]


def test_the_last_event_counts_without_its_newline() -> None:
    assert read(b'data: {"a": 1}') == ([{"a": 1}], False)


def test_one_json_object_instead_of_a_stream() -> None:
    body = json.dumps({"choices": [{"message": {"content": "whole"}}]}, indent=2).encode()
    assert read(b"\xef\xbb\xbf\n ", body[:9], body[9:])[0] == [json.loads(body)]


def test_nothing_at_all_is_nothing() -> None:
    assert read(b"", b"\n\n", b": ping\n\n") == ([], False)


@pytest.mark.parametrize("body", [b'data: {"a": \n\n', b"data: {{{\n\ndata: {}\n\n", b'data: {"a": 1'])
def test_broken_json_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable) as caught:
        read(body)
    assert caught.value.body is None


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"Internal problem, sorry", b'{"cut": '])
def test_what_is_no_stream_is_handed_over_for_the_error_line(body: bytes) -> None:
    with pytest.raises(Unreadable) as caught:
        read(body)
    assert caught.value.body == body.decode()


def test_events_before_a_broken_one_are_kept() -> None:
    reader = EventReader()
    seen: list[Any] = []
    with pytest.raises(Unreadable):
        for value in reader.feed(b'data: {"a": 1}\n\ndata: {"b": \n\n'):
            seen.append(value)
    assert seen == [{"a": 1}]


def test_a_huge_event_in_small_parts_is_linear() -> None:
    text = "x" * (5 * 1024 * 1024)
    body = b"data: " + json.dumps({"a": text}).encode() + b"\n\n"
    parts = [body[i : i + 16384] for i in range(0, len(body), 16384)]
    assert read(*parts)[0] == [{"a": text}]
