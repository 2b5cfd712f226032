"""The embedded demo: a scripted `ChatModel`. No AI, no network, no key; but real code for the real kernel.

It answers from the messages of the request alone, as any model does: it finds the user's last request, what it wrote
for that, and what came of it, in tool mode and in text mode.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any

from oi_tui.engine.llm.base import Capabilities, Delta, ModelRequest, ToolCallDelta, Usage
from oi_tui.engine.llm.demo_scenes import Run, Say, Situation, next_step
from oi_tui.engine.llm.request_form import text_of
from oi_tui.engine.settings import CODE_OUTPUT_TEMPLATE, EMPTY_CODE_OUTPUT_TEMPLATE, ModelSettings

PACE = 0.018
"""Seconds between two words: quick, but so that one sees it being written."""

CODE_PACE = 0.4
"""Code comes faster than prose, as it does from models."""

CONTEXT_WINDOW = 32_000

_FENCE = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NOT_RUN = re.compile(r"\bdeclined to run\b|\bwas not run\b")
_REFUSED = re.compile(
    r"There is no language “|There was no code in that block|This is the very code that just ran"
    r"|[^\n]{1,60} (?:is turned off \(setting|is not installed \(no |exists on macOS only)"
)
"""How the engine's own reasons begin."""
_EDITED = "The user changed your code before it ran."
_STOPPED = "[The user stopped this code"
_NO_OUTPUT = ("No output.", EMPTY_CODE_OUTPUT_TEMPLATE)


class DemoModel:
    """Streams the script's answers word by word, `pace` seconds apart."""

    def __init__(self, *, pace: float = PACE) -> None:
        self._pace = pace

    async def warm(self) -> None:
        """Nothing to warm."""

    async def capabilities(self, settings: ModelSettings) -> Capabilities:
        """A modest model that calls tools and sees nothing. It costs nothing."""
        return Capabilities(
            supports_functions=True,
            supports_vision=False,
            context_window=CONTEXT_WINDOW,
            max_output_tokens=4096,
            input_price=0.0,
            output_price=0.0,
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """One answer. Never fails."""
        said = next_step(read_situation(request.messages))
        for delta in _deltas(said, tool_mode=bool(request.tools)):
            await asyncio.sleep(self._pace if delta.text else self._pace * CODE_PACE)
            yield delta
        tokens = sum(len(str(message.get("content") or "")) for message in request.messages) // 4
        answer = (len(said.text) + len(said.code or "")) // 4
        yield Delta(
            finish_reason="tool_calls" if said.code and request.tools else "stop",
            usage=Usage(prompt_tokens=tokens, completion_tokens=answer, cost=0.0, estimated=True),
        )

    async def aclose(self) -> None:
        """Nothing to close."""


def _deltas(said: Say, *, tool_mode: bool) -> Iterator[Delta]:
    for word in _words(said.text):
        yield Delta(text=word)
    if said.code is None:
        return
    if not tool_mode:
        for word in _words(f"\n\n```{said.language}\n{said.code.rstrip()}\n```\n"):
            yield Delta(text=word)
        return
    yield Delta(tool_calls=(ToolCallDelta(index=0, id="demo_call", name="execute"),))
    for word in _words(json.dumps({"language": said.language, "code": said.code.rstrip()})):
        yield Delta(tool_calls=(ToolCallDelta(index=0, arguments=word),))


def _words(text: str) -> list[str]:
    """The text in pieces of a word each, with the space behind it; joined they are the text."""
    return re.findall(r"\S+\s*|\s+", text)


# -- reading the request -----------------------------------------------------------------------------------------------


def read_situation(messages: Sequence[Mapping[str, Any]]) -> Situation:
    """What the user asked last, and what has been run for it."""
    request, runs = "", list[Run]()
    before: Run | None = None
    pending: list[str] = []
    requests = 0
    for message in messages:
        role, text = message.get("role"), text_of(message).strip()
        if role == "assistant":
            pending += _codes_of(message, text)
            continue
        is_said = role == "user" and getattr(message, "opens_exchange", not pending)
        if role == "tool" or (role == "user" and pending):
            # In text mode what the user says next may stand in the same message, below the result.
            result, _, text = text.rpartition("\n\n") if is_said else (text, "", "")
            runs.append(_run(pending.pop(0) if pending else "", result))
        if is_said and text:
            before = runs[-1] if runs else None
            request, runs, pending = text, [], []
            requests += 1
    return Situation(request, runs, before, is_first=requests <= 1)


def _run(code: str, result: str) -> Run:
    edited = result.startswith(_EDITED)
    output = result.partition("\n\n")[2] if edited else result
    beginning, _, end = CODE_OUTPUT_TEMPLATE.partition("{content}")
    output = output.removeprefix(beginning).removesuffix(end)
    if output in _NO_OUTPUT:
        output = ""
    interrupted = _STOPPED in output
    output = "\n".join(line for line in output.splitlines() if not line.startswith(_STOPPED))
    refused = bool(_REFUSED.match(result)) or "was not run" in result
    return Run(code, output, edited, interrupted, declined=bool(_NOT_RUN.search(result)), refused=refused)


def _codes_of(message: Mapping[str, Any], text: str) -> list[str]:
    """The code that an assistant message wants to run."""
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        return [_code_of_call(call) for call in calls if isinstance(call, Mapping)]
    return [match.group(1).rstrip("\n") for match in _FENCE.finditer(text)]


def _code_of_call(call: Mapping[str, Any]) -> str:
    try:
        return str(json.loads(call["function"]["arguments"])["code"])
    except (KeyError, TypeError, ValueError):
        return ""
