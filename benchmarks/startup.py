"""How quickly the command answers."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.rows import Row

PAIRS = 15


def seconds(argv: list[str]) -> float:
    """Wall time of one process."""
    started = time.perf_counter()
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    return time.perf_counter() - started


def rows() -> Iterator[Row]:
    """`--version` against a Python that does nothing, in alternation."""
    version, bare = [sys.executable, "-m", "oi_tui", "--version"], [sys.executable, "-c", "pass"]
    seconds(version), seconds(bare)  # warm the file cache
    pairs = [(seconds(version), seconds(bare)) for _ in range(PAIRS)]
    value = statistics.median(a for a, _ in pairs) * 1000
    reference = statistics.median(b for _, b in pairs) * 1000
    ratio = statistics.median(a / b for a, b in pairs)
    yield Row("oi-tui --version", value, "ms", reference, ratio, "≤ 4x python -c pass", ratio <= 4)
