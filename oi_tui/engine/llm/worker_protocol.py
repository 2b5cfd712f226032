"""What the program and its model worker say to each other: one JSON object per line, over two pipes.

To the worker (`do`):   request (id, settings, messages, tools) · capabilities (id, settings) · cancel (id) · ack (id)
From the worker (`is`): ready · broken (why) · open (id) · alive · pieces (id, pieces) · end (id) · fault (id, …)
                        · capabilities (id, …)

An answer travels as *pieces* in their order: `["t", text]`, `["r", reasoning]`, `["c", index, id, name, arguments]`,
`["f", finish_reason]`, `["u", usage]`. Each `pieces` line is acknowledged when it was consumed; a worker that has
`WINDOW` lines outstanding stops reading from the endpoint, so a slow consumer slows the model down instead of filling
memory. Keys travel in `settings` over the pipe, never on a command line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any, TypeAlias

from oi_tui.engine import errors
from oi_tui.engine.errors import ModelError
from oi_tui.engine.llm.base import Capabilities, Delta, ToolCallDelta, Usage
from oi_tui.engine.settings import ModelSettings

Line: TypeAlias = dict[str, Any]
Piece: TypeAlias = list[Any]

WINDOW = 8
"""Lines of an answer that may be on their way without having been consumed."""

HEARTBEAT = 2.0
"""Seconds between signs of life while a request is under way."""

_SENT_SETTINGS = (
    "model", "api_base", "api_key", "api_version", "temperature", "max_tokens", "context_window", "idle_timeout",
)  # fmt: skip


def encode(line: Mapping[str, Any]) -> bytes:
    """One line of the protocol. ASCII, so that a newline can only be its end; lone surrogates survive as escapes."""
    return json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n"


def decode(line: bytes) -> Line:
    """Raises `ValueError` for anything that is not one line of the protocol."""
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("not a protocol line")
    return value


def settings_to_wire(settings: ModelSettings) -> Line:
    return {name: getattr(settings, name) for name in _SENT_SETTINGS}


def settings_from_wire(wire: Mapping[str, Any]) -> ModelSettings:
    return ModelSettings(**{name: wire[name] for name in _SENT_SETTINGS if name in wire})


def deltas_from_pieces(pieces: Iterable[Piece]) -> list[Delta]:
    """The pieces as deltas, in their order."""
    return [_delta(piece) for piece in pieces]


def _delta(piece: Piece) -> Delta:
    match piece:
        case ["t", text]:
            return Delta(text=text)
        case ["r", reasoning]:
            return Delta(reasoning=reasoning)
        case ["c", index, call_id, name, arguments]:
            return Delta(tool_calls=(ToolCallDelta(index, call_id, name, arguments),))
        case ["f", reason]:
            return Delta(finish_reason=reason)
        case ["u", usage]:
            return Delta(usage=Usage(**usage))
    raise ValueError(f"unknown piece {piece!r:.80}")


def usage_to_wire(usage: Usage) -> Line:
    return asdict(usage)


def capabilities_from_wire(wire: Mapping[str, Any]) -> Capabilities:
    return Capabilities(**{f.name: wire.get(f.name) for f in fields(Capabilities)})


def fault_to_wire(error: ModelError) -> Line:
    return {
        "code": error.code,
        "what": error.what,
        "hint": error.hint,
        "retry_after": error.retry_after,
        "retryable": error.retryable,
    }


def fault_from_wire(wire: Mapping[str, Any]) -> ModelError:
    kind = _KINDS.get(wire.get("code", ""), ModelError)
    return kind(
        wire.get("what", ""),
        wire.get("hint", ""),
        retry_after=wire.get("retry_after"),
        retryable=wire.get("retryable"),
    )


def _kinds() -> dict[str, type[ModelError]]:
    found = (value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, ModelError))
    return {kind.code: kind for kind in found}


_KINDS = _kinds()
