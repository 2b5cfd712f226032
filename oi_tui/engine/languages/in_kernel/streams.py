"""stdout and stderr of the kernel: in order, complete, and never faster than the reader.

ipykernel keeps one buffer per stream, so text written to both within a flush interval changes places; it decodes what
programs write to descriptors 1 and 2 in pieces of 1000 bytes, cutting characters; and it never makes a writer wait.
Here both streams share one buffer, descriptors are decoded across reads, and whoever writes faster than `publisher`
can send waits, as on a terminal.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import os
import select
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

try:
    import fcntl
    import termios
except ImportError:  # Windows, where ipykernel does not capture descriptors
    pass

FLUSH_INTERVAL = 0.03
PIECE = 64 * 1024
"""Characters per message, at most."""
GAP = 20e-6
"""Seconds since the last write after which something else may have written to a descriptor meanwhile."""
PATIENCE = 0.1
"""Seconds that the code waits at most for what others write to be taken in."""
PENDING = 1024 * 1024
"""Characters that may wait in the kernel before a writer has to wait."""


class Buffer:
    """Text of both streams in the order in which it was written."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.parts: list[tuple[Any, Any, str]] = []
        self.size = 0
        self.scheduled = False
        self.last_flush = 0.0
        self.last_write = 0.0
        self.fetch: Callable[[], None] | None = None
        """Takes in what waits in the descriptors."""
        self.child = 0
        self.child_text = ""
        """In a forked child: its process number and the line it has begun."""

    def take(self) -> list[tuple[Any, Any, str]]:
        """Everything that waits, joined where the parent is the same.

        Text of both streams travels together, as on a terminal: nobody here tells them apart, and programs that
        write to both by turns would need a message per line.
        """
        with self.lock:
            parts, self.parts = self.parts, []
            self.size = 0
            self.scheduled = False
            self.last_flush = time.monotonic()
        joined: list[tuple[Any, Any, str]] = []
        texts: list[str] = []
        stream = parent = None
        for part in parts:
            if texts and part[1] is not parent and part[1] != parent:
                joined.append((stream, parent, "".join(texts)))
                texts = []
            if not texts:
                stream, parent = part[0], part[1]
            texts.append(part[2])
        if texts:
            joined.append((stream, parent, "".join(texts)))
        return joined


def ordered(base: Any, buffer: Buffer) -> Any:
    """The class for both streams: ipykernel's, with one buffer."""

    class OrderedStream(base):  # type: ignore[misc]
        flush_interval = FLUSH_INTERVAL

        def fileno(self) -> int:
            """The descriptor whose text is shown, so that `subprocess.run(…, stdout=sys.stdout)` is too."""
            fd = getattr(self, "_original_stdstream_fd", None)
            return int(fd) if fd is not None else int(super().fileno())

        def write(self, string: str) -> int:
            if not isinstance(string, str):
                raise TypeError(f"write() argument must be str, not {type(string)}")
            if self.pub_thread is None:
                raise ValueError("I/O operation on closed file")
            if os.getpid() != self._master_pid:
                self._write_in_child(string)
                return len(string)
            now = time.monotonic()
            if now - buffer.last_write > GAP and buffer.fetch is not None and string != "\n":
                buffer.fetch()
            buffer.last_write = now
            parent = parent_here(self)
            with buffer.lock:
                buffer.parts.append((self, parent, string))
                buffer.size += len(string)
                size = buffer.size
                schedule, buffer.scheduled = not buffer.scheduled, True
            if schedule:
                quiet = now - buffer.last_flush > FLUSH_INTERVAL
                self.pub_thread.schedule(self._flush if quiet else self._flush_later)
            if size > PENDING:
                self.flush()
            return len(string)

        def __setattr__(self, name: str, value: Any) -> None:
            # IPython, in the middle of a cell when we came, puts back the `write` that it found.
            if name == "write" and getattr(value, "__func__", None) in (base.write, OrderedStream.write):
                self.__dict__.pop("write", None)
            else:
                super().__setattr__(name, value)

        def _flush_later(self) -> None:
            self._io_loop.call_later(self.flush_interval, self._flush)

        def _flush(self) -> None:
            # Runs in the publishing thread, so sending blocks nobody but us, and that is the point.
            if os.getpid() != self._master_pid:
                if buffer.child == os.getpid():
                    text, buffer.child_text = buffer.child_text, ""
                    self._write_to_descriptor(text)
                return
            for stream, parent, text in buffer.take():
                for start in range(0, len(text), PIECE):
                    stream._publish(parent, text[start : start + PIECE])

        def _publish(self, parent: Any, text: str) -> None:
            if not text.isascii():
                text = text.encode("utf-8", "backslashreplace").decode("utf-8")
            self.session.pid = os.getpid()
            message = self.session.msg("stream", {"name": self.name, "text": text}, parent=parent)
            self.pub_thread._really_send(self.session.serialize(message, ident=self.topic))

        def _write_in_child(self, string: str) -> None:
            """A forked child has no publishing thread; the descriptor leads to the same place, whole lines at once."""
            if buffer.child != os.getpid():
                buffer.child, buffer.child_text = os.getpid(), ""
            lines, end, rest = (buffer.child_text + string).rpartition("\n")
            buffer.child_text = rest
            self._write_to_descriptor(lines + end)

        def _write_to_descriptor(self, text: str) -> None:
            data = text.encode("utf-8", "backslashreplace")
            while data:
                data = data[os.write(self.fileno(), data) :]

    return OrderedStream


