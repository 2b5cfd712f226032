"""What the two rows of chrome say about a session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from oi_tui.engine.lmc import Chunk
from oi_tui.widgets.status_bar import KernelState, Mode, Status

if TYPE_CHECKING:
    from oi_tui.engine.session import Session


def status_of(session: Session, mode: Mode, kernel_state: KernelState) -> Status:
    """The status as it is now."""
    usage = session.usage
    return Status(
        mode=mode,
        model=session.settings.llm.model or "",
        kernel=kernel_name(session),
        kernel_state=kernel_state,
        context_used=session.context_used,
        context_window=session.context_window,
        cost=usage.cost,
        estimated=usage.estimated,
    )


def kernel_name(session: Session) -> str:
    """ "Python 3.12.3, /usr/bin/python3" is "py3.12"."""
    if session.languages is None:
        return ""
    words = session.languages.python.description.replace(",", " ").split()
    version = next((word for word in words if word[:1].isdigit()), "")
    return "py" + ".".join(version.split(".")[:2]) if version else "python"


def kernel_state_after(state: KernelState, chunks: Iterable[Chunk]) -> KernelState:
    """What runs code does after these chunks of a turn."""
    for chunk in chunks:
        if chunk.type == "console":
            state = KernelState.IDLE if chunk.end else KernelState.RUNNING
    return state
