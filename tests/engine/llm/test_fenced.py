"""Text mode: prose and code out of Markdown, as it streams, wherever its pieces were cut."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oi_tui.engine.llm.fenced import FencedParser, contains_code_fence
from oi_tui.engine.llm.pieces import CodeEnd, CodeStart, CodeText, Piece, Reasoning, Text
from tests.engine.llm.reading import code, every_split, in_steps, resolve, summary


def read(parts: Sequence[str], *, complete: bool = True, run_fences: bool = True) -> list[Piece]:
    parser = FencedParser(resolve, run_fences=run_fences)
    return [piece for part in parts for piece in parser.feed(part)] + parser.finish(complete)


def answer(text: str) -> list[tuple[object, ...]]:
    """What comes out of an answer, the same for every way to cut it."""
    return every_split(text, read)


def stays_prose(text: str) -> bool:
    return answer(text) == [("text", text.strip("\n").rstrip())]


# Code and prose.


def test_an_answer_with_prose_inline_code_and_two_blocks() -> None:
    assert answer(
        "First I look with `ls`:\n\n```bash\nls -l | head\n```\n\nThen I add up ``x``:\n"
        "~~~python\nimport python_thing\n\nprint('a')\n~~~\nThat `is` all.\n"
    ) == [
        ("text", "First I look with `ls`:"),
        code("shell", "ls -l | head"),
        ("text", "Then I add up ``x``:"),
        code("python", "import python_thing\n\nprint('a')"),
        ("text", "That `is` all."),
    ]


def test_a_whole_answer_in_one_delta_gives_the_code() -> None:
    assert read(["```python\nprint(1)\n```"]) == [
        CodeStart("block-0", "python"),
        CodeText("block-0", "print(1)"),
        CodeEnd("block-0"),
    ]


@pytest.mark.parametrize(
    ("info", "language"),
    [
        ("python", "python"),
        ("Python3", "python"),
        (" py ", "python"),
        ("python3.12", "python"),
        ('python title="x.py"', "python"),
        ("python:main.py", "python"),
        ("{.python .numberLines}", "python"),
        ("{python}", "python"),
        ("tool_code", "python"),
        ("sh", "shell"),
        ("c++", "c++"),
        ("R", "r"),
        ("JavaScript", "javascript"),
    ],
)
def test_languages_are_recognised_in_info_strings(info: str, language: str) -> None:
    assert answer(f"```{info}\nx\n```") == [code(language, "x")]


@pytest.mark.parametrize(
    "tag", ["text", "markdown", "output", "console", "json", "yaml", "diff", "cobol", "pycon", "c"]
)
def test_fences_that_are_no_language_stay_as_they_are(tag: str) -> None:
    assert stays_prose(f"Look:\n```{tag}\nprint(1)\n```\nDone.")


@pytest.mark.parametrize(
    "text",
    [
        "a `b` c ``d`` e",
        "`",
        "a\n``\nb",
        "    ```python\n    x\n    ```",
        "a [link](http://x) [1] {x} {'a': 1} <b>x</b> [ ] <",
        "1. one\n2. two\n- three\n* four\n- - -\n12345",
        "# Title\n\n| a | b |\n|---|---|\n\n> ```\n> x\n> ```",
        "~~struck~~ and ~~~",
        "text ```python in a line``` more",
        "Math $a_{i}$ and { and [ and \\{",
        "a\n\n\n\nb",
        "~",
        "<tool_call> is a tag, [TOOL_CALLS] too",
    ],
)
def test_prose_is_not_touched(text: str) -> None:
    assert stays_prose(text)


def test_a_longer_fence_may_contain_a_shorter_one() -> None:
    assert answer("````python\nx = '''\n```\n'''\n````\n") == [code("python", "x = '''\n```\n'''")]


def test_a_fence_is_closed_by_its_own_character_only() -> None:
    assert answer("~~~sh\n```\n~~~") == [code("shell", "```")]
    assert answer("```sh\n~~~\n```") == [code("shell", "~~~")]


def test_a_tagged_fence_inside_a_fence_is_part_of_it() -> None:
    readme = 'text = """\n# Title\n```sh\nls\n```\n\n```python\nx()\n```\n"""\nopen("README.md", "w").write(text)'
    assert answer(f"I write it:\n```python\n{readme}\n```\nDone.") == [
        ("text", "I write it:"),
        code("python", readme),
        ("text", "Done."),
    ]
    assert stays_prose("It reads:\n```markdown\n# Title\n```sh\nrm -r x\n```\nend\n```\nOk?")


