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
