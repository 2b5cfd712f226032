"""What happens to a code block, from its first character to its last output."""

from __future__ import annotations

from enum import StrEnum


class CodeState(StrEnum):
    """One state at a time; the value is how it is called on the screen."""

    WRITING = "writing"
    """The model writes it."""
    WAITING = "waiting"
    """It waits for the user."""
    EDITED = "edited"
    """It waits for the user, who has changed it."""
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """It ran and raised an error."""
    DECLINED = "declined"
    STOPPED = "stopped"
    """The user stopped it, or the turn it belonged to."""
    INCOMPLETE = "incomplete"
    """Received only in part; it cannot be run."""
    NOT_RUN = "not run"
    """Nobody decided about it (an earlier block was declined, the conversation left), or the engine cannot run it."""

    @property
    def is_pending(self) -> bool:
        """True while the user is asked."""
        return self in (CodeState.WAITING, CodeState.EDITED)

    @property
    def is_live(self) -> bool:
        """True while something can still happen to it."""
        return self in (CodeState.WRITING, CodeState.WAITING, CodeState.EDITED, CodeState.RUNNING)

    @property
    def is_over(self) -> bool:
        """True when nothing can happen to it any more."""
        return not self.is_live

    @property
    def css_class(self) -> str:
        """`-waiting`, `-running`, …"""
        return "-" + self.value.replace(" ", "-")
