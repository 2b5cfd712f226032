"""Does the code wait for its user to type something?

No program says so. On Linux the kernel is asked what each process in the terminal's foreground is blocked in; where
that cannot be seen (another platform, `sudo`), the terminal's mode and the last line of output have to do.
"""

from __future__ import annotations

import os
import re
import select
import struct
import sys
from dataclasses import dataclass
from enum import Enum, auto

from oi_tui.engine.languages.terminal import Terminal

_CALLS = {
    "x86_64": {
        0: "read",
        7: "poll",
        23: "select",
        232: "epoll",
        270: "select",
        271: "poll",
        281: "epoll",
        441: "epoll",
    },
    "aarch64": {63: "read", 22: "epoll", 72: "select", 73: "poll", 441: "epoll"},
}
_CALLS["riscv64"] = _CALLS["aarch64"]
"""Numbers of the system calls in which a program can wait for input, by machine."""

_LOOKS_LIKE_PROMPT = re.compile(r"(?:[:?>)\]#$»]|[A-Za-z~]%)\s*$")
_LOOKS_SECRET = re.compile(r"pass(word|phrase|code|wd)?\b|\bpin\b|secret|\btoken\b|\bOTP\b", re.IGNORECASE)

SURE, LIKELY, MAYBE = 0.05, 0.3, 1.0
"""Seconds of silence after which a program is believed that reads; that would notice input and shows a prompt or reads
single keys; that would notice input, or looks as if."""


class _Sight(Enum):
    READING = auto()
    POLLING = auto()
    BUSY = auto()
    HIDDEN = auto()


@dataclass(frozen=True, slots=True)
class Waiting:
    """The code waits for a line. `password`: it must not be seen."""

    prompt: str
    password: bool


def waiting_for_input(terminal: Terminal, prompt: str, silence: float, *, sure: bool = False) -> Waiting | None:
    """What the code in the terminal's foreground waits for, if it does.

    `prompt` is the last, unfinished line of output; `silence` the seconds since there was any. `sure`: it is known
    already that it waits.
    """
    if silence < SURE or terminal.unread:
        return None
    hidden = not terminal.echoes
    by_line = terminal.edits_lines
    secret = (hidden and by_line) or bool(hidden and _LOOKS_SECRET.search(prompt))
    found = Waiting(prompt, secret)
    sight = _Sight.READING if sure else _look(terminal)
    if sight is _Sight.READING:
        return found
    if sight is _Sight.BUSY:
        return None
    if silence >= LIKELY and (prompt.strip() if sight is _Sight.POLLING or not by_line else hidden):
        return found
    if silence >= MAYBE and (sight is _Sight.POLLING or _LOOKS_LIKE_PROMPT.search(prompt)):
        return found
    return None


def _look(terminal: Terminal) -> _Sight:
    """What the processes in the foreground do: the most telling of them counts."""
    if not sys.platform.startswith("linux"):
        return _Sight.HIDDEN
    group = terminal.foreground
    machine = os.uname().machine
    seen = {_look_at(pid, terminal.path, machine) for pid in _members(group)}
    for sight in (_Sight.READING, _Sight.HIDDEN, _Sight.POLLING):
        if sight in seen:
            return sight
    return _Sight.BUSY


def _members(group: int) -> list[int]:
    """The processes of a group."""
    if group <= 0:
        return []
    members = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.getpgid(int(name)) == group:
                    members.append(int(name))
            except OSError:
                continue
    return members


def _look_at(pid: int, tty: str, machine: str) -> _Sight:
    sight = _Sight.BUSY
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return sight
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/syscall", encoding="ascii") as file:
                number, *arguments = (int(word, 0) for word in file.read().split()[:7])
            call = _CALLS.get(machine, {}).get(number, "")
            fds = _awaited(pid, call, arguments) if call else []
            if any(os.readlink(f"/proc/{pid}/fd/{fd}") in (tty, "/dev/tty") for fd in fds):
                if call == "read":
                    return _Sight.READING
                sight = _Sight.POLLING
        except PermissionError:
            return _Sight.HIDDEN
        except (OSError, ValueError, struct.error):  # it runs, or has gone on meanwhile
            continue
    return sight


def _awaited(pid: int, call: str, arguments: list[int]) -> list[int]:
    """The descriptors on which a system call waits for input. Raises `OSError` and `struct.error`."""
    if call == "read":
        return arguments[:1]
    if call == "epoll":
        with open(f"/proc/{pid}/fdinfo/{arguments[0]}", encoding="ascii") as file:
            return [int(line.split()[1]) for line in file if line.startswith("tfd:")]
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        if call == "select":
            memory.seek(arguments[1])
            bits = int.from_bytes(memory.read((min(arguments[0], 1024) + 7) // 8), sys.byteorder)
            return [fd for fd in range(min(arguments[0], 1024)) if bits >> fd & 1] if arguments[1] else []
        memory.seek(arguments[0])
        entries = struct.iter_unpack("ihh", memory.read(8 * min(arguments[1], 1024)))
        return [fd for fd, events, _ in entries if fd >= 0 and events & select.POLLIN]
