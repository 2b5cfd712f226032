"""How quickly the command answers."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.rows import Row

PAIRS = 15


def seconds(argv: list[str]) -> float:
    """Wall time of one process."""
    started = time.perf_counter()
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    return time.perf_counter() - started


def peak_memory(*arguments: str) -> float:
    """Megabytes the command's own process held at most, as the kernel says while it lives (VmHWM)."""
    process = subprocess.Popen([sys.executable, "-m", "oi_tui", *arguments], stdout=subprocess.DEVNULL)
    peak = 0.0
    try:
        while process.poll() is None:
            with contextlib.suppress(OSError, StopIteration):
                status = Path(f"/proc/{process.pid}/status").read_text()
                line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
                peak = max(peak, int(line.split()[1]) / 1024)
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    return peak


def rows() -> Iterator[Row]:
    """`--version` against a Python that does nothing, in alternation; a whole task's peak memory."""
    version, bare = [sys.executable, "-m", "oi_tui", "--version"], [sys.executable, "-c", "pass"]
    seconds(version), seconds(bare)  # warm the file cache
    pairs = [(seconds(version), seconds(bare)) for _ in range(PAIRS)]
    value = statistics.median(a for a, _ in pairs) * 1000
    reference = statistics.median(b for _, b in pairs) * 1000
    ratio = statistics.median(a / b for a, b in pairs)
    yield Row("oi-tui --version", value, "ms", reference, ratio, "≤ 4x python -c pass", ratio <= 4)
    if Path("/proc/self/status").exists():
        peak = peak_memory("--profile", "demo", "-y", "--no_history", "-p", "what is 2380*3875?")
        yield Row("one task with the demo: peak memory", peak, "MB", None, None, "≤ 60 MB", 0 < peak <= 60)
