"""Code is coloured while it is written and edited, and looks as if it had been read as a whole."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pygments.token import Comment, Keyword, Number, String, Token

from oi_tui.engine import lmc
from oi_tui.rendering import highlight
from oi_tui.rendering.highlight import Highlighter
from oi_tui.rendering.lexing import lexer_for
from oi_tui.rendering.lines import Run

PYTHON = '''\
"""A module
with a docstring."""
import os


class Greeter:
    """Says hello."""

    def greet(self, name: str) -> str:
        text = f"hello {name!r:>10} {1 + 2}"  # a comment
        raw = r"""raw
        string"""
        return text + '\\n' * 0x10

@decorated
async def main(): await Greeter().greet("x")
'''
JAVASCRIPT = """\
/* a comment
   over lines */
const f = async (x) => `template ${x + 1}
second line`; // end
let r = /re[/]x/g;
"""
RUBY = """\
def greet(name)
  text = <<~TEXT
    hello #{name}
  TEXT
  puts text, :symbol, %w[a b]
end
=begin
a comment
=end
"""
SHELL = 'for f in *.txt; do\n  echo "$f ${x:-y}" | wc -l # count\ndone\ncat <<EOF\ntext $HOME\nEOF\nls\n'
SAMPLES = {
    "python": PYTHON,
    "javascript": JAVASCRIPT,
    "react": "const App = () => <div className='a'>{x}</div>;\n",
    "ruby": RUBY,
    "shell": SHELL,
    "r": "f <- function(x) {\n  x %>% summary() # comment\n}\n",
    "powershell": '$x = Get-Item "a" <# block\ncomment #>\nif ($x -eq 1) { Write-Host @"\nhere\n"@ }\n',
    "applescript": 'tell application "Finder"\n  (* a\n  comment *)\n  activate\nend tell\n',
    "java": "/** doc\n */\npublic class A {\n  int x = 0x1F;\n}\n",
    "html": "<!-- a\ncomment -->\n<script>\nlet x = 1;\n</script>\n<p class='a'>text</p>\n",
    "json": '{"a": [1, true, null],\n "b": "x"}\n',
    "yaml": "a: |\n  text\n  more\nb: [1, 2]\n",
    "c": "/* a\n b */\nint main(void) { return 0; }\n",
    "diff": "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n",
}


def looks(highlighter: Highlighter) -> list[list[Run]]:
    while highlighter.advance():
        pass
    return [list(highlighter.runs(line)) for line in range(highlighter.line_count)]


def texts(highlighter: Highlighter) -> str:
    return "\n".join("".join(text for text, _ in runs) for runs in looks(highlighter))


def tokens(highlighter: Highlighter, line: int) -> dict[str, object]:
    return {text: meaning[0] for text, meaning in highlighter.runs(line) if meaning}


@pytest.mark.parametrize("language", SAMPLES)
def test_every_language_is_coloured_and_no_character_lost(language: str) -> None:
    code = SAMPLES[language]
    highlighter = Highlighter(language, code)
    assert texts(highlighter) == code
    kinds = {meaning[0] for runs in looks(highlighter) for _, meaning in runs if meaning}
    assert len(kinds) >= 3


def test_python_is_read_right() -> None:
    highlighter = Highlighter("python", PYTHON)
    assert tokens(highlighter, 2)["import"] in Keyword
    assert tokens(highlighter, 1)['with a docstring."""'] in String
    assert tokens(highlighter, 9)["# a comment"] in Comment
    assert tokens(highlighter, 11)['        string"""'] in String
    assert tokens(highlighter, 12)["0x10"] in Number


@pytest.mark.parametrize("language", SAMPLES)
@pytest.mark.parametrize("size", [3, 17])
def test_streamed_code_ends_up_looking_as_code_read_at_once(language: str, size: int) -> None:
    code = SAMPLES[language] * 8
    streamed = Highlighter(language)
    for start in range(0, len(code), size):
        streamed.append(code[start : start + size])
        streamed.runs(streamed.line_count - 1)  # it is drawn at every step
    streamed.finish()
    assert looks(streamed) == looks(Highlighter(language, code))


def test_the_comment_that_is_closed_later_becomes_a_comment_at_once() -> None:
    highlighter = Highlighter("javascript")
    highlighter.append("/* one\n two\n three")
    assert tokens(highlighter, 1).get(" two") not in Comment
    highlighter.append(" */\nlet x")
    assert tokens(highlighter, 1)[" two"] in Comment
    assert tokens(highlighter, 3)["let"] in Keyword


