"""What a model's answer is made of, whichever way the model wrote it: prose and code blocks, piece by piece.

`ToolCallParser` and `FencedParser` both speak these. For every code block there is one `CodeStart`, any number of
`CodeText`s and one `CodeEnd`, all with the same `key`; keys are unique within a parser. Blocks may overlap in time
(parallel calls), so a consumer goes by the key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

Resolve: TypeAlias = Callable[[str], str | None]
"""Canonical name of an executable language for a name or alias in lower case; None if there is no such language."""


@dataclass(frozen=True, slots=True)
class Text:
    """Prose, as the model wrote it."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The model's thinking, where a server leaves it in the text (`<think>` at the beginning of an answer)."""

    text: str


@dataclass(frozen=True, slots=True)
class CodeStart:
    """A code block begins. `language` is canonical if it is known, otherwise what the model called it.

    `call_id` is the id of the tool call (the provider's, or a generated one); None in text mode.
    """

    key: str
    language: str
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class CodeText:
    """The next characters of a block's code."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class CodeEnd:
    """A code block ends. It may run only if `may_run`.

    `complete` is False for code that was received in part. `problem` says, in words for the model, why this is not
    code that can run: broken arguments, an unknown tool, no code. It belongs into the result of the call.
    """

    key: str
    complete: bool = True
    problem: str | None = None

    @property
    def may_run(self) -> bool:
        return self.complete and self.problem is None


Piece: TypeAlias = Text | Reasoning | CodeStart | CodeText | CodeEnd
