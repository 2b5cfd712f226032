"""What the model gets to read: every request is valid, and says truly what became of the code."""

from __future__ import annotations

import base64
import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from oi_tui.engine.history import CodeFate
from oi_tui.engine.llm.openai_messages import fenced, to_openai
from oi_tui.engine.llm.tool_calls import execute_tool
from oi_tui.engine.lmc import Message
from oi_tui.engine.settings import ModelSettings, Settings
from tests.openai_validation import validate_request


def user(text: str) -> Message:
    return Message("user", "message", text)


def said(text: str) -> Message:
    return Message("assistant", "message", text)


def ran(code: str, *outputs: Message | str, language: str = "python", **meta: Any) -> list[Message]:
    """A code block that ran, with what it printed and made."""
    return block(CodeFate.RUN, code, *outputs, language=language, **meta)


def block(
    fate: CodeFate | None, code: str, *outputs: Message | str, language: str = "python", **meta: Any
) -> list[Message]:
    message = Message("assistant", "code", code, language, meta={**({"state": fate} if fate else {}), **meta})
    made = [Message("computer", "console", o, "output") if isinstance(o, str) else o for o in outputs]
    return [message, *(o.with_meta(code_id=message.id) for o in made)]


def picture(size: tuple[int, int] = (2, 2), kind: str = "PNG") -> str:
    out = io.BytesIO()
    Image.new("RGB", size, "red").save(out, kind)
    return base64.b64encode(out.getvalue()).decode()


def plot() -> Message:
    return Message("computer", "image", picture(), "base64.png")


def request(
    *messages: Message | list[Message],
    tool_mode: bool = True,
    vision: bool = False,
    system: str = "You help.",
    settings: Settings | None = None,
) -> list[dict[str, Any]]:
    """The messages of the request, checked as a strict endpoint would."""
    history = [m for item in messages for m in (item if isinstance(item, list) else [item])]
    settings = settings or Settings()
    sent = to_openai(history, system=system, tool_mode=tool_mode, settings=settings, supports_vision=vision)
    check(sent, tool_mode)
    again = to_openai(history, system=system, tool_mode=tool_mode, settings=settings, supports_vision=vision)
    assert sent == again, "not the same each time: no cache would work"
    return sent[1:] if system else sent


def check(sent: list[dict[str, Any]], tool_mode: bool) -> None:
    body = {"model": "m", "messages": json.loads(json.dumps(sent)), "stream": True}
    validate_request(body | ({"tools": [execute_tool(["python"])]} if tool_mode else {}))
    roles = [message["role"] for message in sent if message["role"] != "system"]
    assert roles[0] == "user" and roles[-1] in ("user", "tool")
    assert all(a != b or a == "tool" for a, b in pairwise(roles)), roles


def result(sent: list[dict[str, Any]]) -> str:
    """The one tool result."""
    (content,) = [message["content"] for message in sent if message["role"] == "tool"]
    return str(content)


# The shape.


