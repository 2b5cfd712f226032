"""Approval: what is asked before code runs, and what is answered.

The chain is short on purpose. A `CodeProposal` is made from a finished code message and carries the SHA-256 of its
code. An `Approver` (the screen, a prompt, a program) answers it with a `Decision`. Only `CodeProposal.approve` turns
the two into `ApprovedCode`, and the runner executes nothing else, after computing the digest once more. Editing the
code makes a new digest, because it makes different code.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import TypeAlias


def digest_of(code: str) -> str:
    """SHA-256 of the code's UTF-8 bytes, 64 hexadecimal digits. Lone surrogates count as they are."""
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()


class Verdict(StrEnum):
    RUN = auto()
    DECLINE = auto()


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to a proposal.

    `code` is the code to run instead of the proposed one (None: run what was proposed). `note` holds the user's words
    to the model: with DECLINE they are sent and the model answers them; without words the turn ends.
    """

    verdict: Verdict
    code: str | None = None
    note: str | None = None

    @classmethod
    def run(cls, code: str | None = None) -> Decision:
        return cls(Verdict.RUN, code=code)

    @classmethod
    def decline(cls, note: str | None = None) -> Decision:
        return cls(Verdict.DECLINE, note=note)


@dataclass(frozen=True, slots=True)
class ApprovedCode:
    """Code that may run: made only by `CodeProposal.approve`."""

    id: str
    language: str
    code: str
    digest: str


class NotApproved(Exception):
    """The runner was handed code that does not match an approval. A fault of the program, never of the user."""


@dataclass(frozen=True, slots=True)
class CodeProposal:
    """A finished code block that waits for the user. `id` is the id of its code message."""

    id: str
    language: str
    code: str
    digest: str = field(default="")

    def __post_init__(self) -> None:
        if not self.digest:
            object.__setattr__(self, "digest", digest_of(self.code))

    @property
    def short_digest(self) -> str:
        """The first six digits, as shown on the block."""
        return self.digest[:6]

    def approve(self, decision: Decision) -> ApprovedCode:
        """What may run after this decision. Raises `NotApproved` for anything but RUN."""
        if decision.verdict is not Verdict.RUN:
            raise NotApproved("the code was declined")
        code = self.code if decision.code is None else decision.code
        return ApprovedCode(self.id, self.language, code, digest_of(code))


@dataclass(frozen=True, slots=True)
class InputRequest:
    """Running code asks its user for a line. With `password` the answer is masked, and neither stored nor sent."""

    id: str
    prompt: str
    password: bool = False


class InputCancelled(Exception):
    """Raised by an `Answerer` when the user refuses to answer: the code is interrupted."""


class InputEnded(InputCancelled):
    """Raised by an `Answerer` when there is nobody to ask, or no more to read: the code meets the end of its input (in
    Python an `EOFError`). Languages that cannot be told so interrupt it."""


Approver: TypeAlias = Callable[[CodeProposal], Awaitable[Decision]]
Answerer: TypeAlias = Callable[[InputRequest], Awaitable[str]]


async def decline_all(proposal: CodeProposal) -> Decision:
    """The approver of a front end that cannot ask."""
    return Decision.decline()


async def no_answer(request: InputRequest) -> str:
    """The answerer of a front end that cannot ask."""
    raise InputEnded


def edit_diff(original: str, edited: str) -> str:
    """A unified diff of the user's edit, without file names; empty when nothing changed."""
    if original == edited:
        return ""
    lines = difflib.unified_diff(original.splitlines(), edited.splitlines(), "proposed", "as run", lineterm="", n=2)
    return "\n".join(lines)


def edit_counts(original: str, edited: str) -> tuple[int, int]:
    """How many lines the user's edit added and removed."""
    added = removed = 0
    for line in edit_diff(original, edited).splitlines()[2:]:
        added += line.startswith("+")
        removed += line.startswith("-")
    return added, removed
