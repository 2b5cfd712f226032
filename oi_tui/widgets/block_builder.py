"""Chunks to blocks: the same way for what streams in and for what is replayed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from oi_tui.engine.approval import CodeProposal
from oi_tui.engine.lmc import Chunk, Message
from oi_tui.widgets.block import Block
from oi_tui.widgets.code_block import CodeBlock
from oi_tui.widgets.image_block import ImageBlock
from oi_tui.widgets.message_block import AnswerBlock, ReasoningBlock, UserBlock
from oi_tui.widgets.notice_block import ErrorBlock, NoticeBlock
from oi_tui.widgets.rich_block import RichBlock

TRANSIENT_NOTICES = frozenset({"retry", "waiting"})
"""Kinds of notices that go when something else comes."""


class Column(Protocol):
    """Where the blocks are put."""

    def add(self, block: Block, *, after: Block | None = None) -> None: ...

    def redraw(self, block: Block) -> None: ...

    def take_out(self, block: Block) -> None: ...


class BlockList(list[Block]):
    """A column that is only a list."""

    def add(self, block: Block, *, after: Block | None = None) -> None:
        if after is None or after is self[-1]:
            self.append(block)
        else:
            self.insert(next(i for i in range(len(self) - 1, -1, -1) if self[i] is after) + 1, block)

    def redraw(self, block: Block) -> None:
        """Nothing is drawn."""

    def take_out(self, block: Block) -> None:
        del self[next(i for i in range(len(self) - 1, -1, -1) if self[i] is block)]


class BlockBuilder:
    """Builds the blocks of one conversation. `feed` takes chunks in order."""

    def __init__(self, column: Column) -> None:
        self.expands_all = False
        """New blocks show everything."""
        self._column = column
        self._is_replaying = False
        self.newest: Block | None = None
        """The message or code that was written last."""
        self._open: Block | None = None
        self._error: ErrorBlock | None = None  # the last one, while it can be tried again
        self._codes: dict[str, CodeBlock] = {}
        self._results: dict[str, list[Block]] = {}  # code id → the pictures and pages that its run produced
        self._notices: list[NoticeBlock] = []  # in a row, at the end

    def code(self, code_id: str | None) -> CodeBlock | None:
        """The code block with this id."""
        return self._codes.get(code_id) if code_id is not None else None

    def feed(self, chunk: Chunk) -> None:
        """Put one chunk where it belongs. Unknown kinds are left out."""
        if chunk.type == "notice":
            self._notice(chunk)
            return
        if chunk.type == "usage":
            return
        self._end_notices()
        match chunk.role, chunk.type:
            case _, "code" if chunk.role != "computer":
                self._code(chunk)
            case _, "message" | "reasoning":
                self._message(chunk)
            case "user", "image" | "file":
                self._attachment(chunk)
            case "computer", "console":
                self._console(chunk)
            case "computer", "confirmation":
                self._confirmation(chunk)
            case "computer", "image" | "code":
                self._result(chunk)
            case "server", "decision":
                self._decision(chunk)
            case "server", "error":
                self.begin_turn()
                self._error = ErrorBlock(chunk.format or "error", chunk.text)
                self._column.add(self._error)

    def code_for(self, proposal: CodeProposal) -> CodeBlock:
        """The block of a proposal; a new one if there is none."""
        return self.code(proposal.id) or self._new_code(proposal.id, proposal.language, is_own=False)

    def replay(self, messages: Iterable[Message]) -> list[Block]:
        """Build the blocks of stored messages and return them: nothing is drawn on the way."""
        column, self._column = self._column, (blocks := BlockList())
        restored: list[tuple[CodeBlock, Mapping[str, Any]]] = []
        self._is_replaying = True
        try:
            for message in messages:
                for chunk in message.to_chunks():
                    self.feed(chunk)
                if message.type == "code" and (code := self.code(message.id)) is not None:
                    restored.append((code, message.meta))
            for code, meta in restored:  # when the output is there: replaying a run says nothing of how it ended
                code.restore(meta)
            self._end_notices()
            for block in self._codes.values():
                block.settle()
        finally:
            self._column, self._is_replaying = column, False
        return blocks

    def begin_turn(self) -> None:
        """Something new begins: what went wrong before cannot be tried again any more."""
        if self._error is not None:
            self._error.retry_hint = ""
            self._error.changed()
            self._column.redraw(self._error)
            self._error = None

    def end_turn(self, *, stopped: bool) -> None:
        """Nothing more comes: what is not finished stays as it is, and says so."""
        self._end_notices()
        if isinstance(self._open, AnswerBlock | ReasoningBlock):
            self._open.finish()
            self._column.redraw(self._open)
        self._open = None
        for block in reversed(self._codes.values()):
            if block.state.is_live:
                block.settle(stopped=stopped)
                self._column.redraw(block)

    # -- messages ----------------------------------------------------------------------------------------------------

    def _message(self, chunk: Chunk) -> None:
        if chunk.start:
            self._open = self._new_message(chunk)
            self._column.add(self._open)
            return
        block = self._open
        if not isinstance(block, UserBlock | AnswerBlock | ReasoningBlock):
            if chunk.end:
                return
            block = self._open = self._new_message(chunk)
            self._column.add(block)
        self.newest = block
        if chunk.end:
            block.finish()
            self._open = None
        else:
            block.append(chunk.text)
        self._column.redraw(block)

    @staticmethod
    def _new_message(chunk: Chunk) -> UserBlock | AnswerBlock | ReasoningBlock:
        if chunk.type == "reasoning":
            return ReasoningBlock(chunk.id)
        return UserBlock(chunk.id) if chunk.role == "user" else AnswerBlock(chunk.id)

    def _attachment(self, chunk: Chunk) -> None:
        if chunk.is_flag or not isinstance(chunk.content, str):
            return
        if chunk.type == "image" and (chunk.format or "").startswith("base64"):
            self._column.add(ImageBlock(chunk.content, chunk.format or "base64.png", None))
        else:
            self._column.add(NoticeBlock("attached", f"attached {chunk.content}"))

    # -- code --------------------------------------------------------------------------------------------------------

    def _code(self, chunk: Chunk) -> None:
        block = self.code(chunk.id)
        if block is None or chunk.start:
            block = self._open = self._new_code(chunk.id, chunk.format or "", is_own=chunk.role == "user")
            if chunk.start:
                return
        self.newest = block
        if chunk.end:
            block.finish_writing()
            self._open = None
        else:
            block.append(chunk.text)
        self._column.redraw(block)

    def _new_code(self, code_id: str | None, language: str, *, is_own: bool) -> CodeBlock:
        block = CodeBlock(code_id, language, is_own=is_own)
        block.expand(self.expands_all)
        self._codes[code_id or ""] = block
        self._column.add(block)
        return block

    def _confirmation(self, chunk: Chunk) -> None:
        """The code as the engine will propose it: wrappers that models put around code are gone."""
        block = self.code(chunk.id)
        if block is not None and isinstance(chunk.content, Mapping):
            block.correct(str(chunk.content.get("content", "")), str(chunk.content.get("format", "")))
            self._column.redraw(block)

    def _decision(self, chunk: Chunk) -> None:
        block = self.code(chunk.id)
        if block is not None and isinstance(chunk.content, Mapping):
            block.decide(chunk.content)
            self._column.redraw(block)

    def _console(self, chunk: Chunk) -> None:
        block = self.code(chunk.id)
        if block is None:
            if chunk.start or chunk.end or not chunk.text:
                return
            # Output whose code is not here: a shell line, or a conversation that was cut.
            block = self._new_code(chunk.id, "", is_own=True)
        line = chunk.content if isinstance(chunk.content, int) else None
        if chunk.start:
            if block.was_asked or block.is_own or self._is_replaying:
                block.start_running()
            else:
                block.refuse()
        elif chunk.end:
            block.finish_running()
        elif chunk.format == "active_line":
            block.light(line)
        elif chunk.format == "active_statement":
            block.light_statement(line)
        elif chunk.format == "error_line":
            block.blame(line)
        elif chunk.format == "line_times":
            block.set_line_times(chunk.content if isinstance(chunk.content, Mapping) else {})
        elif chunk.format == "clear_output":
            self._clear_output(block)
        else:
            block.print(chunk.text)
        self._column.redraw(block)

    def _result(self, chunk: Chunk) -> None:
        if chunk.is_flag or not isinstance(chunk.content, str):
            return
        code = self.code(chunk.id)
        origin = code.short_digest if code is not None else None
        block: Block
        if chunk.type == "image":
            block = ImageBlock(chunk.content, chunk.format or "base64.png", origin)
        else:
            block = RichBlock(chunk.content, chunk.format or "", origin)
        results = self._results.setdefault(chunk.id or "", [])
        self._column.add(block, after=results[-1] if results else code)
        results.append(block)

    def _clear_output(self, code: CodeBlock) -> None:
        """The code takes back what it has shown so far."""
        code.clear_output()
        for block in self._results.pop(code.id or "", ()):
            self._column.take_out(block)

    # -- notices -----------------------------------------------------------------------------------------------------

    def _notice(self, chunk: Chunk) -> None:
        kind = chunk.format or ""
        if kind == "incomplete" and (code := self.code(chunk.id)) is not None:
            code.mark_incomplete(chunk.text)
            self._column.redraw(code)
            return
        present = next((notice for notice in self._notices if notice.notice_kind == kind), None)
        if not chunk.text:
            if present is not None:
                self._notices.remove(present)
                self._column.take_out(present)
        elif present is not None:
            present.set_text(chunk.text)
            self._column.redraw(present)
        else:
            notice = NoticeBlock(kind, chunk.text)
            self._notices.append(notice)
            self._column.add(notice)

    def _end_notices(self) -> None:
        for notice in self._notices:
            if notice.notice_kind in TRANSIENT_NOTICES:
                self._column.take_out(notice)
        self._notices.clear()
