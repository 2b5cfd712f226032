"""A code block: what the model wrote, what the user made of it, what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, ClassVar

from oi_tui.engine.approval import CodeProposal, digest_of, edit_counts
from oi_tui.engine.hidden_text import Finding, find_hidden
from oi_tui.widgets.block import Block, Line, Slot
from oi_tui.widgets.block_theme import BlockTheme
from oi_tui.widgets.code_face import CodeFace
from oi_tui.widgets.code_lines import CodeLines
from oi_tui.widgets.code_state import CodeState
from oi_tui.widgets.diff_lines import changed_middle
from oi_tui.widgets.output_lines import OutputLines


class CodeBlock(Block):
    """Code with its state, its digest and its output. The methods are what can happen to it, in the order of a life."""

    kind: ClassVar[str] = "code"
    can_fold: ClassVar[bool] = True

    def __init__(self, block_id: str | None, language: str, *, is_own: bool = False) -> None:
        super().__init__(block_id)
        self.language = language
        self.is_own = is_own
        """The user wrote it, not the model."""
        self.state = CodeState.WRITING
        self.output = OutputLines()
        self.original = ""
        """The model's version."""
        self.remark = ""
        """What happened, in a line: why it is incomplete, what the user said instead."""
        self.findings: Sequence[Finding] = ()
        self.active_line: int | None = None
        self.active_statement: int | None = None
        self.error_line: int | None = None
        self.line_times: dict[int, float] = {}
        self.shows_times = False
        self.shows_diff = False
        self.editor_rows = 0
        """Rows that the editor takes in place of the code; 0 while there is none."""
        self.has_input = False
        self.is_expanded = False
        """Everything is shown, however long."""
        self._code = CodeLines()
        self._digest: str | None = None
        self._inspected: tuple[str, str] | None = None  # language and digest of what was looked through last
        self._counts: tuple[int, int] | None = None
        self._started_at: float | None = None
        self._ended_at: float | None = None
        self._seen_rows = 0
        self._seen_lines: int | None = None  # instead of rows, until the code is laid out again
        self._face: CodeFace | None = None

    # -- what it is --------------------------------------------------------------------------------------------------

    @property
    def code(self) -> str:
        """The code as shown, and as run."""
        return self._code.text

    @property
    def line_count(self) -> int:
        """Lines of code."""
        return self._code.line_count

    @property
    def source(self) -> str:
        return self.code

    @property
    def searchable(self) -> str:
        return f"{self.code}\n{self.output.text}" if self.output else self.code

    @property
    def digest(self) -> str:
        """SHA-256 of the code as shown."""
        if self._digest is None:
            self._digest = digest_of(self.code)
        return self._digest

    @property
    def short_digest(self) -> str:
        """The first six digits."""
        return self.digest[:6]

    @property
    def is_edited(self) -> bool:
        return not self.is_own and self.state is not CodeState.WRITING and self.original != self.code

    @property
    def edit_counts(self) -> tuple[int, int]:
        """Lines added and removed by the user."""
        if self._counts is None:
            self._counts = edit_counts(self.original, self.code)
        return self._counts

    @property
    def elapsed(self) -> float:
        """Seconds it has run so far, or ran."""
        if self._started_at is None:
            return 0.0
        return (monotonic() if self._ended_at is None else self._ended_at) - self._started_at

    # -- written -----------------------------------------------------------------------------------------------------

    def append(self, text: str) -> None:
        """More code has arrived."""
        self._code.append(text, self.language)
        self._digest = self._counts = None
        self.changed()

    def finish_writing(self) -> None:
        """The code is complete."""
        if self.state is CodeState.WRITING:
            self.original = self.code
            self._code.finish()
            self._inspect()

    @property
    def is_behind(self) -> bool:
        return not self._code.is_coloured

    def advance(self) -> None:
        self._code.advance()
        self.changed()

    def correct(self, code: str, language: str) -> None:
        """The engine took a wrapper off the code, or named the language better. Not an edit of the user."""
        self.language = language or self.language
        if code != self.code:
            self._set_code(code)
        self.original = code
        self._inspect()

    def mark_incomplete(self, reason: str) -> None:
        """The stream was cut: this is not the whole code and can never run."""
        self.state = CodeState.INCOMPLETE
        self.original = self.code
        self.remark = reason
        self._inspect()

    # -- decided -----------------------------------------------------------------------------------------------------

    def propose(self, proposal: CodeProposal) -> None:
        """The user is asked about exactly this code."""
        self.correct(proposal.code, proposal.language)
        self.state = CodeState.WAITING
        self._seen_rows = 0
        self.changed()

    def edit(self, code: str) -> None:
        """The user has changed the code: another digest, other findings."""
        if code == self.code or not self.state.is_pending:
            return
        if not self.has_been_seen:
            self._seen_lines = min(self._seen_line_count(), changed_middle(self.code, code)[0])
        else:
            self._seen_lines = code.count("\n") + 1
        self._set_code(code)
        self.state = CodeState.EDITED if self.is_edited else CodeState.WAITING
        self.shows_diff = self.shows_diff and self.is_edited
        self._inspect()

    def decide(self, decision: Mapping[str, Any]) -> None:
        """What the session says was decided: the content of a `server/decision` chunk."""
        code = decision.get("code")
        if isinstance(code, str) and code != self.code:
            self._set_code(code)
        if decision.get("verdict") == "run":
            self.start_running()
        else:
            self.state = CodeState.DECLINED
            self.remark = str(decision.get("note") or "")
        self.shows_diff = False
        self._inspect()

    @property
    def was_asked(self) -> bool:
        """False while nobody has been asked about it, and nothing was decided."""
        return self.state is not CodeState.WRITING

    def refuse(self) -> None:
        """The engine does not run it, and asks nobody about it. Why is printed in the place of output."""
        self.finish_writing()
        self.state = CodeState.NOT_RUN
        self.changed()

    # -- run ---------------------------------------------------------------------------------------------------------

    def start_running(self) -> None:
        """It runs from now on."""
        if self.state is not CodeState.RUNNING:
            self.state = CodeState.RUNNING
            self._started_at, self._ended_at = monotonic(), None
        self.changed()

    def print(self, text: str) -> None:
        """It has printed something."""
        self.output.append(text)
        self.changed()

    def light(self, line: int | None) -> None:
        """This line runs now, counted from 1; None: no line does."""
        if line != self.active_line:
            self.active_line = line
            self.changed()

    def light_statement(self, line: int | None) -> None:
        """The statement from which the line that runs was reached, where that is another one."""
        if line != self.active_statement:
            self.active_statement = line
            self.changed()

    def clear_output(self) -> None:
        """Take back what was printed so far."""
        self.output = OutputLines()
        self.changed()

    def blame(self, line: int | None) -> None:
        """This line raised the error."""
        self.error_line = line
        self.changed()

    def set_line_times(self, times: Mapping[Any, Any]) -> None:
        """Seconds spent in each line, by line number."""
        self.line_times = {int(line): float(seconds) for line, seconds in times.items()}
        self.changed()

    def finish_running(self) -> None:
        """The run is over."""
        self.active_line = self.active_statement = None
        self._ended_at = monotonic()
        self.output.close()
        if self.state is CodeState.RUNNING:
            error = self.output.error
            if error == "KeyboardInterrupt":
                self.state = CodeState.STOPPED
            else:
                self.state = CodeState.FAILED if error or self.error_line is not None else CodeState.DONE
        self.changed()

    def settle(self, *, stopped: bool = False) -> None:
        """The turn is over: nothing can happen to this block any more."""
        self.editor_rows, self.has_input, self.active_line, self.active_statement = 0, False, None, None
        if self.state is CodeState.WRITING:
            self.mark_incomplete("stopped while it was written") if stopped else self.finish_writing()
        if self.state is CodeState.RUNNING:
            self._ended_at = monotonic()
            self.state = CodeState.STOPPED
        elif self.state.is_live:
            self.state = CodeState.STOPPED if stopped else CodeState.NOT_RUN
        self.changed()

    def restore(self, meta: Mapping[str, Any]) -> None:
        """Take over what the history knows of a stored block: its message's `meta`. The output is there already."""
        self.original = str(meta.get("original", self.code))
        self.remark = str(meta.get("note") or self.remark)
        states = {
            "run": CodeState.DONE,
            "declined": CodeState.DECLINED,
            "refused": CodeState.NOT_RUN,
            "incomplete": CodeState.INCOMPLETE,
        }
        self.state = states.get(str(meta.get("state")), CodeState.NOT_RUN)
        if meta.get("exit") == "interrupted":
            self.state = CodeState.STOPPED
        if isinstance(times := meta.get("line_times"), Mapping):
            self.set_line_times(times)
        if isinstance(seconds := meta.get("seconds"), int | float):
            self._started_at, self._ended_at = 0.0, float(seconds)
        else:
            self._started_at = self._ended_at = None
        self.error_line = meta["error_line"] if isinstance(meta.get("error_line"), int) else self.error_line
        if self.state is CodeState.DONE and self.output.error == "KeyboardInterrupt":
            self.state = CodeState.STOPPED
        elif self.state is CodeState.DONE and (self.error_line is not None or self.output.error):
            self.state = CodeState.FAILED
        self._inspect()

    # -- seen --------------------------------------------------------------------------------------------------------

    @property
    def has_been_seen(self) -> bool:
        """True once every row of the code, down to the last, has been on the screen."""
        return self._face is not None and self._seen_rows >= self._face.code_rows

    @property
    def unseen_lines(self) -> int:
        """How many lines of the code have not been on the screen whole."""
        return 0 if self.has_been_seen else max(1, self.line_count - self._seen_line_count())

    @property
    def next_unseen_line(self) -> int:
        """The line of the drawn block at which reading has to go on."""
        return (self._face.code_top if self._face is not None else 0) + self._seen_rows

    def painted(self, line: int) -> None:
        # Rows count only in one piece from the top: jumping to the end is not reading.
        if self._face is not None and line == self._face.code_top + self._seen_rows < self._face.code_bottom:
            self._seen_rows += 1

    # -- drawn -------------------------------------------------------------------------------------------------------

    def slots(self) -> Mapping[str, Slot]:
        return self._face.slots if self._face is not None else {}

    def height(self, width: int, theme: BlockTheme) -> int:
        """Lines of the drawn form."""
        return len(self.lines(width, theme))

    def fold(self, folded: bool) -> None:
        if not self.state.is_pending:
            super().fold(folded)

    def expand(self, expanded: bool) -> None:
        """Show everything, however long, or only the essential."""
        if expanded != self.is_expanded:
            self.is_expanded = expanded
            self.changed()

    def toggle(self) -> None:
        """What is left out is shown; what is shown whole is folded to a line; what is folded is opened again."""
        if self.is_folded:
            self.fold(False)
        elif not self.is_expanded and self._face is not None and self._face.leaves_out:
            self.expand(True)
        else:
            self.expand(False)
            self.fold(True)

    def is_toggled_by_click(self, line: int) -> bool:
        return self.is_folded or (self._face is not None and line in self._face.fold_lines)

    def _lay_out(self, width: int, theme: BlockTheme) -> Sequence[Line]:
        old = self._face
        if old is not None and old.width != width and self._seen_lines is None:
            self._seen_lines = self._seen_line_count()  # rows will move; whole lines stay seen
        self._face = face = CodeFace(self, self._code, width, theme)
        lines = face.lay_out()
        if self._seen_lines is not None and face.shows_code:
            self._seen_rows = self._code.rows_before(min(self._seen_lines, self.line_count), width)
            self._seen_lines = None
        return lines

    def _seen_line_count(self) -> int:
        if self._seen_lines is not None:
            return self._seen_lines
        return self._code.lines_within(self._seen_rows)

    def _set_code(self, code: str) -> None:
        self._code.replace(code, self.language)
        self._digest = self._counts = None

    def _inspect(self) -> None:
        """Look for characters that trick the eye, now that the code is whole."""
        if self._inspected != (self.language, self.digest):
            self._inspected = (self.language, self.digest)
            self.findings = find_hidden(self.code, language=self.language)
            self._code.set_findings(self.findings)
        self.changed()

    def _estimate(self, width: int) -> int:
        return 2 + self.line_count + self.output.estimate(width)
