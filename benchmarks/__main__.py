"""`make bench`: the promises of the program, measured on this machine.

    python -m benchmarks              all of them
    python -m benchmarks kernel model some of them

Each module offers `rows()`, which yields `Row`s as they are measured; sync or async. A reference is measured in the
same run as the value. The exit status is 1 when a goal was missed.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from benchmarks.rows import Row

MODULES = ("startup", "model", "kernel", "languages", "rendering", "screen", "store")
COLUMNS = f"{'what':<52} {'value':>14} {'reference':>12} {'ratio':>7}  {'goal':<34} "


def number(value: float | None, unit: str = "") -> str:
    if value is None:
        return "–"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 3
    return f"{value:,.{digits}f} {unit}".strip()


def show(row: Row) -> None:
    ratio = "–" if row.ratio is None else f"{row.ratio:.2f}x"
    line = f"{row.name:<52} {number(row.value, row.unit):>14} {number(row.reference, row.unit):>12} {ratio:>7}"
    print(f"{line}  {row.goal:<34} {'met' if row.met else 'MISSED'}", flush=True)


async def measure(name: str) -> list[Row]:
    """All rows of one module, printed as they come."""
    try:
        module = importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"benchmarks.{name}":
            raise
        print(f"no such benchmark: {name} (there are: {', '.join(MODULES)})", file=sys.stderr)
        return []
    found: list[Row] = []
    result: Any = module.rows()
    if inspect.isawaitable(result):
        result = await result
    async for row in _each(result):
        show(row)
        found.append(row)
    return found


async def _each(rows: Iterator[Row] | AsyncIterator[Row]) -> AsyncIterator[Row]:
    if isinstance(rows, AsyncIterator):
        async for row in rows:
            yield row
    else:
        for row in rows:
            yield row


def main(names: list[str]) -> int:
    started = time.monotonic()
    print(COLUMNS)
    found: list[Row] = []
    for name in names or MODULES:
        print(f"-- {name}", flush=True)
        found += asyncio.run(measure(name))
    missed = [row for row in found if not row.met]
    print(f"\n{len(found) - len(missed)} met, {len(missed)} missed, in {time.monotonic() - started:.0f} s")
    return 1 if missed or not found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
