"""Where requests go, with which key, and what is known about the model there."""

from __future__ import annotations

from typing import Any

import pytest

from oi_tui.engine.llm.base import Capabilities, Usage
from oi_tui.engine.llm.capabilities import capabilities_of, cost_of, entry_of, names_like
from oi_tui.engine.llm.targets import Target, find_target, host_of, normalise_base
from oi_tui.engine.settings import ModelSettings

PROVIDERS = {"openai", "anthropic", "ollama", "ollama_chat", "azure", "groq", "gemini", "openrouter"}
MODELS: dict[str, Any] = {
    "gpt-5": {
        "litellm_provider": "openai",
        "mode": "chat",
        "max_input_tokens": 272000,
        "max_output_tokens": 128000,
        "input_cost_per_token": 1e-6,
        "output_cost_per_token": 1e-5,
        "cache_read_input_token_cost": 1e-7,
        "supports_function_calling": True,
        "supports_vision": True,
    },
    "claude-x": {"litellm_provider": "anthropic", "mode": "chat", "max_tokens": 4096},
    "ollama/llama3": {
        "litellm_provider": "ollama",
        "mode": "chat",
        "max_input_tokens": 8192,
        "input_cost_per_token": 0.0,
        "output_cost_per_token": 0.0,
    },
    "text-embed": {"litellm_provider": "openai", "mode": "embedding"},
    "llama": {"litellm_provider": "groq", "mode": "chat", "max_input_tokens": 1},
}


def target(environment: dict[str, str] | None = None, **settings: Any) -> Target:
    return find_target(ModelSettings(**settings), providers=PROVIDERS, models=MODELS, environment=environment or {})


@pytest.mark.parametrize(
    ("settings", "model", "base"),
    [
        ({"model": "gpt-5"}, "gpt-5", None),
        ({"model": "llama", "api_base": "http://h:1/v1"}, "openai/llama", "http://h:1/v1"),
        ({"model": "meta-llama/Llama-3", "api_base": "http://h/v1"}, "openai/meta-llama/Llama-3", "http://h/v1"),
        ({"model": "openai/x", "api_base": "http://h/v1"}, "openai/x", "http://h/v1"),
        ({"model": "anthropic/x", "api_base": "http://h"}, "anthropic/x", "http://h"),
        ({"model": "jan/mistral", "api_base": "http://h/v1"}, "openai/mistral", "http://h/v1"),
        ({"model": "jan/mistral"}, "openai/mistral", "http://localhost:1337/v1"),
        ({"model": "ollama/llama3"}, "ollama_chat/llama3", None),
        ({"model": " gpt-5 ", "api_base": "  "}, "gpt-5", None),
    ],
)
def test_the_model_gets_the_prefix_it_needs(settings: dict[str, Any], model: str, base: str | None) -> None:
    found = target(**settings)
    assert (found.model, found.api_base) == (model, base)


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("http://h/v1/", "http://h/v1"),
        ("http://h/v1/chat/completions", "http://h/v1"),
        ("localhost:1234/v1", "http://localhost:1234/v1"),
        ("192.168.1.5:8080", "http://192.168.1.5:8080"),
        ("api.example.com/v1", "https://api.example.com/v1"),
        ("", None),
        (None, None),
    ],
)
def test_addresses_are_taken_as_people_write_them(given: str | None, base: str | None) -> None:
    assert normalise_base(given) == base


def test_a_key_of_the_settings_is_sent_as_it_is() -> None:
    found = target(model="gpt-5", api_key="k", environment={"OPENAI_API_KEY": "other"})
    assert (found.api_key, found.key_origin) == ("k", "the settings")


def test_a_key_of_the_environment_goes_to_its_own_provider_only() -> None:
    environment = {"OPENAI_API_KEY": "secret"}
    assert target(environment, model="gpt-5").api_key is None  # litellm takes it from the environment
    assert target(environment, model="gpt-5").key_origin == "OPENAI_API_KEY"
    elsewhere = target(environment, model="llama", api_base="https://example.com/v1")
    assert (elsewhere.api_key, elsewhere.key_origin) == ("dummy", None)
    assert elsewhere.withheld_variable == "OPENAI_API_KEY"
    for base in ("https://api.openai.com/v1", "https://eu.api.openai.com/v1"):
        assert target(environment, model="gpt-5", api_base=base).api_key is None
    gateway = environment | {"OPENAI_BASE_URL": "https://gateway.example.com/v1"}
    assert target(gateway, model="gpt-5", api_base="https://gateway.example.com/v1").api_key is None


def test_a_local_server_without_a_key_gets_a_dummy() -> None:
    found = target(model="llama", api_base="http://localhost:1234/v1")
    assert (found.api_key, found.key_origin, found.withheld_variable) == ("dummy", None, None)


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ({"model": "gpt-5"}, "OpenAI"),
        ({"model": "claude-x"}, "Anthropic"),
        ({"model": "ollama/llama3"}, "localhost:11434"),
        ({"model": "x", "api_base": "http://bob:secret@h:1/v1"}, "h:1"),
        ({"model": "nobody-knows"}, "the model"),
    ],
)
def test_people_are_told_whom_they_talk_to(settings: dict[str, Any], host: str) -> None:
    assert target(**settings).host == host


def test_the_parent_names_the_host_from_the_settings_alone() -> None:
    assert host_of(ModelSettings(model="x", api_base="http://127.0.0.1:9/v1")) == "127.0.0.1:9"
    assert host_of(ModelSettings(model="groq/llama")) == "Groq"
    assert host_of(ModelSettings(model="gpt-5")) == "the model"


def test_what_is_known_about_a_known_model() -> None:
    known = Capabilities(True, True, 272000, 128000, 1e-6, 1e-5)
    assert capabilities_of(target(model="gpt-5"), MODELS) == known
    assert capabilities_of(target(model="openai/gpt-5"), MODELS) == known
    assert capabilities_of(target(model="gpt-5", api_base="http://127.0.0.1:1/v1"), MODELS) == known
    assert capabilities_of(target(model="anthropic/claude-x"), MODELS).context_window == 4096
    assert capabilities_of(target(model="ollama/llama3:8b"), MODELS).context_window == 8192


@pytest.mark.parametrize(
    "settings", [{"model": "mine", "api_base": "http://h/v1"}, {"model": "llama", "api_base": "http://h/v1"}]
)
def test_local_models_are_unknown_even_when_another_provider_has_the_name(settings: dict[str, Any]) -> None:
    assert capabilities_of(target(**settings), MODELS) == Capabilities()


def test_an_embedding_model_is_no_chat_model() -> None:
    assert entry_of(target(model="text-embed"), MODELS) is None
    assert "text-embed" not in names_like(target(model="gpt-5"), MODELS)


def test_cost_counts_cached_tokens_at_their_price() -> None:
    entry = MODELS["gpt-5"]
    assert cost_of(Usage(1000, 100), entry) == pytest.approx(1000e-6 + 100e-5)
    assert cost_of(Usage(1000, 100, cached_tokens=400), entry) == pytest.approx(600e-6 + 400e-7 + 100e-5)
    assert cost_of(Usage(1000, 100), None) is None
    assert cost_of(Usage(1000, 100), {"input_cost_per_token": 1e-6}) is None
    tiered = entry | {"input_cost_per_token_above_200k_tokens": 2e-6}
    assert cost_of(Usage(300_000, 0), tiered) == pytest.approx(0.6)
