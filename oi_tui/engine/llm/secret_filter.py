"""Takes the user's keys out of an answer, for endpoints that say them back."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from oi_tui.engine.llm.base import Delta, ToolCallDelta
from oi_tui.engine.redaction import StreamRedactor, known_keys


class SecretFilter:
    """Deltas in, the same deltas out, without known keys; wherever a key is cut between two deltas.

    Takes deltas of one kind each (text, reasoning or calls), as `WorkerModel` makes them.
    """

    def __init__(self, *configured: str | None) -> None:
        self._keys = known_keys(*configured)
        self._redactors: dict[Hashable, StreamRedactor] = {}

    def feed(self, deltas: Iterable[Delta]) -> list[Delta]:
        """What may be shown now, in order."""
        if not self._keys:
            return list(deltas)
        return [shown for delta in deltas for shown in self._feed(delta)]

    def flush(self) -> list[Delta]:
        """What was held back: call when the answer is over."""
        return self._flush(except_for=None)

    def _feed(self, delta: Delta) -> list[Delta]:
        if delta.tool_calls:
            calls = tuple(map(self._call, delta.tool_calls))
            return [*self._flush(except_for="call"), replace(delta, tool_calls=calls)]
        if delta.text:
            before = self._flush(except_for="text")
            shown = self._redactor("text").feed(delta.text)
            return [*before, replace(delta, text=shown)] if shown else before
        if delta.reasoning:
            before = self._flush(except_for="reasoning")
            shown = self._redactor("reasoning").feed(delta.reasoning)
            return [*before, replace(delta, reasoning=shown)] if shown else before
        return [*self.flush(), delta]

    def _call(self, call: ToolCallDelta) -> ToolCallDelta:
        key = ("call", call.index, call.id if call.index is None else None)
        return replace(call, arguments=self._redactor(key).feed(call.arguments))

    def _redactor(self, key: Hashable) -> StreamRedactor:
        return self._redactors.setdefault(key, StreamRedactor(self._keys))

    def _flush(self, *, except_for: str | None) -> list[Delta]:
        """What is held back of other kinds than the one that goes on: it is over, or out of order if shown later."""
        out = []
        for key, redactor in self._redactors.items():
            kind = key[0] if isinstance(key, tuple) else key
            if kind == except_for or not (held := redactor.flush()):
                continue
            if kind == "text":
                out.append(Delta(text=held))
            elif kind == "reasoning":
                out.append(Delta(reasoning=held))
            elif isinstance(key, tuple):
                out.append(Delta(tool_calls=(ToolCallDelta(key[1], key[2], None, held),)))
        return out
