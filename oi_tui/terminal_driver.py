"""Textual's driver for POSIX terminals, made to let go of the terminal in every case.

What differs from `LinuxDriver` of Textual 8.2, and why:

* Everything that was switched on is switched off again by one byte string, `RESTORE`, which can also be written from
  another thread when the program hangs. Textual forgets SGR-pixel mouse mode and the window title.
* Input is read without a periodic wake-up. End of input (a closed terminal) is reported once; the original asks again
  and again at full speed.
* Output to a terminal that is gone is dropped. The original's writer thread dies of it, and the app waits for ever.
* While the app has the screen, file descriptors 1 and 2 lead nowhere, so that no library or child can write over it.
* Output goes to the terminal on standard output; the original uses standard error, which may be a log file.
* Being stopped and continued (^Z from outside, `kill -STOP`) ends in a redrawn screen.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import signal
import sys
import termios
import threading
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from textual import constants, events
from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size

from oi_tui.terminal_input import Pasted, TerminalInput
from oi_tui.terminal_modes import CANCEL, ENTER, KEEP_TITLE, KITTY_ON, MOUSE_ON, QUERIES, RESTORE

if TYPE_CHECKING:
    from textual.app import App

_QUIET = 0.02
"""Seconds without input after which the terminal is taken to have understood that it should be silent."""


class TerminalGone(OSError):
    """The terminal was closed."""


class TerminalDriver(LinuxDriver):
    """Drives the terminal on standard input and output. `on_gone` is called, in any thread, when it was closed."""

    on_gone: Callable[[], None] | None = None
    current: TerminalDriver | None = None
    """The driver that has the terminal, for whoever must put it right in an emergency."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._terminal = os.dup(_output_descriptor())
        os.set_inheritable(self._terminal, False)
        self._file = open(self._terminal, "w", encoding="utf-8", errors="replace", newline="", closefd=False)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._has_screen = False
        self._is_restored = True
        self._continued = False
        self._saved_output: list[tuple[int, int]] = []
        TerminalDriver.current = self

    # -- coming and going --------------------------------------------------------------------------------------------

    def start_application_mode(self) -> None:
        self._wait_for_foreground()
        self._writer_thread = _Writer(self._file, self._gone)
        self._writer_thread.start()
        signal.signal(signal.SIGWINCH, self._window_changed)
        self._send_size()
        self._enter()
        self._key_thread = threading.Thread(target=self._read_input, name="terminal-input", daemon=True)
        self._key_thread.start()
        if self._must_signal_resume:
            self._must_signal_resume = False
            self._from_any_thread(self._app.post_message, self.SignalResume())

    def _enter(self) -> None:
        try:
            self.attrs_before = termios.tcgetattr(self.fileno)
        except termios.error:
            self.attrs_before = None
        self._make_raw()
        self._redirect_output()
        self._has_screen, self._is_restored = True, False
        self.write(ENTER)
        if self._mouse:
            self.write(MOUSE_ON)
        if not constants.DISABLE_KITTY_KEY:
            self.write(KITTY_ON)
        # Apple's terminal prints the end of a query that it does not know.
        if os.environ.get("TERM_PROGRAM") != "Apple_Terminal":
            self.write(QUERIES)

    def _make_raw(self) -> None:
        if self.attrs_before is None:
            return
        attributes = list(self.attrs_before)
        attributes[6] = list(attributes[6])
        attributes[0] = self._patch_iflag(attributes[0])
        attributes[3] = self._patch_lflag(attributes[3])
        attributes[6][termios.VMIN] = 1
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self.fileno, termios.TCSANOW, attributes)

    def disable_input(self) -> None:
        with contextlib.suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        if self._key_thread is not None:
            self.exit_event.set()
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake_write, b"x")
            if self._key_thread is not threading.current_thread():
                self._key_thread.join(timeout=1)
            self._key_thread = None
            self.exit_event.clear()

    def stop_application_mode(self) -> None:
        if not self._has_screen:
            return
        self._has_screen = False
        self.disable_input()
        self.write(RESTORE.decode())
        if self._writer_thread is not None:
            self._writer_thread.stop()
            self._writer_thread = None
        self._swallow_replies()
        self._make_cooked()
        self._restore_output()
        self._is_restored = True

    def _make_cooked(self) -> None:
        if self.attrs_before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)

    def _swallow_replies(self) -> None:
        """Mouse reports that are still on their way would be typed into the shell. Takes 0.1 seconds at most."""
        deadline = time.monotonic() + 5 * _QUIET
        with contextlib.suppress(OSError, ValueError), selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while time.monotonic() < deadline and selector.select(_QUIET):
                if not os.read(self.fileno, 4096):
                    break
        with contextlib.suppress(termios.error):
            termios.tcflush(self.fileno, termios.TCIFLUSH)

    def restore_now(self) -> None:
        """Give the terminal back from any thread, without waiting for anything the app does.

        Also when the orderly way has begun and is stuck, because nobody reads what the terminal is sent.
        """
        if self._is_restored:
            return
        self._make_cooked()
        with contextlib.suppress(termios.error):
            termios.tcflush(self._terminal, termios.TCOFLUSH)  # makes room, maybe in the middle of a sequence
        with contextlib.suppress(OSError):
            os.set_blocking(self._terminal, False)
            self._write_at_once(CANCEL + RESTORE)
            time.sleep(_QUIET)  # a write that was stuck may have gone on
            self._write_at_once(CANCEL + RESTORE)
        with contextlib.suppress(OSError):
            os.set_blocking(self._terminal, True)  # the description is shared with the shell
        self._restore_output()
        self._is_restored = True

    def _write_at_once(self, data: bytes) -> None:
        """Write what can be written within half a second. Raises `OSError` when the terminal is gone."""
        deadline = time.monotonic() + 0.5
        with selectors.DefaultSelector() as selector:
            selector.register(self._terminal, selectors.EVENT_WRITE)
            while data and time.monotonic() < deadline:
                if selector.select(0.05):
                    with contextlib.suppress(BlockingIOError):
                        data = data[os.write(self._terminal, data) :]

    @classmethod
    def restore_current(cls) -> None:
        """`restore_now` of the driver that has the terminal, if one has it."""
        if cls.current is not None:
            cls.current.restore_now()

    def close(self) -> None:
        """Nothing: `stop_application_mode` ends the writer, and the descriptors live as long as the process."""

    # -- output ------------------------------------------------------------------------------------------------------

    def write(self, data: str) -> None:
        if self._writer_thread is not None:
            self._writer_thread.write(data)

    def _redirect_output(self) -> None:
        for stream in (sys.__stdout__, sys.__stderr__):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()  # type: ignore[union-attr]
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        for descriptor in (1, 2):
            try:
                if os.isatty(descriptor):
                    saved = os.dup(descriptor)
                    os.dup2(nowhere, descriptor)
                    self._saved_output.append((descriptor, saved))
            except OSError:
                continue
        os.close(nowhere)

    def _restore_output(self) -> None:
        while self._saved_output:
            descriptor, saved = self._saved_output.pop()
            with contextlib.suppress(OSError):
                os.dup2(saved, descriptor)
            os.close(saved)

    def _get_terminal_size(self) -> tuple[int, int]:
        """The terminal's own word; `COLUMNS` and `LINES` of a shell go stale with the first resize."""
        try:
            columns, lines = os.get_terminal_size(self._terminal)
        except OSError:
            columns, lines = 0, 0
        return columns or 80, lines or 24

    def _send_size(self) -> None:
        size = Size(*self._get_terminal_size())
        asyncio.run_coroutine_threadsafe(self._app._post_message(events.Resize(size, size)), loop=self._loop)

    def _window_changed(self, _number: int, _frame: object) -> None:
        if not self._in_band_window_resize:
            self._send_size()

    def _gone(self) -> None:
        if self.on_gone is not None:
            self.on_gone()

    def _from_any_thread(self, function: Callable[..., object], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, *arguments)

    # -- input -------------------------------------------------------------------------------------------------------

    def _read_input(self) -> None:
        try:
            self._read_until_exit()
        except OSError:  # EIO: the terminal was closed
            self._gone()
        except BaseException as error:
            self._from_any_thread(self._app._handle_exception, error)

    def _read_until_exit(self) -> None:
        parser = XTermParser(self._debug)
        stream = TerminalInput()
        decode = getincrementaldecoder("utf-8")("replace").decode
        with selectors.DefaultSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._wake_read, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                ready = {key.fd for key, _ in selector.select(_time_until(parser))}
                if self._wake_read in ready:
                    os.read(self._wake_read, 64)
                if self.fileno in ready:
                    data = os.read(self.fileno, 64 * 1024)
                    if not data:
                        raise TerminalGone
                    for piece in stream.feed(decode(data)):
                        self._process([events.Paste(piece.text)] if isinstance(piece, Pasted) else parser.feed(piece))
                self._process(parser.tick())
        with contextlib.suppress(EOFError, ParseError):
            for _ in parser.feed(""):
                pass

    def _process(self, messages: Iterable[Any]) -> None:
        for message in messages:
            self.process_message(message)

    # -- job control -------------------------------------------------------------------------------------------------

    def _wait_for_foreground(self) -> None:
        """A program continued in the background may not touch the terminal: it is stopped again until it may."""

        def stop_again(_number: int, _frame: object) -> None:
            os.kill(os.getpid(), signal.SIGSTOP)

        if not os.isatty(self.fileno):
            return
        previous = [(number, signal.signal(number, stop_again)) for number in (signal.SIGTTOU, signal.SIGTTIN)]
        try:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self.fileno, termios.TCSANOW, termios.tcgetattr(self.fileno))
        finally:
            for number, handler in previous:
                signal.signal(number, handler)

    def _sigtstp_application(self, *_: object) -> None:
        self._from_any_thread(self._stop_and_continue)

    def _sigcont_application(self, *_: object) -> None:
        self._continued = True
        if self._has_screen:  # stopped by SIGSTOP, which nobody can prepare for; the shell has set its own modes
            self._from_any_thread(self._take_screen_again)

    def _stop_and_continue(self) -> None:
        """Suspended by somebody else's SIGTSTP: leave the screen, stop, and take it again when continued."""
        had_screen = self._auto_restart and self._has_screen
        if had_screen:
            self.suspend_application_mode()
        self._continued = False
        os.kill(os.getpid(), signal.SIGSTOP)
        while not self._continued:  # the stop need not have happened when kill returns
            time.sleep(0.005)
        if had_screen:
            self._must_signal_resume = True
            self.resume_application_mode()

    def _take_screen_again(self) -> None:
        if self._has_screen:
            self._make_raw()
            self.write(ENTER.removeprefix(KEEP_TITLE))
            if self._mouse:
                self.write(MOUSE_ON)
            self._app.refresh(layout=True)


class _Writer(WriterThread):
    """Writes until the terminal is gone, and from then on takes everything and writes nothing."""

    def __init__(self, file: Any, on_gone: Callable[[], None]) -> None:
        super().__init__(file)
        self._on_gone = on_gone

    def run(self) -> None:
        is_gone = False
        while (text := self._queue.get()) is not None:
            if is_gone:
                continue
            try:
                self._file.write(text)
                if self._queue.empty():
                    self._file.flush()
            except (OSError, ValueError):
                is_gone = True
                self._on_gone()
        if not is_gone:
            with contextlib.suppress(OSError, ValueError):
                self._file.flush()


def _time_until(parser: XTermParser) -> float | None:
    """Seconds until a lone Escape is taken for the Escape key, or None when nothing is pending."""
    if parser._timeout_time is None:
        return None
    return max(0.0, parser._timeout_time - time.monotonic())


def _output_descriptor() -> int:
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None and stream.isatty():
                return stream.fileno()
        except (ValueError, OSError):
            continue
    return 2