@pytest.mark.parametrize("language", ["python", "javascript", "ruby", "shell", "json", "c"])
def test_edited_code_looks_as_code_read_at_once(language: str) -> None:
    generator = random.Random(language)
    lines = (SAMPLES[language] * 8).split("\n")
    highlighter = Highlighter(language, "\n".join(lines))
    for step in range(60):
        place = generator.randrange(len(lines))
        match generator.randrange(4):
            case 0:
                lines[place] += generator.choice(["x", '"', "'''", "*/", " # y", "("])
            case 1:
                lines.insert(place, generator.choice(["if x:", '"""', "}", ""]))
            case 2:
                if len(lines) > 3:
                    del lines[place : place + generator.randrange(1, 3)]
            case _:
                lines[place : place + 1] = ["a = 1", lines[place], "b"]
        highlighter.replace("\n".join(lines))
        if step % 3 == 0:
            highlighter.advance(200)
    highlighter.finish()
    assert looks(highlighter) == looks(Highlighter(language, "\n".join(lines)))


def test_reading_on_after_edits_stops_where_nothing_has_changed_any_more() -> None:
    """Without a last reading of everything: what is kept of the old must fit the new."""
    generator = random.Random(5)
    lines = "def f(x):\n    y = [x, 'a', {1: 2}]  # c\n    return y\n\n".split("\n") * 40
    highlighter = Highlighter("python", "\n".join(lines))
    for _ in range(200):
        place = generator.randrange(len(lines))
        kept = [lines[place], "z = 'new'  # d"][: generator.randrange(3)]
        lines[place : place + generator.randrange(3)] = kept
        highlighter.replace("\n".join(lines))
        if generator.randrange(2):
            highlighter.advance(generator.randrange(2000))
        if generator.randrange(10) == 0:
            assert looks(highlighter) == looks(Highlighter("python", "\n".join(lines)))
    assert looks(highlighter) == looks(Highlighter("python", "\n".join(lines)))


def test_a_small_edit_in_long_code_reads_little(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(lmc.__file__).read_text() * 20
    highlighter = Highlighter("python", source)
    looks(highlighter)
    read = 0
    take = highlight._LineReader.take

    def counting(self: object, place: int, token: object, value: str, text: str) -> None:
        nonlocal read
        read += len(value)
        take(self, place, token, value, text)  # type: ignore[arg-type]

    monkeypatch.setattr(highlight._LineReader, "take", counting)
    lines = source.split("\n")
    lines[2000] += "  # edited"
    highlighter.replace("\n".join(lines))
    assert not highlighter.advance()
    assert read < 8000
    read = 0
    for _ in range(100):
        highlighter.append("x = 1 ")
        highlighter.runs(highlighter.line_count - 1)
    assert read < 100 * 4000


def test_long_code_is_read_in_steps() -> None:
    source = "x = [1, 'two']  # three\n" * 10_000
    highlighter = Highlighter("python", source)
    assert highlighter.runs(0)[0][1]  # what is in view first is read first
    assert highlighter.runs(9_000) == [("x = [1, 'two']  # three", ())]
    steps = 0
    while highlighter.advance():
        steps += 1
    assert steps > 20
    assert len(highlighter.runs(9_000)) > 5


def test_a_line_of_a_megabyte_stays_plain_and_its_neighbours_do_not() -> None:
    highlighter = Highlighter("python", f"x = 1\ny = '{'a' * (1 << 20)}'\nz = 2\n")
    assert len(highlighter.runs(0)) > 1
    assert len(highlighter.runs(1)) == 1
    assert len(highlighter.runs(2)) > 1


def test_unknown_languages_and_plain_text_stay_plain() -> None:
    for language in ("", None, "text", "no such language", "\x1b[31m"):
        assert lexer_for(language) is None
        assert Highlighter(language, "if x:\n  y").runs(0) == [("if x:", ())]
    assert lexer_for("PYTHON ") is lexer_for("python")


def test_an_unterminated_string_reads_on_at_every_step() -> None:
    highlighter = Highlighter("python", '"""' + "text\n" * 20_000)
    assert texts(highlighter) == '"""' + "text\n" * 20_000


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(SAMPLES)),
    st.lists(
        st.one_of(st.text(max_size=8), st.sampled_from(["\n", '"', "'''", "/*", "*/", "<<~A\n", "A\n", "{", "`"]))
    ),
    st.lists(st.text(alphabet="a\n\"'{}/*#`<> ", max_size=12), max_size=4),
)
def test_no_character_is_lost_whatever_is_written(language: str, pieces: list[str], edits: list[str]) -> None:
    highlighter = Highlighter(language)
    for piece in pieces:
        highlighter.append(piece)
        highlighter.runs(highlighter.line_count - 1)
    assert texts(highlighter) == "".join(pieces)
    for edit in edits:
        highlighter.replace(edit)
        assert texts(highlighter) == edit
        for line in range(highlighter.line_count):
            for start, end, token in highlighter.spans(line):
                assert end > start and token in Token
