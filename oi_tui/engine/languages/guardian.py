"""The guardian: a tiny process between oi-tui and each program it starts. It ends the whole tree when oi-tui dies.

It is run as a script (`python -I -S guardian.py …`), so it is one file, uses the standard library only and imports next
to nothing: 15 ms and 11 MB. `process_tree` starts it and speaks with it over a socket pair:

    guardian → oi-tui   started <pid> | failed <errno> | exit <status> | ended
    oi-tui → guardian   signal <number> group|process | end <grace in ms> | release

The end of that socket, the end of oi-tui (seen through a pidfd, so a forked copy of the socket cannot hide it) or a
SIGTERM ends the tree: TERM, a short grace, then KILL until nothing is left. On Linux the guardian is a "child
subreaper": whatever its descendants do (double fork, `setsid`, `nohup`), they stay its descendants. Elsewhere the
processes are found through their parents, their process groups and the mark in their environment.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # `typing` costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable

MARK = "OI_TUI_TREE"
"""Environment variable that every process of a tree inherits."""

ORPHAN_GRACE = 1.0
"""Seconds between TERM and KILL when oi-tui is gone."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class Entry:
    """One row of the process table."""

    __slots__ = ("group", "marked", "parent", "pid", "zombie")

    def __init__(self, pid: int, parent: int, group: int, zombie: bool, marked: bool) -> None:
        self.pid, self.parent, self.group, self.zombie, self.marked = pid, parent, group, zombie, marked


def process_table(mark: str | None = None) -> dict[int, Entry]:
    """All processes that can be seen. With `mark`, says which of them carry it in their environment."""
    if os.path.isdir("/proc/self"):
        return _table_from_proc(mark)
    return _table_from_ps(mark)


def _table_from_proc(mark: str | None) -> dict[int, Entry]:
    table: dict[int, Entry] = {}
    wanted = f"{MARK}={mark}".encode() if mark else None
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stat:
                # The name in parentheses may itself contain parentheses and blanks.
                state, parent, group = stat.read().rpartition(b")")[2].split()[:3]
        except (OSError, ValueError):  # it ended meanwhile
            continue
        marked = wanted is not None and _environ_has(name, wanted)
        table[int(name)] = Entry(int(name), int(parent), int(group), state in (b"Z", b"X"), marked)
    return table


def _environ_has(pid: str, entry: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            return entry in environ.read().split(b"\0")
    except OSError:  # it ended meanwhile, or belongs to someone else
        return False


def _table_from_ps(mark: str | None) -> dict[int, Entry]:
    arguments = ["ps", "-axww", "-o", "pid=,ppid=,pgid=,state="]
    if mark:
        arguments = ["ps", "-axEww", "-o", "pid=,ppid=,pgid=,state=,command="]
    reader, writer = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)]
    pid = os.posix_spawnp("ps", arguments, os.environ, file_actions=actions)
    os.close(writer)
    with os.fdopen(reader, "rb") as lines:
        rows = [line.split(None, 4) for line in lines.read().splitlines()]
    os.waitpid(pid, 0)
    table: dict[int, Entry] = {}
    for row in rows:
        if len(row) < 4 or not row[0].isdigit() or int(row[0]) == pid:
            continue
        marked = bool(mark) and len(row) > 4 and f"{MARK}={mark}".encode() in row[4].split()
        table[int(row[0])] = Entry(int(row[0]), int(row[1]), int(row[2]), row[3].startswith(b"Z"), marked)
    return table


def family(root: int, *, group: int = 0, mark: str | None = None) -> list[int]:
    """Living descendants of `root`, without it; with them the process group `group` and whatever carries `mark`."""
    table = process_table(mark)
    children: dict[int, list[int]] = {}
    for entry in table.values():
        children.setdefault(entry.parent, []).append(entry.pid)
    found: set[int] = set()
    waiting = [root]
    waiting += [e.pid for e in table.values() if e.marked or (group and e.group == group)]
    while waiting:
        pid = waiting.pop()
        if pid in found:
            continue
        found.add(pid)
        waiting += children.get(pid, ())
    found -= {root, os.getpid()}
    return sorted(pid for pid in found if pid in table and not table[pid].zombie)


def send(pid: int, signum: int) -> None:
    """Signal one process; one that is gone or not ours is none of our business."""
    try:
        os.kill(pid, signum)
    except (ProcessLookupError, PermissionError):
        pass


def end_all(find: Callable[[], list[int]], *, grace: float, limit: float = 5.0) -> bool:
    """End every process that `find` names, now and later: TERM, `grace` seconds, then KILL until it names none.

    Blocks, at most `grace` + `limit` seconds. False: some remained.
    """
    doomed = find()
    if grace > 0 and doomed:
        for pid in doomed:
            send(pid, signal.SIGTERM)
            send(pid, signal.SIGCONT)
        doomed = _wait_until_none(find, grace)
    deadline = time.monotonic() + limit
    while doomed and time.monotonic() < deadline:
        # Stopping all of them first keeps a fork bomb from outrunning us.
        for pid in doomed:
            send(pid, signal.SIGSTOP)
        for pid in doomed:
            send(pid, signal.SIGKILL)
        doomed = _wait_until_none(find, 0.05)
    return not doomed


