"""Signals in the line front end: what Ctrl-C means now, and an end that is noticed wherever the program waits."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any, Self

from oi_tui.plain_engine import Turn

QUIT_WINDOW = 3.0
"""A second Ctrl-C within this many seconds quits."""
NUDGES = (0.05, 0.2, 1.0)
"""Seconds after a signal at which the main thread is woken once more."""


class Ended(BaseException):
    """A signal ended the program. `status` is the exit status that belongs to it."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(status)


class Signals:
    """What Ctrl-C and the signals that end programs do, while the line front end runs. A context manager.

    During a turn Ctrl-C stops the turn, and a second one within `QUIT_WINDOW` raises `KeyboardInterrupt`; while the
    user is asked something, or nothing is going on, it is raised at once. The others raise `Ended`.
    """

    def __init__(self, on_stop: Callable[[], object] = lambda: None) -> None:
        self._on_stop = on_stop
        self._turn: Turn | None = None
        self._is_asking = False
        self._is_working = False
        self._is_due = False  # Ctrl-C came when there was no turn yet to stop
        self._stopped_at = float("-inf")
        self._previous: dict[int, Any] = {}
        self._alarm: _Alarm | None = None

    def __enter__(self) -> Self:
        for name, handler in {"SIGINT": self._interrupt, "SIGTERM": self._end, "SIGHUP": self._end}.items():
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # nohup and the like
                self._previous[number] = signal.signal(number, handler)
        if hasattr(signal, "SIGURG") and hasattr(signal, "pthread_kill"):
            self._previous[signal.SIGURG] = signal.signal(signal.SIGURG, lambda _number, _frame: None)
            self._alarm = _Alarm()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._alarm is not None:
            self._alarm.close()
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """A message is being dealt with: Ctrl-C is about its turn, also just before that begins."""
        self._is_working = True
        try:
            yield
        finally:
            self._is_working = self._is_due = False

    @contextlib.contextmanager
    def during(self, turn: Turn) -> Iterator[None]:
        """Ctrl-C is about this turn."""
        self._turn = turn
        try:
            if self._is_due:
                self._is_due = False
                self._stop(turn)
            yield
        finally:
            self._turn = None

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Ctrl-C is an answer: it raises `KeyboardInterrupt` where the user is asked."""
        before, self._is_asking = self._is_asking, True
        try:
            yield
        finally:
            self._is_asking = before

    def stop(self, turn: Turn) -> None:
        """Stop the turn as Ctrl-C does. Raises `KeyboardInterrupt` when that is the second time in a row."""
        self._count()
        self._stop(turn)

    def _stop(self, turn: Turn) -> None:
        self._on_stop()
        turn.cancel()

    def _count(self) -> None:
        now = time.monotonic()
        if now - self._stopped_at < QUIT_WINDOW:
            raise KeyboardInterrupt
        self._stopped_at = now

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self._is_asking or not self._is_working:
            raise KeyboardInterrupt
        if self._turn is not None:
            self.stop(self._turn)
        else:
            self._count()
            self._is_due = True

    def _end(self, number: int, _frame: FrameType | None) -> None:
        raise Ended(128 + number)


class _Alarm:
    """Wakes the main thread again after a signal.

    A handler written in Python runs when the main thread gets to it. If the signal comes just before readline begins
    to wait for a key, it is not noticed before the next key; another signal, which means nothing, ends that wait.
    """

    def __init__(self) -> None:
        self._main = threading.main_thread().ident
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        self._previous = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        self._is_closed = False
        threading.Thread(target=self._watch, name="signals", daemon=True).start()

    def close(self) -> None:
        self._is_closed = True
        signal.set_wakeup_fd(self._previous)
        os.close(self._write_end)  # ends the thread, which closes the other end

    def _watch(self) -> None:
        with open(self._read_end, "rb", buffering=0) as pipe:
            while numbers := pipe.read(64):
                if any(number != signal.SIGURG for number in numbers):
                    self._nudge()

    def _nudge(self) -> None:
        for pause in NUDGES:
            time.sleep(pause)
            if not self._is_closed and self._main is not None:
                with contextlib.suppress(ProcessLookupError):
                    signal.pthread_kill(self._main, signal.SIGURG)
