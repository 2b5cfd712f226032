"""What models wrap around code by mistake is taken off; nothing else is touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oi_tui.engine.llm.fenced import repair_code

INNER = '{"language": "python", "code": "print(\\"a\\")\\nx = 1"}'
PLAIN = ("python", 'print("a")\nx = 1')


@pytest.mark.parametrize(
    "code",
    [
        '`\nprint("a")\nx = 1',
        'print("a")\nx = 1executeexecute',
        f"functions.execute({INNER})",
        f"execute({INNER});",
        f" functions.execute( {INNER} ) ",
        INNER,
        '{language: "python", code: "print(\\"a\\")\\nx = 1"}',
        '{"code": "print(\\"a\\")\\nx = 1", "language": "Python"}',
        '```python\nprint("a")\nx = 1\n```',
        '```\nprint("a")\nx = 1\n```\n',
        '~~~py\nprint("a")\nx = 1\n~~~',
        'print("a")\\nx = 1',
        'print(\\"a\\")\\nx = 1',
    ],
)
def test_repairs(code: str) -> None:
    assert repair_code("python", code) == PLAIN


def test_the_language_inside_wins() -> None:
    assert repair_code("python", '{"language": "shell", "code": "ls"}') == ("shell", "ls")


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "print(1)"),
        ("python", ""),
        ("python", '{"language": "python", "code": "x", "more": 1}'),
        ("python", '{"language": "python"}'),
        ("python", '{"language": "python", "code": "x"}["code"]'),
        ("python", '{"language": "python", "code": {"a": 1}}'),
        ("python", "{1, 2}"),
        ("python", "print('a\\nb')"),
        ("python", "print('a\\nb'"),
        ("python", "`x`"),
        ("python", "execute(1)"),
        ("shell", "printf 'a\\nb'"),
        ("shell", "cat <<EOF\n```\nx\n```\nEOF"),
        ("shell", "```\na\n```\nb\n```\nc\n```"),
        ("javascript", "`a\\nb`"),
    ],
)
def test_what_may_be_meant_stays(language: str, code: str) -> None:
    assert repair_code(language, code) == (language, code)


@given(st.text(alphabet='`~ex{}"\\n\n:,acodelngupytih(). 1', max_size=60))
def test_repairing_never_fails_and_a_repaired_block_stays_as_it_is(code: str) -> None:
    once = repair_code("shell", code)
    assert isinstance(once[1], str)