def test_backticks_with_words_behind_them_do_not_close() -> None:
    assert answer("```sh\necho a\n``` not closed\n```\n") == [code("shell", "echo a\n``` not closed")]


def test_an_indented_fence_takes_its_indentation_from_the_code() -> None:
    assert answer("  ```python\n  if x:\n      y()\n z()\n\n  ```\nb") == [
        code("python", "if x:\n    y()\nz()\n"),
        ("text", "b"),
    ]


def test_fences_in_list_items() -> None:
    assert answer(
        "1. Look:\n\n   ```sh\n   ls\n   ```\n\n2. Then:\n     ```python\n     if x:\n       y\n     ```\n"
    ) == [
        ("text", "1. Look:"),
        code("shell", "ls"),
        ("text", "2. Then:"),
        code("python", "if x:\n  y"),
    ]
    assert answer("- ```sh\n  ls\n  ```\n- b") == [("text", "-"), code("shell", "ls"), ("text", "- b")]
    assert answer("10. a\n    - b\n\n      ```sh\n      ls\n      ```") == [
        ("text", "10. a\n    - b"),
        code("shell", "ls"),
    ]


def test_after_the_list_four_columns_are_no_fence_again() -> None:
    assert stays_prose("- a\n\nb\n\n    ```sh\n    ls\n    ```")


def test_blank_lines_in_code_are_kept_and_the_last_line_end_is_the_fences() -> None:
    assert answer("```python\n\na\n\n\nb\n\n```") == [code("python", "\na\n\n\nb\n")]
    assert answer("```python\n```\nx") == [code("python", ""), ("text", "x")]


def test_windows_line_ends() -> None:
    assert answer("a\r\n```python\r\nx()\r\ny()\r\n```\r\nb") == [
        ("text", "a"),
        code("python", "x()\ny()"),
        ("text", "b"),
    ]


def test_a_fence_glued_to_prose_opens_if_its_language_can_run() -> None:
    assert answer("Here it is:```python\nprint(1)\n```") == [("text", "Here it is:"), code("python", "print(1)")]
    assert answer("Run ```sh\nls\n``` now") == [("text", "Run"), ("code", "shell", "ls\n``` now", True, False)]
    assert stays_prose("Here it is:```json\n{}\n```")


def test_untagged_fences_are_python_only_if_they_do_something_in_python() -> None:
    assert answer("Run:\n```\nimport os\nprint(os.name)\n```\nok") == [
        ("text", "Run:"),
        code("python", "import os\nprint(os.name)"),
        ("text", "ok"),
    ]
    assert answer("```\n!ls\n%time f()\n```") == [code("python", "!ls\n%time f()")]
    for output in ("42 files", "42", "a  b\n1  2", "x = 3", "/usr/bin/python", "", "pip install x", "done."):
        assert stays_prose(f"It said:\n```\n{output}\n```\nGood.")


def test_untagged_python_is_text_where_there_is_no_python() -> None:
    parser = FencedParser(lambda tag: "shell" if tag == "sh" else None)
    text = "```\nprint(1)\n```"
    assert parser.feed(text) + parser.finish() == [Text(text)]


# Streaming.


def test_prose_is_seen_at_once() -> None:
    parser = FencedParser(resolve)
    assert parser.feed("No") == [Text("No")]
    assert parser.feed("w, I run `l") == [Text("w, I run `l")]
    assert parser.feed("s` and") == [Text("s` and")]
    assert parser.feed(" more") == [Text(" more")]


def test_code_is_seen_at_once() -> None:
    parser = FencedParser(resolve)
    assert parser.feed("```py") == []
    assert parser.feed("thon\n") == [CodeStart("block-0", "python")]
    assert parser.feed("pri") == [CodeText("block-0", "pri")]
    assert parser.feed("nt(1)\n") == [CodeText("block-0", "nt(1)")]
    assert parser.feed("x") == [CodeText("block-0", "\nx")]
    assert parser.feed("\n``") == []
    assert parser.feed("`\n") == [CodeEnd("block-0")]


