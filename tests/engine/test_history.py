"""The conversation as the engine keeps it."""

from __future__ import annotations

from oi_tui.engine.approval import CodeProposal, Decision, digest_of
from oi_tui.engine.history import CodeFate, History
from oi_tui.engine.lmc import Message


def pending(code: str, id: str) -> Message:
    return Message("assistant", "code", code, "python", id=id, meta={"state": CodeFate.PENDING})


def console(text: str, code_id: str) -> Message:
    return Message("computer", "console", text, "output", meta={"code_id": code_id})


def test_output_stands_behind_the_code_that_made_it() -> None:
    history = History([pending("a", "A"), pending("b", "B")])
    history.add(console("from a", "A"))
    history.add(console("more from a", "A"))
    history.add(console("from b", "B"))
    assert [m.text for m in history] == ["a", "from a", "more from a", "b", "from b"]


def test_an_edit_takes_the_place_of_the_proposal_and_remembers_it() -> None:
    history = History([pending("print(1)", "A")])
    history.record(CodeProposal("A", "python", "print(1)"), Decision.run("print(2)"))
    message = history.get("A")
    assert message is not None
    assert message.text == "print(2)"
    assert message.meta["original"] == "print(1)"
    assert message.meta["digest"] == digest_of("print(2)")
    assert history.pending_code() is None


def test_trailing_code_of_a_loaded_conversation_waits_and_nothing_else_does() -> None:
    wire = [
        {"role": "user", "type": "message", "content": "go"},
        {"role": "assistant", "type": "code", "format": "python", "content": "old"},
        {"role": "computer", "type": "console", "format": "output", "content": "done"},
        {"role": "assistant", "type": "code", "format": "python", "content": "skipped"},
        {"role": "user", "type": "message", "content": "no, but"},
        {"role": "assistant", "type": "code", "format": "python", "content": "new"},
    ]
    history = History.from_lmc(wire)
    code = history.pending_code()
    assert code is not None and code.text == "new" and code.meta["loaded"]
    fates = [m.meta.get("state") for m in history if m.type == "code"]
    assert fates == [CodeFate.RUN, CodeFate.SKIPPED, CodeFate.PENDING]
    assert [m.to_dict() for m in history] == wire


def test_html_that_code_displayed_is_never_code_to_run() -> None:
    history = History.from_lmc(
        [
            {"role": "assistant", "type": "code", "format": "python", "content": "df"},
            {"role": "computer", "type": "code", "format": "html", "content": "<table>"},
        ]
    )
    assert history.pending_code() is None


def test_an_empty_console_message_gives_way_to_real_output() -> None:
    history = History([pending("a", "A")])
    history.add(console("", "A"))
    history.drop_empty_console("A")
    assert not history.has_output("A")
