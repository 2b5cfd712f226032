"""Which line of a block bash executes, seen from outside.

A trap before each command makes a loop of builtins five times slower, so tracing stops where commands come too fast.
There the line is read from bash's memory instead: bash exports the symbols of its own variables, for loadable builtins.
While bash waits for another program this is the line of the enclosing loop, so the trap is better where it is
affordable. Linux only, and only for processes that are ours to look at.
"""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path

_FUNCTION = re.compile(
    r"^[ \t]*(?:function[ \t]+([^\s(){}<>;&|]+)|([^\s(){}<>;&|=$'\"]+)[ \t]*\([ \t]*\))", re.MULTILINE
)
_CODE_LINE = re.compile(r"^[ \t]*(?!#)\S", re.MULTILINE)

_SYMBOLS = {b"line_number", b"sourcelevel", b"variable_context", b"this_shell_function"}


class BlockLines:
    """What is known of a block before it runs: how many lines it has, which functions it defines."""

    def __init__(self, text: str) -> None:
        self._count = text.count("\n") + 1
        self._functions = {first or second for first, second in _FUNCTION.findall(text)}
        start = _CODE_LINE.search(text)
        self.first = text.count("\n", 0, start.start()) + 1 if start else 1

    def at(self, line: int, function: str) -> int | None:
        """The line of this block, or None when the shell is in something that another block defined."""
        if function and function not in self._functions:
            return None
        return line if 1 <= line <= self._count else None


class LineProbe:
    """Reads from a bash process the line it is at. Raises `OSError` when made for one that cannot be read."""

    def __init__(self, pid: int) -> None:
        symbols = _symbols(Path(f"/proc/{pid}/exe"), _SYMBOLS)
        if len(symbols) < len(_SYMBOLS):
            raise OSError("the program does not export its line")
        base = _base_address(pid)
        self._line = base + symbols[b"line_number"]
        self._depth = base + symbols[b"variable_context"]
        self._files = base + symbols[b"sourcelevel"]
        self._function = base + symbols[b"this_shell_function"]
        self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        self.look()

    def look(self) -> tuple[int, str]:
        """The line, and the name of the function that it is in; line 0 when nothing could be read."""
        try:
            line = self._int(self._line)
            if self._int(self._files) < 1:  # not reading the block: before or after it
                return 0, ""
            return line, self._function_name() if self._int(self._depth) > 0 else ""
        except OSError:
            return 0, ""

    def __del__(self) -> None:
        if hasattr(self, "_memory"):
            os.close(self._memory)

    def _int(self, address: int) -> int:
        return int(struct.unpack("i", self._bytes(address, 4))[0])

    def _pointer(self, address: int) -> int:
        return int(struct.unpack("P", self._bytes(address, struct.calcsize("P")))[0])

    def _bytes(self, address: int, size: int) -> bytes:
        data = os.pread(self._memory, size, address)
        if len(data) < size:  # the process has ended
            raise OSError("no such memory")
        return data

    def _function_name(self) -> str:
        variable = self._pointer(self._function)
        if not variable:
            return "?"
        name = os.pread(self._memory, 200, self._pointer(variable))
        return name.partition(b"\0")[0].decode(errors="replace") or "?"


def _base_address(pid: int) -> int:
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        return int(maps.readline().partition("-")[0], 16)


def _symbols(program: Path, wanted: set[bytes]) -> dict[bytes, int]:
    """Addresses of dynamic symbols in a 64-bit little-endian ELF file; relative to its base if it can be moved."""
    with program.open("rb") as file:
        header = file.read(64)
        if header[:6] != b"\x7fELF\x02\x01":
            raise OSError("not a 64-bit ELF program")
        movable = struct.unpack_from("<H", header, 16)[0] == 3
        if not movable:
            raise OSError("a program at a fixed address")
        offset, entry_size, count = *struct.unpack_from("<Q", header, 40), *struct.unpack_from("<HH", header, 58)
        file.seek(offset)
        sections = [file.read(entry_size) for _ in range(count)]
        found: dict[bytes, int] = {}
        for section in sections:
            if struct.unpack_from("<I", section, 4)[0] != 11:  # SHT_DYNSYM
                continue
            table = _section(file, section)
            names = _section(file, sections[struct.unpack_from("<I", section, 40)[0]])
            for at in range(0, len(table), 24):
                name_at, value = struct.unpack_from("<I", table, at)[0], struct.unpack_from("<Q", table, at + 8)[0]
                name = names[name_at : names.index(b"\0", name_at)]
                if name in wanted and value:
                    found[name] = value
        return found


def _section(file: object, section: bytes) -> bytes:
    offset, size = struct.unpack_from("<QQ", section, 24)
    file.seek(offset)  # type: ignore[attr-defined]
    return bytes(file.read(size))  # type: ignore[attr-defined]
