"""A conversation as Open Interpreter stores it: a JSON list of LMC messages."""

from __future__ import annotations

import json

from oi_tui.engine.exporters.base import Conversation


def render(conversation: Conversation) -> str:
    """Only what the format knows: no reasoning, no errors of the model."""
    wire = [m.to_dict() for m in conversation.messages if m.role != "server" and m.type != "reasoning"]
    return json.dumps(wire, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace").decode() + "\n"