def test_only_what_may_become_a_fence_is_held() -> None:
    parser = FencedParser(resolve)
    held = ""
    for char in "Some *words*, a `span`, {braces}, [link](x), 1 < 2\n- item\n12. twelve\n\n    code\nend.":
        held = (held + char).removeprefix("".join(p.text for p in parser.feed(char) if isinstance(p, Text)))
        assert len(held.strip()) <= 8, held


def test_text_behind_a_call_can_be_read_with_the_same_parser() -> None:
    parser = FencedParser(resolve)
    assert summary(parser.feed("Let me see. `") + parser.finish()) == [("text", "Let me see. `")]
    assert summary(parser.feed("```sh\nls\n```") + parser.finish()) == [code("shell", "ls")]
    pieces = parser.feed("```sh\nls\n```") + parser.finish()
    assert pieces[0] == CodeStart("block-1", "shell")


# Answers that end in the middle.


def test_a_forgotten_closing_fence_is_forgiven_if_the_model_ended_the_answer() -> None:
    assert summary(read(["```python\nprint(1)\n"])) == [code("python", "print(1)")]
    assert summary(read(["```python\nprint(1)```"])) == [code("python", "print(1)")]
    assert summary(read(["```python\nprint(1)\n``"])) == [code("python", "print(1)\n``")]


def test_code_that_was_cut_is_not_whole_wherever_it_was_cut() -> None:
    text = "```python\nprint(1)\nprint(2)\n```\n"
    begin, end = text.index("print"), text.rindex("```") + 3
    for cut in range(begin, end):
        blocks = [item for item in summary(read([text[:cut]], complete=False)) if item[0] == "code"]
        assert blocks and blocks[0][3] is False and blocks[0][4] is True
    assert summary(read([text[:end]], complete=False)) == [code("python", "print(1)\nprint(2)")]


def test_a_whole_block_in_an_answer_that_was_cut_later_is_whole() -> None:
    assert summary(read(["```sh\nls\n```\nand th"], complete=False)) == [code("shell", "ls"), ("text", "and th")]


def test_untagged_code_that_was_cut_is_not_whole() -> None:
    assert summary(read(["```\nprint(1)\n"], complete=False)) == [("code", "python", "print(1)", False, True)]
    assert summary(read(["```\nprint(1\n"], complete=False)) == [("text", "```\nprint(1")]


# Tool calls printed as text.

CALL = {"name": "execute", "arguments": {"language": "python", "code": 'print("a")\nx = {"b": 1}'}}
CALLED = code("python", 'print("a")\nx = {"b": 1}')

PRINTED = [
    json.dumps(CALL),
    json.dumps(CALL, indent=2),
    json.dumps(CALL["arguments"]),
    json.dumps({"name": "execute", "arguments": json.dumps(CALL["arguments"])}),
    json.dumps({"name": "functions.execute", "parameters": CALL["arguments"]}),
    json.dumps({"arguments": CALL["arguments"], "name": "execute"}),
    json.dumps({"type": "function", "function": CALL}),
    json.dumps([CALL]),
    json.dumps({"tool_calls": [{"id": "1", "type": "function", "function": CALL}]}),
    json.dumps({"name": "python", "arguments": {"code": CALLED[2]}}),
    "{name: 'execute', arguments: {language: 'python', code: 'print(\"a\")\nx = {\"b\": 1}'}}",
    "<function=execute>\n<parameter=language>\npython\n</parameter>\n"
    '<parameter=code>\nprint("a")\nx = {"b": 1}\n</parameter>\n</function>',
]


@pytest.mark.parametrize("printed", PRINTED)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "I will run it.\n{}\n",
        "So: {} Done.",
        "```json\n{}\n```",
        "Now:\n```json\n{}\n```\nThen we see.",
        "```\n{}\n```",
        "<tool_call>\n{}\n</tool_call>",
        "Yes.\n<tool_call>{}</tool_call>\nDone.",
        "<function_call> {}",
        "[TOOL_CALLS]{}",
        "<|python_tag|>{}",
    ],
)
def test_a_printed_call_is_code_and_the_prose_around_it_stays(printed: str, around: str) -> None:
    if printed.startswith("<") and "```" in around:
        pytest.skip("not written like that")
    before, after = around.split("{}")
    for tag in ("```json", "```", "<tool_call>", "</tool_call>", "<function_call>", "[TOOL_CALLS]", "<|python_tag|>"):
        before, after = before.replace(tag, ""), after.replace(tag, "")
    prose = [("text", text.strip()) for text in (before, after)]
    expected = [item for item in (prose[0], CALLED, prose[1]) if item != ("text", "")]
    found = answer(around.format(printed) if "{}" not in printed else around.replace("{}", printed))
    assert [(*item[:1], str(item[1]).strip()) if item[0] == "text" else item for item in found] == expected


