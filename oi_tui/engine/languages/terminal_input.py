"""Does the code wait for its user to type something?

No program says so. On Linux the kernel is asked what each process in the terminal's foreground is blocked in; where
that cannot be seen (another platform, `sudo`), the terminal's mode and the last line of output have to do.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from enum import Enum, auto

from oi_tui.engine.languages.terminal import Terminal

_READ = {"x86_64": 0, "aarch64": 63, "riscv64": 63, "armv7l": 3, "armv6l": 3, "i686": 3, "ppc64le": 3, "s390x": 3}
"""Number of the system call `read` by machine."""

_POLLS = {
    "x86_64": {7, 23, 232, 270, 271, 281, 441},  # poll, select, epoll_wait, pselect6, ppoll, epoll_pwait(2)
    "aarch64": {22, 72, 73, 441},
    "riscv64": {22, 72, 73, 441},
}

_LOOKS_LIKE_PROMPT = re.compile(r"[:?>)\]#$%»]\s*$")
_LOOKS_SECRET = re.compile(r"pass(word|phrase|code|wd)?\b|\bpin\b|secret|\btoken\b|\bOTP\b", re.IGNORECASE)

SURE, LIKELY, MAYBE = 0.05, 0.3, 1.0
"""Seconds of silence after which a program that reads, edits a line, or seems to show a prompt is believed."""


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
    if hidden and silence >= LIKELY and (by_line or prompt.strip()):
        return found
    return found if silence >= MAYBE and _LOOKS_LIKE_PROMPT.search(prompt) else None


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
                words = file.read().split()
        except PermissionError:
            return _Sight.HIDDEN
        except OSError:
            continue
        if not words or not words[0].lstrip("-").isdigit():  # "running"
            continue
        number = int(words[0])
        if number == _READ.get(machine) and _is_terminal(pid, int(words[1], 16), tty):
            return _Sight.READING
        if number in _POLLS.get(machine, ()):
            sight = _Sight.POLLING
    return sight


def _is_terminal(pid: int, fd: int, tty: str) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}") in (tty, "/dev/tty")
    except OSError:
        return False
