"""Which line runs, and how long each took: found by looking, not by changing the code.

A thread looks at the stack of the main thread 30 times a second; a wrapper around `run_code`, which IPython calls for
each top-level statement, says when a statement begins and ends. What is found goes into a small shared file that
oi-tui reads while code runs, so it never waits behind output. Code, tracebacks and debuggers are left alone.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import threading
import time
from types import CodeType, FrameType
from typing import Any

RATE = 30.0
"""Looks per second."""
MIME = "application/x-oi-tui+json"
TOTAL = 0
"""Where the time of all looks at a statement is counted; lines begin at 1."""
LAYOUT = struct.Struct("=QII")
"""Sequence number, top-level line, innermost line of the cell.

Lines count from 1 in the code as it was sent; 0: none.
"""


class Cell:
    """The code of one execution: where its frames are and how their lines map to what was sent."""

    def __init__(self, info: Any, raw: str, transformed: str, parent: Cell | None) -> None:
        self.info = info
        self.raw = raw
        self.filename = ""
        self.times: dict[int, float] = {}
        self.map = line_map(transformed, raw)
        self.offset = 0
        if parent is not None:
            # A cell magic runs its body as a cell of its own: its lines are lines of the outer cell.
            self.offset = offset_in(parent.raw, raw) + parent.offset
        self._magic = raw.lstrip().startswith("%%")

    def owns(self, code: CodeType) -> bool:
        """Whether the code is the cell's, or what `%%time` makes of its body."""
        return code.co_filename == self.filename or (self._magic and code.co_filename == "<timed exec>")

    def line_of(self, frame: FrameType) -> int:
        number = frame.f_lineno or 0
        if frame.f_code.co_filename == self.filename:
            return self.line(number)
        return number + 1 + self.offset

    def line(self, number: int) -> int:
        return self.map.get(number, number) + self.offset


def offset_in(outer: str, inner: str) -> int:
    """How many lines of `outer` come before the text `inner`; 0 if it is not part of it."""
    position = outer.find(inner.strip("\n"))
    return outer.count("\n", 0, position) if position > 0 else 0


def line_map(transformed: str, raw: str) -> dict[int, int]:
    """Line of the Python that IPython made → line of the code as it was sent, where they differ.

    IPython drops leading empty lines and joins continued `!` and `%` lines; it never reorders.
    """
    new, old = transformed.rstrip("\n").split("\n"), raw.rstrip("\n").split("\n")
    if len(new) == len(old):
        return {}
    import difflib

    found: dict[int, int] = {}
    last_new = last_old = 0
    for a, b, size in difflib.SequenceMatcher(None, new, old, autojunk=False).get_matching_blocks():
        for n in range(last_new, a):  # rewritten lines: in step from where the last match ended
            found[n + 1] = min(last_old + n - last_new, max(b - 1, last_old)) + 1
        for n in range(size):
            found[a + n + 1] = b + n + 1
        last_new, last_old = a + size, b + size
    return found


def cell_frames(frame: FrameType | None, cell: Cell) -> list[FrameType]:
    """The frames of the cell on a stack, innermost first."""
    frames = []
    while frame is not None:
        if cell.owns(frame.f_code):
            frames.append(frame)
        frame = frame.f_back
    return frames


def suspended_frames(coroutine: Any, cell: Cell) -> list[FrameType]:
    """The frames of the cell in a chain of awaits, innermost first: while it waits none of them is on a stack."""
    frames: list[FrameType] = []
    for _ in range(1000):
        if coroutine is None:
            break
        for kind in ("cr", "gi", "ag"):
            frame = getattr(coroutine, kind + "_frame", None)
            if frame is not None:
                if cell.owns(frame.f_code):
                    frames.append(frame)
                break
        coroutine = (
            getattr(coroutine, "cr_await", None)
            or getattr(coroutine, "gi_yieldfrom", None)
            or getattr(coroutine, "ag_await", None)
        )
    frames.reverse()
    return frames


def is_top_level(code: CodeType) -> bool:
    """Whether it is a statement of the cell itself; IPython 8 renames them."""
    return code.co_name == "<module>" or code.co_name.startswith("<cell line")


def first_line(code: CodeType) -> int:
    """The first line of a statement; `co_firstlineno` of a module is always 1."""
    if hasattr(code, "co_lines"):
        lines = (line for _, _, line in code.co_lines())
    else:
        import dis

        lines = (line for _, line in dis.findlinestarts(code))
    return min((line for line in lines if line), default=0)


