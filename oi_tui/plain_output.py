"""What the line front end prints: chunks as lines that only ever grow, fit for logs, pipes and screen readers.

Foreign text is sanitised, and code and output stand behind a rail, so that nothing they contain can look like a
question of ours. Nothing is redrawn: a progress bar shows its first and its last state, and one now and then between.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from oi_tui.engine.approval import CodeProposal, digest_of
from oi_tui.engine.hidden_text import find_hidden, summary
from oi_tui.engine.lmc import Chunk
from oi_tui.plain_files import FileShelf
from oi_tui.plain_lines import CodeLines, RailedText, revealed_lines
from oi_tui.plain_speaker import Speaker
from oi_tui.plain_width import Width, WordWrap, cells
from oi_tui.rendering.sanitise import Sanitiser, sanitise, sanitise_line, show_bidi

NOTICE_LENGTH = 1000
WAITING = ("retry", "waiting")
"""Kinds of notices during which the user may want to stop."""
HOW_TO_STOP = " (Ctrl-C stops)"

_DIGITS = re.compile(r"\d+")


class LinePrinter(Speaker):
    """Prints the chunks of turns for a reader. Answers and code go to `out`, what the program itself says to `err`."""

    def __init__(
        self,
        out: TextIO,
        err: TextIO,
        files: FileShelf,
        *,
        colour: bool = False,
        verbose: bool = False,
        width: Width = lambda: None,
    ) -> None:
        super().__init__()
        self._width = width
        self._out = out
        self._err = err
        self._files = files
        self._colour = colour
        self.verbose = verbose
        self._at_line_start = True
        self._is_first = True
        self._text = Sanitiser()
        self._output = Sanitiser(keep_sgr=colour)
        self._prose = WordWrap(width)
        self._railed = RailedText(self._put, width=width)
        self._code: CodeLines | None = None
        self._code_id: str | None = None
        self._proposed_id: str | None = None
        self._is_code_last = False
        self._is_silent = False
        self._last_notice = ""
        self.failure: str | None = None

    # -- chunks ---------------------------------------------------------------------------------------------------

    def print(self, chunks: Sequence[Chunk]) -> None:
        """Print what has happened and flush it."""
        with self.speaking():
            for chunk in chunks:
                self._print(chunk)
            self._out.flush()

    def _print(self, chunk: Chunk) -> None:
        match (chunk.role, chunk.type):
            case ("server", kind):
                self._print_event(kind, chunk)
            case (_, "confirmation" | "review"):
                pass
            case ("computer", "console"):
                self._print_console(chunk)
            case (_, "image"):
                self._print_file(chunk)
            case ("computer", "code"):
                self._print_file(chunk)
            case (_, "code"):
                self._print_code(chunk)
            case (_, "reasoning"):
                self._print_reasoning(chunk)
            case _:
                self._print_message(chunk)

    def _print_message(self, chunk: Chunk) -> None:
        if chunk.start:
            self._begin_block()
        self._write(self._prose.feed(show_bidi(self._text.close() if chunk.end else self._text.feed(chunk.text))))
        if chunk.end:
            self._end_line()

    def _print_reasoning(self, chunk: Chunk) -> None:
        if not self.verbose:
            return
        if chunk.start:
            self._begin_block()
            self._write("Thinking:\n")
        self._rail(show_bidi(self._text.close() if chunk.end else self._text.feed(chunk.text)))
        if chunk.end:
            self._railed.close()

    def _print_code(self, chunk: Chunk) -> None:
        if chunk.start or (self._code is None and chunk.text):
            self._begin_block()
            language = chunk.format or ""
            self._write(f"Code, {sanitise_line(language, 40)}:\n")
            self._code, self._code_id = CodeLines(self._write, language, width=self._width), chunk.id
            self._is_silent = True
        if self._code is not None and chunk.text:
            self._code.feed(chunk.text)
        if chunk.end and self._code is not None:
            self._code.close()
            self._is_code_last = True

    def _print_console(self, chunk: Chunk) -> None:
        if chunk.start and self._code is not None and self._proposed_id != self._code_id:
            self._warn(self._code.text, self._code.language)  # nobody was asked, so nobody was warned
            self._proposed_id = self._code_id
        if chunk.format == "active_line" and chunk.content is None and not chunk.is_flag and self._is_silent:
            self._begin_block(blank=False)
            self._write("Output: none\n")
        if chunk.is_ephemeral:
            return
        text = show_bidi(self._output.close() if chunk.end else self._output.feed(chunk.text))
        if text and not self._railed.is_used:
            self._begin_block(blank=False)
            self._write("Output:\n")
        if text:
            self._is_silent = False
            self._rail(text)
        if chunk.end:
            self._railed.close()

    def _print_file(self, chunk: Chunk) -> None:
        if chunk.is_flag:
            return
        self._is_silent = False
        self._begin_block(blank=False)
        self._write(f"{self._files.keep(chunk)}\n")

    def _print_event(self, kind: str, chunk: Chunk) -> None:
        if kind == "error":
            self.failure = chunk.text
            self.say(f"error: {chunk.text}")
        elif kind == "notice" and chunk.text:
            self._print_notice(chunk)
        elif kind == "decision" and isinstance(chunk.content, dict):
            self._print_decision(chunk.content)
        elif kind == "usage" and self.verbose and isinstance(chunk.content, dict):
            used = chunk.content
            self.say(f"tokens: {used.get('prompt_tokens', 0)} in, {used.get('completion_tokens', 0)} out")

    def _print_notice(self, chunk: Chunk) -> None:
        pattern = f"{chunk.format} {_DIGITS.sub('#', chunk.text)}"
        if pattern != self._last_notice:  # a countdown is said once
            self.say(f"note: {chunk.text}{HOW_TO_STOP if chunk.format in WAITING else ''}")
        self._last_notice = pattern

    def _print_decision(self, content: dict[str, Any]) -> None:
        if content.get("verdict") == "run" and content.get("edited"):
            added, removed = content.get("added"), content.get("removed")
            self.say(f"note: runs as edited by you, +{added} −{removed}, digest {str(content.get('digest'))[:6]}")

    # -- around a question ----------------------------------------------------------------------------------------

    def show_proposal(self, proposal: CodeProposal) -> None:
        """Make sure that the proposed code is the last thing above the question, whole and as it will run."""
        wanted = revealed_lines(proposal.code, proposal.language)
        with self.speaking():
            shown = self._code.shown if self._code is not None and self._code_id == proposal.id else None
            if not self._is_code_last or shown != wanted:
                self.show_code(proposal.code, proposal.language)
            self._write(f"{count_lines(len(wanted))}, digest {digest_of(proposal.code)[:6]}\n")
            self._warn(proposal.code, proposal.language)
            self._proposed_id = proposal.id
            self._is_code_last = False
            self._out.flush()

    def show_code(self, code: str, language: str) -> None:
        """A complete block of code."""
        with self.speaking():
            self._begin_block()
            self._write(f"Code, {sanitise_line(language, 40)}:\n")
            CodeLines(self._write, language, width=self._width).whole(code)

    def _warn(self, code: str, language: str) -> None:
        if findings := find_hidden(code, language=language):
            self._write(f"Warning: {sanitise_line(summary(findings), NOTICE_LENGTH)}\n")

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Inside, the user is asked on a line of its own. Left by an exception, the cursor is still on it."""
        self.end_line()
        self._at_line_start = False
        yield
        self._at_line_start = True

    def has_room_for(self, question: str) -> bool:
        """Whether the question is one row. In a longer one a program's words could seem to be a question of ours."""
        width = self._width()
        return width is None or cells(question) <= width

    def show_request(self, text: str) -> None:
        """What a program asks, behind the rail."""
        with self.speaking():
            self._end_line()
            self._railed.feed(text)
            self._end_line()
            self._out.flush()

    def end_line(self) -> None:
        """Go to the start of a line."""
        with self.speaking():
            self._end_line()
            self._out.flush()

    def note_echo(self) -> None:
        self._at_line_start = False

    def say(self, text: str) -> None:
        """A line of the program's own, for the error stream."""
        with self.speaking():
            self._end_line()
            self._out.flush()
            print(sanitise_line(text, NOTICE_LENGTH), file=self._err, flush=True)

    def tell(self, text: str) -> None:
        """Lines of the program's own, for the output."""
        with self.speaking():
            self._end_line()
            self._is_first = False
            self._write(f"{sanitise(text)}\n")
            self._out.flush()

    def end_turn(self) -> None:
        """The turn is over, perhaps in the middle of something."""
        with self.speaking():
            self._end_line()
            self._railed.close()
            self._text, self._output = Sanitiser(), Sanitiser(keep_sgr=self._colour)
            self._code = None
            self._is_code_last = False
            self._last_notice = ""
            self._out.flush()

    # -- lines ----------------------------------------------------------------------------------------------------

    def _begin_block(self, *, blank: bool = True) -> None:
        self._end_line()
        if blank and not self._is_first:
            self._write("\n")
        self._is_first = False
        self._is_code_last = False

    def _end_line(self) -> None:
        self._write(self._prose.close())
        self._railed.break_line()
        if not self._at_line_start:
            self._put("\n")

    def _write(self, text: str) -> None:
        """Text that is not a program's: it never goes on behind a rail."""
        if text:
            self._railed.break_line()
            self._put(text)

    def _rail(self, text: str) -> None:
        if not self._railed.is_open and not self._at_line_start:
            self._put("\n")
        self._railed.feed(text)

    def _put(self, text: str) -> None:
        if text:
            self._at_line_start = False  # should a signal end the program while it is written
            self._out.write(text)
            self._at_line_start = text.endswith("\n")