def test_a_printed_call_streams_its_code() -> None:
    parser = FencedParser(resolve)
    assert parser.feed('Ok.\n{"name": "execute", "argum') == [Text("Ok.")]
    assert parser.feed('ents": {"language": "python", "code": "pri') == [
        CodeStart("block-0", "python"),
        CodeText("block-0", "pri"),
    ]
    assert parser.feed("nt(1)") == [CodeText("block-0", "nt(1)")]
    assert parser.feed('"}}') == [CodeEnd("block-0")]


def test_two_printed_calls() -> None:
    one, two = json.dumps({"language": "sh", "code": "ls"}), json.dumps({"language": "py", "code": "x()"})
    expected = [code("shell", "ls"), code("python", "x()")]
    assert answer(f"{one}\n{two}") == expected
    assert answer(f"```json\n{one}\n{two}\n```") == expected
    assert answer(f"<tool_call>\n{one}\n</tool_call>\n<tool_call>\n{two}\n</tool_call>") == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Bob", "age": 3}',
        '{"name": "execute"}',
        '{"language": "en", "code": "123"}',
        '{"code": "print(1)"}',
        '{"language": "python", "version": "3.12"}',
        '{"name": "get_weather", "arguments": {"city": "Rome"}}',
        '{"a": [1, 2, {"b": null}]}',
        '[{"name": "x"}, {"name": "y"}]',
        '{"name": "execute", "arguments": ',
        '{"language": "python", "code"',
        "{}",
        "{",
        "[{",
        '{"code": "a \\" b',
    ],
)
@pytest.mark.parametrize("around", ["{}", "See {} there", "```json\n{}\n```\nok", "x\n<tool_call>\n{}\n</tool_call>"])
def test_json_that_is_no_call_stays_prose(text: str, around: str) -> None:
    assert stays_prose(around.replace("{}", text))


def test_fences_behind_a_brace_that_was_no_call_are_found() -> None:
    assert answer('{"code": "\n```sh\nls\n```\n') == [("text", '{"code": "'), code("shell", "ls")]


def test_json_in_inline_code_is_an_example() -> None:
    assert stays_prose(f"Write `{json.dumps(CALL)}` to run it.")


def test_a_printed_call_that_was_cut_is_not_whole() -> None:
    text = json.dumps(CALL)
    for cut in range(text.index("print") + 1, len(text) - 2):
        blocks = [item for item in summary(read([text[:cut]], complete=False)) if item[0] == "code"]
        assert blocks and blocks[0][3] is False


def test_a_call_in_tags_that_was_cut_keeps_all_that_came() -> None:
    text = "<function=execute><parameter=language>sh</parameter><parameter=code>ls -l /home/user</para"
    assert summary(read([text], complete=False)) == [("code", "shell", "ls -l /home/user</para", False, True)]


def test_a_printed_call_that_breaks_is_not_whole_and_the_rest_is_kept() -> None:
    found = answer('{"language": "python", "code": "print("hi")"}\nSo.')
    assert found[0] == ("code", "python", "print(", False, True)
    assert found[1] == ("text", 'hi")"}\nSo.')


# Thinking aloud.


def test_thinking_at_the_beginning_is_kept_apart_and_its_code_is_not_offered() -> None:
    assert answer("<think>\nMaybe:\n```python\nx()\n```\nor <b>?\n</think>\n\nI run `x`.\n```py\nx()\n```") == [
        ("thought", "Maybe:\n```python\nx()\n```\nor <b>?\n"),
        ("text", "I run `x`."),
        code("python", "x()"),
    ]
    assert answer("<thinking>hm</thinking>Yes") == [("thought", "hm"), ("text", "Yes")]
    assert answer("<think></think>\nYes") == [("text", "Yes")]
    assert answer("<think>never ends </thin") == [("thought", "never ends </thin")]
    assert stays_prose("I <think> so.")
    assert stays_prose("<thin> is thin")


