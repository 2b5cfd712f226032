"""Questions of the code to its user: `input()` and `getpass()` fail as they do in any other Python.

ipykernel raises `KeyboardInterrupt: Interrupted by user` and an `EOFError` without words from the middle of itself, and
the traceback shows a screenful of it. Here it ends at the line that asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def asking(ask: Callable[..., str]) -> Callable[..., str]:
    """The function with errors of its own instead of ipykernel's."""

    def asked(*args: Any, **kwargs: Any) -> str:
        error: BaseException
        try:
            return ask(*args, **kwargs)
        except EOFError:
            error = EOFError("EOF when reading a line")
        except KeyboardInterrupt:
            error = KeyboardInterrupt()
        raise error

    return asked


_OURS = asking(str).__code__


def without_us(error: BaseException) -> None:
    """End the tracebacks of an error, and of those it came from, where code of ours begins."""
    seen: set[int] = set()
    now: BaseException | None = error
    while now is not None and id(now) not in seen:
        seen.add(id(now))
        trace = now.__traceback__
        while trace is not None and trace.tb_next is not None:
            if trace.tb_next.tb_frame.f_code is _OURS:
                trace.tb_next = None
            trace = trace.tb_next
        now = now.__cause__ or now.__context__


def install(ip: Any, options: dict[str, Any]) -> None:
    """Replace what the kernel puts in the place of `input` and `getpass` for each execution."""
    kernel = ip.kernel
    kernel.raw_input = asking(kernel.raw_input)
    kernel.getpass = asking(kernel.getpass)
    original = ip._get_exc_info

    def exc_info(exc_tuple: Any = None) -> Any:
        found = original(exc_tuple)
        without_us(found[1])
        return found

    ip._get_exc_info = exc_info
