"""Interrupting cells that use top-level `await`.

ipykernel answers SIGINT during such a cell by cancelling its task, which has no effect while the cell itself computes
(`await f()` followed by `while True: pass`). Here the signal raises `KeyboardInterrupt` when the cell's own code has
the processor, as in any other cell, and cancels only when it waits.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any


def install(ip: Any, options: dict[str, Any]) -> None:
    """Replace the kernel's handler for asynchronous cells. Raises for an ipykernel that has none."""
    kernel = ip.kernel
    original = kernel._cancel_on_sigint
    runs_code = type(ip).run_code.__code__

    @contextlib.contextmanager
    def cancel_or_raise(future: Any) -> Iterator[None]:
        with original(future):
            cancel: Any = signal.getsignal(signal.SIGINT)

            def on_sigint(signum: int, frame: FrameType | None) -> None:
                __tracebackhide__ = True
                caller = frame
                while caller is not None:
                    if caller.f_code is runs_code:  # it catches what is raised here
                        signal.default_int_handler(signum, frame)
                    caller = caller.f_back
                cancel(signum, frame)
                # Tornado takes a callback added on the loop's own thread as a promise that the loop is awake.
                kernel.io_loop.asyncio_loop.call_soon_threadsafe(lambda: None)

            signal.signal(signal.SIGINT, on_sigint)
            yield

    kernel._cancel_on_sigint = cancel_or_raise
