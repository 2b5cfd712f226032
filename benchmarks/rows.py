"""One measured promise: a value, what it is compared with, and what was promised."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """`ratio` is value / reference, both measured in the same run. `met` says whether the goal was reached."""

    name: str
    value: float
    unit: str
    reference: float | None
    ratio: float | None
    goal: str
    met: bool

    @classmethod
    def at_most(cls, name: str, value: float, unit: str, limit: float) -> Row:
        """The value itself must stay within the limit."""
        return cls(name, value, unit, None, None, f"≤ {limit:g} {unit}", value <= limit)

    @classmethod
    def against(cls, name: str, value: float, unit: str, reference: float, limit: float) -> Row:
        """The value must stay within `limit` times the reference measured in the same run."""
        ratio = value / reference if reference else float("inf")
        return cls(name, value, unit, reference, ratio, f"≤ {limit:g}x the reference", ratio <= limit)

    @classmethod
    def plain(cls, name: str, value: float, unit: str, reference: float | None = None) -> Row:
        """Worth knowing; nothing was promised."""
        return cls(name, value, unit, reference, value / reference if reference else None, "–", True)
