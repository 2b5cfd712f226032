"""Fakes at the seams: a scripted model, a scripted language, and a session made of scripted turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from oi_tui.engine.approval import (
    Answerer,
    ApprovedCode,
    Approver,
    CodeProposal,
    Decision,
    InputCancelled,
    InputRequest,
    Verdict,
)
from oi_tui.engine.errors import EngineError
from oi_tui.engine.interpreter import decided
from oi_tui.engine.llm.base import Capabilities, Delta, ModelRequest, Usage
from oi_tui.engine.lmc import Chunk, LmcDict, Message, new_id
from oi_tui.engine.settings import ModelSettings, Settings

Step = str | Delta | BaseException | asyncio.Event
"""One step of a scripted answer: text, a delta, an error to raise, or an event to wait for."""


class FakeModel:
    """Answers each request with the next script. `requests` keeps what was asked; `closed` counts closed streams."""

    def __init__(self, *answers: str | Sequence[Step], capabilities: Capabilities | None = None) -> None:
        self._answers = [[answer] if isinstance(answer, str) else list(answer) for answer in answers]
        self._capabilities = capabilities or Capabilities()
        self.requests: list[ModelRequest] = []
        self.closed = 0
        self.warmed = 0

    async def warm(self) -> None:
        self.warmed += 1

    async def capabilities(self, settings: ModelSettings) -> Capabilities:
        return self._capabilities

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        self.requests.append(request)
        script = self._answers.pop(0) if self._answers else ["Nothing more to say."]
        try:
            for step in script:
                if isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, BaseException):
                    raise step
                else:
                    await asyncio.sleep(0)
                    yield Delta(text=step) if isinstance(step, str) else step
        finally:
            self.closed += 1

    async def aclose(self) -> None:
        pass


class FakeLanguage:
    """Runs code by yielding the chunks of `script(code)`. Waits that the script makes can be interrupted."""

    def __init__(
        self,
        name: str = "python",
        script: Callable[[ApprovedCode, Answerer], AsyncIterator[Chunk]] | None = None,
        *,
        aliases: tuple[str, ...] = (),
        file_extension: str = "py",
    ) -> None:
        self.name = name
        self.aliases = aliases
        self.file_extension = file_extension
        self._script = script or printing("")
        self._is_running = False
        self._stop = asyncio.Event()
        self.ran: list[ApprovedCode] = []
        self.interrupted = 0
        self.restarted = 0

    @property
    def description(self) -> str:
        return f"fake {self.name}"

    @property
    def is_running(self) -> bool:
        return self._is_running

    async def warm(self) -> None:
        pass

    async def run(self, code: ApprovedCode, *, answer: Answerer) -> AsyncGenerator[Chunk, None]:
        self.ran.append(code)
        steps = self._script(code, answer)
        self._stop = asyncio.Event()
        self._is_running = True
        try:
            while True:
                step: asyncio.Future[Any] = asyncio.ensure_future(anext(steps))  # type: ignore[arg-type]
                stop = asyncio.ensure_future(self._stop.wait())
                try:
                    await asyncio.wait({step, stop}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    stop.cancel()
                    if not step.done():
                        step.cancel()
                if self._stop.is_set():
                    await asyncio.gather(step, return_exceptions=True)
                    yield output("KeyboardInterrupt\n", code.id)
                    break
                try:
                    chunk = step.result()
                except StopAsyncIteration:
                    break
                yield chunk
        finally:
            self._is_running = False
        yield Chunk("computer", "console", "active_line", None, id=code.id)

    async def interrupt(self) -> None:
        self.interrupted += 1
        self._stop.set()

    async def restart(self) -> None:
        self.restarted += 1
        await self.interrupt()

    async def aclose(self) -> None:
        pass


def output(text: str, code_id: str | None = None) -> Chunk:
    return Chunk("computer", "console", "output", text, id=code_id)


def printing(*pieces: str) -> Callable[[ApprovedCode, Answerer], AsyncIterator[Chunk]]:
    """A script that marks the first line as active and prints these pieces."""

    async def script(code: ApprovedCode, answer: Answerer) -> AsyncIterator[Chunk]:
        yield Chunk("computer", "console", "active_line", 1, id=code.id)
        for piece in pieces:
            yield output(piece, code.id)

    return script


# -- sessions, for the screen -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Code:
    """A step of a turn: the model writes this code, it is proposed and, if approved, run with these results."""

    code: str
    language: str = "python"
    results: tuple[Any, ...] = ()
    """Text (output), chunks, events to wait for, or an `Ask`."""
    id: str = field(default_factory=new_id)


@dataclass(frozen=True)
class Ask:
    """A step of a run: the code asks its user. The answer is echoed in angle brackets unless it is a password."""

    prompt: str
    password: bool = False


TurnStep = str | Chunk | Code | BaseException | asyncio.Event | Ask


class FakeRegistry:
    """Languages that are only names."""

    def __init__(self) -> None:
        self.python = FakeLanguage()

    def file_extension(self, tag: str) -> str:
        return {"python": "py", "shell": "sh"}.get(tag, "txt")


class FakeSession:
    """Speaks the chunk protocol of a session from scripts, one per turn. Strings are answers in Markdown.

    `messages_sent`, `decisions`, `answers`, `interrupted` and `killed` tell what the screen did.
    """

    def __init__(
        self, *turns: Sequence[TurnStep], settings: Settings | None = None, folder: Path | None = None
    ) -> None:
        self.folder = folder
        self._turns = [list(turn) for turn in turns]
        self.settings = settings or Settings(llm=ModelSettings(model="fake"))
        self.messages: list[LmcDict] = []
        self.usage = Usage()
        self.context_used = 0
        self.context_window: int | None = None
        self.last_error: EngineError | None = None
        self.languages: Any = FakeRegistry()
        self.messages_sent: list[Any] = []
        self.decisions: list[Decision] = []
        self.proposals: list[CodeProposal] = []
        self.answers: list[str] = []
        self.notices: list[Chunk] = []
        """What is left to tell after a turn that was cancelled."""
        self.interrupted = 0
        self.killed = 0
        self.cancelled = 0
        self.is_open = True
        self._stop: asyncio.Event = asyncio.Event()

    def script(self, *turn: TurnStep) -> None:
        """Add a turn."""
        self._turns.append(list(turn))

    @property
    def history(self) -> list[Message]:
        return [Message.from_dict(wire) for wire in self.messages]

    @property
    def shown(self) -> list[Message]:
        return self.history

    def configure(self, **changes: Any) -> None:
        self.settings = replace(self.settings, **changes)

    async def configure_llm(self, **changes: Any) -> None:
        self.settings = replace(self.settings, llm=replace(self.settings.llm, **changes))

    async def prewarm(self) -> None:
        pass

    async def interrupt(self) -> None:
        self.interrupted += 1
        self._stop.set()

    async def kill(self) -> None:
        self.killed += 1
        self._stop.set()

    def take_notices(self) -> list[Chunk]:
        notices, self.notices = self.notices, []
        return notices

    async def aclose(self) -> None:
        self.is_open = False

    async def respond(
        self, message: str | Sequence[Mapping[str, Any]] | None, *, approve: Approver, answer: Answerer
    ) -> AsyncGenerator[Chunk, None]:
        self.messages_sent.append(message)
        steps = self._turns.pop(0) if self._turns else ["Nothing more to say."]
        async for chunk in self._play(steps, approve, answer):
            yield chunk

    async def run_code(
        self, language: str, code: str, *, approve: Approver, answer: Answerer
    ) -> AsyncGenerator[Chunk, None]:
        async for chunk in self._play([Code(code, language, ("ran again\n",))], approve, answer, role="user"):
            yield chunk

    async def _play(
        self, steps: Iterable[TurnStep], approve: Approver, answer: Answerer, role: Any = "assistant"
    ) -> AsyncGenerator[Chunk, None]:
        self._stop = asyncio.Event()
        try:
            for step in steps:
                await asyncio.sleep(0)
                match step:
                    case str():
                        for chunk in Message("assistant", "message", step).to_chunks():
                            yield chunk
                    case asyncio.Event():
                        await step.wait()
                    case BaseException():
                        raise step
                    case Code():
                        async for chunk in self._code(step, approve, answer, role):
                            yield chunk
                        if self.decisions[-1].verdict is Verdict.DECLINE:
                            return
                    case Chunk():
                        yield step
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def _code(self, step: Code, approve: Approver, answer: Answerer, role: Any) -> AsyncGenerator[Chunk, None]:
        for chunk in Message(role, "code", step.code, step.language, id=step.id).to_chunks():
            yield chunk
        proposal = CodeProposal(step.id, step.language, step.code)
        self.proposals.append(proposal)
        if not self.settings.auto_run:
            content = {"type": "code", "format": step.language, "content": step.code}
            yield Chunk("computer", "confirmation", "execution", content, id=step.id)
            decision = await approve(proposal)
        else:
            decision = Decision.run()
        self.decisions.append(decision)
        yield decided(proposal, decision)
        if decision.verdict is Verdict.DECLINE:
            return
        yield Chunk("computer", "console", start=True, id=step.id)
        yield Chunk("computer", "console", "active_line", 1, id=step.id)
        for result in step.results:
            if self._stop.is_set():
                yield output("KeyboardInterrupt\n", step.id)
                break
            async for chunk in self._result(result, step.id, answer):
                yield chunk
        yield Chunk("computer", "console", "active_line", None, id=step.id)
        yield Chunk("computer", "console", end=True, id=step.id)

    async def _result(self, result: Any, code_id: str, answer: Answerer) -> AsyncGenerator[Chunk, None]:
        match result:
            case str():
                yield output(result, code_id)
            case Chunk():
                yield replace(result, id=code_id)
            case asyncio.Event():
                waits = [asyncio.ensure_future(result.wait()), asyncio.ensure_future(self._stop.wait())]
                try:
                    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for wait in waits:
                        wait.cancel()
                if self._stop.is_set():
                    yield output("KeyboardInterrupt\n", code_id)
            case Ask():
                try:
                    text = await answer(InputRequest(code_id, result.prompt, result.password))
                except InputCancelled:
                    self._stop.set()
                    yield output("KeyboardInterrupt\n", code_id)
                    return
                self.answers.append(text)
                yield output(result.prompt + ("" if result.password else f"<{text}>") + "\n", code_id)
