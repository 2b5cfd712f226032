"""One output with several who want to say something: the main thread, the engine's, and signal handlers."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class Speaker:
    """What printers share: nobody interrupts them in the middle of writing."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._postponed: list[str] = []

    def say(self, text: str) -> None:
        """A line of the program's own, for the error stream."""
        raise NotImplementedError

    def announce(self, text: str) -> None:
        """`say` for a signal handler: at once, or when what is just being written has been written."""
        if self._depth:
            self._postponed.append(text)
        else:
            self.note_echo()
            self.say(text)

    def note_echo(self) -> None:
        """The terminal has echoed a key, so the cursor may no longer be where this printer left it."""

    @contextlib.contextmanager
    def speaking(self) -> Iterator[None]:
        """Something is being written."""
        with self._lock:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                while self._postponed and not self._depth:
                    self.announce(self._postponed.pop(0))