def parent_here(stream: Any) -> Any:
    """The request whose code writes: for a thread of the user's own the one that started it, else the present one."""
    return getattr(threading.current_thread(), "_oi_tui_parent", None) or stream.parent_header


def runs_code_of_the_user(thread: threading.Thread) -> bool:
    """Whether the thread was made for a function of the user's. Threads of libraries, such as those of a pool, work for
    whoever asks them."""
    function = getattr(thread, "_target", None) or getattr(thread, "function", None)
    function = getattr(function, "func", function)  # functools.partial
    return type(thread).__module__ == "__main__" or getattr(function, "__module__", "") in ("__main__", "builtins")


def remember_parents(stream: Any) -> None:
    """Have each thread of the user's know which request started it: its output is told from that of later code."""
    original = threading.Thread.start

    @functools.wraps(original)
    def start(self: threading.Thread) -> None:
        if runs_code_of_the_user(self):
            self._oi_tui_parent = parent_here(stream)  # type: ignore[attr-defined]
        original(self)

    threading.Thread.start = start  # type: ignore[method-assign]


class Descriptors:
    """Reads what subprocesses and C code write to descriptors 1 and 2."""

    def __init__(self, streams: list[Any]) -> None:
        self._lock = threading.Lock()
        self._reader = 0
        self._streams = {stream._fid: stream for stream in streams}
        self._decoders = {stream._fid: codecs.getincrementaldecoder("utf-8")("replace") for stream in streams}
        for stream in streams:
            self._take_over(stream)
        threading.Thread(target=self._read_on, name="oi-tui-descriptors", daemon=True).start()

    def fetch(self) -> None:
        """Take in what was written before a print of Python's own, so that it comes before it."""
        if threading.get_ident() == self._reader:
            return
        for fd in self._streams:
            if self._waiting(fd) and self._lock.acquire(timeout=PATIENCE):
                try:
                    if self._waiting(fd):
                        self._read(fd)
                finally:
                    self._lock.release()

    def drain(self) -> None:
        """Wait until everything written so far has reached the streams, but not for a background program that goes on
        writing."""
        ctypes = sys.modules.get("ctypes")
        if ctypes is not None:
            ctypes.CDLL(None).fflush(None)  # what C code printed sits in the C library's own buffer
        deadline = time.monotonic() + PATIENCE
        while (left := deadline - time.monotonic()) > 0 and self._lock.acquire(timeout=left):
            try:
                if not any(self._waiting(fd) for fd in self._streams):
                    return
            finally:
                self._lock.release()
            time.sleep(0.0005)

    @staticmethod
    def _take_over(stream: Any) -> None:
        """Stop ipykernel's thread for this stream; its pipe stays."""
        stream._should_watch = False
        os.write(stream._original_stdstream_fd, b"\0")
        stream.watch_fd_thread.join(1.0)
        if sys.platform.startswith("linux"):
            try:
                # C code that prints while it holds the interpreter must not wait for a thread of the interpreter.
                fcntl.fcntl(stream._fid, getattr(fcntl, "F_SETPIPE_SZ", 1031), 1024 * 1024)
            except OSError:
                pass

    @staticmethod
    def _waiting(fd: int) -> bool:
        """Whether there is something to read; half a microsecond."""
        count = bytearray(4)
        fcntl.ioctl(fd, termios.FIONREAD, count)
        return any(count)

    def _read_on(self) -> None:
        self._reader = threading.get_ident()
        poll = select.poll()
        for fd in self._streams:
            poll.register(fd, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                with self._lock:  # reading and passing on are one step for the others
                    if self._waiting(fd):
                        self._read(fd)

    def _read(self, fd: int) -> None:
        data = os.read(fd, PIECE)
        text = self._decoders[fd].decode(data)
        if text:
            self._streams[fd].write(text)


def install(ip: Any, options: dict[str, Any]) -> None:
    """Make the kernel's streams ours. Raises for an ipykernel that is built differently."""
    streams: list[Any] = [sys.stdout, sys.stderr]
    for stream in streams:
        for name in ("session", "parent_header", "topic", "_master_pid", "_io_loop"):
            getattr(stream, name)
        for name in ("_really_send", "schedule", "socket"):
            getattr(stream.pub_thread, name)
    for stream in streams:
        stream.flush()
    buffer = Buffer()
    kind = ordered(type(sys.stdout), buffer)
    for stream in streams:
        stream.__class__ = kind
    remember_parents(streams[0])
    _remember_nothing(ip)
    if all(getattr(stream, "_fid", None) is not None and stream._should_watch for stream in streams):
        descriptors = Descriptors(streams)
        buffer.fetch = descriptors.fetch
        ip.events.register("post_execute", descriptors.drain)
        _report_crashes(streams[1])


def _report_crashes(stderr: Any) -> None:
    """A crash in C code says on the kernel's own stderr where it happened."""
    import faulthandler

    if not faulthandler.is_enabled():
        faulthandler.enable(file=stderr._original_stdstream_copy, all_threads=False)


def _remember_nothing(ip: Any) -> None:
    """IPython 9 keeps everything that was ever printed or shown, for `%notebook`. A conversation keeps it already."""
    history: Any = getattr(ip, "history_manager", None)
    if not hasattr(history, "outputs"):
        return
    ip._tee = lambda channel: contextlib.nullcontext()
    ip.events.register("post_run_cell", lambda result: history.outputs.clear())