def test_tool_mode_makes_one_call_and_one_result_of_a_block() -> None:
    history = [user("Count."), said("I count."), *ran("print(1)\nprint(2)", "1\n", "2\n", call_id="call_9")]
    arguments = json.dumps({"language": "python", "code": "print(1)\nprint(2)"})
    assert request(*history) == [
        {"role": "user", "content": "Count."},
        {
            "role": "assistant",
            "content": "I count.",
            "tool_calls": [
                {"id": "call_9", "type": "function", "function": {"name": "execute", "arguments": arguments}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_9", "content": "1\n2"},
    ]


def test_text_mode_says_the_same_with_fences_and_templates() -> None:
    settings = Settings(code_output_template="It printed {content}!", empty_code_output_template="Silence.")
    history = [
        user("Count."),
        said("I count."),
        *ran("print(1)", "1\n"),
        *ran("x = 1", ""),
        said("Done."),
        user("Thanks"),
    ]
    assert request(*history, tool_mode=False, settings=settings) == [
        {"role": "user", "content": "Count."},
        {"role": "assistant", "content": "I count.\n\n```python\nprint(1)\n```"},
        {"role": "user", "content": "It printed 1!"},
        {"role": "assistant", "content": "```python\nx = 1\n```"},
        {"role": "user", "content": "Silence."},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks"},
    ]


def test_several_blocks_of_one_answer_keep_their_own_results() -> None:
    sent = request(
        user("Go"), said("Both."), ran("a", "1", call_id="x"), ran("b", "2", call_id="y"), said("Done"), user("ok")
    )
    assert [(m["role"], m.get("tool_call_id")) for m in sent] == [
        ("user", None),
        ("assistant", None),
        ("tool", "x"),
        ("assistant", None),
        ("tool", "y"),
        ("assistant", None),
        ("user", None),
    ]
    assert [m["content"] for m in sent if m["role"] == "tool"] == ["1", "2"]


def test_output_goes_to_its_code_wherever_it_stands() -> None:
    first, out = ran("a", "1")
    second, other = ran("b", "2")
    sent = request(user("Go"), [first, second, other, out])
    assert [m["content"] for m in sent if m["role"] == "tool"] == ["1", "2"]


def test_output_of_imported_conversations_has_no_code_id() -> None:
    code = Message("assistant", "code", "print(1)", "python")
    out = Message("computer", "console", "1", "output")
    assert result(request(user("Go"), code, out)) == "1"
    assert request(user("Go"), out)[-1]["content"] == "Go\n\nOutput from the computer:\n1"


def test_output_as_the_assistants_own_words() -> None:
    settings = Settings(code_output_sender="assistant")
    sent = request(user("Go"), ran("x", "1"), tool_mode=False, settings=settings)
    assert sent[1] == {"role": "assistant", "content": "```python\nx\n```\n\n```output\n1\n```"}
    assert sent[2]["role"] == "user"


def test_a_fence_is_longer_than_any_in_the_code() -> None:
    assert fenced("python", "'''\n```\n````\n'''").startswith("`````python\n")
    assert fenced("", "x") == "```\nx\n```"


def test_the_system_message_may_be_empty() -> None:
    assert request(user("hi"), system="") == [{"role": "user", "content": "hi"}]


def test_what_is_not_for_the_model_stays_away() -> None:
    sent = request(
        user("hi"),
        Message("assistant", "reasoning", "secret thoughts", recipient="user"),
        Message("assistant", "message", "only for the user", recipient="user"),
        Message("server", "error", "boom"),
        Message("user", "command", "stop"),
        Message("assistant", "review", "fine", "safe"),
        said("hello"),
        user("bye"),
    )
    assert [m["content"] for m in sent] == ["hi", "hello", "bye"]


def test_code_and_output_for_the_user_alone_stay_away() -> None:
    code, out = ran("secret", "secret")
    hidden = Message("assistant", "code", "secret", "python", "user", code.id, code.meta)
    assert "secret" not in str(request(user("hi"), [hidden, out]))
    for_user = Message("computer", "console", "secret", "output", "user")
    assert result(request(user("hi"), ran("x", "seen", for_user))) == "seen"


def test_html_of_the_computer_is_never_code_to_run() -> None:
    table = Message("computer", "code", "<table></table>", "html", "user")
    for tool_mode in (True, False):
        sent = request(user("hi"), ran("df", table), tool_mode=tool_mode)
        assert "<table>" not in str(sent) and "rich display, which the user can see" in str(sent)
    assert "<table>" not in str(request(user("hi"), table))


# Ids.


def test_ids_are_the_providers_where_every_provider_takes_them() -> None:
    def call_id(given: str | None, model: str = "gpt-5", **more: Any) -> str:
        settings = Settings(llm=ModelSettings(model=model))
        (call,) = request(user("x"), ran("a", "1", call_id=given), settings=settings)[1]["tool_calls"]
        return str(call["id"])

    assert call_id("toolu_01-A") == "toolu_01-A"
    for bad in (None, "", "functions.execute:0", "x" * 41, "ä", 'a"b'):
        assert call_id(bad).isalnum() and len(call_id(bad)) == 9


def test_signatures_in_ids_go_back_to_gemini_only() -> None:
    given = "call_12ab__thought__Abc/+def=="
    history = [user("x"), *ran("a", "1", call_id=given)]
    gemini = Settings(llm=ModelSettings(model="gemini/gemini-3-pro"))
    other = Settings(llm=ModelSettings(model="openai/gpt-5"))
    assert request(*history, settings=gemini)[1]["tool_calls"][0]["id"] == given
    assert request(*history, settings=other)[1]["tool_calls"][0]["id"] == "call_12ab"


def test_calls_with_the_same_id_are_told_apart() -> None:
    sent = request(user("x"), ran("a", "1", call_id="0"), said("then"), user("y"), ran("b", "2", call_id="0"))
    ids = [m["tool_call_id"] for m in sent if m["role"] == "tool"]
    assert len(set(ids)) == 2


# What became of the code.


@pytest.mark.parametrize("tool_mode", [True, False])
def test_edited_code_is_told_with_the_change(tool_mode: bool) -> None:
    sent = request(user("x"), ran("a = 2\nprint(a)", "2", original="a = 1\nprint(a)"), tool_mode=tool_mode)
    told = sent[-1]["content"]
    assert "changed your code" in told and "-a = 1\n+a = 2\n" in told
    assert "a = 2" in str(sent[1]) and "a = 1" not in str(sent[1])


@pytest.mark.parametrize("tool_mode", [True, False])
@pytest.mark.parametrize(
    ("fate", "words"),
    [
        (CodeFate.DECLINED, "declined"),
        (CodeFate.SKIPPED, "not run"),
        (CodeFate.REFUSED, "not run"),
        (CodeFate.INCOMPLETE, "only in part"),
        (CodeFate.PENDING, "not run"),
        (None, "not run"),
    ],
)
def test_code_that_did_not_run_says_why(tool_mode: bool, fate: CodeFate | None, words: str) -> None:
    told = request(user("x"), block(fate, "rm -r /"), tool_mode=tool_mode)[-1]["content"]
    assert words in told and "Code output" not in told and "No output" not in told


def test_a_refusal_says_what_the_engine_said() -> None:
    refused = block(CodeFate.REFUSED, "x", "cobol is not available here.", language="cobol")
    assert result(request(user("x"), refused)) == "cobol is not available here."
    assert result(request(user("x"), block(CodeFate.REFUSED, "x", problem="There is no tool called y."))) == (
        "There is no tool called y."
    )
    assert "not valid JSON" in result(request(user("x"), block(CodeFate.INCOMPLETE, "x", problem="not valid JSON")))


@pytest.mark.parametrize("tool_mode", [True, False])
def test_the_words_of_a_decline_are_said_once(tool_mode: bool) -> None:
    declined = block(CodeFate.DECLINED, "rm x", note="use trash")
    assert str(request(user("x"), declined, user("use trash"), tool_mode=tool_mode)).count("use trash") == 1
    assert str(request(user("x"), declined, user("else"), tool_mode=tool_mode)).count("use trash") == 1
    assert str(request(user("x"), declined, tool_mode=tool_mode)).count("use trash") == 1


@pytest.mark.parametrize("tool_mode", [True, False])
def test_a_stopped_run_is_told_with_what_it_printed(tool_mode: bool) -> None:
    told = request(user("x"), ran("loop()", "1\n2\n", exit="interrupted"), tool_mode=tool_mode)[-1]["content"]
    assert "1\n2" in told and "user stopped this code" in told
    told = request(user("x"), ran("loop()", exit="interrupted"), tool_mode=tool_mode)[-1]["content"]
    assert "user stopped this code" in told and "printed nothing" not in told


def test_silence_is_no_output() -> None:
    assert result(request(user("x"), ran("a", ""))) == "No output."
    assert result(request(user("x"), ran("a", "\n\n"))) == "No output."
    assert result(request(user("x"), ran("a"))) == "No output."


def test_code_of_the_user_is_no_call_of_the_model() -> None:
    own = Message("user", "code", "ls", "shell", meta={"state": CodeFate.RUN})
    out = Message("computer", "console", "a.txt", "output", meta={"code_id": own.id})
    sent = request(own, out, user("What is that?"))
    assert sent == [{"role": "user", "content": "I ran this code myself:\n```shell\nls\n```\na.txt\n\nWhat is that?"}]


# Output.


def test_output_is_clean_and_cut_to_head_and_tail() -> None:
    noise = "\x1b[31mred\x1b[0m\n" + "\r".join(f"{n}%" for n in range(101)) + "\n" + "line\n" * 2000 + "the end\n"
    out = Message("computer", "console", noise, "output", meta={"full_output": "/tmp/full.txt"})
    told = result(request(user("x"), ran("a", out), settings=Settings(max_output=300)))
    assert told.startswith("red\n100%\n") and told.endswith("the end")
    assert "/tmp/full.txt" in told and "left out" in told and len(told) < 500


def test_the_user_template() -> None:
    settings = Settings(user_message_template="<< {content} >>")
    sent = request(user("one"), said("a"), user("two"), settings=settings)
    assert [m["content"] for m in sent] == ["one", "a", "<< two >>"]
    settings = Settings(user_message_template="<< {content} >>", always_apply_user_message_template=True)
    assert request(user("one"), said("a"), user("two {x}"), settings=settings)[2]["content"] == "<< two {x} >>"
    assert request(user("one"), said("a"), user("two"), settings=settings)[0]["content"] == "<< one >>"


def test_a_file_is_its_path() -> None:
    assert request(user("Read"), Message("user", "file", "/a/b.csv"))[0]["content"] == "Read\n\nFile: /a/b.csv"


# Pictures.


def urls(sent: list[dict[str, Any]]) -> list[str]:
    parts = [part for m in sent if isinstance(m["content"], list) for part in m["content"]]
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


@pytest.mark.parametrize("tool_mode", [True, False])
def test_a_plot_follows_its_output_as_a_user_message(tool_mode: bool) -> None:
    sent = request(
        user("x"), ran("plot()", "ok", plot(), plot()), said("Nice"), user("y"), vision=True, tool_mode=tool_mode
    )
    carrier = next(m for m in sent if isinstance(m["content"], list))
    assert carrier["role"] == "user" and "made these 2 pictures" in str(carrier["content"])
    assert len(urls(sent)) == 2 and all(url.startswith("data:image/png;base64,") for url in urls(sent))


@pytest.mark.parametrize("tool_mode", [True, False])
def test_without_vision_the_model_is_told_that_there_is_a_picture(tool_mode: bool) -> None:
    sent = request(user("x"), ran("plot()", plot()), tool_mode=tool_mode)
    assert not urls(sent) and "made this picture (not visible to you)" in str(sent[-1]["content"])


def test_of_many_pictures_the_first_and_the_last_two_are_sent() -> None:
    shots = [Message("computer", "image", picture((n + 1, 1)), "base64.png") for n in range(5)]
    sent = request(user("x"), [m for shot in shots for m in ran("shot()", shot)], vision=True)
    assert [url.partition(",")[2] for url in urls(sent)] == [shots[i].content for i in (0, 3, 4)]
    assert str(sent).count("no longer shown") == 2


def test_pictures_of_the_user(tmp_path: Path) -> None:
    file = tmp_path / "a b.jpg"
    file.write_bytes(base64.b64decode(picture(kind="JPEG")))
    sent = request(user("Look"), Message("user", "image", str(file), "path"), vision=True)
    assert sent[0]["content"][0] == {"type": "text", "text": "Look"}
    assert str(file) in sent[0]["content"][1]["text"] and urls(sent)[0].startswith("data:image/jpeg;")
    assert str(file) in str(request(user("Look"), Message("user", "image", str(file), "path")))
    sent = request(user("Look"), Message("user", "image", "A cat on a mat.", "description"))
    assert sent[0]["content"] == "Look\n\nPicture: A cat on a mat."


@pytest.mark.parametrize(
    ("content", "fmt", "why"),
    [
        ("/no/such.png", "path", "no file"),
        ("/tmp", "path", "no file"),
        ("a\0b", "path", "no file"),
        ("not base64!", "base64.png", "damaged"),
        ("", "base64", "not a PNG"),
        (base64.b64encode(b"<svg/>").decode(), "base64.svg", "not a PNG"),
    ],
)
def test_a_picture_that_cannot_be_sent_says_why(content: str, fmt: str, why: str) -> None:
    sent = request(user("Look"), Message("user", "image", content, fmt), vision=True)
    assert not urls(sent) and why in str(sent[0]["content"])


def test_the_type_of_a_picture_is_what_it_is_and_not_what_it_claims() -> None:
    shot = Message("computer", "image", "data:image/png;base64," + picture(kind="WEBP"), "base64.png")
    assert urls(request(user("x"), ran("a", shot), vision=True))[0].startswith("data:image/webp;base64,UklG")


@pytest.mark.parametrize("transparent", [True, False])
def test_large_pictures_are_scaled_down(transparent: bool) -> None:
    noise = Image.effect_noise((1500, 1500), 200)
    image = Image.merge("RGBA" if transparent else "RGB", [noise] * (4 if transparent else 3))
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=0)
    shot = Message("computer", "image", base64.b64encode(out.getvalue()).decode(), "base64.png")
    (url,) = urls(request(user("x"), ran("a", shot), vision=True))
    assert len(url) <= 5_000_000
    assert Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).size[0] < 1500
    (url,) = urls(request(user("x"), ran("a", shot), vision=True, settings=Settings(shrink_images=False)))
    assert len(url) > 5_000_000


# Anything at all.

_texts = st.sampled_from(["", " ", "hello", "a\n\nb", "```\nx\n```", "\ud83d", "\x1b[31m", "{content}", "é\U0001f600"])
_messages = st.one_of(
    st.builds(
        Message,
        st.sampled_from(["user", "assistant", "computer", "server"]),
        st.sampled_from(["message", "code", "console", "image", "file", "error", "reasoning", "audio"]),
        _texts | st.none() | st.integers(),
        st.sampled_from([None, "python", "output", "html", "path", "base64.png", "description", ""]),
        st.sampled_from([None, "user", "assistant"]),
        st.sampled_from(["id0", "id1", "id2", "id3"]),
        st.fixed_dictionaries(
            {},
            optional={
                "code_id": st.sampled_from(["id0", "id1", "id9"]),
                "state": st.sampled_from([*CodeFate, "unknown"]),
                "call_id": _texts,
                "original": _texts,
                "note": _texts,
                "exit": st.sampled_from(["interrupted", "kernel_died", "other"]),
            },
        ),
    ),
    st.builds(user, _texts),
)


@given(st.lists(_messages, max_size=10), st.booleans(), st.booleans(), st.sampled_from(["user", "assistant"]))
def test_every_request_is_valid_whatever_the_history(
    history: list[Message], tool_mode: bool, vision: bool, sender: Any
) -> None:
    settings = Settings(code_output_sender=sender)
    request(history, tool_mode=tool_mode, vision=vision, settings=settings)
