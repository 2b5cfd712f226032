"""Chunks of all kinds of endpoints, passed on faithfully."""

from __future__ import annotations

from typing import Any

import pytest

from oi_tui.engine.llm.wire_chunks import pieces_of, usage_of


def delta(finish: str | None = None, **body: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": body, "finish_reason": finish}]}


@pytest.mark.parametrize(
    ("chunk", "pieces"),
    [
        (delta(content="Hi"), [["t", "Hi"]]),
        (delta(role="assistant", content=""), []),
        (delta(content=None), []),
        (delta("stop"), [["f", "stop"]]),
        (delta("stop", content="end"), [["t", "end"], ["f", "stop"]]),
        (delta(reasoning_content="hm"), [["r", "hm"]]),
        (delta(reasoning="hm", reasoning_content=None), [["r", "hm"]]),
        (delta(content=[{"type": "text", "text": "parts"}]), [["t", "parts"]]),
        (
            delta(tool_calls=[{"index": 1, "id": "c1", "function": {"name": "execute", "arguments": ""}}]),
            [["c", 1, "c1", "execute", ""]],
        ),
        (delta(tool_calls=[{"function": {"arguments": '{"a'}}]), [["c", None, None, None, '{"a']]),
        (
            delta(tool_calls=[{"function": {"name": "execute", "arguments": {"code": "1"}}}]),
            [["c", None, None, "execute", '{"code": "1"}']],
        ),
        (delta(function_call={"name": "execute", "arguments": "{"}), [["c", 0, None, "execute", "{"]]),
        ({"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}, [["t", "whole"], ["f", "stop"]]),
        (
            {"choices": [{"message": {"tool_calls": [{"function": {"name": n, "arguments": "{}"}} for n in "ab"]}}]},
            [["c", 0, None, "a", "{}"], ["c", 1, None, "b", "{}"]],
        ),
        ({"choices": []}, []),
        ({"choices": None}, []),
        ({"choices": ["nonsense"]}, []),
        ({"choices": [{"delta": "nonsense"}]}, []),
        ({"choices": [{"delta": None}]}, []),
        ({"object": "ping"}, []),
        ({"choices": [{"delta": {"tool_calls": [None, "x", {"function": None}]}}]}, [["c", 2, None, None, ""]]),
    ],
)
def test_a_chunk_becomes_its_pieces(chunk: dict[str, Any], pieces: list[Any]) -> None:
    assert pieces_of(chunk) == pieces


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 3}, (10, 3, 0)),
        ({"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}}, (10, 3, 8)),
        ({"prompt_tokens": 10, "completion_tokens": 0, "prompt_cache_hit_tokens": 4}, (10, 0, 4)),
    ],
)
def test_usage_is_what_the_provider_counted(usage: dict[str, Any], expected: tuple[int, int, int]) -> None:
    found = usage_of({"usage": usage})
    assert found is not None
    assert (found["prompt_tokens"], found["completion_tokens"], found["cached_tokens"]) == expected


@pytest.mark.parametrize("usage", [None, {}, "12", {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": -1}])
def test_no_usage_is_no_usage(usage: Any) -> None:
    assert usage_of({"usage": usage}) is None
