"""The endpoint of a request as people are told about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Whom a request went to, as far as an error line needs it. `host` is for people: "OpenAI", "127.0.0.1:1234"."""

    host: str
    model: str
    key_variable: str | None = None
    """The environment variable that the provider reads its key from."""
    key_origin: str | None = None
    """Where the key that was sent came from: "--api_key", a variable's name; None when none was sent."""
    withheld_variable: str | None = None
    """A variable that holds a key, but for another host."""
    is_custom: bool = False
    """True when the user gave the address."""
    idle_timeout: float = 60.0
    known_models: Sequence[str] = ()
    """Names to suggest when this one is unknown."""
