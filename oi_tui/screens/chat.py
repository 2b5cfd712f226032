"""The conversation: transcript, prompt, and the turns that go back and forth between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from oi_tui.engine.approval import Answerer, Approver, CodeProposal
from oi_tui.engine.lmc import Chunk, Message
from oi_tui.engine.magic import is_magic, run_magic, shell_line
from oi_tui.engine.rebuild import PastRun, run_again
from oi_tui.engine.scopes import ApprovalScopes, Scope
from oi_tui.external_editor import NoEditor, edit_text
from oi_tui.messages import ApprovalRequested, ChunksReceived, InputRequested, TurnEnd, TurnEnded, TurnStarted
from oi_tui.open_outside import write_result
from oi_tui.screens.output import OutputScreen
from oi_tui.session_status import kernel_state_after, status_of
from oi_tui.turn import Turn
from oi_tui.widgets.block import Block
from oi_tui.widgets.composer import Composer
from oi_tui.widgets.find_bar import FindBar
from oi_tui.widgets.key_bar import KeyBar
from oi_tui.widgets.notice_block import NoticeBlock
from oi_tui.widgets.run_bar import RunBar
from oi_tui.widgets.status_bar import KernelState, Mode
from oi_tui.widgets.top_bar import TopBar
from oi_tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from oi_tui.engine.session import Session

HINT_INSTEAD = "Say what to do instead; Enter sends it, Esc goes back to the code"


class ChatScreen(Screen[None]):
    """One conversation. `attach` gives it a session; until then messages wait in the prompt's queue."""

    AUTO_FOCUS = "Composer PromptArea"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop", tooltip="Stop the answer; interrupt the code.", id="run.stop"),
        Binding("ctrl+c", "interrupt", "Interrupt", show=False, tooltip="Like Esc.", id="run.interrupt"),
        Binding("f5", "retry", "Try again", tooltip="Send the last request again.", id="run.retry"),
        Binding("tab", "next_place", show=False, tooltip="To what waits for you, or the next place.", id="app.next"),
        Binding("shift+tab", "mode", "Mode", show=False, tooltip="Ask, ask with rules, run all.", id="app.mode"),
        Binding("alt+up", "cursor(-1)", "Blocks", show=False, tooltip="To the block above.", id="transcript.up-block"),
        Binding("alt+down", "cursor(1)", show=False, tooltip="To the block below.", id="transcript.down-block"),
        Binding("pageup", "page(-1)", show=False, tooltip="Scroll up.", id="transcript.page-up"),
        Binding("pagedown", "page(1)", show=False, tooltip="Scroll down.", id="transcript.page-down"),
        Binding("shift+up", "scroll_transcript(-1)", show=False, tooltip="Scroll a line up.", id="transcript.line-up"),
        Binding("shift+down", "scroll_transcript(1)", show=False, tooltip="Scroll down.", id="transcript.line-down"),
        Binding("ctrl+f", "find", "Find", show=False, tooltip="Find words in the conversation.", id="transcript.find"),
        Binding("ctrl+o", "expand_all", "Expand", show=False, tooltip="Expand or fold all.", id="transcript.expand"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.session: Session | None = None
        self.scopes = ApprovalScopes()
        self.mode = Mode.ASK
        self._turn: Turn | None = None
        self._declines = False  # the next message sent is what to do instead
        self._can_retry = False
        self._kernel_state = KernelState.OFF

    def compose(self) -> ComposeResult:
        yield TopBar()
        with Horizontal(id="conversation"):
            yield Transcript(may_take_focus=self._last_key_unless_typing)
        yield FindBar()
        yield Composer()
        yield KeyBar()

    # -- for the app -------------------------------------------------------------------------------------------------

    def attach(self, session: Session) -> None:
        """Use this session from now on, or notice that its settings have changed."""
        if session is not self.session:
            self.session = session
            self.scopes.clear()
            self.transcript.load(list(session.shown))
        self._read_mode()
        self._send_next()

    def ask_again(self) -> None:
        """Code of a stored conversation waits for approval once more."""
        session = self.session
        if session is not None and self._turn is None:
            self._start(lambda approve, answer: session.respond(None, approve=approve, answer=answer))

    def run_again(self, runs: Sequence[PastRun]) -> None:
        """Run blocks of the conversation again, in order; the user has approved the list."""
        session = self.session
        if session is not None and self._turn is None:
            self._start(lambda approve, answer: run_again(session, runs, answer=answer))

    def show_message(self, message_id: str) -> None:
        """Put the cursor on the block that a message belongs to."""
        session = self.session
        message = session.history.get(message_id) if session is not None else None
        wanted = {message_id, message.meta.get("code_id") if message is not None else None}
        for block in self.transcript.canvas.blocks:
            if block.id in wanted:
                self.transcript.point_at(block)
                return

    @property
    def what_runs(self) -> str:
        """What quitting would end, in words; empty if nothing."""
        if self._turn is None:
            return ""
        return "Code is running." if self._turn.is_running_code else "A turn is going on."

    @property
    def composer(self) -> Composer:
        return self.query_one(Composer)

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)

    # -- turns -------------------------------------------------------------------------------------------------------

    @on(Composer.Submitted)
    def _submitted(self, event: Composer.Submitted) -> None:
        event.stop()
        if self._declines:
            self._decline_with(event.text)
        else:
            self._send(event.text)

    def _send(self, text: str) -> None:
        session = self.session
        if session is None or self._turn is not None:
            self.composer.send(text)
            return
        self.transcript.action_follow()
        if (command := shell_line(text)) is not None:
            self._run_own("shell", command, is_typed=True)
        elif is_magic(text):
            self._run_magic(session, text)
        else:
            self.transcript.apply(Message("user", "message", text).to_chunks())
            self._start(lambda approve, answer: session.respond(text, approve=approve, answer=answer))
            self.transcript.wait_for(session.settings.llm.model or "the model")

    @work(group="magic", exit_on_error=False)
    async def _run_magic(self, session: Session, line: str) -> None:
        """Do what a line such as `%undo` asks for, and say what was done."""
        result = await run_magic(session, line)
        if result.transcript_changed:
            self.transcript.load(list(session.history))
        self._say(result.text)
        self._read_mode()

    def _run_own(self, language: str, code: str, *, is_typed: bool = False) -> None:
        """Run the user's own code. A line that was just typed and sent is approved by that, unless it hides something:
        it may have been pasted."""
        session = self.session
        if session is None or self._turn is not None:
            self.notify("Wait until this turn has ended, or stop it with Esc.", markup=False)
        elif code.strip():
            scopes = ApprovalScopes()
            if is_typed:
                scopes.allow(Scope.THIS_CODE, CodeProposal("", language, code))
            self._start(
                lambda approve, answer: session.run_code(language, code, approve=approve, answer=answer), scopes.covers
            )

    def _start(
        self,
        chunks: Callable[[Approver, Answerer], AsyncGenerator[Chunk, None]],
        allows: Callable[[CodeProposal], bool] | None = None,
    ) -> None:
        assert self.session is not None
        self._can_retry = False
        self.transcript.begin_turn()
        self._turn = Turn(self.session, chunks, self.post_message, allows or self._runs_unasked)
        self.composer.busy = self.transcript.is_busy = True
        self.refresh_bindings()
        self.run_turn(self._turn)

    @work(group="turn", exit_on_error=False)
    async def run_turn(self, turn: Turn) -> None:
        """Drive one turn. The worker belongs to the screen, so leaving the screen ends the turn."""
        await turn.run()

    def _runs_unasked(self, proposal: CodeProposal) -> bool:
        assert self.session is not None
        return self.mode is not Mode.ASK and self.session.settings.safe_mode == "off" and self.scopes.covers(proposal)

    @on(TurnStarted)
    def _turn_started(self) -> None:
        self._show_status()

    @on(ChunksReceived)
    def _chunks_received(self, event: ChunksReceived) -> None:
        event.stop()
        try:
            self.transcript.apply(event.chunks)
            self._watch_kernel(event.chunks)
        finally:
            event.handled.set()

    @on(ApprovalRequested)
    def _approval_requested(self, event: ApprovalRequested) -> None:
        if not event.reply.done():
            self.transcript.propose(event.proposal, event.reply)

    @on(InputRequested)
    async def _input_requested(self, event: InputRequested) -> None:
        self._kernel_state = KernelState.WAITING
        self._show_status()
        if not event.reply.done():
            await self.transcript.ask(event.request, event.reply)

    @on(TurnEnded)
    def _turn_ended(self, event: TurnEnded) -> None:
        self._turn = None
        self._end_instead()
        self.transcript.end_turn(stopped=event.reason is TurnEnd.STOPPED)
        self.composer.busy = self.transcript.is_busy = False
        self._can_retry = event.reason is TurnEnd.FAILED
        self._kernel_state = KernelState.IDLE if self._kernel_state is not KernelState.OFF else KernelState.OFF
        self._show_status()
        self.refresh_bindings()
        if event.reason is TurnEnd.DONE:
            self._send_next()

    def _send_next(self) -> None:
        if self.session is not None and self._turn is None and (text := self.composer.take_queued()) is not None:
            self._send(text)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A fault of ours ended a turn: say so calmly, and log what it was."""
        if event.worker.group == "turn" and event.state is WorkerState.ERROR:
            event.stop()
            self.log.error(event.worker.error)
            error = event.worker.error
            self._say(f"A fault of oi-tui ended the turn: {type(error).__name__}: {error}")

    def _say(self, text: str) -> None:
        self.transcript.canvas.add(NoticeBlock("said", text))

    # -- stopping ----------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "stop":
                return self._turn is not None
            case "interrupt":
                return self._turn is not None or bool(self.get_selected_text())
            case "retry":
                return self._can_retry and self._turn is None
        return True

    def _stop_turn(self) -> None:
        """In the background: an interrupt lasts until the code has reacted, and the next key must not wait for that."""
        if self._turn is not None:
            self.run_worker(self._turn.stop(), group="stop", exit_on_error=False)

    def action_stop(self) -> None:
        """Esc: back to the code if the user was about to say what to do instead; else stop what goes on."""
        if self._declines:
            self._end_instead()
            if self.transcript.live is not None:
                self.transcript.live.focus()
        else:
            self._stop_turn()

    def action_interrupt(self) -> None:
        if text := self.get_selected_text():
            self.app.copy_to_clipboard(text)
            self.clear_selection()
        else:
            self._stop_turn()

    @on(Transcript.InterruptRequested)
    def _interrupt_requested(self, event: Transcript.InterruptRequested) -> None:
        event.stop()
        self._stop_turn()

    def action_next_place(self) -> None:
        """To the code or the program that waits for the user; otherwise on to the next place."""
        live = self.transcript.live
        if live is not None and live.is_waiting and not live.has_focus:
            live.focus()
        else:
            self.focus_next()

    def action_retry(self) -> None:
        """Send the last request again."""
        if (session := self.session) is not None and self._turn is None:
            self.transcript.action_follow()
            self._start(lambda approve, answer: session.respond(None, approve=approve, answer=answer))
            self.transcript.wait_for(session.settings.llm.model or "the model")

    # -- approval ----------------------------------------------------------------------------------------------------

    def _last_key_unless_typing(self) -> float | None:
        """When the prompt was changed last, if the focus may be taken from it; None while it is in use."""
        if not self.is_current:
            return None
        composer, focused = self.composer, self.focused
        in_prompt = focused is None or composer in focused.ancestors_with_self
        if (in_prompt and composer.is_empty) or isinstance(focused, RunBar):
            return composer.last_key_at
        return None

    @on(Transcript.InsteadRequested)
    def _instead_requested(self, event: Transcript.InsteadRequested) -> None:
        event.stop()
        self._declines = True
        self.composer.busy = False  # Enter sends it, to the code that waits
        self.composer.prompt.placeholder = HINT_INSTEAD
        self.composer.focus()

    def _decline_with(self, note: str) -> None:
        self._end_instead()
        self.transcript.action_follow()
        self.transcript.decline(note)
        self.transcript.apply(Message("user", "message", note).to_chunks())

    def _end_instead(self) -> None:
        if self._declines:
            self._declines = False
            self.composer.busy = self._turn is not None

    @on(Transcript.ScopeChosen)
    def _scope_chosen(self, event: Transcript.ScopeChosen) -> None:
        event.stop()
        self.scopes.allow(event.scope, event.proposal)
        if self.mode is Mode.ASK:
            self._set_mode(Mode.RULES)
        self.notify(f"From now on: {self.scopes.describe()}. This block still waits.", markup=False, timeout=5)

    def action_mode(self) -> None:
        """Ask for everything, ask with rules, run all."""
        is_safe = self.session is not None and self.session.settings.safe_mode != "off"
        self._set_mode(self.mode.following(safe=is_safe))

    def _read_mode(self) -> None:
        """The settings have changed: so has the mode, perhaps."""
        assert self.session is not None
        settings = self.session.settings
        if settings.auto_run and settings.safe_mode == "off":
            self._set_mode(Mode.RUN_ALL)
        else:
            self._set_mode(Mode.ASK if self.mode is Mode.RUN_ALL else self.mode)

    def _set_mode(self, mode: Mode) -> None:
        self.mode = mode
        if self.session is not None:
            self.session.configure(auto_run=mode is Mode.RUN_ALL)
        self.set_class(mode is Mode.RUN_ALL, "-run-all")
        self._show_status()

    @on(Transcript.ExternalEditRequested)
    def _external_edit_requested(self, event: Transcript.ExternalEditRequested) -> None:
        event.stop()
        self._edit_outside(event.code, event.language)

    @work(exclusive=True, group="editor", exit_on_error=False)
    async def _edit_outside(self, code: str, language: str) -> None:
        extension = self.session.languages.file_extension(language) if self.session is not None else "txt"
        try:
            edited = await edit_text(self.app, code, extension=extension)
        except NoEditor as error:
            self.notify(str(error), severity="warning", markup=False)
            return
        self.transcript.external_edit_ended(edited)

    @on(Transcript.RunRequested)
    def _run_requested(self, event: Transcript.RunRequested) -> None:
        event.stop()
        self.transcript.action_follow()
        self._run_own(event.language, event.code)

    # -- moving about ------------------------------------------------------------------------------------------------

    @on(Transcript.TailChanged)
    def _tail_changed(self, event: Transcript.TailChanged) -> None:
        event.stop()
        self.composer.new_below = event.new_lines

    @on(Transcript.Left)
    def _left(self, event: Transcript.Left) -> None:
        event.stop()
        self.composer.focus()

    @on(Transcript.TypedElsewhere)
    @on(RunBar.TypedElsewhere)
    def _typed_elsewhere(self, event: Any) -> None:
        event.stop()
        self.composer.focus()
        self.composer.prompt.insert(event.character)

    @on(Transcript.CopyRequested)
    def _copy_requested(self, event: Transcript.CopyRequested) -> None:
        event.stop()
        self.app.copy_to_clipboard(event.text)

    def action_cursor(self, step: int) -> None:
        self.transcript.move_cursor(step)

    def action_page(self, direction: int) -> None:
        self.transcript.action_page(direction)

    def action_scroll_transcript(self, lines: int) -> None:
        self.transcript.action_scroll(lines)

    def action_expand_all(self) -> None:
        self.transcript.expand_all()

    @on(Transcript.InspectRequested)
    def _inspect_requested(self, event: Transcript.InspectRequested) -> None:
        event.stop()
        self.app.push_screen(OutputScreen(event.block, self._complete_output(event.block.id)))

    def _complete_output(self, code_id: str | None) -> Path | None:
        """The file with everything that a block has printed, if there was too much to keep."""
        for message in self.session.history if self.session is not None else ():
            if message.meta.get("code_id") == code_id and (path := message.meta.get("full_output")):
                return Path(path)
        return None

    @on(Transcript.OpenRequested)
    def _open_requested(self, event: Transcript.OpenRequested) -> None:
        event.stop()
        self._open_outside(event.block)

    @work(exclusive=True, group="open", exit_on_error=False)
    async def _open_outside(self, block: Block) -> None:
        if self.session is None:
            return
        path = await asyncio.to_thread(write_result, block, self.session.folder)
        if path is not None:
            self.app.open_url(path.as_uri())
            self.notify(f"Opened {path}", markup=False)

    # -- finding -----------------------------------------------------------------------------------------------------

    def action_find(self) -> None:
        self.query_one(FindBar).open(self.transcript.finder)

    @on(FindBar.Closed)
    def _find_closed(self, event: FindBar.Closed) -> None:
        event.stop()
        self.composer.focus()

    # -- status ------------------------------------------------------------------------------------------------------

    def _watch_kernel(self, chunks: Sequence[Chunk]) -> None:
        state = kernel_state_after(self._kernel_state, chunks)
        if state is not self._kernel_state or any(chunk.type == "usage" for chunk in chunks):
            self._kernel_state = state
            self._show_status()

    def _show_status(self) -> None:
        session = self.session
        if session is None or not self.is_mounted:
            return
        status = status_of(session, self.mode, self._kernel_state)
        self.query_one(TopBar).status = status
        self.query_one(KeyBar).status = status