class Tracker:
    """Watches the executions of one IPython shell."""

    def __init__(self, ip: Any, path: str) -> None:
        self.is_on = True
        self._ip = ip
        fd = os.open(path, os.O_RDWR)
        self._shared = mmap.mmap(fd, LAYOUT.size)
        os.close(fd)
        self._sequence = 0
        self._main = threading.main_thread().ident
        self._cells: list[Cell] = []
        self._statement: tuple[Any, float, dict[int, float]] | None = None
        self._watching = threading.Event()
        self._original = ip.run_code
        threading.Thread(target=self._look, name="oi-tui-active-line", daemon=True).start()

    # Called by IPython -----------------------------------------------------------------------------------------

    def before_cell(self, info: Any) -> None:
        raw = info.raw_cell or ""
        transformed = getattr(info, "transformed_cell", None)
        if transformed is None:
            try:
                transformed = self._ip.transform_cell(raw)
            except Exception:
                transformed = raw
        if self._statement is None:
            self._cells.clear()  # an interrupt at the wrong moment can keep `after_cell` from being called
        self._cells.append(Cell(info, raw, transformed, self._cells[-1] if self._cells else None))

    def after_cell(self, result: Any) -> None:
        info = getattr(result, "info", None)
        if not self._cells or (info is not None and all(cell.info is not info for cell in self._cells)):
            return  # an empty cell ends without having begun
        cell = self._cells.pop()
        while info is not None and cell.info is not info:
            cell = self._cells.pop()
        if self._cells:
            for line, seconds in cell.times.items():
                self._cells[-1].times[line] = max(seconds, self._cells[-1].times.get(line, 0.0))
            return
        self._watching.clear()
        self._announce(0, 0)
        report: dict[str, Any] = {
            "line_times": {str(k): round(v, 4) for k, v in sorted(cell.times.items())},
            "cwd": folder(),
        }
        if (failed := error_line(result, cell)) is not None:
            report["error_line"] = failed
        self._ip.display_pub.publish({MIME: report})

    async def run_code(self, code_obj: Any, result: Any = None, *, async_: bool = False) -> Any:
        running = self._original(code_obj, result, async_=async_)
        if not self._cells or not self.is_on:
            return await running
        cell = self._cells[-1]
        cell.filename = code_obj.co_filename
        first = first_line(code_obj)
        outer = self._statement
        begun = time.perf_counter()
        times: dict[int, float] = {}
        self._statement = (running if async_ else None, begun, times)
        line = cell.line(first)
        self._announce(line, line)
        self._watching.set()
        try:
            return await running
        finally:
            self._statement = outer
            settle(cell, times, line, time.perf_counter() - begun)

    # In the looking thread -------------------------------------------------------------------------------------

    def _look(self) -> None:
        pause = 1 / RATE
        then = time.perf_counter()
        while True:
            if not self._watching.is_set():
                self._watching.wait()
                then = time.perf_counter()
            time.sleep(pause)
            now = time.perf_counter()
            try:
                self._look_once(now - then)
            except (RuntimeError, AttributeError, IndexError):
                pass  # the cell ended while we looked
            then = now

    def _look_once(self, elapsed: float) -> None:
        statement, cells = self._statement, self._cells
        if statement is None or not cells:
            return
        cell = cells[-1]
        on_stack = cell_frames(sys._current_frames().get(self._main or 0), cell)
        frames = on_stack
        if statement[0] is not None and not any(is_top_level(frame.f_code) for frame in on_stack):
            # Something else has the stack: the loop, or another task of the cell.
            frames = on_stack + suspended_frames(statement[0], cell)
        if not frames or not self._watching.is_set():
            return
        lines = [cell.line_of(frame) for frame in frames]
        self._announce(lines[-1], lines[0])
        for line in {TOTAL, *lines}:
            statement[2][line] = statement[2].get(line, 0.0) + elapsed

    def _announce(self, top: int, inner: int) -> None:
        self._sequence += 1
        LAYOUT.pack_into(self._shared, 0, self._sequence, max(top, 0), max(inner, 0))


def settle(cell: Cell, times: dict[int, float], first: int, seconds: float) -> None:
    """Add a statement's time to its lines: how it was spent is known from looking, how much exactly from the clock."""
    total = times.pop(TOTAL, 0.0)
    if total <= 0.0:
        times, total = {first: 1.0}, 1.0
    for line, share in list(times.items()):
        cell.times[line] = cell.times.get(line, 0.0) + seconds * share / total


def error_line(result: Any, cell: Cell) -> int | None:
    """The line of the cell at which it failed; None if it did not fail, or elsewhere, or was interrupted."""
    error = getattr(result, "error_before_exec", None) or getattr(result, "error_in_exec", None)
    if error is None or isinstance(error, KeyboardInterrupt):
        return None
    line = 0
    if isinstance(error, SyntaxError) and error.filename and (not cell.filename or error.filename == cell.filename):
        line = error.lineno or 0
    trace = error.__traceback__
    while trace is not None and not isinstance(error, SyntaxError):
        if cell.filename and trace.tb_frame.f_code.co_filename == cell.filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    return cell.line(line) if line > 0 else None


def folder() -> str:
    """The kernel's working directory; empty if it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def keep_empty_lines(ip: Any) -> None:
    """Have tracebacks count lines as the screen does: IPython drops the empty ones before the code.

    It must go on doing so before a cell magic and before indented code.
    """
    transforms = ip.input_transformer_manager.cleanup_transforms
    place = next((n for n, known in enumerate(transforms) if known.__name__ == "leading_empty_lines"), None)
    if place is not None:
        original = transforms[place]
        transforms[place] = lambda lines: lines if _starts_plainly(lines) else original(lines)


def _starts_plainly(lines: list[str]) -> bool:
    first = next((line for line in lines if line.strip()), "")
    return not first.startswith(("%%", " ", "\t", ">>>", "In ["))


current: Tracker | None = None
"""The tracker of this kernel. `current.is_on = False` stops it from looking, for comparison."""


def install(ip: Any, options: dict[str, Any]) -> None:
    """Watch this shell. `options["active_line"]` is the shared file."""
    keep_empty_lines(ip)
    if not options["active_line"]:
        return
    global current
    current = tracker = Tracker(ip, options["active_line"])
    ip.run_code = tracker.run_code
    ip.events.register("pre_run_cell", tracker.before_cell)
    ip.events.register("post_run_cell", tracker.after_cell)