def _wait_until_none(find: Callable[[], list[int]], seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds
    pause = 0.002
    while True:
        left = find()
        if not left or time.monotonic() >= deadline:
            return left
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def _prctl(option: int, value: int) -> bool:
    """Linux only. False: not possible here."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes  # 5 ms, and needed on Linux only

    return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)


class Guardian:
    """One guarded program."""

    def __init__(self, control: int, oi_tui: int, folder: str) -> None:
        self.control = control
        self.oi_tui = oi_tui
        # Where every orphan comes to us the mark is not needed, and reading all environments is not cheap.
        self.mark = None if _prctl(_PR_SET_CHILD_SUBREAPER, 1) else os.environ.get(MARK)
        self.child = 0
        self.child_ended = False
        self._commands = b""
        self._folder = folder
        self._wake, wake_writer = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake_writer, False)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        self._kept_open = {control, self._wake, wake_writer}

    def tell(self, text: str) -> None:
        try:
            os.write(self.control, text.encode() + b"\n")
        except OSError:
            pass  # oi-tui is gone; its end is noticed by `watch`

    def start(self, command: list[str], terminal: bool) -> bool:
        """Fork and execute the program in a session of its own. False: it could not be executed."""
        error_reader, error_writer = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            self._become(command, terminal, error_writer)
        os.close(error_writer)
        failure = os.read(error_reader, 64)
        os.close(error_reader)
        if failure:
            self.tell(f"failed {failure.decode()}")
            return False
        self.tell(f"started {self.child}")
        return True

    def _become(self, command: list[str], terminal: bool, error_writer: int) -> None:
        try:
            os.setsid()
            if terminal:
                import fcntl
                import termios

                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            for signum in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                try:
                    signal.signal(signum, signal.SIG_DFL)
                except (OSError, ValueError):  # reserved by the C library
                    pass
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.execvp(command[0], command)
        except OSError as error:
            os.write(error_writer, str(error.errno).encode())
        finally:
            os._exit(127)

    def let_go(self) -> None:
        """Hold nothing of the program: its pipes must end when it ends, its folder must be removable."""
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        try:
            numbers = [int(name) for name in os.listdir("/dev/fd")]
        except OSError:
            numbers = list(range(3, 256))
        for fd in numbers:
            if fd > 2 and fd not in self._kept_open:
                try:
                    os.close(fd)
                except OSError:
                    pass
        os.chdir("/")

    def watch(self) -> None:
        """Until the tree has to end, or is released."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        patience: int | None = None
        try:
            oi_tui = os.pidfd_open(self.oi_tui)
            poll.register(oi_tui, select.POLLIN)
        except (AttributeError, OSError):
            oi_tui, patience = -1, 1000  # no pidfd here: look for the parent once a second
        while True:
            ready = [fd for fd, _ in poll.poll(patience)]
            signals = os.read(self._wake, 4096) if self._wake in ready else b""
            self._collect()  # after the wake-up was read: a child that ends from here on wakes us again
            if oi_tui in ready or (patience and os.getppid() != self.oi_tui):
                return self.end(ORPHAN_GRACE)
            if signal.SIGTERM in signals:
                return self.end(ORPHAN_GRACE)
            if self.control in ready and not self._obey():
                return None

    def _collect(self) -> None:
        """Reap every child that ended, adopted ones too, and report the program's own end."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.child:
                self.child_ended = True
                self.tell(f"exit {os.waitstatus_to_exitcode(status)}")

    def _obey(self) -> bool:
        """Carry out the commands that arrived. False: there is nothing more to do."""
        try:
            data = os.read(self.control, 4096)
        except OSError:
            data = b""
        if not data:
            self.end(ORPHAN_GRACE)
            return False
        *lines, self._commands = (self._commands + data).split(b"\n")
        for line in lines:
            verb, *arguments = line.decode().split()
            if verb == "signal":
                self._signal(int(arguments[0]), whole_group=arguments[1] == "group")
            elif verb == "end":
                self.end(int(arguments[0]) / 1000)
                return False
            elif verb == "release":
                self._signal(signal.SIGKILL, whole_group=False)
                return False
        return True

    def _signal(self, signum: int, whole_group: bool) -> None:
        # Only the process that reaps can know that the number still means the same process.
        if whole_group:
            try:
                os.killpg(self.child, signum)
            except (ProcessLookupError, PermissionError):
                pass
        elif not self.child_ended:
            send(self.child, signum)

    def end(self, grace: float) -> None:
        """End the tree. Takes at most `grace` and five seconds."""
        end_all(self._living, grace=grace)
        if self._folder:
            import shutil  # 20 ms, needed once

            shutil.rmtree(self._folder, ignore_errors=True)
        self.tell("ended")

    def _living(self) -> list[int]:
        self._collect()
        return family(os.getpid(), group=0 if self.child_ended else self.child, mark=self.mark)


def main(argv: list[str]) -> int:
    """`guardian.py <control fd> <pid of oi-tui> <0|1: stdin is its terminal> <folder or ""> <program> <arguments>…`"""
    control, oi_tui, terminal, command = int(argv[1]), int(argv[2]), argv[3] == "1", argv[5:]
    os.set_inheritable(control, False)
    guardian = Guardian(control, oi_tui, argv[4])
    for signum in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTSTP):
        signal.signal(signum, signal.SIG_IGN)
    for signum in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(signum, lambda *_: None)  # they only wake the loop, through the wake-up descriptor
    if not guardian.start(command, terminal):
        return 127
    guardian.let_go()
    guardian.watch()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
