"""What an OpenAI-compatible endpoint would refuse, as a function.

`validate_request` is stricter than any single provider on purpose: it refuses what OpenAI refuses (unpaired tool calls,
unknown parameters), what Anthropic refuses (empty messages) and what small servers trip over (arguments that are not a
JSON object). Source: https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

PARAMETERS = frozenset(
    "model messages stream stream_options temperature top_p max_tokens max_completion_tokens tools tool_choice "
    "parallel_tool_calls functions function_call stop seed n user presence_penalty frequency_penalty logit_bias "
    "logprobs top_logprobs response_format reasoning_effort service_tier metadata store "
    "usage".split()  # the last one is OpenRouter's
)
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")


class InvalidRequest(ValueError):
    """The request would be answered with 400."""


def validate_request(body: Any) -> None:
    """Raise `InvalidRequest`, saying why, for anything an OpenAI-compatible endpoint would refuse."""
    require(isinstance(body, dict), "the body is not a JSON object")
    require(isinstance(body.get("model"), str) and body["model"].strip(), "model is missing")
    unknown = sorted(set(body) - PARAMETERS)
    require(not unknown, f"unrecognized request argument: {', '.join(unknown)}")
    _check_numbers(body)
    _check_tools(body.get("tools"))
    require(isinstance(body.get("messages"), list) and body["messages"], "messages is empty")
    _check_messages(body["messages"], named={tool["function"]["name"] for tool in body.get("tools") or ()})


def require(condition: object, why: str) -> None:
    if not condition:
        raise InvalidRequest(why)


def _check_numbers(body: Mapping[str, Any]) -> None:
    temperature = body.get("temperature")
    require(temperature is None or (_is_number(temperature) and 0 <= temperature <= 2), "temperature is not in 0..2")
    for name in ("max_tokens", "max_completion_tokens", "n"):
        value = body.get(name)
        require(value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1), f"bad {name}")
    require(isinstance(body.get("stream", False), bool), "stream is not a boolean")
    require(body.get("stream_options") is None or body.get("stream"), "stream_options is only allowed with stream")


def _check_tools(tools: Any) -> None:
    if tools is None:
        return
    require(isinstance(tools, list) and tools, "tools is an empty array")
    for tool in tools:
        require(isinstance(tool, dict) and tool.get("type") == "function", "a tool is not of type function")
        function = tool.get("function")
        require(isinstance(function, dict) and NAME.match(str(function.get("name", ""))), "a tool has no valid name")
        schema = function.get("parameters", {})
        require(isinstance(schema, dict) and schema.get("type", "object") == "object", "tool parameters: not an object")


def _check_messages(messages: Sequence[Any], named: set[str]) -> None:
    open_calls: list[str] = []
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        require(isinstance(message, dict), f"{where} is not an object")
        role = message.get("role")
        require(role in ROLES, f"{where}: unknown role {role!r}")
        if role == "tool":
            call = message.get("tool_call_id")
            require(call in open_calls, f"{where}: tool result without a preceding tool call ({call!r})")
            open_calls.remove(call)
        else:
            require(not open_calls, f"{where}: tool calls without a result: {', '.join(open_calls)}")
        _check_content(message, where)
        if role == "assistant":
            open_calls = _check_calls(message, where, named)
    require(not open_calls, f"tool calls without a result: {', '.join(open_calls)}")
    require(any(m["role"] != "system" for m in messages), "there is no message but the system's")


def _check_content(message: Mapping[str, Any], where: str) -> None:
    content = message.get("content")
    if content is None:
        calls = message.get("tool_calls") or message.get("function_call")
        require(message["role"] == "assistant" and calls, f"{where}: content is null")
    elif isinstance(content, str):
        may_be_empty = message["role"] == "assistant" and message.get("tool_calls")
        require(content.strip() or may_be_empty, f"{where}: content is empty")
        _check_encodable(content, where)
    else:
        require(isinstance(content, list) and content, f"{where}: content is neither text nor parts")
        for part in content:
            _check_part(part, where)


def _check_part(part: Any, where: str) -> None:
    require(isinstance(part, dict), f"{where}: a content part is not an object")
    if part.get("type") == "text":
        require(isinstance(part.get("text"), str) and part["text"].strip(), f"{where}: an empty text part")
        _check_encodable(part["text"], where)
    elif part.get("type") == "image_url":
        url = (part.get("image_url") or {}).get("url", "")
        match = re.match(r"data:image/(png|jpeg|gif|webp);base64,(.+)\Z", url, re.DOTALL)
        require(url.startswith("https://") or match, f"{where}: an image that is no data URL")
        if match:
            try:
                base64.b64decode(match[2], validate=True)
            except ValueError:
                raise InvalidRequest(f"{where}: an image that is not base64") from None
    else:
        raise InvalidRequest(f"{where}: unknown content part {part.get('type')!r}")


def _check_calls(message: Mapping[str, Any], where: str, named: set[str]) -> list[str]:
    if "tool_calls" not in message:
        return []
    calls = message["tool_calls"]
    require(isinstance(calls, list) and calls, f"{where}: tool_calls is an empty array")
    ids = []
    for call in calls:
        require(isinstance(call, dict) and call.get("type") == "function", f"{where}: a call is not of type function")
        require(isinstance(call.get("id"), str) and call["id"], f"{where}: a call has no id")
        require(call["id"] not in ids, f"{where}: two calls have the id {call['id']}")
        ids.append(call["id"])
        function = call.get("function") or {}
        require(NAME.match(str(function.get("name", ""))), f"{where}: a call has no valid name")
        require(not named or function["name"] in named, f"{where}: {function['name']} is not among the tools")
        _check_arguments(function.get("arguments"), where)
    return ids


def _check_arguments(arguments: Any, where: str) -> None:
    require(isinstance(arguments, str), f"{where}: arguments are not a string")
    try:
        value = json.loads(arguments)
    except ValueError:
        raise InvalidRequest(f"{where}: arguments are not JSON: {arguments[:80]!r}") from None
    require(isinstance(value, dict), f"{where}: arguments are not a JSON object")


def _check_encodable(text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"{where}: text that is not valid Unicode") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
