"""Leaving: whatever ends the program, it ends soon, the terminal is clean, and the reason is said.

`Exit` catches the signals that end programs. Each asks the app to leave in its own time, on its own loop; if that has
not happened after `PATIENCE` seconds, or a second signal insists, the terminal is put right from another thread and the
process ends at once. Children are not this module's business: they die with the process (their guardian sees to that).

The signals are also read from a pipe by a thread, because a handler written in Python waits for the main thread to
finish its current call, which may be a long one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from oi_tui.engine.private_files import data_folder, write_private

PATIENCE = 4.0
"""Seconds an orderly end may take."""
_INSIST_AFTER = 0.5
"""A signal this many seconds after the first means it."""
_LOGS_KEPT = 10

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT") if hasattr(signal, name))


class Exit:
    """Watches for the end while the app runs. A context manager for the main thread.

    `ask` is called once, in any thread, with the exit status that the app should leave with. `restore` gives the
    terminal back without waiting for the app.
    """

    def __init__(self, ask: Callable[[int], None], restore: Callable[[], None]) -> None:
        self._ask = ask
        self._restore = restore
        self.reason = ""
        """Why the program was made to end, for people; empty when it ended by itself."""
        self._status = 0
        self._asked_at: float | None = None
        self._lock = threading.Lock()
        self._previous: dict[int, object] = {}
        self._read_end = self._write_end = -1
        self._previous_wakeup = -1

    def __enter__(self) -> Self:
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        for number in _SIGNALS:
            # nohup and friends: what is ignored from outside stays ignored
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._handle)
        self._previous_wakeup = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, name="signals", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        signal.set_wakeup_fd(self._previous_wakeup)
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        os.close(self._write_end)  # ends the watching thread, which closes the other end

    @property
    def status(self) -> int:
        """The exit status that belongs to the reason; 0 when there is none."""
        return self._status

    def terminal_gone(self) -> None:
        """The terminal was closed, whether or not a signal said so."""
        self._begin(128 + signal.SIGHUP, "the terminal was closed")

    def left(self, status: int) -> None:
        """The app leaves by itself, with this status. What is still to be closed has `PATIENCE` seconds for it, also
        after this context has ended: a stuck thread would otherwise keep the process, and the user's prompt."""
        if self._asked_at is None:
            self._asked_at, self._status = time.monotonic(), status
            self._insist_after(PATIENCE)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self._signalled(number)

    def _watch(self) -> None:
        with open(self._read_end, "rb", buffering=0) as pipe:
            while numbers := pipe.read(64):
                for number in numbers:
                    if number in self._previous:
                        self._signalled(number)

    def _signalled(self, number: int) -> None:
        self._begin(128 + number, f"ended by {signal.Signals(number).name}")

    def _begin(self, status: int, reason: str) -> None:
        # A signal handler may interrupt the very thread that holds the lock: never wait for it.
        if not self._lock.acquire(blocking=False):
            return
        try:
            now = time.monotonic()
            if self._asked_at is None:
                self._asked_at, self._status, self.reason = now, status, reason
                self._insist_after(PATIENCE)
                self._ask(status)
            elif now - self._asked_at > _INSIST_AFTER:
                self._insist_after(0)
        finally:
            self._lock.release()

    def _insist_after(self, seconds: float) -> None:
        threading.Thread(target=self._insist, args=(seconds,), name="leaving", daemon=True).start()

    def _insist(self, patience: float) -> None:
        time.sleep(patience)
        self._restore()
        say(self.reason)
        os._exit(self._status)


def say(reason: str) -> None:
    """One line on standard error, if there still is one."""
    if reason:
        with contextlib.suppress(OSError, ValueError):
            sys.__stderr__.write(f"oi-tui: {reason}.\n")  # type: ignore[union-attr]
            sys.__stderr__.flush()  # type: ignore[union-attr]


def log_error(error: BaseException, *, keys: Sequence[str] = ()) -> Path | None:
    """Write a traceback, keys taken out and without the values of variables, to a file of the user's own.

    Returns its path, or None where it cannot be written.
    """
    from oi_tui.engine.redaction import redact  # not needed by anybody who has no error

    folder = data_folder() / "logs"
    text = "".join(traceback.format_exception(error))
    path = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    try:
        write_private(path, redact(text, keys))
        for old in sorted(folder.glob("*.log"))[:-_LOGS_KEPT]:
            old.unlink(missing_ok=True)
    except OSError:
        return None
    return path


def unfit_terminal() -> str:
    """Why the full screen cannot be drawn here, in one line; empty when it can."""
    if not all(stream is not None and stream.isatty() for stream in (sys.__stdin__, sys.__stdout__)):
        return "the full screen needs a terminal on standard input and output; use --plain or -p instead"
    if os.name == "posix" and os.environ.get("TERM", "") in ("", "dumb"):
        return "TERM names no terminal that can draw a screen; set TERM=xterm-256color, or use --plain"
    return ""


def last_words(failure: BaseException | None, ending: Exit, keys: Sequence[str]) -> int:
    """Say on the restored terminal why the program ended, if it did not end by itself. Returns the exit status.

    A fault of the program is one line here and a traceback in a file.
    """
    if failure is not None:
        from oi_tui.engine.redaction import redact
        from oi_tui.rendering.sanitise import sanitise_line

        path = log_error(failure, keys=keys)
        what = sanitise_line(redact(f"{type(failure).__name__}: {failure}", keys), 160)
        say(f"a fault of oi-tui ended it: {what}. Details: {path or 'could not be written'}")
        return 1
    say(ending.reason)
    return ending.status
