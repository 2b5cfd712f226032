"""The respond loop: ask the model, propose its code, run what was approved, show it the output, go on.

Everything that happens is yielded as an LMC `Chunk` from one async iterator. Closing the iterator closes the model's
stream and interrupts the code. Approval and input are injected callables.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oi_tui.engine.approval import (
    Answerer,
    ApprovedCode,
    Approver,
    CodeProposal,
    Decision,
    Verdict,
    digest_of,
    edit_counts,
)
from oi_tui.engine.dialogue import Dialogue
from oi_tui.engine.errors import AnswerCut, EngineError, LanguageError
from oi_tui.engine.history import CodeFate, History
from oi_tui.engine.languages.base import KnowsProblem, TellsLater
from oi_tui.engine.languages.registry import Registry
from oi_tui.engine.llm.attempts import RequestAllowance
from oi_tui.engine.llm.fenced import repair_code
from oi_tui.engine.lmc import Chunk, Message, new_id, notice
from oi_tui.engine.recording import Recording
from oi_tui.engine.runner import Runner
from oi_tui.engine.settings import Settings

UNASKED_REPEATS = 3
"""How often the very same code may run in a row when nobody is asked."""

IDLE_LOOPS = 5
"""How many loop messages in a row may pass without any code being run."""


@dataclass(slots=True)
class Turn:
    """What one request of the user has come to so far."""

    approve: Approver
    answer: Answerer
    allowance: RequestAllowance = field(default_factory=RequestAllowance)
    stopped: bool = False
    cut_once: bool = False
    loops: int = 0
    idle_loops: int = 0
    last_refused: str = ""
    last_run: str = ""
    repeats: int = 0
    loop_message: str | None = None


class Interpreter:
    """One conversation between a user, a model and a computer. One turn at a time: a second one waits."""

    def __init__(
        self,
        *,
        settings: Settings,
        dialogue: Dialogue,
        languages: Registry,
        history: History,
        folder: Path,
    ) -> None:
        self.settings = settings
        self.dialogue = dialogue
        self.history = history
        self.last_error: EngineError | None = None
        self._languages = languages
        self._runner = Runner(languages)
        self._folder = folder
        self._turn_lock = asyncio.Lock()
        self._turn: Turn | None = None
        self._unseen: list[Chunk] = []
        """Notices that the front end has not been given: those of a run that was cancelled."""
        self._untold: tuple[str, ...] = ()
        """What became of languages between two runs; the model reads it with the result of the next one."""

    # -- what a front end calls ---------------------------------------------------------------------------------

    async def respond(
        self, message: str | Sequence[Mapping[str, Any]] | None, *, approve: Approver, answer: Answerer
    ) -> AsyncGenerator[Chunk, None]:
        """One turn. `None` goes on from the history: a retry, or code that waits. Raises nothing for faults of the
        model or the code; they are chunks, and `last_error` holds the last one."""
        turn = Turn(approve, answer)
        async with self._turn_lock, aclosing(self._recorded(turn, self._respond(turn, message))) as chunks:
            async for chunk in chunks:
                yield chunk

    async def run_code(
        self, language: str, code: str, *, approve: Approver, answer: Answerer
    ) -> AsyncGenerator[Chunk, None]:
        """Run code of the user's own, after the same approval; the model is not asked, but will know of it."""
        turn = Turn(approve, answer)
        async with self._turn_lock, aclosing(self._recorded(turn, self._run_own(turn, language, code))) as chunks:
            async for chunk in chunks:
                yield chunk

    async def interrupt(self) -> None:
        """Interrupt the running code, keeping its state. What it printed is kept and the turn ends."""
        if self._turn is not None:
            self._turn.stopped = True
        if (language := self._runner.running) is not None:
            await language.interrupt()

    async def kill(self) -> None:
        """End the running language, losing its state. The turn ends."""
        if self._turn is not None:
            self._turn.stopped = True
        if (language := self._runner.running) is not None:
            await language.restart()

    def take_notices(self) -> list[Chunk]:
        """What the languages have to tell and no turn has yielded, each once: after a turn that was cancelled, whether
        a state was lost. What is not taken comes at the beginning of the next turn."""
        for language in self._languages.live:
            if isinstance(language, TellsLater):
                told = language.take_notices()
                self._unseen += told
                self._untold += tuple(each.text for each in told)
        unseen, self._unseen = self._unseen, []
        return unseen

    # -- the loop -----------------------------------------------------------------------------------------------

    async def _respond(
        self, turn: Turn, message: str | Sequence[Mapping[str, Any]] | None
    ) -> AsyncGenerator[Chunk, None]:
        self._take(message)
        if problem := await self._problem_with_python():
            yield notice("kernel", problem)
        while not turn.stopped:
            if self.history.pending_code() is None:
                async with aclosing(self.dialogue.ask(self.history, turn.allowance, turn.loop_message)) as chunks:
                    async for chunk in chunks:
                        yield chunk
                turn.loop_message = None
            if (code := self.history.pending_code()) is None:
                if self.dialogue.wants_another_try:
                    if turn.cut_once:
                        raise AnswerCut(
                            "The model's code arrived incomplete twice.", "Raise max_tokens or ask for less."
                        )
                    turn.cut_once = True
                    continue
                if (line := self._loop_on(turn)) is not None:
                    yield line
                if turn.loop_message is None:
                    return
                continue
            async with aclosing(self._handle(turn, code)) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def _handle(self, turn: Turn, code: Message) -> AsyncGenerator[Chunk, None]:
        """One code block: refuse it, or propose it and run what was approved."""
        code = self._normalised(code)
        if (reason := self._refusal(turn, code)) is not None:
            for chunk in self._refuse(turn, code, reason):
                yield chunk
            return
        proposal = CodeProposal(code.id, code.format or "", code.text)
        if self._runs_unasked(code):
            decision = Decision.run()
        else:
            yield confirmation(proposal)
            decision = await turn.approve(proposal)
        self.history.record(proposal, decision)
        yield decided(proposal, decision)
        if decision.verdict is Verdict.DECLINE:
            self._decline(turn, decision)
            return
        approved = self._runner.approve(proposal, decision)
        async with aclosing(self._run(turn, approved)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _run(self, turn: Turn, approved: ApprovedCode) -> AsyncGenerator[Chunk, None]:
        """Run approved code; its outcome is part of the history whatever happens."""
        same = approved.language + approved.digest
        turn.repeats = turn.repeats + 1 if same == turn.last_run else 1
        turn.last_run = same
        turn.idle_loops = 0
        lit, has_begun = True, False
        self._note_loss(approved, "lost_before", *self._untold)
        self._untold = ()
        try:
            async with aclosing(self._runner.run(approved, turn.answer)) as chunks:
                async for chunk in chunks:
                    has_begun = has_begun or chunk.type != "notice"
                    if chunk.type == "notice" and chunk.format == "kernel":
                        self._note_loss(approved, "lost" if has_begun else "lost_before", chunk.text)
                    lit = lit and not (chunk.format == "active_line" and chunk.content is None)
                    yield chunk
            turn.allowance.reset()
        except LanguageError as error:
            self.last_error = error
            turn.stopped = True
            self.history.set_fate(approved.id, CodeFate.RUN, exit=error.code)
            self.history.skip_pending()
            yield Chunk("server", "error", error.code, str(error), id=approved.id)
            # The user has read it as the error that ended the turn; the model reads it as the result of its code.
            self.history.add(
                Message("computer", "console", f"{error}\n", "output", "assistant", meta={"code_id": approved.id})
            )
            return
        except (asyncio.CancelledError, GeneratorExit):
            self.history.set_fate(approved.id, CodeFate.RUN, exit="interrupted")
            language = self._languages.get(approved.language)
            if isinstance(language, TellsLater):
                told = language.take_notices()
                self._note_loss(approved, "lost", *(each.text for each in told))
                self._unseen += told
            raise
        if lit:  # every run ends with it, so that "no output" is a message too
            yield Chunk("computer", "console", "active_line", None, id=approved.id)
        yield Chunk("computer", "console", end=True, id=approved.id)
        if turn.stopped:
            self.history.set_fate(approved.id, CodeFate.RUN, exit="interrupted")
            self.history.skip_pending()

    def _note_loss(self, code: ApprovedCode, when: str, *losses: str) -> None:
        """Have the model read with this code's result what became of the language's state. `when`: a key of `meta`."""
        message = self.history.get(code.id)
        if losses and message is not None:
            self.history.set_fate(code.id, CodeFate.RUN, **{when: [*message.meta.get(when, ()), *losses]})

    async def _run_own(self, turn: Turn, language: str, code: str) -> AsyncGenerator[Chunk, None]:
        name = self._languages.canonical(language) or language
        message_id = new_id()
        yield Chunk("user", "code", name, code, id=message_id)
        yield Chunk("user", "code", name, end=True, id=message_id)
        if (message := self.history.get(message_id)) is not None:
            async with aclosing(self._handle(turn, message)) as chunks:
                async for chunk in chunks:
                    yield chunk

    # -- parts of the loop --------------------------------------------------------------------------------------

    async def _recorded(self, turn: Turn, chunks: AsyncGenerator[Chunk, None]) -> AsyncGenerator[Chunk, None]:
        """Bracket and store what comes by; what has arrived is kept when the turn is cut."""
        recording = Recording(self.history, self._folder)
        self.dialogue.recording = recording
        self.last_error = None
        self._turn = turn
        try:
            for told in self.take_notices():
                yield told
            async with aclosing(chunks):
                async for chunk in chunks:
                    for framed in recording.feed(chunk):
                        yield framed
            for framed in recording.close():
                yield framed
        except EngineError as error:
            self.last_error = error
            for framed in recording.close(partial=True):
                yield framed
            yield Chunk("server", "error", error.code, str(error))
        finally:
            recording.close(partial=True)
            self._turn = None

    async def _problem_with_python(self) -> str:
        """Known before the model is asked, and paid, for code that cannot run."""
        language = self._languages.get("python")
        return await asyncio.to_thread(language.problem) if isinstance(language, KnowsProblem) else ""

    def _take(self, message: str | Sequence[Mapping[str, Any]] | None) -> None:
        if message is None:
            last = self.history.last
            if last is not None and last.role == "assistant" and last.meta.get("partial"):
                self.history.replace(last.with_meta(superseded=True))  # asked for again: stays on the screen only
            return
        self.history.skip_pending()
        if isinstance(message, str):
            self.history.add(Message("user", "message", message))
        else:
            for wire in message:
                self.history.add(Message.from_dict({"role": "user", **wire}))

    def _normalised(self, code: Message) -> Message:
        """The code block as it will be shown, digested and run: wrappers that models hallucinate taken off."""
        language, text = repair_code(code.format or "", code.text)
        language = self._languages.canonical(language) or language
        if (language, text) != (code.format, code.text):
            code = Message(code.role, code.type, text, language, code.recipient, code.id, code.meta)
        code = code.with_meta(digest=digest_of(text))
        self.history.replace(code)
        return code

    def _runs_unasked(self, code: Message) -> bool:
        return self.settings.auto_run and self.settings.safe_mode == "off" and not code.meta.get("loaded")

    def _refusal(self, turn: Turn, code: Message) -> str | None:
        """Why the engine will not even propose this code; None if it will."""
        if problem := code.meta.get("problem"):
            return str(problem)
        if not code.text.strip():
            return "There was no code in that block. Send the code to run."
        language = code.format or ""
        if self._languages.get(language) is None:
            return self._languages.explain(language)
        if (
            self._runs_unasked(code)
            and turn.last_run == language + digest_of(code.text)
            and turn.repeats >= UNASKED_REPEATS
        ):
            return "This is the very code that just ran; its output is above. Do something else, or answer."
        return None

    def _refuse(self, turn: Turn, code: Message, reason: str) -> list[Chunk]:
        self.history.set_fate(code.id, CodeFate.REFUSED)
        out = [Chunk("computer", "console", "output", reason, id=code.id)]
        same = f"{code.format}:{digest_of(code.text)}"
        if turn.last_refused == same:
            turn.stopped = True
            self.history.skip_pending()
            out.append(notice("repeat", "The model keeps sending the same block that cannot run. Tell it what to do."))
        turn.last_refused = same
        return out

    def _decline(self, turn: Turn, decision: Decision) -> None:
        self.history.skip_pending()
        if decision.note and decision.note.strip():
            turn.allowance.reset()
            self.history.add(Message("user", "message", decision.note))
        else:
            turn.stopped = True

    def _loop_on(self, turn: Turn) -> Chunk | None:
        """Loop mode: decide whether the model is told to go on. Returns a notice when a limit ends it."""
        last = self.history.last
        if not self.settings.loop or last is None or last.role != "assistant":
            return None
        if any(phrase in last.text for phrase in self.settings.loop_breakers):
            return None
        if turn.loops >= self.settings.loop_limit or turn.idle_loops >= IDLE_LOOPS:
            return notice("loop", f"Loop mode ends here: the model was told to go on {turn.loops} times.")
        turn.loops += 1
        turn.idle_loops += 1
        turn.loop_message = self.settings.loop_message
        return None


def confirmation(proposal: CodeProposal) -> Chunk:
    """The wire value that says: this code waits for approval."""
    content = {"type": "code", "format": proposal.language, "content": proposal.code}
    return Chunk("computer", "confirmation", "execution", content, id=proposal.id)


def decided(proposal: CodeProposal, decision: Decision) -> Chunk:
    """What was decided about a proposal, for front ends and recorders."""
    code = proposal.code if decision.code is None else decision.code
    added, removed = edit_counts(proposal.code, code)
    content = {
        "id": proposal.id,
        "verdict": str(decision.verdict),
        "language": proposal.language,
        "code": code,
        "digest": digest_of(code),
        "edited": code != proposal.code,
        "added": added,
        "removed": removed,
        "note": decision.note,
    }
    return Chunk("server", "decision", None, content, id=proposal.id)
