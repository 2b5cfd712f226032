"""How long an endpoint asks its caller to wait: `Retry-After` in its forms, and the words of those that send none."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_IN_WORDS = re.compile(r"(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)?\s*(?:ms|h|m|s)[a-z]*\s*)+)", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|h|m|s)", re.IGNORECASE)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def asked_pause(headers: Mapping[str, str], words: str = "", *, now: float | None = None) -> float | None:
    """Seconds the endpoint asks to wait, from its headers (lower-case names) or else its words; None if it does not.

    A date in `Retry-After` is taken relative to the server's own `Date`, so a wrong clock here does no harm. `now` is
    Unix time, for answers without `Date`.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after", "").strip()
    if given:
        seconds = _number(given)
        return seconds if seconds is not None else _until(given, headers.get("date", ""), now)
    said = _IN_WORDS.search(words)
    if said is None:
        return None
    return sum(float(number) * _UNITS[unit.lower()] for number, unit in _PART.findall(said[1]))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def _until(date: str, server_date: str, now: float | None) -> float | None:
    then = _timestamp(date)
    if then is None:
        return None
    present = _timestamp(server_date)
    if present is None:
        present = time.time() if now is None else now
    return max(0.0, then - present)


def _timestamp(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
