"""Where a request goes: from what the user configured to what LiteLLM is asked.

The rules are the ones users of Open Interpreter know (a model without a provider goes to `api_base` as an
OpenAI-compatible one, `jan/` is taken off) and one about safety: a key that the environment holds for OpenAI is not
sent to another host just because `api_base` points there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from oi_tui.engine.llm.endpoint import Endpoint
from oi_tui.engine.settings import ModelSettings

DUMMY_KEY = "dummy"
"""Sent where a server wants some key and the user gave none: local servers take anything."""

JAN_BASE = "http://localhost:1337/v1"

_VARIABLES = {
    "together_ai": "TOGETHERAI_API_KEY",
    "fireworks_ai": "FIREWORKS_AI_API_KEY",
    "huggingface": "HF_TOKEN",
    "azure_ai": "AZURE_AI_API_KEY",
    "nvidia_nim": "NVIDIA_NIM_API_KEY",
    "bedrock": "AWS_ACCESS_KEY_ID",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
}
_TITLES = {
    "openai": "OpenAI",
    "xai": "xAI",
    "deepseek": "DeepSeek",
    "openrouter": "OpenRouter",
    "together_ai": "Together AI",
    "vertex_ai": "Vertex AI",
    "ollama": "localhost:11434",
    "ollama_chat": "localhost:11434",
    "lm_studio": "LM Studio",
}
_KEYLESS = frozenset({"ollama", "ollama_chat", "lm_studio", "llamafile"})


@dataclass(frozen=True, slots=True)
class Target:
    """One endpoint and model in LiteLLM's terms. `api_key` None: LiteLLM takes it from the environment."""

    model: str
    provider: str
    host: str
    api_base: str | None = None
    api_key: str | None = None
    key_variable: str | None = None
    key_origin: str | None = None
    withheld_variable: str | None = None

    @property
    def is_custom(self) -> bool:
        return self.api_base is not None

    def endpoint(self, settings: ModelSettings, known_models: Collection[str] = ()) -> Endpoint:
        """What error lines need to know."""
        return Endpoint(
            host=self.host,
            model=settings.model or self.model,
            key_variable=self.key_variable,
            key_origin=self.key_origin,
            withheld_variable=self.withheld_variable,
            is_custom=self.is_custom,
            idle_timeout=settings.idle_timeout,
            known_models=tuple(known_models),
        )


def find_target(
    settings: ModelSettings, *, providers: Collection[str], models: Mapping[str, Any], environment: Mapping[str, str]
) -> Target:
    """The target of these settings. `providers` are LiteLLM's prefixes, `models` its price map; asks no network."""
    base = normalise_base(settings.api_base)
    name, base = _with_provider((settings.model or "").strip(), base, providers)
    provider = provider_of(name, providers=providers, models=models)
    variable = _VARIABLES.get(provider, f"{provider.upper()}_API_KEY") if provider else None
    key = settings.api_key or None
    origin: str | None = None
    withheld: str | None = None
    if key is not None:
        origin = "the settings"
    elif variable and environment.get(variable):
        origin = variable
    if key is None and provider == "openai" and base is not None and not _is_openai(base, environment):
        key, withheld, origin = DUMMY_KEY, origin, None
    return Target(
        model=name,
        provider=provider,
        host=_host(base, provider, environment),
        api_base=base,
        api_key=key,
        key_variable=None if provider in _KEYLESS or base is not None else variable,
        key_origin=origin,
        withheld_variable=withheld,
    )


def normalise_base(base: str | None) -> str | None:
    """The address with a scheme and without the path of the call itself, which people often paste with it."""
    if base is None or not base.strip():
        return None
    base = base.strip().rstrip("/").removesuffix("/chat/completions").rstrip("/")
    if "://" not in base:
        host = urlsplit(f"//{base}").hostname or ""
        is_local = host == "localhost" or host.replace(".", "").isdigit() or ":" in host
        base = f"{'http' if is_local else 'https'}://{base}"
    return base


def provider_of(name: str, *, providers: Collection[str], models: Mapping[str, Any]) -> str:
    """LiteLLM's name of the provider; empty when the model's name does not tell."""
    prefix = name.partition("/")[0]
    if "/" in name and prefix in providers:
        return prefix
    entry = models.get(name)
    provider = str(entry.get("litellm_provider", "")) if isinstance(entry, Mapping) else ""
    if provider.startswith("vertex_ai"):
        return "vertex_ai"
    if not provider:
        if name.startswith(("gpt-", "chatgpt-", "o1", "o3", "o4", "ft:gpt-")):
            return "openai"
        return "anthropic" if name.startswith("claude-") else ""
    return provider


def host_of(settings: ModelSettings) -> str:
    """Whom a request goes to, for people, as far as the settings alone tell."""
    base = normalise_base(settings.api_base)
    if base is not None:
        return _netloc(base)
    prefix, slash, _ = (settings.model or "").partition("/")
    return _TITLES.get(prefix, prefix.replace("_", " ").title()) if slash else "the model"


def _with_provider(name: str, base: str | None, providers: Collection[str]) -> tuple[str, str | None]:
    prefix, slash, rest = name.partition("/")
    if prefix == "jan" and slash:
        return f"openai/{rest}", base or JAN_BASE
    if prefix == "ollama" and slash:
        return f"ollama_chat/{rest}", base  # the same server's better API: real tool calls, chat instead of completion
    if base is not None and not (slash and prefix in providers):
        return f"openai/{name}", base
    return name, base


def _is_openai(base: str, environment: Mapping[str, str]) -> bool:
    """Whether OPENAI_API_KEY is meant for this host: OpenAI's own, or the one the environment names beside the key."""
    host = urlsplit(base).hostname or ""
    named = (urlsplit(environment.get(v, "")).hostname for v in ("OPENAI_BASE_URL", "OPENAI_API_BASE"))
    return host == "api.openai.com" or host.endswith(".openai.com") or host in [n for n in named if n]


def _host(base: str | None, provider: str, environment: Mapping[str, str]) -> str:
    if base is None and provider == "openai":
        base = environment.get("OPENAI_BASE_URL") or environment.get("OPENAI_API_BASE") or None
    if base is None and provider in ("ollama", "ollama_chat"):
        base = environment.get("OLLAMA_API_BASE") or None
    if base is not None:
        return _netloc(base)
    return _TITLES.get(provider, provider.replace("_", " ").title()) or "the model"


def _netloc(base: str) -> str:
    """Host and port, without a user's name and password."""
    return urlsplit(base).netloc.rpartition("@")[2] or base
