"""The seam between the loop and a language model.

Requests are in the form of the OpenAI chat completions API (messages, tools), because every provider LiteLLM reaches is
addressed in it. Answers are `Delta`s. Implementations: `worker_model.WorkerModel` (LiteLLM in a process of its own),
`custom.CustomModel` (a Python function), `demo.DemoModel` (scripted, no AI), and fakes in tests.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from oi_tui.engine.settings import ModelSettings


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A fragment of a tool call. `index` and `id` tell parallel calls apart; both may be missing."""

    index: int | None = None
    id: str | None = None
    name: str | None = None
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of one request. `estimated` is True where the provider did not say. `cost` is in US dollars,
    None when the price is unknown. `prompt_tokens` includes `cached_tokens`."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        costs = [c for c in (self.cost, other.cost) if c is not None]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            sum(costs) if costs else None,
            self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True)
class Delta:
    """One step of an answer. Fields that do not apply keep their empty default.

    `notice` is a line for the user about the request itself, such as "no answer yet": (kind, text).
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    notice: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What is known about a model; None is unknown. Token counts are per request, prices in US dollars per token."""

    supports_functions: bool | None = None
    supports_vision: bool | None = None
    context_window: int | None = None
    max_output_tokens: int | None = None
    input_price: float | None = None
    output_price: float | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request: OpenAI-form messages and tools, and the settings it is made with."""

    messages: Sequence[Mapping[str, Any]]
    settings: ModelSettings
    tools: Sequence[Mapping[str, Any]] = ()


class ChatModel(Protocol):
    """A language model. One request at a time; closing the stream cancels the request within a second."""

    async def warm(self) -> None:
        """Make the next request fast. May be called any number of times; never raises for a model's fault."""

    async def capabilities(self, settings: ModelSettings) -> Capabilities:
        """What is known about the configured model, without asking the network."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """One attempt at an answer. Raises a `ModelError`; does not retry."""

    async def aclose(self) -> None:
        """End whatever the model holds: processes, connections. Idempotent."""
