"""Telling a user who looks elsewhere that something waits or has ended: bell, window title, desktop notification.

Nothing is sent while the window has the focus. A terminal that never reports its focus is taken to have it.
"""

from __future__ import annotations

from collections.abc import Callable

from oi_tui.rendering.sanitise import sanitise_line

_LONGEST = 80


class Notifier:
    """`write` sends to the terminal. The app reports what it learns of the focus."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._has_focus = True
        self._is_marked = False
        self._title = ""

    def focus_changed(self, has_focus: bool) -> None:
        """The window got or lost the focus. Coming back clears the mark in the title."""
        self._has_focus = has_focus
        if has_focus and self._is_marked:
            self._is_marked = False
            self._write_title(self._title)

    def set_title(self, heading: str) -> None:
        """Name the window after the conversation."""
        self._title = f"{heading} · oi-tui" if heading else "oi-tui"
        self._write_title(self._title)

    def notify(self, what: str) -> None:
        """Something wants the user: "waits for you", "done"."""
        if self._has_focus:
            return
        self._is_marked = True
        line = sanitise_line(f"{what} · {self._title or 'oi-tui'}", _LONGEST)
        self._write_title(f"● {line}")
        self._write(f"\x07\x1b]9;{line}\x07")

    def _write_title(self, title: str) -> None:
        self._write(f"\x1b]2;{sanitise_line(title, _LONGEST)}\x07")
