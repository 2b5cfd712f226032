"""What makes a list of OpenAI-form messages a valid request, for every provider behind it.

Results follow the call they belong to, every call has one, arguments are JSON, nothing is empty, there is one system
message and it comes first, then a user message, and the last word is never the assistant's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from oi_tui.engine.llm.call_reader import TOOL_NAME

GO_ON = "Go on."
"""Said for the user when a request would otherwise end with the assistant's own words."""
BEGINNING = "(The beginning of this conversation is not shown.)"
NOT_RUN = "This code was not run."


class ApiMessage(dict[str, Any]):
    """One OpenAI-form message. `opens_exchange` is True for what the user said, and False for user messages that only
    carry output; a plain dictionary with role `user` counts as said by the user."""

    __slots__ = ("opens_exchange",)

    def __init__(self, fields: Mapping[str, Any], *, opens_exchange: bool | None = None) -> None:
        super().__init__(fields)
        if opens_exchange is None:
            opens_exchange = getattr(fields, "opens_exchange", fields.get("role") == "user")
        self.opens_exchange: bool = opens_exchange

    def changed(self, **fields: Any) -> ApiMessage:
        """A copy with these fields."""
        return ApiMessage({**self, **fields}, opens_exchange=self.opens_exchange)


def repair(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A valid request with the same content. Changes nothing in one that is valid, and no message in place."""
    said = [_tidied(ApiMessage(message)) for message in messages]
    system = [message for message in said if message.get("role") in ("system", "developer") and _has_content(message)]
    rest = _paired([message for message in said if message.get("role") not in ("system", "developer")])
    rest = merged(rest)
    if not rest or rest[0]["role"] != "user":
        rest.insert(0, ApiMessage({"role": "user", "content": BEGINNING if rest else GO_ON}, opens_exchange=False))
    if rest[-1]["role"] == "assistant":
        rest.append(ApiMessage({"role": "user", "content": GO_ON}, opens_exchange=False))
    if len(system) > 1:
        text = "\n\n".join(text_of(message) for message in system)
        system = [system[0].changed(content=text)]
    return [*system, *rest]


def merged(messages: Sequence[ApiMessage]) -> list[ApiMessage]:
    """Without empty messages, and with neighbours of one role joined where that is possible."""
    out: list[ApiMessage] = []
    for message in messages:
        if not _has_content(message) and not message.get("tool_calls"):
            continue
        last = out[-1] if out else None
        if last is not None and _can_join(last, message):
            joined = last.changed(**{k: v for k, v in message.items() if k != "role"})
            joined["content"] = join_contents(last.get("content"), message.get("content"))
            joined.opens_exchange = last.opens_exchange or message.opens_exchange
            out[-1] = joined
        else:
            out.append(message)
    return out


def join_contents(first: Any, second: Any) -> Any:
    """Two contents as one: texts with a blank line between them, otherwise a list of parts."""
    if not first or not second:
        return first or second or ""
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_parts(first), *_parts(second)]


def text_of(message: Mapping[str, Any]) -> str:
    """All text of a message's content."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else ()
    return "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")


def _parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _has_content(message: Mapping[str, Any]) -> bool:
    """Whether a tidied message says anything."""
    return bool(message.get("content"))


def _can_join(last: ApiMessage, message: ApiMessage) -> bool:
    if last["role"] != message["role"] or last["role"] not in ("user", "assistant") or last.get("tool_calls"):
        return False
    return not message.get("tool_calls") or isinstance(last.get("content"), str)


def _tidied(message: ApiMessage) -> ApiMessage:
    """A message that was copied, without empty parts and without calls that are none."""
    if "tool_calls" in message and not (message["tool_calls"] and message.get("role") == "assistant"):
        del message["tool_calls"]
    content = message.get("content")
    if isinstance(content, str):
        message["content"] = content if content.strip() else ""
    elif isinstance(content, Sequence):
        parts = [part for part in content if part.get("type") != "text" or str(part.get("text", "")).strip()]
        message["content"] = content if len(parts) == len(content) > 0 else parts or ""
    else:
        message["content"] = ""
    return message


def _paired(messages: Sequence[ApiMessage]) -> list[ApiMessage]:
    """With every result directly behind its call, and one result for each call."""
    results: dict[str, list[ApiMessage]] = {}
    for message in messages:
        if message.get("role") == "tool":
            results.setdefault(str(message.get("tool_call_id")), []).append(message)
    out: list[ApiMessage] = []
    used: set[str] = set()
    for message in messages:
        role = message.get("role")
        if role == "assistant" and message.get("tool_calls"):
            out += _call_with_results(message, results, used)
        elif role in ("tool", "function"):
            if results.get(str(message.get("tool_call_id"))) != []:
                out += _orphan(message, results)
        elif role in ("user", "assistant"):
            out.append(message)
        else:
            out.append(message.changed(role="user"))
    return out


def _call_with_results(message: ApiMessage, results: dict[str, list[ApiMessage]], used: set[str]) -> list[ApiMessage]:
    calls: list[dict[str, Any]] = []
    answers: list[ApiMessage] = []
    for call in message["tool_calls"]:
        own_id = str(call.get("id") or "")
        new_id = own_id
        for number in count(2):
            if new_id and new_id not in used:
                break
            new_id = f"{own_id[:32] or 'call'}_{number}"
        used.add(new_id)
        calls.append(call if own_id == new_id and _is_whole(call) else _whole_call(call, new_id))
        waiting = results.get(own_id, [])
        result = waiting.pop(0) if waiting else ApiMessage({"role": "tool", "content": NOT_RUN})
        content = result.get("content") if _has_content(result) else "No output."
        if result.get("tool_call_id") != new_id or result.get("content") != content:
            result = result.changed(tool_call_id=new_id, content=content)
        answers.append(result)
    same = len(calls) == len(message["tool_calls"]) and all(
        a is b for a, b in zip(calls, message["tool_calls"], strict=True)
    )
    return [message if same else message.changed(tool_calls=calls), *answers]


def _orphan(message: ApiMessage, results: dict[str, list[ApiMessage]]) -> list[ApiMessage]:
    """A result without a call: still worth knowing, so it is told in a user message."""
    waiting = results.get(str(message.get("tool_call_id")), [])
    if message in waiting:
        waiting.remove(message)
    text = text_of(message).strip()
    if not text:
        return []
    return [ApiMessage({"role": "user", "content": f"Output of earlier code:\n{text}"}, opens_exchange=False)]


def _is_whole(call: Mapping[str, Any]) -> bool:
    function = call.get("function")
    if call.get("type") != "function" or not isinstance(function, Mapping) or not function.get("name"):
        return False
    try:
        return isinstance(json.loads(function.get("arguments") or ""), dict)
    except (ValueError, TypeError):
        return False


def _whole_call(call: Mapping[str, Any], call_id: str) -> dict[str, Any]:
    """The call with its id, a name, and arguments that are a JSON object."""
    given = call.get("function")
    function = dict(given) if isinstance(given, Mapping) else {}
    arguments = function.get("arguments") or ""
    try:
        valid = isinstance(json.loads(arguments), dict)
    except (ValueError, TypeError):
        valid = False
    if not valid:
        arguments = json.dumps({"language": "text", "code": str(arguments)})
    function |= {"name": function.get("name") or TOOL_NAME, "arguments": arguments}
    return {**call, "id": call_id, "type": "function", "function": function}
