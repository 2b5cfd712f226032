"""One side of the conversation: what is sent to the model, and how its answer becomes chunks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import asdict
from functools import partial

from oi_tui.engine import context, prompts
from oi_tui.engine.errors import ContextTooLong, ModelError, ToolsUnsupported
from oi_tui.engine.history import CodeFate, History
from oi_tui.engine.languages.registry import Registry
from oi_tui.engine.llm.attempts import RequestAllowance, answer
from oi_tui.engine.llm.base import Capabilities, ChatModel, Delta, ModelRequest, Usage
from oi_tui.engine.llm.fenced import FencedParser
from oi_tui.engine.llm.openai_messages import to_openai
from oi_tui.engine.llm.pieces import CodeEnd, CodeStart, CodeText, Piece, Reasoning, Text
from oi_tui.engine.llm.tool_calls import CUT_REASONS, ToolCallParser, execute_tool
from oi_tui.engine.lmc import Chunk, Message, new_id, notice
from oi_tui.engine.recording import Recording
from oi_tui.engine.settings import Settings


class Dialogue:
    """Builds requests from the history and streams answers. Knows nothing of approval or of running code."""

    recording: Recording
    """Where `meta` of the messages of the present turn is noted; set by the interpreter for each turn."""

    def __init__(self, model: ChatModel, languages: Registry, settings: Settings) -> None:
        self.model = model
        self.settings = settings
        self.usage = Usage()
        self.context_used = 0
        self.context_window: int | None = None
        self.wants_another_try = False
        self._without_tools: set[str] = set()
        self._languages = languages

    def forget(self) -> None:
        """A new conversation: what the last request took no longer says anything. Costs stay."""
        self.context_used = 0

    async def ask(
        self, history: History, allowance: RequestAllowance, loop_message: str | None = None
    ) -> AsyncGenerator[Chunk, None]:
        """One answer as chunks; `wants_another_try` says afterwards that it held only code that arrived incomplete.

        Raises `ModelError`. A conversation that the model finds too long is trimmed once more and sent again.
        """
        capabilities = await self.model.capabilities(self.settings.llm)
        self.context_window = self.settings.llm.context_window or capabilities.context_window
        budget = context.input_budget(capabilities, self.settings.llm)
        is_as_short_as_it_gets = False
        while True:
            make = partial(self._request, history, capabilities, budget, loop_message)
            # Scaling a large picture down takes long enough to be felt.
            has_pictures = any(message.type == "image" for message in history)
            request, trimmed = await asyncio.to_thread(make) if has_pictures else make()
            if trimmed is not None:
                yield notice("trimmed", str(trimmed))
            started = False
            try:
                async with aclosing(self._answer(request, allowance)) as chunks:
                    async for chunk in chunks:
                        started = started or chunk.type not in ("notice", "usage")
                        yield chunk
                return
            except ContextTooLong:
                if is_as_short_as_it_gets or started:
                    raise
                budget = min(budget, context.estimate_tokens(request.messages)) // 2
                shorter, _ = self._request(history, capabilities, budget, loop_message)
                if shorter.messages == request.messages:  # the same would be refused again
                    raise
                is_as_short_as_it_gets = True
            except ToolsUnsupported:
                if not request.tools or started:
                    raise
                self._without_tools.add(self.settings.llm.model or "")
                yield notice("text_mode", "This model takes no tools; it is asked to write code as Markdown instead.")

    def _request(
        self, history: History, capabilities: Capabilities, budget: int, loop_message: str | None
    ) -> tuple[ModelRequest, context.Trimmed | None]:
        settings, llm = self.settings, self.settings.llm
        tool_mode = self._tool_mode(capabilities)
        vision = capabilities.supports_vision if llm.supports_vision is None else llm.supports_vision
        messages = list(_known_to_model(history))
        if loop_message:
            messages.append(Message("user", "message", loop_message))
        system = prompts.system_message(
            settings,
            languages=self._languages.names,
            language_notes=self._languages.system_messages(),
            tool_mode=tool_mode,
            python=self._languages.python.description,
        )
        sent = to_openai(messages, system=system, tool_mode=tool_mode, settings=settings, supports_vision=bool(vision))
        sent, trimmed = context.trim(sent, budget)
        tools = (execute_tool(self._languages.names),) if tool_mode else ()
        return ModelRequest(context.repair(sent), llm, tools), trimmed

    def _tool_mode(self, capabilities: Capabilities) -> bool:
        chosen = self.settings.llm.supports_functions
        if (self.settings.llm.model or "") in self._without_tools:
            return False
        return bool(capabilities.supports_functions) if chosen is None else chosen

    async def _answer(self, request: ModelRequest, allowance: RequestAllowance) -> AsyncGenerator[Chunk, None]:
        reading = _Reading(self._languages, self.recording, tool_mode=bool(request.tools))
        finish: str | None = None
        try:
            spent = self.usage.cost or 0.0
            stream = answer(self.model, request, allowance, spent=spent, on_stopped=self._count)
            async with aclosing(stream) as deltas:
                async for delta in deltas:
                    finish = delta.finish_reason or finish
                    for chunk in self._events(delta):
                        yield chunk
                    for chunk in reading.feed(delta):
                        yield chunk
        except ModelError:
            for chunk in reading.finish(None):
                yield chunk
            raise
        for chunk in reading.finish(finish or "stop"):
            yield chunk
        yield Chunk("assistant", "message", end=True)
        self.wants_another_try = reading.only_incomplete

    def _events(self, delta: Delta) -> Iterable[Chunk]:
        if delta.notice is not None:
            yield notice(*delta.notice)
        if delta.usage is not None:
            self._count(delta.usage)
            yield Chunk("server", "usage", None, asdict(delta.usage))

    def _count(self, usage: Usage) -> None:
        self.usage = self.usage + usage
        self.context_used = usage.prompt_tokens + usage.completion_tokens


class _Reading:
    """One answer being read: deltas in, chunks out."""

    def __init__(self, languages: Registry, recording: Recording, *, tool_mode: bool) -> None:
        self._recording = recording
        self._text_parser = FencedParser(languages.canonical, run_fences=not tool_mode)
        self._tool_parser = ToolCallParser(languages.canonical)
        self._in_order = _InOrder()
        self._message_id: str | None = None
        self._reasoning_id = new_id()
        self._code: dict[str, tuple[str, str]] = {}
        self._whole = self._cut = 0

    @property
    def only_incomplete(self) -> bool:
        """Whether all code of the answer arrived in part."""
        return self._cut > 0 and self._whole == 0

    def feed(self, delta: Delta) -> list[Chunk]:
        out: list[Chunk] = []
        if delta.reasoning:
            out.append(self._thought(delta.reasoning))
        if delta.text:
            out += self._chunks("text", self._text_parser.feed(delta.text))
        if delta.tool_calls:
            out += self._chunks("text", self._text_parser.finish())  # what was held back comes before the call
            out += self._chunks("tool", self._tool_parser.feed(delta.tool_calls))
        return out

    def finish(self, reason: str | None) -> list[Chunk]:
        """The rest. Without a reason the stream was cut, and what is open is incomplete."""
        whole = reason is not None and reason not in CUT_REASONS
        out = self._chunks("text", self._text_parser.finish(complete=whole))
        out += self._chunks("tool", self._tool_parser.finish(reason))
        if reason == "length":
            out.append(notice("incomplete", "The answer was cut at the model's output limit (max_tokens)."))
        return out

    def _chunks(self, source: str, pieces: Sequence[Piece]) -> list[Chunk]:
        out: list[Chunk] = []
        for key, piece in self._in_order.feed(source, pieces):
            match piece:
                case Text(text):
                    self._message_id = self._message_id or new_id()
                    out.append(Chunk("assistant", "message", None, text, id=self._message_id))
                case Reasoning(text):
                    out.append(self._thought(text))
                case CodeStart():
                    self._message_id = None
                    self._code[key] = (new_id(), piece.language)
                    self._recording.note(self._code[key][0], call_id=piece.call_id)
                case CodeText():
                    code_id, language = self._code[key]
                    out.append(Chunk("assistant", "code", language, piece.text, id=code_id))
                case CodeEnd():
                    out += self._end(*self._code[key], piece)
        return out

    def _thought(self, text: str) -> Chunk:
        return Chunk("assistant", "reasoning", None, text, recipient="user", id=self._reasoning_id)

    def _end(self, code_id: str, language: str, piece: CodeEnd) -> list[Chunk]:
        end = Chunk("assistant", "code", language, end=True, id=code_id)
        if piece.problem is not None:
            self._recording.note(code_id, problem=piece.problem)
        if piece.complete:
            self._whole += 1
            return [end]
        self._cut += 1
        self._recording.note(code_id, state=CodeFate.INCOMPLETE)
        why = "This code arrived only in part; it will not run."
        return [end, Chunk("server", "notice", "incomplete", why, id=code_id)]


class _InOrder:
    """Parallel calls may arrive interleaved; messages cannot. Holds back what is not of the open code block."""

    def __init__(self) -> None:
        self._open: str | None = None
        self._held: list[tuple[str, Piece]] = []

    def feed(self, source: str, pieces: Sequence[Piece]) -> list[tuple[str, Piece]]:
        """Pieces with keys that are unique over both parsers, each block in one piece."""
        out: list[tuple[str, Piece]] = []
        for piece in pieces:
            self._take(source + getattr(piece, "key", ""), piece, out)
        return out

    def _take(self, key: str, piece: Piece, out: list[tuple[str, Piece]]) -> None:
        if self._open not in (None, key):
            self._held.append((key, piece))
            return
        out.append((key, piece))
        if isinstance(piece, CodeStart):
            self._open = key
        elif isinstance(piece, CodeEnd):
            self._open = None
            held, self._held = self._held, []
            for later_key, later in held:
                self._take(later_key, later, out)


def _known_to_model(history: History) -> Iterable[Message]:
    """What the model is reminded of: not the half of an answer that the user asked for again."""
    return (message for message in history if not message.meta.get("superseded"))
