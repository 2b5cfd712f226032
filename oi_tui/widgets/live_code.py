"""The code block that waits or runs, and the widgets that lie over it: run bar, editor, input field."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from textual.message import Message
from textual.widget import Widget

from oi_tui.engine.approval import CodeProposal, Decision, InputCancelled, InputRequest
from oi_tui.widgets.block import Slot
from oi_tui.widgets.canvas import Canvas
from oi_tui.widgets.code_block import CodeBlock
from oi_tui.widgets.code_editor import CodeEditor
from oi_tui.widgets.code_state import CodeState
from oi_tui.widgets.input_request import InputRequestField
from oi_tui.widgets.run_bar import BarMode, RunBar

_FRAME_ROWS = 4
"""Rows of a block that are not code while it is edited: title, warning, bar, and one to breathe."""
_LEAST_EDITOR_ROWS = 3


class LiveCode:
    """Carries one code block through approval and run. Mounts its widgets into `host`, which lays them out by `places`.

    Nothing here approves anything: `run` is called for the run bar's key or click, and by nothing else.
    """

    def __init__(self, host: Widget, canvas: Canvas, block: CodeBlock, places_changed: Callable[[], None]) -> None:
        self.block = block
        self.run_bar = RunBar()
        self.editor: CodeEditor | None = None
        self.input_field: InputRequestField | None = None
        self._host = host
        self._canvas = canvas
        self._places_changed = places_changed
        self._reply: asyncio.Future[Decision] | None = None
        self._input_reply: asyncio.Future[str] | None = None
        self._reverted: str | None = None  # the user's version, while the model's stands in its place
        self.run_bar.language = block.language
        host.mount(self.run_bar)

    def places(self) -> Iterator[tuple[Widget, Slot]]:
        """The mounted widgets and the lines of the block that they cover."""
        slots = self.block.slots()
        for name, widget in self._widgets():
            if name in slots:
                yield widget, slots[name]

    def _widgets(self) -> Iterator[tuple[str, Widget]]:
        for name, widget in (("bar", self.run_bar), ("editor", self.editor), ("input", self.input_field)):
            if widget is not None:
                yield name, widget

    @property
    def pinned(self) -> Widget | None:
        """The widget that stays in view at the bottom while its block goes on below: the keys of code that waits."""
        return self.run_bar if self.is_pending and self.editor is None else None

    @property
    def is_pending(self) -> bool:
        """True while somebody waits for the user's decision."""
        return self._reply is not None and not self._reply.done()

    @property
    def is_waiting(self) -> bool:
        """True while the user is wanted: for a decision or for a line of input."""
        return self.is_pending or self.input_field is not None

    @property
    def has_focus(self) -> bool:
        return any(widget.has_focus_within for _, widget in self._widgets())

    def focus(self) -> None:
        """The user came here on purpose: listen at once."""
        if self.input_field is not None:
            self.input_field.field.focus(scroll_visible=False)
        elif self.editor is not None:
            self.editor.focus(scroll_visible=False)
        else:
            self.run_bar.listen()

    async def obey(self, message: Message) -> None:
        """Do what was asked for with a key, a click or a change of the text."""
        match message:
            case RunBar.RunRequested() | CodeEditor.RunRequested():
                self.run()
            case RunBar.Declined():
                self.decline()
            case RunBar.EditRequested():
                await self.edit()
            case CodeEditor.Edited():
                self.text_edited(message.code, message.rows)
            case RunBar.EditEnded() | CodeEditor.Ended():
                self.end_editing()
            case RunBar.RevertRequested():
                self.revert()
            case RunBar.RestoreRequested():
                self.restore_edit()
            case RunBar.DiffRequested():
                self.toggle_diff()
            case RunBar.AnswerRequested():
                self.focus()
            case InputRequestField.Answered():
                await self.answer(message.text)
            case InputRequestField.Refused():
                await self.refuse()

    # -- approval ----------------------------------------------------------------------------------------------------

    def propose(self, proposal: CodeProposal, reply: asyncio.Future[Decision]) -> None:
        """Ask the user about this code, byte for byte."""
        self._reply = reply
        self._reverted = None
        self.block.propose(proposal)
        self.run_bar.language = proposal.language
        self._show_state()

    def run(self) -> bool:
        """Run exactly what is shown. False if its last line has not been on screen yet: then it scrolls on instead."""
        if not self.is_pending:
            return False
        if not self.block.has_been_seen:
            self.end_editing()
            self._canvas.put_at_top(self.block, self.block.next_unseen_line)
            self.run_bar.pause()
            return False
        assert self._reply is not None
        self.end_editing()
        code = self.block.code
        self._reply.set_result(Decision.run(code if code != self.block.original else None))
        self.run_bar.lines_more = 0
        return True

    def decline(self, note: str | None = None) -> None:
        """Do not run it; with words, the model gets the words."""
        if self.is_pending and self._reply is not None:
            self.end_editing()
            self._reply.set_result(Decision.decline(note))

    # -- editing -----------------------------------------------------------------------------------------------------

    async def edit(self) -> None:
        """Open the editor in place of the code."""
        if not self.is_pending or self.editor is not None:
            return
        block = self.block
        self.editor = CodeEditor(block.code, block.language, original=block.original)
        self.fit_editor(block.code.count("\n") + 1)
        await self._host.mount(self.editor)
        self.editor.focus(scroll_visible=False)
        self._show_state()
        self._canvas.show_block(block, self.block.height(self._canvas.column, self._canvas.theme) - 1)

    def fit_editor(self, rows: int) -> None:
        """Give the editor as many rows as its text has, as far as there is room."""
        most = max(_LEAST_EDITOR_ROWS, self._canvas.rows - _FRAME_ROWS)
        self.block.editor_rows = max(1, min(rows, most))
        self._redraw()

    def text_edited(self, code: str, rows: int = 0) -> None:
        """The user has changed the code: it is other code now, with another digest. `rows` is what the editor needs."""
        self.block.edit(code)
        if self.block.is_edited:
            self._reverted = None
        self._show_edited()
        if self.editor is not None:
            self.fit_editor(rows)
        self._redraw()

    def end_editing(self) -> None:
        """Close the editor and keep what was written."""
        if self.editor is None:
            return
        editor, self.editor = self.editor, None
        had_focus = editor.has_focus
        self.block.edit(editor.code)
        self.block.editor_rows = 0
        editor.remove()
        if had_focus:
            self.run_bar.listen()
        self._show_state()

    def revert(self) -> None:
        """Go back to the model's code; once more, and the user's is there again."""
        self.end_editing()
        if self.block.is_edited:
            edited = self.block.code
            self.text_edited(self.block.original)
            self._reverted = edited
        elif self._reverted is not None:
            self.text_edited(self._reverted)
        self._show_state()

    def restore_edit(self) -> None:
        """Undo going back to the model's code."""
        if not self.block.is_edited:
            self.revert()

    def toggle_diff(self) -> None:
        """Show what the user changed, or the code again."""
        self.block.shows_diff = not self.block.shows_diff and self.block.is_edited
        self._redraw()

    # -- the view has changed ----------------------------------------------------------------------------------------

    def resized(self) -> None:
        """There is more room, or less."""
        if self.editor is not None:
            self.fit_editor(self.editor.wrapped_document.height)

    def focus_moved(self) -> None:
        """The bar names the keys that act where the user is."""
        self.run_bar.is_answering = self.input_field is not None and self.input_field.has_focus_within

    def canvas_painted(self) -> None:
        """Say whether there is more to read."""
        if self.is_pending and self.editor is None:
            self.run_bar.lines_more = self.block.unseen_lines

    # -- running -----------------------------------------------------------------------------------------------------

    def started(self) -> None:
        """The code runs."""
        self.end_editing()
        self._show_state()

    async def ask(self, request: InputRequest, reply: asyncio.Future[str], *, take_focus: bool) -> None:
        """Show a field under the block for the line that the code asks for."""
        await self._close_input()
        self._input_reply = reply
        self.input_field = InputRequestField(request)
        self.block.has_input = True
        self.run_bar.is_asking_input = True
        self._redraw()
        await self._host.mount(self.input_field)
        if take_focus:
            self.input_field.take_focus()
        self._canvas.show_block(self.block, self.block.height(self._canvas.column, self._canvas.theme) - 1)

    async def answer(self, text: str) -> None:
        """Send the line to the code."""
        if self._input_reply is not None and not self._input_reply.done():
            self._input_reply.set_result(text)
        await self._close_input()

    async def refuse(self) -> None:
        """Do not answer: the code is interrupted."""
        if self._input_reply is not None and not self._input_reply.done():
            self._input_reply.set_exception(InputCancelled())
        await self._close_input()

    async def _close_input(self) -> None:
        field, self.input_field = self.input_field, None
        self._input_reply = None
        self.run_bar.is_asking_input = self.run_bar.is_answering = False
        self.block.has_input = False
        if field is not None:
            if field.has_focus_within:
                self.run_bar.focus(scroll_visible=False)
            self._redraw()
            await field.remove()

    # -- end ---------------------------------------------------------------------------------------------------------

    async def end(self) -> bool:
        """Take the widgets away; the block stays. True if one of them had the focus."""
        if had_focus := self.has_focus:
            self._host.screen.set_focus(None)
        self.end_editing()
        await self._close_input()
        await self.run_bar.remove()
        self._redraw()
        return had_focus

    def _show_state(self) -> None:
        state, bar = self.block.state, self.run_bar
        self._show_edited()
        if self.editor is not None:
            bar.mode = BarMode.EDITING
        elif state.is_pending:
            bar.mode = BarMode.WAITING
        else:
            bar.mode = BarMode.RUNNING
        bar.update_classes({other.css_class: other is state for other in CodeState})
        self._redraw()

    def _show_edited(self) -> None:
        self.run_bar.is_edited = self.block.is_edited
        self.run_bar.has_reverted = self._reverted is not None and not self.block.is_edited

    def _redraw(self) -> None:
        self.block.changed()
        self._canvas.redraw(self.block)
        self._places_changed()
