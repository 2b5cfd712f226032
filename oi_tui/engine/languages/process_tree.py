"""Programs that oi-tui starts, each in a session of its own and under a guardian that ends its whole tree.

    process = await spawn(["bash"], env=env, cwd=folder, stdin=fd, stdout=fd, stderr=fd)
    process.signal(signal.SIGINT)          # to its process group
    status = await process.wait()          # negative: the signal that ended it
    await process.kill_tree()              # nothing of it remains, whatever it did to hide

If oi-tui dies in any way, the guardian (`guardian.py`) does the same by itself. POSIX only: on Windows a job object
would have to take the guardian's place.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from oi_tui.engine.languages import guardian

Fd: TypeAlias = int | None

START_TIMEOUT = 10.0
"""Seconds that the guardian has to execute the program."""


async def spawn(
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str],
    cwd: str | os.PathLike[str] | None = None,
    stdin: Fd = None,
    stdout: Fd = None,
    stderr: Fd = None,
    pty: Fd = None,
    pass_fds: Iterable[int] = (),
    folder: str | os.PathLike[str] | None = None,
) -> Process:
    """Start a guarded program in a new session. None as a stream is /dev/null; other streams are descriptors.

    `pty`: the descriptor of a terminal's inner side; it becomes the program's three streams and its controlling
    terminal. Without it the program has none. `pass_fds` keep their numbers. The caller still owns every descriptor it
    passes and closes its copies. `folder` is removed when the tree ends, also when oi-tui is killed. Raises `OSError`
    when the program or `cwd` does not exist, or the program cannot be executed.
    """
    if sys.platform == "win32":
        raise OSError(errno.ENOSYS, "programs cannot be run on Windows yet", os.fspath(argv[0]))
    streams = (stdin, stdout, stderr) if pty is None else (pty, pty, pty)
    mark = uuid.uuid4().hex
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-I", "-S", guardian.__file__, str(theirs.fileno()), str(os.getpid())]
    command += ["0" if pty is None else "1", os.fspath(folder or ""), *(os.fspath(word) for word in argv)]
    try:
        popen = _start(command, streams, {theirs.fileno(), *pass_fds}, {**env, guardian.MARK: mark}, cwd)
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    ours.setblocking(False)
    process = Process(popen, ours, mark)
    try:
        await process._started(os.fspath(argv[0]))
    except BaseException:
        await process.kill_tree(grace=0)
        raise
    return process


def _start(
    command: Sequence[str],
    streams: Sequence[Fd],
    pass_fds: Iterable[int],
    env: Mapping[str, str],
    cwd: str | os.PathLike[str] | None,
) -> subprocess.Popen[bytes]:
    stdin, stdout, stderr = (subprocess.DEVNULL if fd is None else fd for fd in streams)
    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=env,
        cwd=cwd,
        pass_fds=tuple(pass_fds),
        start_new_session=True,
    )


class Process:
    """A running program with everything it starts. Belongs to the event loop that spawned it.

    `pid` is the program's, also the number of its process group and session. `returncode` is None while it runs;
    negative: ended by that signal. Background processes it leaves behind live until `kill_tree` or `close`.
    """

    def __init__(self, popen: subprocess.Popen[bytes], control: socket.socket, mark: str) -> None:
        self.pid = 0
        self.returncode: int | None = None
        self.mark = mark
        """The value of the environment variable `guardian.MARK` in every process of the tree."""
        self._popen = popen
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._received = b""
        self._start: asyncio.Future[None] = self._loop.create_future()
        self._exited = asyncio.Event()
        self._watchers: list[Callable[[int], None]] = []
        self._closed = False
        self._guardian_gone = asyncio.Event()
        self._loop.add_reader(control.fileno(), self._read)

    async def wait(self) -> int:
        """Until the program itself has ended. Its background processes may go on."""
        await self._exited.wait()
        assert self.returncode is not None
        return self.returncode

    def on_exit(self, callback: Callable[[int], None]) -> None:
        """Call `callback(returncode)` in the event loop as soon as the program ends; at once if it has."""
        if self.returncode is None:
            self._watchers.append(callback)
        else:
            self._loop.call_soon(callback, self.returncode)

    def signal(self, signum: int, *, group: bool = True) -> None:
        """Send a signal to the program's process group, or to the program alone. Never reaches a stranger."""
        self._tell(f"signal {int(signum)} {'group' if group else 'process'}")

    def background(self) -> list[tuple[int, str]]:
        """The living processes that the program started, with their command lines. Blocks a few milliseconds."""
        pids = [pid for pid in guardian.family(self._popen.pid) if pid != self.pid]
        return [(pid, command) for pid in pids if (command := _command_line(pid))]

    async def kill_tree(self, *, grace: float = 0.5) -> None:
        """End the program and everything it started: TERM, `grace` seconds, KILL. Returns when nothing is left.

        Any number of calls, also while another one waits.
        """
        if self._closed:
            return
        self._tell(f"end {int(grace * 1000)}")
        try:
            async with asyncio.timeout(grace + 6):
                await self._guardian_gone.wait()
        except TimeoutError:
            self._popen.kill()  # stuck, or stopped from outside
        finally:
            self.close()  # also when we are cancelled: the guardian goes on by itself
        await asyncio.to_thread(self._finish, grace)

    def release(self) -> None:
        """Kill the program itself and leave what it runs in the background alone, for good."""
        self._tell("release")
        self.close()

    def close(self) -> None:
        """Forget the process; the guardian ends what is left of it within seconds. Idempotent, does not wait."""
        if self._closed:
            return
        self._closed = True
        self._guardian_gone.set()
        self._set_returncode(-signal.SIGKILL)
        if not self._loop.is_closed():
            self._loop.remove_reader(self._control.fileno())
        self._control.close()
        if self._popen.poll() is None:
            threading.Thread(target=self._popen.wait, name="reap-guardian", daemon=True).start()

    def _finish(self, grace: float) -> None:
        """Blocks. Reap the guardian; end what it could not, should someone have killed it."""
        if self._popen.wait() != 0:
            guardian.end_all(self._strays, grace=grace)

    def _strays(self) -> list[int]:
        return guardian.family(self._popen.pid, mark=self.mark)

    async def _started(self, program: str) -> None:
        try:
            async with asyncio.timeout(START_TIMEOUT):
                await self._start
        except TimeoutError:
            raise OSError(errno.ETIMEDOUT, "the program did not start in time", program) from None
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno or 0), program) from None

    def _read(self) -> None:
        try:
            data = self._control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._guardian_ended()
            return
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            verb, _, argument = line.decode().partition(" ")
            if verb == "started":
                self.pid = int(argument)
                self._resolve_start(None)
            elif verb == "failed":
                self._resolve_start(OSError(int(argument), os.strerror(int(argument))))
            elif verb == "exit":
                self._set_returncode(int(argument))

    def _guardian_ended(self) -> None:
        self._loop.remove_reader(self._control.fileno())
        self._guardian_gone.set()
        self._resolve_start(OSError(errno.ECHILD, "the guardian ended"))
        # The program dies with its guardian (PR_SET_PDEATHSIG); what it left is ended by `kill_tree`.
        self._set_returncode(-signal.SIGKILL)

    def _resolve_start(self, error: OSError | None) -> None:
        if self._start.done():
            return
        if error is None:
            self._start.set_result(None)
        else:
            self._start.set_exception(error)

    def _set_returncode(self, status: int) -> None:
        if self.returncode is not None:
            return
        self.returncode = status
        self._exited.set()
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            watcher(status)

    def _tell(self, text: str) -> None:
        if self._closed:
            return
        try:
            self._control.send(text.encode() + b"\n")
        except OSError:
            pass  # the guardian is gone, which `_read` notices


def describe_status(status: int) -> str:
    """For people: "ended with status 3", "was ended by SIGKILL"."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def _command_line(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b" ".join(words).decode(errors="replace").strip()
    except OSError:
        return ""
