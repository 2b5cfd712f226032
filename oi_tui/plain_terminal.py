"""What the line front end asks: the prompt, approval, input for running code, choices. Blocks; for the main thread."""

from __future__ import annotations

import getpass
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from oi_tui.engine.approval import CodeProposal, Decision, InputEnded, InputRequest, edit_counts
from oi_tui.plain_editor import edit_in_editor
from oi_tui.prompt_history import PromptHistory
from oi_tui.rendering.sanitise import sanitise_line, show_bidi

PROMPT = "> "
BLOCK = '"""'
GUARD = 0.5
"""Seconds before an approval is asked for, in which whatever was typed ahead is thrown away."""
SHORTEST_WORDS = 3
"""Fewer letters are taken for a slip of the keyboard, not for words to the model."""

APPROVAL_HELP = (
    "y runs exactly this code. n declines it. e opens it in your editor. "
    "Any other words decline it and are sent to the model."
)
NOTHING_AUTOMATIC = "Nothing is approved beyond this one. %auto_run at the prompt switches asking off."


class Shows(Protocol):
    """The printer, as far as it is needed without a terminal."""

    def show_proposal(self, proposal: CodeProposal) -> None: ...

    def say(self, text: str) -> None: ...


class Asks(Shows, Protocol):
    """The printer, as far as questions need it."""

    def asking(self) -> AbstractContextManager[None]: ...

    def has_room_for(self, question: str) -> bool: ...

    def show_request(self, text: str) -> None: ...


class CannotAsk:
    """Stands in for the terminal where there is none: declines code and input, and remembers that it had to."""

    def __init__(self, printer: Shows) -> None:
        self._printer = printer
        self.has_declined = False

    def approve(self, proposal: CodeProposal) -> Decision:
        self._printer.show_proposal(proposal)
        self._printer.say("Declined: there is no terminal to ask for approval. Add -y to let code run.")
        self.has_declined = True
        return Decision.decline()

    def input(self, request: InputRequest) -> str:
        """Raises `InputEnded`."""
        self._printer.say(f"The code asks for input, and there is no terminal to answer: {request.prompt}")
        raise InputEnded


@dataclass(slots=True)
class Terminal:
    """Asks at the terminal. Every method raises `KeyboardInterrupt` for Ctrl-C and `EOFError` where noted."""

    printer: Asks
    has_declined: bool = False

    def ask(self, question: str, *, hidden: bool = False) -> str:
        """A line that the user types behind the question, which is always on a line of its own. Raises `EOFError`."""
        with self.printer.asking():
            return getpass.getpass(question) if hidden else input(question)

    def read_message(self) -> str:
        """The next message; several lines between triple quotes or in one paste. Raises `EOFError` at the end."""
        lines = [self.ask(PROMPT)]
        if lines[0].count(BLOCK) % 2:
            while True:
                line = self.ask("")
                lines.append(line)
                if BLOCK in line:
                    break
        return "\n".join(lines).replace(BLOCK, "").strip()

    def approve(self, proposal: CodeProposal) -> Decision:
        """Ask until there is an answer. The end of input declines."""
        code = proposal.code
        self.printer.show_proposal(proposal)
        discard_typed_ahead()
        while True:
            try:
                answer = self.ask("Run this code? y, n, e to edit, or words: ").strip()
            except EOFError:
                answer = "n"
            match answer.lower():
                case "y" | "yes":
                    return Decision.run(None if code == proposal.code else code)
                case "n" | "no":
                    self.has_declined = True
                    return Decision.decline()
                case "e" | "edit":
                    code = self._edit(proposal, code)
                    continue
                case "a":
                    self.printer.say(NOTHING_AUTOMATIC)
                    continue
            if len(answer) >= SHORTEST_WORDS and "\n" not in answer:
                return Decision.decline(answer)
            self.printer.say(APPROVAL_HELP)

    def _edit(self, proposal: CodeProposal, code: str) -> str:
        """The code after the editor, shown as it would run now."""
        edited = edit_in_editor(code, proposal.language, self.printer.say)
        if edited == code:
            self.printer.say("Nothing was changed.")
        else:
            added, removed = edit_counts(proposal.code, edited)
            self.printer.show_proposal(CodeProposal(proposal.id, proposal.language, edited))
            self.printer.say(f"Edited by you: {added} added, {removed} removed.")
        discard_typed_ahead()
        return edited

    def input(self, request: InputRequest) -> str:
        """A line for the running code. Raises `InputEnded` at the end of input."""
        asked = " ".join(show_bidi(sanitise_line(request.prompt, 500)).split())
        beginning = "The code asks for a password, which is not stored:" if request.password else "The code asks:"
        if not self.printer.has_room_for(f"{beginning} {asked} "):
            self.printer.show_request(asked)
            asked = "(see above)"
        try:
            return self.ask(f"{beginning} {asked} ", hidden=request.password)
        except EOFError:
            raise InputEnded from None

    def choose(self, question: str, choices: Sequence[str]) -> int | None:
        """The index of one of the choices, by number; None for an empty answer or the end of input."""
        for number, choice in enumerate(choices, 1):
            print(f"{number}. {show_bidi(sanitise_line(choice, 200))}")
        while True:
            try:
                answer = self.ask(f"{question} (1 to {len(choices)}, Enter for none): ").strip()
            except EOFError:
                return None
            if not answer:
                return None
            if answer.isdecimal() and 1 <= int(answer) <= len(choices):
                return int(answer) - 1
            print(f"A number from 1 to {len(choices)}, please.")


def discard_typed_ahead() -> None:
    """Throw away what was typed before the question could be read: it was meant for something else."""
    time.sleep(GUARD)
    if os.name != "posix":
        return
    import termios

    try:
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    except (termios.error, ValueError, OSError):  # not a terminal
        return


class LineEditing:
    """Readline for the prompt: what was typed before, and a paste of several lines as one.

    Without a `history` there is nobody to edit a line, and nothing is done.
    """

    def __init__(self, history: PromptHistory | None) -> None:
        self._history = history
        self._add: Callable[[str], object] = lambda _: None
        if history is None:
            return
        try:
            import readline
        except ImportError:  # Windows; its console edits lines itself
            return
        readline.set_auto_history(False)  # answers are no messages
        if "libedit" not in (readline.__doc__ or ""):
            readline.parse_and_bind("set enable-bracketed-paste on")
        self._add = readline.add_history
        for entry in history.entries:
            self._add(entry)

    def remember(self, entry: str) -> None:
        """What ↑ will bring back, in this session and the next."""
        self._add(entry)
        if self._history is not None:
            self._history.add(entry)
