"""Chunks of the chat completions API, as they come, to the pieces of the worker's protocol.

Both the streamed form (`delta`) and the whole form (`message`) are read. Nothing is invented: a missing id stays
missing, a missing finish reason stays missing. Source of the fields: the OpenAI API reference; `reasoning_content`
(DeepSeek, vLLM, litellm), `reasoning` (OpenRouter, Ollama), `function_call` (before tools).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from oi_tui.engine.llm.worker_protocol import Piece


def pieces_of(chunk: Mapping[str, Any]) -> list[Piece]:
    """The pieces of one chunk in their order; of several choices only the first counts."""
    choices = chunk.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        return []
    choice = choices[0]
    body = choice.get("delta") or choice.get("message") or {}
    pieces: list[Piece] = []
    if isinstance(body, Mapping):
        if reasoning := _reasoning(body):
            pieces.append(["r", reasoning])
        if text := _text(body.get("content")) or _text(body.get("refusal")):
            pieces.append(["t", text])
        pieces += _calls(body)
    elif isinstance(choice.get("text"), str):
        pieces.append(["t", choice["text"]])
    if isinstance(reason := choice.get("finish_reason"), str) and reason:
        pieces.append(["f", reason])
    return pieces


def usage_of(chunk: Mapping[str, Any]) -> dict[str, Any] | None:
    """Prompt, completion and cached tokens that the provider counted, and the cost where it says one (OpenRouter does).

    None if it says nothing.
    """
    usage = chunk.get("usage")
    if not isinstance(usage, Mapping):
        return None
    prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if not prompt and not completion:
        return None
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else 0
    cached = cached or _count(usage.get("cache_read_input_tokens")) or _count(usage.get("prompt_cache_hit_tokens"))
    counted: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": completion, "cached_tokens": cached}
    cost = usage.get("cost")
    if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0:
        counted["cost"] = float(cost)
    return counted


def _calls(body: Mapping[str, Any]) -> Iterable[Piece]:
    calls = body.get("tool_calls")
    calls = calls if isinstance(calls, list) else []
    for position, call in enumerate(calls):
        if isinstance(call, Mapping):
            index = call.get("index")
            if not isinstance(index, int):  # whole answers number their calls by position
                index = position if len(calls) > 1 else None
            yield _call(index, call.get("id"), call.get("function"))
    if isinstance(body.get("function_call"), Mapping):
        yield _call(0, None, body["function_call"])


def _call(index: int | None, call_id: Any, function: Any) -> Piece:
    function = function if isinstance(function, Mapping) else {}
    arguments = function.get("arguments")
    if arguments is None:
        arguments = ""
    elif not isinstance(arguments, str):  # some local servers send the object itself
        arguments = json.dumps(arguments)
    name = function.get("name")
    return ["c", index, str(call_id) if call_id else None, name if isinstance(name, str) and name else None, arguments]


def _reasoning(body: Mapping[str, Any]) -> str:
    for key in ("reasoning_content", "reasoning"):
        if isinstance(body.get(key), str) and body[key]:
            return str(body[key])
    return ""


def _text(content: Any) -> str:
    """Text, also where it comes as a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(p.get("text") or "") for p in content if isinstance(p, Mapping) and p.get("type") == "text")
    return ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
