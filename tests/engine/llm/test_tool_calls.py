"""Tool mode: whatever a provider or a model does to a call, its code comes out as it arrives, or the model is told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oi_tui.engine.llm.base import ToolCallDelta
from oi_tui.engine.llm.pieces import CodeEnd, CodeStart, CodeText, Piece
from oi_tui.engine.llm.tool_calls import ToolCallParser, execute_tool
from tests.engine.llm.reading import code, every_split, in_steps, resolve, summary

CODE = 'for i in range(3):\n    print("é", i, "\\n")  # \U0001f600\n'


def arguments(language: str = "python", text: str = CODE) -> str:
    return json.dumps({"language": language, "code": text})


def read(deltas: Iterable[ToolCallDelta], finish_reason: str | None = "tool_calls") -> list[Piece]:
    parser = ToolCallParser(resolve)
    pieces = [piece for delta in deltas for piece in parser.feed(delta)]
    return pieces + parser.finish(finish_reason)


def read_arguments(
    parts: Sequence[str], name: str = "execute", finish_reason: str | None = "tool_calls"
) -> list[Piece]:
    """As OpenAI streams a call: the name first, then the arguments."""
    return read(
        [ToolCallDelta(0, "call_1", name), *(ToolCallDelta(0, arguments=part) for part in parts)], finish_reason
    )


def problem(pieces: list[Piece]) -> str:
    ends = [piece for piece in pieces if isinstance(piece, CodeEnd)]
    assert len(ends) == 1 and not ends[0].may_run
    return ends[0].problem or ""


def test_the_tool_is_described_with_the_languages() -> None:
    function = execute_tool(["python", "shell"])["function"]
    assert function["name"] == "execute"
    assert function["parameters"]["required"] == ["language", "code"]
    assert function["parameters"]["properties"]["language"]["enum"] == ["python", "shell"]


def test_code_is_seen_as_soon_as_its_language_is_known() -> None:
    parser = ToolCallParser(resolve)
    assert parser.feed(ToolCallDelta(0, "call_1", "execute")) == []
    assert parser.feed(ToolCallDelta(0, arguments='{"language": "py')) == []
    assert parser.feed(ToolCallDelta(0, arguments='", "code": "pri')) == [
        CodeStart("call-0", "python", "call_1"),
        CodeText("call-0", "pri"),
    ]
    assert parser.feed(ToolCallDelta(0, arguments="nt(1)\\")) == [CodeText("call-0", "nt(1)")]
    assert parser.feed(ToolCallDelta(0, arguments='n"}')) == [CodeText("call-0", "\n"), CodeEnd("call-0")]
    assert parser.finish("tool_calls") == []


def test_code_before_its_language_waits_for_it() -> None:
    parser = ToolCallParser(resolve)
    parser.feed(ToolCallDelta(0, "call_1", "execute"))
    assert parser.feed(ToolCallDelta(0, arguments='{"code": "ls", "language": "ba')) == []
    assert parser.feed(ToolCallDelta(0, arguments='sh"')) == [
        CodeStart("call-0", "shell", "call_1"),
        CodeText("call-0", "ls"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        arguments(),
        json.dumps({"code": CODE, "language": "Python"}, ensure_ascii=False),
        json.dumps(arguments()),
        json.dumps({"arguments": {"language": "python", "code": CODE}}),
        json.dumps({"name": "execute", "arguments": arguments()}),
        json.dumps({"name": "functions.execute", "parameters": {"language": "py", "code": CODE}}),
        json.dumps({"tool_uses": [{"recipient_name": "functions.execute", "parameters": json.loads(arguments())}]}),
        json.dumps([{"type": "function", "id": "x", "function": {"name": "execute", "arguments": arguments()}}]),
        json.dumps({"lang": "python", "script": CODE}),
    ],
)
def test_every_way_to_write_the_arguments_is_read_at_every_split(text: str) -> None:
    assert every_split(text, read_arguments) == [code("python", CODE)]


@given(code_text=st.text(min_size=1), cuts=st.lists(st.integers(1, 30)), language_first=st.booleans())
def test_any_code_arrives_as_it_was_sent(code_text: str, cuts: list[int], language_first: bool) -> None:
    values = {"language": "python", "code": code_text}
    text = json.dumps(values if language_first else dict(reversed(values.items())))
    parts, at = [], 0
    for cut in [*cuts, len(text)]:
        parts.append(text[at : at + cut])
        at += cut
    assert summary(read_arguments(parts)) == [code("python", code_text)]


@pytest.mark.parametrize("name", ["python", "py", "functions.python", "functions"])
def test_a_tool_named_like_a_language_gets_its_code_raw(name: str) -> None:
    assert every_split("x = {'a': 1}\nprint(x)", lambda parts: read_arguments(parts, name)) == [
        code("python", "x = {'a': 1}\nprint(x)")
    ]
    dictionary = '{"a": 1, "b": 2}["a"]'
    assert every_split(dictionary, lambda parts: read_arguments(parts, name)) == [code("python", dictionary)]
    docstring = '"""Says hello."""\nprint("hello")'
    assert every_split(docstring, lambda parts: read_arguments(parts, name)) == [code("python", docstring)]


@pytest.mark.parametrize(
    ("name", "text"), [("bash", '{"command": "ls -la"}'), ("shell", '"ls -la"'), ("sh", '{"code": "ls -la"}')]
)
def test_a_tool_named_like_a_language_may_get_json(name: str, text: str) -> None:
    assert every_split(text, lambda parts: read_arguments(parts, name)) == [code("shell", "ls -la")]


def test_raw_code_is_seen_at_once() -> None:
    parser = ToolCallParser(resolve)
    assert parser.feed(ToolCallDelta(0, "c", "python", "pri")) == [
        CodeStart("call-0", "python", "c"),
        CodeText("call-0", "pri"),
    ]


@pytest.mark.parametrize("name", ["run_python", "execute_python", "python-exec"])
def test_a_made_up_name_with_code_is_understood(name: str) -> None:
    assert every_split('{"code": "print(1)"}', lambda parts: read_arguments(parts, name)) == [
        code("python", "print(1)")
    ]


def test_a_call_without_a_language_is_python() -> None:
    assert every_split('{"code": "print(1)"}', read_arguments) == [code("python", "print(1)")]


def test_an_unknown_language_is_kept_for_the_loop_to_refuse() -> None:
    assert summary(read_arguments([arguments("COBOL", "DISPLAY 1")])) == [code("cobol", "DISPLAY 1")]


# Calls of one answer, and how they are told apart.


def three_calls() -> list[tuple[str, str]]:
    return [("python", "a = 1"), ("shell", "ls"), ("python", "print(a)")]


def expected_three() -> list[tuple[object, ...]]:
    return [code(language, text) for language, text in three_calls()]


def test_parallel_calls_by_index_even_interleaved() -> None:
    heads = [ToolCallDelta(i, f"call_{i}", "execute") for i in range(3)]
    parts = [in_steps(arguments(*call), 3) for call in three_calls()]
    longest = max(map(len, parts))
    bodies = [ToolCallDelta(i, arguments=p[n]) for n in range(longest) for i, p in enumerate(parts) if n < len(p)]
    pieces = read([*heads, *bodies])
    assert sorted(map(str, summary(pieces))) == sorted(map(str, expected_three()))
    assert {p.call_id for p in pieces if isinstance(p, CodeStart)} == {"call_0", "call_1", "call_2"}


def whole_calls(indexes: list[int | None], ids: list[str | None]) -> list[ToolCallDelta]:
    calls = [(language, text) for language, text in three_calls()]
    return [
        ToolCallDelta(index, call_id, "execute", arguments(*call))
        for index, call_id, call in zip(indexes, ids, calls, strict=True)
    ]


@pytest.mark.parametrize("indexes", [[0, 1, 2], [0, 0, 0], [None, None, None]])
@pytest.mark.parametrize("ids", [["a", "b", "c"], ["a", "a", "a"], [None, None, None], ["", "", ""]])
def test_whole_calls_in_one_delta_each(indexes: list[int | None], ids: list[str | None]) -> None:
    pieces = read(whole_calls(indexes, ids))
    assert summary(pieces) == expected_three()
    call_ids = [p.call_id for p in pieces if isinstance(p, CodeStart)]
    assert len(set(call_ids)) == 3 and all(call_ids)


def test_whole_calls_in_one_batch() -> None:
    parser = ToolCallParser(resolve)
    pieces = parser.feed(whole_calls([0, 1, 2], ["a", "b", "c"])) + parser.finish("tool_calls")
    assert summary(pieces) == expected_three()


@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize("call_id", ["a", None])
def test_a_name_or_an_id_that_is_repeated_with_every_fragment_is_one_call(
    index: int | None, call_id: str | None
) -> None:
    deltas = [ToolCallDelta(index, call_id, "execute", part) for part in in_steps(arguments(), 4)]
    assert summary(read(deltas)) == [code("python", CODE)]


def test_a_new_id_is_a_new_call_even_at_the_same_index() -> None:
    deltas = [
        ToolCallDelta(0, call_id, "execute" if n == 0 else None, part)
        for call_id, call in zip("abc", three_calls(), strict=True)
        for n, part in enumerate(in_steps(arguments(*call), 5))
    ]
    assert summary(read(deltas)) == expected_three()


@pytest.mark.parametrize("index", [0, None])
def test_ids_made_up_for_every_fragment_are_one_call(index: int | None) -> None:
    parts = ["", *in_steps(arguments(), 4)]
    deltas = [ToolCallDelta(index, f"id{n}", None if n else "execute", part) for n, part in enumerate(parts)]
    assert summary(read(deltas)) == [code("python", CODE)]


def test_streamed_calls_with_neither_index_nor_id_begin_with_their_name() -> None:
    deltas = [
        ToolCallDelta(name="execute" if n == 0 else None, arguments=part)
        for call in three_calls()
        for n, part in enumerate(["", *in_steps(arguments(*call), 5)])
    ]
    assert summary(read(deltas)) == expected_three()


def test_an_id_that_comes_late_belongs_to_the_call() -> None:
    pieces = read([ToolCallDelta(0, None, "execute"), ToolCallDelta(0, "late", None, arguments())])
    assert summary(pieces) == [code("python", CODE)]


def test_a_name_in_fragments() -> None:
    assert summary(
        read([ToolCallDelta(0, "a", "exe"), ToolCallDelta(0, name="cute"), ToolCallDelta(0, arguments=arguments())])
    )[0] == code("python", CODE)


def test_a_wrapper_around_several_calls_gives_several_blocks() -> None:
    uses = [
        {"recipient_name": "functions.execute", "parameters": {"language": language, "code": text}}
        for language, text in three_calls()
    ]
    text = json.dumps({"tool_uses": uses})
    pieces = read_arguments([text], "multi_tool_use.parallel")
    assert summary(pieces) == expected_three()
    assert len({p.call_id for p in pieces if isinstance(p, CodeStart)}) == 3
    every_split(text, lambda parts: read_arguments(parts, "multi_tool_use.parallel"))


@pytest.mark.parametrize("name", ["execute", "python"])
def test_two_objects_in_one_call_are_two_calls(name: str) -> None:
    text = arguments("python", "a = 1") + " " + arguments("shell", "ls")
    assert every_split(text, lambda parts: read_arguments(parts, name)) == [
        code("python", "a = 1"),
        code("shell", "ls"),
    ]


# What cannot be run is never offered as whole, and the model is told why.


def test_arguments_that_are_cut_are_never_whole_wherever_they_end() -> None:
    text = arguments()
    for end in range(len(text)):
        for reason in ("length", None, "content_filter"):
            pieces = read_arguments([text[:end]] if end else [], finish_reason=reason)
            assert problem(pieces)


def test_whole_arguments_are_whole_even_if_the_answer_was_cut_behind_them() -> None:
    assert summary(read_arguments([arguments()], finish_reason="length")) == [code("python", CODE)]
    assert summary(read_arguments([arguments()], finish_reason=None)) == [code("python", CODE)]


def test_a_missing_last_brace_is_forgiven_if_the_model_ended_the_answer() -> None:
    assert summary(read_arguments([arguments()[:-1]], finish_reason="stop")) == [code("python", CODE)]
    assert summary(read_arguments([arguments()[:-2]], finish_reason="stop"))[0][3] is False


def test_raw_code_is_whole_only_if_the_answer_was_ended() -> None:
    assert summary(read_arguments(["print(1"], "python", "length")) == [("code", "python", "print(1", False, True)]
    assert summary(read_arguments(["print(1)"], "python", "stop")) == [code("python", "print(1)")]


def test_broken_arguments_say_so() -> None:
    pieces = read_arguments(['{"language": "python", "code": "print("hi")"}'])
    assert "not valid JSON" in problem(pieces)
    pieces = read_arguments(["just do it"])
    assert "not valid JSON" in problem(pieces)
    assert summary(pieces)[0][:3] == ("code", "python", "just do it")


@pytest.mark.parametrize("text", ["", "{}", '{"language": "python"}', "[]"])
def test_a_call_without_code_says_so(text: str) -> None:
    assert "no code" in problem(read_arguments([text] if text else []))


@pytest.mark.parametrize(
    "text", ['{"code": ["a", "b"]}', '{"language": "python", "code": null}', '{"code": {"a": "b"}}']
)
def test_code_that_is_no_text_is_no_code(text: str) -> None:
    assert "no code" in problem(read_arguments([text]))


def test_an_unknown_tool_is_answered_by_name() -> None:
    pieces = read_arguments(['{"query": "weather"}'], "web_search")
    assert '"web_search"' in problem(pieces)
    assert summary(pieces) == [("code", "web_search", '{"query": "weather"}', True, True)]


def test_an_unknown_tool_with_nothing_else() -> None:
    assert problem(read([ToolCallDelta(0, "a", "browse")]))


def test_empty_code_is_a_whole_block_for_the_loop_to_answer() -> None:
    assert summary(read_arguments([arguments("python", "")])) == [code("python", "")]


def test_no_call_no_pieces() -> None:
    assert read([]) == []


@given(
    st.lists(
        st.builds(
            ToolCallDelta,
            st.none() | st.integers(0, 2),
            st.sampled_from([None, "", "a", "b"]),
            st.sampled_from([None, "", "execute", "python", "search", "functions"]),
            st.text(alphabet='{}[]":,\\ncodelaguprit 1\ud83d', max_size=12)
            | st.sampled_from([arguments(), '{"code": "x', '"}', '{"language": "python", ']),
        ),
        max_size=8,
    ),
    st.sampled_from(["stop", "length", None]),
)
def test_nonsense_gives_well_formed_pieces_that_can_be_stored(deltas: list[ToolCallDelta], reason: str | None) -> None:
    for item in summary(read(deltas, reason)):
        str(item[2]).encode("utf-8")
