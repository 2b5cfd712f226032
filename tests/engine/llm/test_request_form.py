"""The last line of defence: whatever comes in, what goes out is a valid request with the same content."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from oi_tui.engine.llm.request_form import ApiMessage, repair
from tests.openai_validation import validate_request


def call(
    call_id: Any = "a", arguments: Any = '{"language": "python", "code": "x"}', name: str = "execute"
) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*items: dict[str, Any], content: Any = "") -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(items)}


def tool(call_id: str = "a", content: str = "1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


SYSTEM = {"role": "system", "content": "You help."}
USER = {"role": "user", "content": "hi"}


def repaired(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    before = copy.deepcopy(messages)
    out = repair(messages)
    assert messages == before, "changed in place"
    validate_request({"model": "m", "messages": json.loads(json.dumps(out))})
    assert repair(out) == out, "not settled"
    return out


def test_a_valid_request_stays_as_it_is() -> None:
    valid = [SYSTEM, USER, calls(call("a"), call("b"), content="Both"), tool("a"), tool("b", "2"), USER]
    assert repaired(*valid) == valid


def test_a_call_without_a_result_gets_one() -> None:
    out = repaired(USER, calls(call("a"), call("b")), tool("b", "two"), USER)
    assert [m.get("content") for m in out] == ["hi", "", "This code was not run.", "two", "hi"]


def test_results_that_stand_elsewhere_come_to_their_call() -> None:
    out = repaired(USER, calls(call("a")), {"role": "user", "content": "wait"}, tool("a", "late"))
    assert [m["content"] for m in out] == ["hi", "", "late", "wait"]


def test_a_result_without_a_call_is_told_by_the_user() -> None:
    out = repaired(SYSTEM, tool("gone", "42"), USER)
    assert out[1]["role"] == "user" and "42" in out[1]["content"] and out[1]["content"].endswith("hi")
    assert repaired(SYSTEM, tool("gone", ""), USER) == [SYSTEM, USER]


def test_a_second_result_for_a_call_is_not_lost() -> None:
    out = repaired(USER, calls(call("a")), tool("a", "first"), tool("a", "second"))
    assert out[2]["content"] == "first" and "second" in out[3]["content"]


def test_ids_that_occur_twice_are_told_apart() -> None:
    out = repaired(USER, calls(call("a")), tool("a", "1"), calls(call("a")), tool("a", "2"))
    assert [m["content"] for m in out if m["role"] == "tool"] == ["1", "2"]
    assert len({m["tool_call_id"] for m in out if m["role"] == "tool"}) == 2


def test_arguments_become_json() -> None:
    for arguments in ("print(1", '"text"', "[1]", None, ""):
        out = repaired(USER, calls(call("a", arguments)), tool("a"))
        assert isinstance(json.loads(out[1]["tool_calls"][0]["function"]["arguments"]), dict)


def test_empty_messages_go_and_the_order_of_roles_is_right() -> None:
    out = repaired(SYSTEM, {"role": "assistant", "content": "hello"}, {"role": "user", "content": "  "})
    assert [m["role"] for m in out] == ["system", "user", "assistant", "user"]
    assert repaired() == [{"role": "user", "content": "Go on."}]


def test_there_is_one_system_message_and_it_is_first() -> None:
    out = repaired(USER, SYSTEM, {"role": "system", "content": "Also."})
    assert out == [{"role": "system", "content": "You help.\n\nAlso."}, USER]


def test_what_the_user_said_is_known_from_what_only_carries_output() -> None:
    output = ApiMessage({"role": "user", "content": "output"}, opens_exchange=False)
    out = repair([ApiMessage(USER), {"role": "assistant", "content": "x"}, output])
    assert [m.opens_exchange for m in out if isinstance(m, ApiMessage)] == [True, False, False]
    assert ApiMessage(output.changed(content="y")).opens_exchange is False


_contents = st.sampled_from(
    ["", " ", "text", None, [], [{"type": "text", "text": "part"}], [{"type": "text", "text": ""}]]
)
_calls = st.lists(
    st.builds(
        call,
        st.sampled_from(["a", "b", "", None]),
        st.sampled_from(["{}", "", "x", None, "[]"]),
        st.sampled_from(["execute", ""]),
    ),
    max_size=2,
)
_messages = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "function", "odd"]),
        "content": _contents,
    },
    optional={"tool_calls": _calls, "tool_call_id": st.sampled_from(["a", "b", "c"])},
)


@given(st.lists(_messages, max_size=10))
def test_anything_becomes_a_valid_request(messages: list[dict[str, Any]]) -> None:
    repaired(*messages)
