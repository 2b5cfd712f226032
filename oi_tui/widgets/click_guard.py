"""The click that brings a window to the front is no click on what lies under it."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

FOCUS_CLICK = 0.35
"""Seconds after the window got its focus in which a click is the one that gave it."""


class ClickGuard:
    """Told when the window gains or loses the focus; says whether a click counts."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._focused_at = float("-inf")

    def window_focused(self, focused: bool) -> None:
        """The window has gained or lost the focus."""
        if focused:
            self._focused_at = self._clock()

    def allows(self) -> bool:
        """True if a click now is meant."""
        return self._clock() - self._focused_at > FOCUS_CLICK
