"""JSON that arrives in pieces: strings are passed on at once, and nothing depends on where the pieces were cut."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oi_tui.engine.llm.partial_json import MAX_DEPTH, JsonStream, SurrogateJoiner, join_surrogates
from tests.engine.llm.reading import in_steps, two_parts


def strings(parts: list[str]) -> tuple[dict[tuple[str | int, ...], str], JsonStream]:
    """All string values by their paths, and the stream as it ended."""
    stream = JsonStream()
    found: dict[tuple[str | int, ...], str] = {}
    for part in parts:
        for event in stream.feed(part)[0]:
            if event.kind in ("text", "string"):
                found[event.path] = found.get(event.path, "") + event.text
    return found, stream


def value(written: str) -> str:
    """How a string value is read that is written like this."""
    found, stream = strings([f'{{"code": "{written}"}}'])
    assert stream.done
    return found[("code",)]


def test_code_is_passed_on_while_it_arrives() -> None:
    stream = JsonStream()
    seen = []
    for part in ['{"language": "py', 'thon", "co', 'de": "pri', "nt(1)", '\\nx = 2"', "}"]:
        seen += [(event.kind, event.path, event.text) for event in stream.feed(part)[0]]
    assert seen == [
        ("open", (), "{"),
        ("text", ("language",), "py"),
        ("text", ("language",), "thon"),
        ("string", ("language",), ""),
        ("text", ("code",), "pri"),
        ("text", ("code",), "nt(1)"),
        ("text", ("code",), "\nx = 2"),
        ("string", ("code",), ""),
        ("close", (), ""),
    ]
    assert stream.done


DOCUMENTS = [
    {"code": 'print("a\\b")\n\t/\u00e9\u4e2d\U0001f600', "language": "python"},
    {"nested": {"list": ["a", {"b": "c"}, [], {}, [["d"]]]}, "number": -1.5e3, "yes": True, "none": None, "last": "z"},
    ["one", ["two"], {"three": "three"}],
    {"": {"": "empty keys"}, "e": ""},
]


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_every_split_of_a_document_gives_the_same(document: Any, ascii_only: bool) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only)
    expected, stream = strings([text])
    assert stream.done and expected
    for parts in [*two_parts(text), *(in_steps(text, size) for size in (1, 2, 3))]:
        found, stream = strings(parts)
        assert (found, stream.done) == (expected, True)


_texts = st.text(alphabet=st.characters(codec="utf-8") | st.sampled_from('"\\/\n\r\tu{}[]:, \U0001f600'))


@given(
    document=st.dictionaries(_texts, st.recursive(_texts | st.none() | st.integers() | st.booleans(), st.lists)),
    cuts=st.lists(st.integers(0, 400)),
    ascii_only=st.booleans(),
)
def test_any_json_is_read_as_json(document: Any, cuts: list[int], ascii_only: bool) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only)
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    found, stream = strings([text[a:b] for a, b in pairwise(edges)])
    assert stream.done and not stream.broken
    assert found == dict(_string_leaves(document))


def _string_leaves(value: Any, path: tuple[str | int, ...] = ()) -> Any:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _string_leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _string_leaves(item, (*path, index))


@given(st.text(alphabet='{}[]",:\\u0aD8"\n x', max_size=60), st.integers(1, 5))
def test_what_is_not_json_is_said_to_be_broken_at_the_same_place_however_it_is_cut(text: str, size: int) -> None:
    def ends(parts: list[str]) -> tuple[bool, bool, int]:
        stream = JsonStream()
        read = 0
        for part in parts:
            read += stream.feed(part)[1]
        return stream.done, stream.broken, read

    assert ends(in_steps(text, size)) == ends([text])


def test_surrogate_pairs_are_joined_wherever_they_are_cut() -> None:
    text = '{"code": "\\ud83d\\ude00\\u4e2d\\uD83D\\uDE00"}'
    for parts in two_parts(text):
        assert strings(parts)[0] == {("code",): "\U0001f600\u4e2d\U0001f600"}


def test_a_lone_half_becomes_a_replacement_character() -> None:
    assert value("a\\ud83db") == "a\ufffdb"
    assert value("\\ude00") == "\ufffd"
    assert value("end\\ud83d") == "end\ufffd"
    joiner = SurrogateJoiner()
    assert joiner.feed("x\ud83d") + joiner.feed("\ude00y\ud83d") + joiner.finish() == "x\U0001f600y\ufffd"
    assert join_surrogates("\ud83d\ude00\ud83d").encode() == "\U0001f600\ufffd".encode()


def test_raw_line_ends_in_strings_are_line_ends() -> None:
    assert value("if x:\n\tpass\r\n") == "if x:\n\tpass\r\n"


def test_escapes_that_do_not_exist_stay_as_they_are() -> None:
    assert value(r"re.match('\d+\.\s', x)") == r"re.match('\d+\.\s', x)"
    assert value(r"\u12x") == r"\u12x"
    assert value("it\\'s") == "it's"


def test_single_quotes_bare_keys_and_trailing_commas_are_read() -> None:
    found, stream = strings(["{language: 'python', 'code': 'say(\"hi\")', }"])
    assert stream.done and found == {("language",): "python", ("code",): 'say("hi")'}
    found, stream = strings(['["a", "b", ]'])
    assert stream.done and found == {(0,): "a", (1,): "b"}


@pytest.mark.parametrize(
    "text", ['{"code": "print("hi")"}', '{"a" "b"}', "{]", '{"a": }', "}", '{"a": "b"]', '{"a": @']
)
def test_broken_json_is_noticed(text: str) -> None:
    assert strings([text])[1].broken


def test_reading_stops_behind_the_document_and_before_what_breaks_it() -> None:
    assert JsonStream().feed('{"a": 1} and more')[1] == len('{"a": 1}')
    assert JsonStream().feed('ab{"a" "b"}', 2)[1] == len('ab{"a" ')


def test_nesting_is_bounded() -> None:
    assert strings(["[" * 100_000])[1].broken
    assert strings(["[" * MAX_DEPTH + "]" * MAX_DEPTH])[1].done


def test_work_grows_with_the_length_and_not_faster() -> None:
    """Counts executed lines rather than seconds: twice the text, twice the work, a few characters at a time."""
    short, long = (_lines_executed('{"code": "' + "a\\n\\u00e9\n" * count + '"}') for count in (500, 1000))
    assert long < 2.1 * short


def _lines_executed(text: str) -> int:
    executed = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal executed
        executed += event == "line"
        return trace

    stream = JsonStream()
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for part in in_steps(text, 3):
            stream.feed(part)
    finally:
        sys.settrace(before)
    assert stream.done
    return executed
