"""Keys out of text: errors, logs, diagnostics, and answers of an endpoint that says its caller's key back.

Two ways to know a key. *Known* keys are exact values: the configured one, and environment variables whose name says
that they hold one. *Shaped* keys look like the keys of the known providers; they are taken out of errors and logs, but
not out of answers, where a user may be writing about keys.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote

STAND_IN = "[key removed]"

MIN_LENGTH = 8
"""Shorter values are not taken for keys: `TOKEN=1` would remove every 1 from every error."""

_NAMES = re.compile(r"(API_?KEY|TOKEN|SECRET|SECRET_?(ACCESS_?)?KEY|ACCESS_?KEY|PASSWORD|PASSWD)\Z", re.IGNORECASE)
_PLACEHOLDERS = frozenset(
    "dummy-key no-key no-key-required not-needed not-required sk-no-key-required sk-dummy lm-studio lmstudio ollama "
    "placeholder anything llamafile llama.cpp localhost undefined".split()
)
"""What people write where a server wants any key at all. Removing `lm-studio` from every answer would help nobody."""

_SHAPES = re.compile(
    r"""
      \b(?:sk|pk|rk)-[\w*.\-]{8,}                         # OpenAI, Anthropic, OpenRouter, DeepSeek; also half masked
    | \b(?:gsk|xai|hf|pplx|nvapi|csk|r8|fw|tgp_v1|glpat)[_-][\w*\-]{12,}
    | \bgithub_pat_\w{20,} | \bgh[pousr]_\w{20,}
    | \bAIza[\w\-]{20,}                                   # Google
    | \b(?:AKIA|ASIA)[A-Z0-9]{12,}                        # AWS key id
    | \beyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*                # JWT
    | (?<=://)[^\s/@:]+:[^\s/@]+(?=@)                     # user:password@ in an address
    """,
    re.VERBOSE,
)
_LABELLED = re.compile(
    r"""
    (?P<label>
        \b(?:authorization|proxy-authorization)["']?\s*[:=]\s*["']?(?:bearer|basic|token)?\s*
      | \bbearer\s+
      | \b(?:x-|x_)?(?:api|goog-api|subscription|access|secret)[-_ ]?(?:key|token)["']?\s*[:=]\s*["']?
      | [?&](?:key|api[-_]?key|token|access_token|sig)=
    )
    (?=\S*[\d*]|\S{24})                                  # words such as "API key: missing" are no key
    (?P<value>[^\s"',;&<>\[\]{}]{6,})
    """,
    re.VERBOSE | re.IGNORECASE,
)


def known_keys(*configured: str | None, environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The exact values to remove: what is configured, and what the environment's names call a key. Longest first."""
    environment = os.environ if environment is None else environment
    values = {v for v in configured if v} | {v for n, v in environment.items() if v and _NAMES.search(n)}
    keys = {v.strip() for v in values if _is_secret(v.strip())}
    return tuple(sorted(keys, key=len, reverse=True))


def redact(text: str, keys: Iterable[str] = (), *, environment: Mapping[str, str] | None = None) -> str:
    """The text without keys: the given ones (also percent- or base64-encoded), the environment's, and key-shaped words.

    Idempotent. Meant for errors and logs; for answers see `StreamRedactor`.
    """
    for key in known_keys(*keys, environment=environment):
        for form in _forms(key):
            text = text.replace(form, STAND_IN)
    text = _SHAPES.sub(STAND_IN, text)
    return _LABELLED.sub(lambda match: match["label"] + STAND_IN, text)


class StreamRedactor:
    """Removes known keys from a text that arrives in pieces, wherever a key is cut.

    At most the last characters that could begin a key are held back, and only from the fourth on, so that an ordinary
    text ending in "s" is not delayed; a key cut in its first three characters leaves these three.
    """

    HELD_FROM = 4

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = tuple(keys)
        self._held = ""
        self._shown = ""  # the last characters given out: a key may have begun in them
        self._keep = min(self.HELD_FROM, max(map(len, self._keys), default=1)) - 1

    def feed(self, text: str) -> str:
        """What may be shown now."""
        if not self._keys:
            return text
        begun = len(self._shown)
        text = self._shown + self._held + text
        for key in self._keys:
            text, begun = self._remove(text, key, begun)
        hold = max((self._overlap(text, key) for key in self._keys), default=0)
        hold = min(hold, len(text) - begun) if hold >= self.HELD_FROM else 0
        out, self._held = text[begun : len(text) - hold], text[len(text) - hold :]
        self._shown = (text[:begun] + out)[-self._keep :] if self._keep else ""
        return out

    def flush(self) -> str:
        """What was held back: call when the text is over."""
        held, self._held = self._held, ""
        return held

    @staticmethod
    def _remove(text: str, key: str, begun: int) -> tuple[str, int]:
        """The text with the key replaced. `begun`: how much of it was given out and cannot be taken back."""
        at = text.find(key)
        while at >= 0:
            begin = max(at, begun)
            text = text[:begin] + STAND_IN + text[at + len(key) :]
            at = text.find(key, begin + len(STAND_IN))
        return text, begun

    @staticmethod
    def _overlap(text: str, key: str) -> int:
        """How many characters at the end of the text could begin the key."""
        for length in range(min(len(text), len(key) - 1), 0, -1):
            if text.endswith(key[:length]):
                return length
        return 0


def _is_secret(value: str) -> bool:
    return len(value) >= MIN_LENGTH and value.lower() not in _PLACEHOLDERS and not value.isdecimal()


def _forms(key: str) -> tuple[str, ...]:
    encoded = key.encode("utf-8", "replace")
    bases = {base64.b64encode(prefix + encoded).decode().rstrip("=") for prefix in (b"", b":")}
    return (key, *({quote(key, safe="")} - {key}), *sorted(bases))
