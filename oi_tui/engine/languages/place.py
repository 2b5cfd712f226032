"""Where languages run: folder, spill folder, environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_MODEL_KEYS = frozenset(
    f"{provider}_API_KEY"
    for provider in (
        "AI21 ANTHROPIC ANYSCALE AZURE AZURE_AI CEREBRAS CODESTRAL COHERE CO DATABRICKS DEEPINFRA DEEPSEEK FIREWORKS "
        "FIREWORKS_AI FRIENDLIAI GEMINI GOOGLE GROQ HUGGINGFACE LM_STUDIO MISTRAL MOONSHOT NOVITA NVIDIA_NIM OLLAMA "
        "OPENAI OPENROUTER PERPLEXITY PERPLEXITYAI REPLICATE SAMBANOVA TOGETHER TOGETHERAI TOGETHER_AI VOLCENGINE "
        "VOYAGE WATSONX XAI ZAI ZHIPUAI"
    ).split()
) | {"DATABRICKS_TOKEN", "INTERPRETER_API_KEY", "OI_TUI_API_KEY", "WATSONX_TOKEN"}


def environment_for_code(
    secret: str | None = None, *, keep_keys: bool = False, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment that code is given: the user's, without the keys oi-tui uses to reach models.

    Left out are the providers' key variables and every variable whose value is `secret` (the configured key), unless
    `keep_keys`. Other credentials of the user (cloud, package registries, databases) are his tools and stay.
    """
    env = dict(os.environ if base is None else base)
    if keep_keys:
        return env
    return {
        name: value
        for name, value in env.items()
        if name.upper() not in _MODEL_KEYS and not (secret and value == secret)
    }


@dataclass(frozen=True, slots=True)
class Place:
    """Where a conversation's code runs.

    `folder` is the conversation's own folder, where complete outputs are spilled; None: a private temporary one.
    """

    cwd: Path = field(default_factory=Path.cwd)
    folder: Path | None = None
    environment: Mapping[str, str] = field(default_factory=environment_for_code, repr=False)
    kernel: str | None = None
    """Which Jupyter kernel runs Python; see `Settings.kernel`."""
    shell: str | None = None
    """The shell's program. None: bash, or sh where there is none."""
    time_limit: float | None = None
    """Seconds that one block may take. None: any."""
    idle_limit: float | None = None
    """Seconds that a block may go on without output. None: any."""
