"""What LiteLLM's local model map knows about a model: abilities, limits, prices. Pure look-ups, never the network.

LiteLLM's own functions are not used for it: for Ollama they ask the server, for some providers they start a login.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from oi_tui.engine.llm.base import Capabilities, Usage
from oi_tui.engine.llm.targets import Target

_CHAT_MODES = (None, "chat", "completion", "responses")


def entry_of(target: Target, models: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The map's entry for a target; None for models it does not know, such as most local ones."""
    for name in _names(target):
        entry = models.get(name)
        if not isinstance(entry, Mapping) or entry.get("mode") not in _CHAT_MODES:
            continue
        if name == target.model or str(entry.get("litellm_provider", "")).startswith(target.provider.split("_chat")[0]):
            return entry
    return None


def capabilities_of(target: Target, models: Mapping[str, Any]) -> Capabilities:
    """What is known; every field None for a model that is not."""
    entry = entry_of(target, models)
    if entry is None:
        return Capabilities()
    return Capabilities(
        supports_functions=bool(entry.get("supports_function_calling")),
        supports_vision=bool(entry.get("supports_vision")),
        context_window=_tokens(entry.get("max_input_tokens")) or _tokens(entry.get("max_tokens")),
        max_output_tokens=_tokens(entry.get("max_output_tokens")),
        input_price=_price(entry.get("input_cost_per_token")),
        output_price=_price(entry.get("output_cost_per_token")),
    )


def cost_of(usage: Usage, entry: Mapping[str, Any] | None) -> float | None:
    """US dollars for what the provider counted; None when the price is unknown."""
    if entry is None:
        return None
    above = usage.prompt_tokens > 200_000
    fresh, written = _tiered(entry, "input_cost_per_token", above), _tiered(entry, "output_cost_per_token", above)
    if fresh is None or written is None:
        return None
    cached = _tiered(entry, "cache_read_input_token_cost", above)
    cached_tokens = min(usage.cached_tokens, usage.prompt_tokens)
    prompt = (usage.prompt_tokens - cached_tokens) * fresh + cached_tokens * (fresh if cached is None else cached)
    return prompt + usage.completion_tokens * written


def names_like(target: Target, models: Mapping[str, Any]) -> list[str]:
    """Names of chat models of the target's provider, as a user would write them, for suggestions."""
    known = ((n, e) for n, e in models.items() if isinstance(e, Mapping) and e.get("mode") in _CHAT_MODES[1:])
    if not target.provider:
        return [name for name, entry in known if entry.get("litellm_provider") in ("openai", "anthropic", "gemini")]
    family = target.provider.split("_chat")[0]
    return [name for name, entry in known if str(entry.get("litellm_provider", "")).startswith(family)]


def _names(target: Target) -> Iterable[str]:
    """Under which names the map may know the model: as it is, without `_chat`, without provider, without a tag."""
    name, rest = target.model, target.model.partition("/")[2]
    yield name
    if target.provider == "ollama_chat":
        yield f"ollama/{rest}"
        yield f"ollama/{rest.partition(':')[0]}"
    elif rest:
        yield rest


def _tiered(entry: Mapping[str, Any], name: str, above_200k: bool) -> float | None:
    tier = _price(entry.get(f"{name}_above_200k_tokens")) if above_200k else None
    return _price(entry.get(name)) if tier is None else tier


def _tokens(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and value > 0 else None


def _price(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value >= 0 else None
