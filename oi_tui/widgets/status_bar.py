"""What the two rows of chrome say: mode, model, kernel, context and cost.

`Status` is one immutable value. The screen makes a new one when something changes and hands it to `TopBar.status` and
`KeyBar.status`; neither asks anybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """When code runs without asking. Shift+Tab walks through them in this order."""

    ASK = "ask"
    """Every block is asked for, whatever was allowed before."""
    RULES = "ask with rules"
    """What the user allowed in this conversation runs; everything else is asked for."""
    RUN_ALL = "run all"
    """Nothing is asked. The screen has a red frame. Safe mode forbids it."""

    def following(self, *, safe: bool) -> Mode:
        """The next mode in the round; `safe` (safe mode is on) leaves out `RUN_ALL`."""
        modes = [mode for mode in Mode if not (safe and mode is Mode.RUN_ALL)]
        return modes[(modes.index(self) + 1) % len(modes)] if self in modes else Mode.ASK


class KernelState(StrEnum):
    OFF = "ready"
    """Nothing has run yet; the first code starts it, if it is not kept warm already."""
    STARTING = "starting"
    IDLE = "idle"
    RUNNING = "running"
    WAITING = "waits for input"
    DEAD = "ended"


@dataclass(frozen=True, slots=True)
class Status:
    """Everything the chrome shows. Names and models come from outside and must be one clean line."""

    mode: Mode = Mode.ASK
    model: str = ""
    kernel: str = ""
    """Short name of what runs Python: "py3.12"."""
    kernel_state: KernelState = KernelState.OFF
    folder: str = ""
    """The working directory of the conversation."""
    context_used: int = 0
    context_window: int | None = None
    cost: float | None = None
    """US dollars in this session; None when nobody knows the price."""
    estimated: bool = False
    """True when context or cost are our own estimate rather than the provider's figures."""

    @property
    def short_model(self) -> str:
        """The model without its provider: "ollama/qwen3:8b" is "qwen3:8b"."""
        return self.model.rpartition("/")[2] or "no model"

    @property
    def usage(self) -> str:
        """ "ctx 12% · $0.03", with ≈ in front of estimates; empty before the first request."""
        if not self.context_used and not self.cost:
            return ""
        about = "≈" if self.estimated else ""
        parts = [f"ctx {about}{_share(self.context_used, self.context_window)}"]
        if self.cost is not None:
            parts.append(f"{about}{dollars(self.cost)}")
        return " · ".join(parts)


def _share(used: int, window: int | None) -> str:
    if not window:
        return f"{tokens(used)} tokens"
    percent = 100 * used / window
    return "<1%" if 0 < percent < 1 else f"{percent:.0f}%"


def tokens(count: int) -> str:
    """A token count in at most five characters: 950, 12.3k, 1.2M."""
    if count < 1000:
        return str(count)
    if count < 999_950:
        return f"{count / 1000:.1f}k"
    return f"{count / 1_000_000:.1f}M"


def dollars(amount: float) -> str:
    """A price that never shows as nothing: $0.03, $12.40, <$0.01, $0.00 only when it is free."""
    if 0 < amount < 0.005:
        return "<$0.01"
    return f"${amount:.2f}"
