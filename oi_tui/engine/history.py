"""The conversation as the engine knows it: an ordered list of immutable messages, and what happened to each code block.

Output is placed directly behind the code that made it, also when one answer held several code blocks, so the list reads
as LMC is documented: code, its output, code, its output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum, auto
from typing import Any

from oi_tui.engine.approval import CodeProposal, Decision, Verdict, digest_of
from oi_tui.engine.lmc import Message


class CodeFate(StrEnum):
    """What became of a code message; kept in its `meta["state"]`."""

    PENDING = auto()
    RUN = auto()
    DECLINED = auto()
    SKIPPED = auto()
    """Not run because an earlier block was declined, or the user went on without it."""
    REFUSED = auto()
    """The engine would not run it: unknown language, nothing in it, or the same once more."""
    INCOMPLETE = auto()
    """Received only in part; never offered."""


class History:
    """The messages of one conversation, oldest first."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: list[Message] = list(messages)

    @classmethod
    def from_lmc(cls, messages: Sequence[Mapping[str, Any]]) -> History:
        """Load LMC messages. Code that was never run waits for approval again if it is last, and only then;
        it is marked `loaded`, so that it is asked for even where code runs without asking."""
        loaded: list[Message] = []
        last_code: int | None = None
        pending: list[int] = []
        for wire in messages:
            message = Message.from_dict(wire)
            if message.role == "computer":
                if last_code is not None:
                    code = loaded[last_code]
                    message = message.with_meta(code_id=code.id)
                    if code.meta.get("state") == CodeFate.PENDING:
                        loaded[last_code] = code.with_meta(state=CodeFate.RUN)
            elif message.type == "code":
                message = message.with_meta(state=CodeFate.PENDING, digest=digest_of(message.text), loaded=True)
                last_code = len(loaded)
                pending.append(last_code)
            else:
                for index in pending:
                    loaded[index] = _skipped(loaded[index])
                pending.clear()
            loaded.append(message)
        return cls(loaded)

    def __iter__(self) -> Iterator[Message]:
        return iter(tuple(self._messages))

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def last(self) -> Message | None:
        return self._messages[-1] if self._messages else None

    def add(self, message: Message) -> Message:
        """Append, or place a computer message behind the code it belongs to."""
        code_id = message.meta.get("code_id")
        index = self._end_of_run(code_id) if code_id else None
        if index is None:
            self._messages.append(message)
        else:
            self._messages.insert(index, message)
        return message

    def get(self, message_id: str) -> Message | None:
        return next((m for m in self._messages if m.id == message_id), None)

    def replace(self, message: Message) -> None:
        """Put a changed message in the place of the one with the same id."""
        for index, old in enumerate(self._messages):
            if old.id == message.id:
                self._messages[index] = message
                return

    def pending_code(self) -> Message | None:
        """The first code block that waits for a decision."""
        return next((m for m in self._messages if m.meta.get("state") == CodeFate.PENDING), None)

    def record(self, proposal: CodeProposal, decision: Decision) -> None:
        """Write down what was decided. Edited code takes the place of the proposed one, which is kept in `meta`."""
        message = self.get(proposal.id)
        if message is None:
            return
        if decision.verdict is Verdict.DECLINE:
            self.replace(message.with_meta(state=CodeFate.DECLINED, note=decision.note))
            return
        code = proposal.code if decision.code is None else decision.code
        meta: dict[str, Any] = {"state": CodeFate.RUN, "digest": digest_of(code)}
        if code != proposal.code:
            meta["original"] = proposal.code
        self.replace(replace(message, content=code).with_meta(**meta))

    def set_fate(self, message_id: str, fate: CodeFate, **meta: Any) -> None:
        """Set what became of a code message."""
        if (message := self.get(message_id)) is not None:
            self.replace(message.with_meta(state=fate, **meta))

    def has_output(self, code_id: str | None) -> bool:
        """Whether this code has produced anything that is stored."""
        return code_id is not None and any(m.meta.get("code_id") == code_id for m in self._messages)

    def drop_empty_console(self, code_id: str | None) -> None:
        """An empty console message says "no output"; when there is some after all, it goes."""
        self._messages = [
            m for m in self._messages if m.meta.get("code_id") != code_id or m.type != "console" or m.content != ""
        ]

    def drop_output(self, code_id: str) -> None:
        """Forget what this code has produced so far: it cleared its output itself."""
        self._messages = [m for m in self._messages if m.meta.get("code_id") != code_id]

    def skip_pending(self) -> None:
        """Nothing waits any more: what was not decided is marked as skipped."""
        self._messages = [_skipped(m) for m in self._messages]

    def truncate_to(self, length: int) -> list[Message]:
        """Drop everything from position `length` on and return it."""
        dropped = self._messages[length:]
        del self._messages[length:]
        return dropped

    def _end_of_run(self, code_id: str) -> int | None:
        """The position behind a code message and everything that it has produced."""
        end = None
        for index, message in enumerate(self._messages):
            if message.id == code_id or message.meta.get("code_id") == code_id:
                end = index + 1
        return end


def _skipped(message: Message) -> Message:
    if message.meta.get("state") == CodeFate.PENDING:
        return message.with_meta(state=CodeFate.SKIPPED)
    return message
