"""Textual messages that cross widgets: what a turn tells the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto

from textual.message import Message

from oi_tui.engine.approval import CodeProposal, Decision, InputRequest
from oi_tui.engine.lmc import Chunk


class TurnEnd(StrEnum):
    """How a turn ended."""

    DONE = auto()
    STOPPED = auto()
    """The user stopped it."""
    FAILED = auto()
    """A `server/error` chunk said why."""


@dataclass
class ChunksReceived(Message):
    """One frame of a turn: joined chunks, in order. The next frame waits until `handled` is set."""

    chunks: Sequence[Chunk]
    handled: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class ApprovalRequested(Message):
    """Code waits for the user. Whoever asks them sets the result of `reply`; a cancelled reply means nobody waits."""

    proposal: CodeProposal
    reply: asyncio.Future[Decision]


@dataclass
class InputRequested(Message):
    """Running code waits for a line. `reply` takes the text, or the exception `InputCancelled`."""

    request: InputRequest
    reply: asyncio.Future[str]


class TurnStarted(Message):
    """A turn began."""


@dataclass
class TurnEnded(Message):
    """A turn is over and everything of it has been cleaned up."""

    reason: TurnEnd
