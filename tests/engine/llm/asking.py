"""Asking the real worker, for tests."""

from __future__ import annotations

import asyncio
from typing import Any

from oi_tui.engine.llm.base import Delta, ModelRequest
from oi_tui.engine.llm.worker_model import WorkerModel
from oi_tui.engine.settings import ModelSettings
from tests.openai_server import OpenAIServer

KEY = "sk-the-secret-key-0123456789"
TOOLS = [{"type": "function", "function": {"name": "execute", "parameters": {"type": "object", "properties": {}}}}]


def request(server: OpenAIServer, *, tools: bool = False, text: str = "Hi", **settings: Any) -> ModelRequest:
    given = {"model": "openai/test", "api_base": server.url, "api_key": KEY} | settings
    return ModelRequest([{"role": "user", "content": text}], ModelSettings(**given), TOOLS if tools else [])


async def collect(model: WorkerModel, asked: ModelRequest) -> list[Delta]:
    async with asyncio.timeout(60):
        return [delta async for delta in model.stream(asked)]


def text_of(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas)


def calls_of(deltas: list[Delta]) -> dict[int | None, tuple[str, str]]:
    calls: dict[int | None, tuple[str, str]] = {}
    for call in (call for delta in deltas for call in delta.tool_calls):
        name, arguments = calls.get(call.index, ("", ""))
        calls[call.index] = (name + (call.name or ""), arguments + call.arguments)
    return calls
