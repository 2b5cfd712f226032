"""The conversation on the screen: draws what a turn sends, and lets the user walk through it and act on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import NULL_SPACING, Offset, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.message import Message
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget

from oi_tui.engine.approval import CodeProposal, Decision, InputCancelled, InputRequest
from oi_tui.engine.lmc import Chunk
from oi_tui.engine.lmc import Message as LmcMessage
from oi_tui.engine.scopes import Scope
from oi_tui.widgets.block import Block
from oi_tui.widgets.block_builder import BlockBuilder
from oi_tui.widgets.canvas import Canvas
from oi_tui.widgets.click_guard import ClickGuard
from oi_tui.widgets.code_block import CodeBlock
from oi_tui.widgets.code_editor import CodeEditor
from oi_tui.widgets.code_state import CodeState
from oi_tui.widgets.finder import Finder
from oi_tui.widgets.image_block import ImageBlock
from oi_tui.widgets.input_request import InputRequestField
from oi_tui.widgets.live_code import LiveCode
from oi_tui.widgets.notice_block import NoticeBlock
from oi_tui.widgets.rich_block import RichBlock
from oi_tui.widgets.run_bar import RunBar

WHEEL_LINES = 3
CALM_WAIT = 2
"""Seconds from which on a wait for the model is counted on the screen."""


class Transcript(Widget, can_focus=True):
    """Blocks, a cursor that walks through them, and the widgets of the block that waits or runs.

    `apply` takes chunks while they stream; `load` replays a stored conversation through the same code. The screen
    tells it about questions (`propose`, `ask`) and about the end of a turn (`end_turn`).
    """

    DEFAULT_CSS = """
    Transcript {
        width: 1fr;
        height: 1fr;
        overflow: hidden hidden;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left_square_bracket", "cursor(-1)", "Block up", show=False, key_display="[", id="transcript.previous"),
        Binding("right_square_bracket", "cursor(1)", "Block down", show=False, key_display="]", id="transcript.next"),
        Binding("space", "fold", "Fold", tooltip="Show only the essential, or everything.", id="transcript.fold"),
        Binding("c", "copy", "Copy", tooltip="Copy the source of the block.", id="transcript.copy"),
        Binding("r", "run_again", "Run again", tooltip="Ask to run this code again.", id="transcript.run-again"),
        Binding(
            "e", "edit_copy", "Edit a copy", tooltip="Edit a copy of this code and run it.", id="transcript.edit-copy"
        ),
        Binding("o", "open", "Open", tooltip="Open it outside of the terminal.", id="transcript.open"),
        Binding(
            "enter", "inspect", "Full size", tooltip="The whole output on the whole screen.", id="transcript.inspect"
        ),
        Binding("t", "times", "Times", show=False, tooltip="The time of each line.", id="transcript.times"),
        Binding("up,k", "scroll(-1)", "Up", show=False, id="transcript.up"),
        Binding("down,j", "scroll(1)", "Down", show=False, id="transcript.down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="transcript.page-up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="transcript.page-down"),
        Binding("home,g", "top", "Start", show=False, id="transcript.top"),
        Binding("end,G", "follow", "Newest", show=False, id="transcript.end"),
        Binding("escape", "leave", "Prompt", show=False, tooltip="Back to the prompt.", id="transcript.leave"),
    ]

    @dataclass
    class RunRequested(Message):
        """Run this code of the user's, after the usual approval; with `edit`, open the editor first."""

        language: str
        code: str
        edit: bool = False

    @dataclass
    class ScopeChosen(Message):
        """From now on, code like this runs without asking."""

        scope: Scope
        proposal: CodeProposal

    @dataclass
    class CopyRequested(Message):
        """Put this into the clipboard."""

        text: str
        what: str

    @dataclass
    class OpenRequested(Message):
        """Open a picture or a page outside of the terminal."""

        block: Block

    @dataclass
    class InspectRequested(Message):
        """Show the whole output of a block on the whole screen."""

        block: CodeBlock

    @dataclass
    class ExternalEditRequested(Message):
        """Edit code that waits in `$EDITOR`; hand the text to `external_edit_ended`."""

        code: str
        language: str

    class InsteadRequested(Message):
        """The user will say what to do instead of running the code: that goes to `decline`."""

    class InterruptRequested(Message):
        """Interrupt what runs."""

    class Left(Message):
        """The focus should go back to the prompt."""

    @dataclass
    class TypedElsewhere(Message):
        """A key that was meant for the prompt."""

        character: str

    @dataclass
    class TailChanged(Message):
        """Whether the newest line is in view, and how many lines have come since it was not."""

        following: bool
        new_lines: int

    FOCUS_ON_CLICK = False

    is_busy: reactive[bool] = reactive(False, bindings=True)
    """A turn is going on: Esc is needed to stop it."""
    cursor: reactive[Block | None] = reactive(None, bindings=True, init=False)
    """The block that the keys act on."""

    def __init__(self, *, id: str | None = None, may_take_focus: Callable[[], float | None] = lambda: 0.0) -> None:
        """`may_take_focus` says when the last key was pressed, or None while the prompt is in use."""
        super().__init__(id=id)
        self.canvas = Canvas()
        self.live: LiveCode | None = None
        self.expands_all = False
        self._may_take_focus = may_take_focus
        self._builder = BlockBuilder(self.canvas)
        self._click_guard = ClickGuard()
        self._clock: Timer | None = None
        self._wait: tuple[NoticeBlock, Timer] | None = None  # what says that an answer is waited for
        self._behind: list[Block] = []
        self.finder = Finder(self.canvas)
        self._edit_next = False  # the next proposal is the user's own: open the editor on it
        self._is_own_run = False  # or at least go there

    @property
    def layout(self) -> Layout:
        return _OVERLAY

    def compose(self) -> ComposeResult:
        yield self.canvas

    def on_resize(self) -> None:
        if self.live is not None:
            self.live.resized()

    def on_mount(self) -> None:
        self.watch(self.canvas, "scroll_y", self._canvas_moved, init=False)
        self.watch(self.app, "app_focus", self._click_guard.window_focused, init=False)

    # -- what a turn sends -------------------------------------------------------------------------------------------

    def apply(self, chunks: Iterable[Chunk]) -> None:
        """Put chunks where they belong."""
        chunks = list(chunks)
        if chunks:
            self._end_wait()
        with self.canvas.changes():
            for chunk in chunks:
                self._builder.feed(chunk)
                if chunk.type == "decision" or (chunk.type == "console" and chunk.is_flag):
                    self._follow_life_of(self._builder.code(chunk.id))
        self._canvas_moved()

    def _go_on(self, block: Block) -> None:
        """Let a block do what it put off to keep the screen quick, step by step between other events."""
        if block not in self._behind and block.is_behind:
            self._behind.append(block)
            self.run_worker(self._catch_up(block), group="catch-up", exit_on_error=False)

    async def _catch_up(self, block: Block) -> None:
        while block in self.canvas.blocks:
            block.advance()
            self.canvas.redraw(block)
            if not block.is_behind:
                break
            await asyncio.sleep(0)
        self._behind.remove(block)

    def load(self, messages: Sequence[LmcMessage]) -> None:
        """Show a stored conversation in the place of this one."""
        self.clear()
        self.canvas.load(self._builder.replay(messages))

    def clear(self) -> None:
        """Show nothing."""
        self._end_wait()
        self.cursor = None
        self.canvas.clear()
        self._builder = BlockBuilder(self.canvas)

    def propose(self, proposal: CodeProposal, reply: asyncio.Future[Decision]) -> None:
        """Ask the user about code that is in the transcript."""
        live = self._make_live(self._builder.code_for(proposal))
        live.propose(proposal, reply)
        self.canvas.show_whole(live.block)
        if self._edit_next:
            self.call_later(live.edit)
        elif self._is_own_run:
            live.run_bar.take_focus(monotonic())
        elif (last_key := self._may_take_focus()) is not None:
            live.run_bar.take_focus(last_key)
        self._edit_next = self._is_own_run = False

    async def ask(self, request: InputRequest, reply: asyncio.Future[str]) -> None:
        """Ask the user for a line that running code waits for."""
        live = self.live
        if live is None:
            block = self._builder.code(request.id)
            if block is None:
                reply.set_exception(InputCancelled())
                return
            live = self._make_live(block)
        await live.ask(request, reply, take_focus=live.has_focus or self._may_take_focus() is not None)

    def begin_turn(self) -> None:
        """A turn begins."""
        self._builder.begin_turn()

    def wait_for(self, who: str) -> None:
        """Say that an answer is waited for, until the first chunk comes."""
        self._end_wait()
        notice, began = NoticeBlock("wait", f"waiting for {who} …"), monotonic()

        def tick() -> None:
            if (seconds := int(monotonic() - began)) >= CALM_WAIT:
                notice.set_text(f"waiting for {who} … {seconds} s")
                self.canvas.redraw(notice)

        self._wait = (notice, self.set_interval(1.0, tick))
        self.canvas.add(notice)

    def _end_wait(self) -> bool:
        """The wait is over. True if there was one."""
        if self._wait is None:
            return False
        (notice, timer), self._wait = self._wait, None
        timer.stop()
        if notice in self.canvas.blocks:
            self.canvas.take_out(notice)
        return True

    def end_turn(self, *, stopped: bool) -> None:
        """The turn is over. Blocks that are not finished say so, their widgets go."""
        if self._end_wait() and stopped:
            self.canvas.add(NoticeBlock("said", "stopped"))
        with self.canvas.changes():
            self._builder.end_turn(stopped=stopped)
        self._edit_next = self._is_own_run = False
        self._retire()
        self.refresh_bindings()

    @property
    def is_pending(self) -> bool:
        """True while code waits for the user."""
        return self.live is not None and self.live.is_pending

    def decline(self, note: str | None = None) -> None:
        """Decline the code that waits; with words, the model gets the words."""
        if self.live is not None:
            self.live.decline(note)

    # -- the block that waits or runs --------------------------------------------------------------------------------

    def _make_live(self, block: CodeBlock) -> LiveCode:
        if self.live is None or self.live.block is not block:
            self._retire()
            self.live = LiveCode(self, self.canvas, block, self._canvas_moved)
        return self.live

    def _retire(self) -> None:
        """The block that was live is so no more; another one may be at once."""
        live, self.live = self.live, None
        self._set_clock(running=False)
        if live is not None:
            self.call_later(self._bury, live)

    async def _bury(self, live: LiveCode) -> None:
        if await live.end() and self.live is None:
            self.post_message(self.Left())

    def _follow_life_of(self, block: CodeBlock | None) -> None:
        """A block has begun or ended to run."""
        if block is None:
            return
        if block.state is CodeState.RUNNING:
            self._make_live(block).started()
            self._set_clock(running=True)
        elif self.live is not None and self.live.block is block and block.state.is_over:
            self._retire()

    def _set_clock(self, *, running: bool) -> None:
        """The elapsed time is drawn once a second, while something runs and only then."""
        if running and self._clock is None:
            self._clock = self.set_interval(1.0, self._tick)
        elif not running and self._clock is not None:
            self._clock.stop()
            self._clock = None

    def _tick(self) -> None:
        if self.live is not None:
            self.live.block.changed()
            self.canvas.redraw(self.live.block)

    @on(RunBar.Asked)
    @on(CodeEditor.Asked)
    @on(InputRequestField.Closed)
    async def _live_asked(self, event: Message) -> None:
        """What concerns the block alone is done there; the rest goes on to the screen."""
        event.stop()
        if (live := self.live) is None:
            return
        match event:
            case RunBar.InsteadRequested():
                self.post_message(self.InsteadRequested())
            case RunBar.InterruptRequested():
                self.post_message(self.InterruptRequested())
            case RunBar.ScopeChosen():
                proposal = CodeProposal(live.block.id or "", live.block.language, live.block.code)
                self.post_message(self.ScopeChosen(event.scope, proposal))
            case RunBar.ExternalEditRequested() | CodeEditor.ExternalEditRequested():
                live.end_editing()
                self.post_message(self.ExternalEditRequested(live.block.code, live.block.language))
            case _:
                await live.obey(event)

    def external_edit_ended(self, code: str | None) -> None:
        """What `$EDITOR` left behind; None if nothing."""
        if self.live is not None and code is not None:
            self.live.text_edited(code)
            self.live.focus()

    # -- block cursor ------------------------------------------------------------------------------------------------

    def watch_cursor(self, block: Block | None) -> None:
        self.canvas.cursor = block if self.has_focus else None
        self.canvas.refresh()

    def move_cursor(self, step: int) -> None:
        """To the next or previous block, and give it the focus."""
        blocks = self.canvas.blocks
        if not blocks:
            return
        if self.cursor is None or self.cursor not in blocks:
            visible = self.canvas.visible_blocks()
            target = visible[-1 if step < 0 else 0]
        else:
            target = blocks[max(0, min(len(blocks) - 1, self.canvas.index(self.cursor) + step))]
        self.point_at(target)

    def point_at(self, block: Block) -> None:
        """Put the cursor on this block, bring it into view and give it the focus."""
        self.cursor = block
        self.canvas.show_block(block)
        if self.live is not None and self.live.block is block:
            self.live.focus()
        else:
            self.focus(scroll_visible=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        block = self.cursor
        match action:
            case "fold":
                return block is not None and block.can_fold and not self.is_pending
            case "copy":
                return block is not None
            case "run_again" | "edit_copy":
                return isinstance(block, CodeBlock) and block.state.is_over and bool(block.language)
            case "open":
                return isinstance(block, ImageBlock | RichBlock)
            case "inspect":
                return isinstance(block, CodeBlock) and bool(block.output)
            case "times":
                return isinstance(block, CodeBlock) and bool(block.line_times)
            case "leave":
                return not self.is_busy
        return True

    def action_cursor(self, step: int) -> None:
        self.move_cursor(step)

    def action_fold(self) -> None:
        if (block := self.cursor) is None:
            return
        block.toggle()
        self.canvas.redraw(block)
        self.canvas.show_block(block)

    def action_copy(self) -> None:
        if (block := self.cursor) is not None:
            self.post_message(self.CopyRequested(block.source, block.kind))

    def action_run_again(self) -> None:
        self._request_run(edit=False)

    def action_edit_copy(self) -> None:
        self._request_run(edit=True)

    def _request_run(self, *, edit: bool) -> None:
        if isinstance(block := self.cursor, CodeBlock):
            self._edit_next, self._is_own_run = edit, True
            self.post_message(self.RunRequested(block.language, block.code))

    def action_open(self) -> None:
        if (block := self.cursor) is not None:
            self.post_message(self.OpenRequested(block))

    def action_inspect(self) -> None:
        if isinstance(block := self.cursor, CodeBlock):
            self.post_message(self.InspectRequested(block))

    def action_times(self) -> None:
        if isinstance(block := self.cursor, CodeBlock):
            block.shows_times = not block.shows_times
            block.changed()
            self.canvas.redraw(block)

    def action_leave(self) -> None:
        self.cursor = None
        self.post_message(self.Left())

    def expand_all(self) -> None:
        """Show everything of every block, or fold what is long again."""
        self.expands_all = not self.expands_all
        self._builder.expands_all = self.expands_all
        self.canvas.expand_all(self.expands_all)

    # -- scrolling ---------------------------------------------------------------------------------------------------

    def action_scroll(self, lines: int) -> None:
        self.canvas.scroll_lines(lines)

    def action_page(self, direction: int) -> None:
        self.canvas.scroll_lines(direction * max(1, self.canvas.rows - 2))

    def action_top(self) -> None:
        self.canvas.scroll_to_top()

    def action_follow(self) -> None:
        """Go to the newest line and stay there."""
        self.canvas.follow()

    @on(Canvas.TailChanged)
    def _tail_changed(self, event: Canvas.TailChanged) -> None:
        event.stop()
        self.post_message(self.TailChanged(event.following, event.new_lines))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.canvas.scroll_lines(WHEEL_LINES)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.canvas.scroll_lines(-WHEEL_LINES)

    # -- keys and clicks ---------------------------------------------------------------------------------------------

    @on(events.Focus)
    def _focus_came(self) -> None:
        if self.cursor is None and self.canvas.blocks:
            self.cursor = self.canvas.visible_blocks()[-1]
        self.watch_cursor(self.cursor)

    def on_descendant_focus(self) -> None:
        if self.live is not None:
            self.cursor = self.live.block
            self.live.focus_moved()

    @on(events.Blur)
    @on(events.DescendantBlur)
    def _focus_left(self) -> None:
        self.call_later(self._forget_cursor)

    def _forget_cursor(self) -> None:
        if not self.has_focus_within:
            self.cursor = None
        if self.live is not None:
            self.live.focus_moved()

    def on_key(self, event: events.Key) -> None:
        """Typing goes to the prompt."""
        if (
            self.has_focus
            and event.is_printable
            and event.character
            and event.key not in self._bindings.key_to_bindings
        ):
            event.stop()
            self.post_message(self.TypedElsewhere(event.character))

    async def on_click(self, event: events.Click) -> None:
        """A click puts the cursor on a block, opens the editor of code that waits, unfolds what is folded. The click
        that gave the window its focus, and one that ends a selection, do nothing."""
        event.stop()
        if self.screen.get_selected_text() or not self._click_guard.allows():
            return
        offset = event.get_content_offset(self.canvas)
        if offset is None or (found := self.canvas.block_at(offset.y)) is None:
            return
        block, line = found
        if self.live is not None and self.live.block is block and self.is_pending:
            await self.live.edit()
            return
        self.point_at(block)
        if block.is_toggled_by_click(line):
            self.action_fold()

    # -- places of the live widgets ----------------------------------------------------------------------------------

    def _canvas_moved(self) -> None:
        for block in self.canvas.visible_blocks():
            self._go_on(block)
        if self.live is not None:
            self._clear_arrangement_cache()
            self.refresh(layout=True)
            self.call_after_refresh(self.live.canvas_painted)

    def regions(self, size: Size) -> Iterator[tuple[Widget, Region]]:
        """Where the widgets of the live block lie. What is out of view has no size, and keeps its focus."""
        if self.live is None or self.live.block not in self.canvas.blocks:
            return
        block = self.canvas.region_of(self.live.block)
        for widget, slot in self.live.places():
            region = Region(
                block.x + slot.indent, block.y + slot.line, max(1, block.width - 2 * slot.indent), slot.height
            )
            if widget is self.live.pinned and size.height > 2 and block.y < size.height - 1 <= region.y:
                region = Region(region.x, size.height - 1, region.width, 1)
            yield widget, region if region.overlaps(size.region) else Region(0, 0, 0, 0)


class _OverlayLayout(Layout):
    """The canvas everywhere, and the widgets of the live block where the block leaves room for them."""

    name = "overlay"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> ArrangeResult:
        assert isinstance(parent, Transcript)
        regions = dict(parent.regions(size))
        placements = []
        for order, child in enumerate(children):
            region = size.region if child is parent.canvas else regions.get(child, Region(0, 0, 0, 0))
            placements.append(WidgetPlacement(region, Offset(0, 0), NULL_SPACING, child, order))
        return placements


_OVERLAY = _OverlayLayout()