def count_lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def wants_colour(stream: TextIO, environ: Any) -> bool:
    """Whether a program's own colours are passed on: only to a terminal that has not said no."""
    return bool(stream.isatty()) and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


class JsonPrinter(Speaker):
    """Prints LMC chunks for a program, one JSON object per line. What is outside the protocol is left out."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        super().__init__()
        self._out = out
        self._err = err
        self.failure: str | None = None

    def print(self, chunks: Sequence[Chunk]) -> None:
        """Print what has happened and flush it."""
        with self.speaking():
            for chunk in chunks:
                if chunk.type == "error" and chunk.role == "server":
                    self.failure = chunk.text
                if chunk.is_protocol:
                    self._out.write(json.dumps(chunk.to_dict()) + "\n")
                elif chunk.type == "notice" and chunk.text:
                    self.say(f"note: {chunk.text}")
            self._out.flush()

    def show_proposal(self, proposal: CodeProposal) -> None:
        """Nothing: the confirmation chunk has said it."""

    def say(self, text: str) -> None:
        """A line of the program's own, for the error stream."""
        with self.speaking():
            self._out.flush()
            print(sanitise_line(text, NOTICE_LENGTH), file=self._err, flush=True)

    tell = say

    def end_line(self) -> None:
        """It never leaves one open."""

    def end_turn(self) -> None:
        """Nothing is left open."""
        with self.speaking():
            self._out.flush()
