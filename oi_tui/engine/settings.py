"""Typed settings: one schema for flags, environment, profiles and the Python API.

Precedence, highest first: command line, environment, profile, default. `Settings.origins` remembers where each value
came from. Names are Open Interpreter's wherever it has the setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

USER_MESSAGE_TEMPLATE = "{content}"
CODE_OUTPUT_TEMPLATE = (
    "Code output: {content}\n\nWhat does this mean for the task? Go on with the next step, or answer if it is done."
)
EMPTY_CODE_OUTPUT_TEMPLATE = (
    "The code ran and printed nothing. Go on with the next step, or answer if the task is done."
)
LOOP_MESSAGE = (
    "Go on. You may run code. When the whole task is done, say exactly 'The task is done.' "
    "If it cannot be done, say exactly 'The task is impossible.' "
    "If you need something specific from the user, say exactly 'Please provide more information.' "
    "If there is no task, say exactly 'Let me know what you'd like to do next.'"
)
LOOP_BREAKERS = (
    "The task is done.",
    "The task is impossible.",
    "Let me know what you'd like to do next.",
    "Please provide more information.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """How to reach the model and what to ask of it. `None` means: not set, find out or leave it to the provider."""

    model: str | None = None
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_version: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = None
    context_window: int | None = None
    supports_functions: bool | None = None
    supports_vision: bool | None = None
    max_budget: float | None = None
    """US dollars for this session."""
    execution_instructions: str | None = None
    """How to write code, for text mode. None: ours; empty: none."""
    completions: Any = field(default=None, repr=False, compare=False)
    """A Python function that answers instead of LiteLLM; only Python profiles and the Python API can set it."""
    connect_notice: float = 10.0
    """Seconds without an answer before the user is told."""
    idle_timeout: float = 60.0
    """Seconds without a byte before a request is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be configured. Lengths are in characters, times in seconds."""

    llm: ModelSettings = field(default_factory=ModelSettings)
    auto_run: bool = False
    max_output: int = 2800
    loop: bool = False
    loop_message: str = LOOP_MESSAGE
    loop_breakers: tuple[str, ...] = LOOP_BREAKERS
    loop_limit: int = 25
    """Loop mode sends at most this many loop messages for one request of the user."""
    system_message: str | None = None
    """Replaces the built-in system message."""
    custom_instructions: str = ""
    user_message_template: str = USER_MESSAGE_TEMPLATE
    always_apply_user_message_template: bool = False
    code_output_template: str = CODE_OUTPUT_TEMPLATE
    empty_code_output_template: str = EMPTY_CODE_OUTPUT_TEMPLATE
    code_output_sender: Literal["user", "assistant"] = "user"
    shrink_images: bool = True
    safe_mode: Literal["off", "ask", "auto"] = "off"
    offline: bool = False
    kernel: str | None = None
    """A kernelspec's name, a Python executable, or the folder of a virtual environment. None: the Python of oi-tui."""
    languages: tuple[str, ...] | None = None
    """Restricts the languages. None: all that are available."""
    shell: str | None = None
    """The program that runs shell code. None: bash."""
    pass_keys: bool = False
    """Whether code sees the keys of model providers that are in the environment."""
    time_limit: float | None = None
    """Seconds that a block in another language than Python may run. None: any."""
    idle_limit: float | None = None
    """Seconds that such a block may go on without output. None: any."""
    conversation_history: bool = True
    """Whether conversations are stored."""
    conversation_filename: str | None = None
    """Also write the conversation to a file of this name, as Open Interpreter does. None: named after its beginning."""
    conversation_history_path: str | None = None
    """The folder of that file. With neither set there is no such file."""
    highlight_active_line: bool = True
    images: Literal["auto", "kitty", "sixel", "half", "off"] = "auto"
    """How pictures are drawn in the terminal."""
    theme: str | None = None
    """Name of the screen's colour theme. None: the screen decides."""
    verbose: bool = False
    notes: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Lines for the user about the sources: unknown keys, values that were withheld. Front ends show them once."""
    profile: str | None = None
    """What the user named: a profile's name or path. None: the default one."""
    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Setting name (dotted, `llm.model`) to where its value came from, for people."""
