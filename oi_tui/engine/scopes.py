"""Approval scopes: the steps between "each time" and "always".

A scope answers later proposals; it never approves the one it was chosen at. There are no rules that match the text
of a command: wherever those exist they are bypassed. Code with characters that trick the eye is always asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum, auto

from oi_tui.engine.approval import CodeProposal
from oi_tui.engine.hidden_text import find_hidden


class Scope(StrEnum):
    """How far an approval reaches, narrowest first."""

    THIS_CODE = auto()
    """The very same code, byte for byte, in the same language."""
    LANGUAGE = auto()
    """Any code of this language in this conversation."""
    EVERYTHING = auto()
    """Any code in this conversation."""


@dataclass(slots=True)
class ApprovalScopes:
    """What the user allowed in one conversation. Lives as long as the conversation is open, and is never stored."""

    codes: set[tuple[str, str]] = field(default_factory=set)
    """(language, digest) pairs."""
    languages: set[str] = field(default_factory=set)
    everything: bool = False

    def __bool__(self) -> bool:
        return self.everything or bool(self.codes or self.languages)

    def allow(self, scope: Scope, proposal: CodeProposal) -> None:
        """From now on, code like this proposal runs without being asked for."""
        match scope:
            case Scope.THIS_CODE:
                self.codes.add((proposal.language, proposal.digest))
            case Scope.LANGUAGE:
                self.languages.add(proposal.language)
            case Scope.EVERYTHING:
                self.everything = True

    def covers(self, proposal: CodeProposal) -> bool:
        """True if the user allowed this code before, and nothing in it hides from the eye."""
        allowed = (
            self.everything or proposal.language in self.languages or (proposal.language, proposal.digest) in self.codes
        )
        return allowed and not find_hidden(proposal.code, language=proposal.language)

    def clear(self) -> None:
        """Ask for everything again."""
        self.codes.clear()
        self.languages.clear()
        self.everything = False

    def describe(self) -> str:
        """What is allowed, in a few words; empty if nothing is."""
        if self.everything:
            return "everything runs without asking"
        parts = [f"all {language}" for language in sorted(self.languages)]
        if self.codes:
            parts.append(f"{len(self.codes)} block" + ("s" if len(self.codes) > 1 else ""))
        return ", ".join(parts) + " without asking" if parts else ""