def test_thinking_streams() -> None:
    parser = FencedParser(resolve)
    assert parser.feed("<think") == []
    assert parser.feed(">\nso") == [Reasoning("so")]
    assert parser.feed(" on") == [Reasoning(" on")]


# Tool mode.


def test_in_tool_mode_fences_are_prose_and_printed_calls_are_still_code() -> None:
    fences = "Like this:\n```python\nprint(1)\n```\nor\n```\nprint(2)\n```\n"
    assert summary(read([fences], run_fences=False)) == [("text", fences.rstrip())]
    text = f"Now:\n```json\n{json.dumps(CALL)}\n```\n"
    assert summary(read([text], run_fences=False)) == [("text", "Now:"), CALLED]


def test_contains_code_fence() -> None:
    assert contains_code_fence("Run this:\n```python\nprint(1)\n```", resolve)
    assert contains_code_fence("```sh\nls", resolve)
    assert not contains_code_fence("It said:\n```text\n1\n```\nand `ls`.", resolve)


# Anything at all.

_markdown = st.lists(
    st.sampled_from(
        [
            *("`", "``", "```", "````", "~~~", "\n", "\n\n", " ", "  ", "    ", "- ", "1. ", "\r\n", "> ", "\t"),
            *("python", "sh", "text", "json", "print(1)", "a", "é\U0001f600", "{", "}", "[", "]", '"', ":", ",", "\\"),
            *('{"language": "sh", "code": "', "ls", '"}', "<tool_call>", "</tool_call>", "<function=execute>"),
            *("<parameter=code>", "</parameter>", "</function>", "<think>", "</think>", '{"name": "execute", '),
        ]
    ),
    max_size=25,
).map("".join)


@given(_markdown, st.lists(st.integers(1, 12), max_size=30), st.booleans(), st.booleans())
def test_any_answer_gives_the_same_however_it_is_cut(text: str, cuts: list[int], complete: bool, fences: bool) -> None:
    parts, at = [], 0
    for cut in cuts:
        parts.append(text[at : at + cut])
        at += cut
    parts.append(text[at:])
    whole = summary(read([text], complete=complete, run_fences=fences))
    assert summary(read(parts, complete=complete, run_fences=fences)) == whole


@given(_markdown)
def test_without_code_no_character_is_lost(text: str) -> None:
    """Where everything is prose and thought, it is all there but for white space at the ends."""
    assume(not text.lstrip().startswith("<think>"))
    found = summary(read([text]))
    if all(item[0] == "text" for item in found):
        assert "".join(str(item[1]) for item in found).split() == text.replace("\r\n", "\n").split()


# Cost.


def _lines_executed(text: str) -> int:
    executed = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal executed
        executed += event == "line"
        return trace

    parser = FencedParser(resolve)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for part in in_steps(text, 4):
            parser.feed(part)
        parser.finish()
    finally:
        sys.settrace(before)
    return executed


@pytest.mark.parametrize(
    "unit",
    [
        "some prose with `code` and {braces} [1]\n",
        "```python\nx = 1\n```\n",
        "`" * 40,
        " " * 40,
        "- " * 20,
        "{ " * 20,
        '{"code": "' * 4,
        "[{" * 20,
        "<tool_call> " * 4,
        "~" * 40,
        "<function=execute><parameter=code>",
    ],
)
@pytest.mark.parametrize("opening", ["", "```\n", "```python\n", "```json\n{", "<think>", '{"code": "'])
def test_work_grows_with_the_length_and_not_faster(unit: str, opening: str) -> None:
    """Counts executed lines rather than seconds: twice the text, twice the work."""
    short, long = (_lines_executed(opening + unit * count) for count in (40, 80))
    assert long < 2.3 * short + 500


@pytest.mark.parametrize("flood", ["`", " ", "~", "{", "[", "- ", "a", "\n", "<", '{"code": "', "1", "\r"])
def test_what_is_held_back_is_bounded(flood: str) -> None:
    parser = FencedParser(resolve)
    for _ in range(3000):
        parser.feed(flood)
    assert len(parser._text) <= 300
