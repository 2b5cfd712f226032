"""Where the user types: the prompt with its history, completion and queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Label, TextArea

from oi_tui.completer import Completer, Completion
from oi_tui.external_editor import NoEditor, edit_text
from oi_tui.prompt_history import HistoryCursor, PromptHistory
from oi_tui.widgets.completion import CompletionList, Fragment, Kind, fragment_before
from oi_tui.widgets.history_search import HistorySearch
from oi_tui.widgets.message_queue import MessageQueue
from oi_tui.widgets.prompt_area import PromptArea

HINT = "Ask for something    @ file   % command   ! shell line"
HINT_BUSY = "The next message; Enter queues it"


class Composer(Vertical):
    """Posts `Submitted` for every message; while `busy` it queues them instead.

    The screen sets `busy`, `new_below`, `history` and what `completer` knows, and calls `take_queued` when a turn has
    ended and the next message may go. `is_empty` and `last_key_at` are for the rules about who may take the focus.
    """

    DEFAULT_CSS = """
    Composer {
        height: auto;
        padding: 0 1;
        border-top: solid $rail;
        border-title-align: right;
        border-title-color: $text-quiet;
        & #prompt-row { height: auto; }
        & #prompt-mark { width: 2; color: $accent; }
        & PromptArea { width: 1fr; max-height: 33vh; }
        &.-searching #prompt-row { display: none; }
        & #prompt-mark.-busy { color: $text-quiet; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", show=False, tooltip="Send the message.", id="prompt.send"),
        Binding("up", "up", show=False, tooltip="Up; at the top: earlier messages.", id="prompt.earlier"),
        Binding("down", "down", show=False, tooltip="Down; at the end: later messages.", id="prompt.later"),
        Binding("tab", "complete", "complete", tooltip="Take the suggestion.", id="prompt.complete"),
        Binding("escape", "close_completion", "close", tooltip="Close the suggestions.", id="prompt.close"),
        Binding("ctrl+r", "search", "search", show=False, tooltip="Search earlier messages.", id="prompt.search"),
        Binding(
            "ctrl+g", "edit_outside", "editor", show=False, tooltip="Write the message in $EDITOR.", id="prompt.editor"
        ),
        Binding(
            "ctrl+c", "clear", "clear", show=False, tooltip="Empty the prompt; ↑ brings it back.", id="prompt.clear"
        ),
        Binding("ctrl+d", "end", tooltip="Quit, when the prompt is empty.", id="prompt.end"),
        Binding("question_mark", "key_sheet", "keys", tooltip="All keys on one page.", id="prompt.keys"),
    ]

    @dataclass
    class Submitted(Message):
        """The user sent a message."""

        composer: Composer
        text: str

        @property
        def control(self) -> Composer:
            return self.composer

    busy: reactive[bool] = reactive(False)
    """A turn runs: messages wait in the queue."""
    new_below: reactive[int] = reactive(0)
    """Lines of the transcript below what is on screen, shown on the rule above the prompt; 0 shows nothing."""
    _can_complete: reactive[bool] = reactive(False, bindings=True)
    _is_blank: reactive[bool] = reactive(True, bindings=True)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.completer = Completer()
        """What can be completed: the screen sets its folder, commands and variables."""
        self.last_key_at = -1e9
        """`time.monotonic` of the last change to the prompt."""
        self._history = PromptHistory(None)
        self._cursor = HistoryCursor(self._history)
        self._recalled: str | None = None
        self._fragment: Fragment | None = None
        self._refused: Fragment | None = None

        self.prompt = PromptArea(id="prompt")
        self._queue = MessageQueue()
        self._completions = CompletionList(id="completions")

    def compose(self) -> ComposeResult:
        yield self._queue
        yield self._completions
        with Horizontal(id="prompt-row"):
            yield Label("❯", id="prompt-mark", markup=False)
            yield self.prompt
        yield HistorySearch()

    def on_mount(self) -> None:
        self.prompt.placeholder = HINT

    # -- for the screen ----------------------------------------------------------------------------------------------

    @property
    def history(self) -> PromptHistory:
        """Earlier messages; assign one with a file to keep them over sessions."""
        return self._history

    @history.setter
    def history(self, history: PromptHistory) -> None:
        self._history = history
        self._cursor = HistoryCursor(history)

    @property
    def text(self) -> str:
        """What stands in the prompt, pastes unfolded."""
        return self.prompt.full_text

    @property
    def is_empty(self) -> bool:
        return self.prompt.is_empty

    @property
    def queued(self) -> tuple[str, ...]:
        return self._queue.texts

    def fill(self, text: str) -> None:
        """Put a text into the prompt, in place of what is there."""
        self.prompt.fill(text)

    def wait(self) -> None:
        """Queue messages without saying so: nothing runs yet, but soon somebody will be there to take them."""
        self.busy = True
        self.prompt.placeholder = HINT

    def adopt(self, other: Composer) -> None:
        """Go on where another composer stopped, which is no longer used."""
        self.prompt.adopt(other.prompt)
        for text in other.queued:
            self._queue.append(text)
        self._history.entries.extend(other._history.entries)

    def take_queued(self) -> str | None:
        """Take the oldest queued message out of the queue."""
        return self._queue.pop()

    def focus(self, scroll_visible: bool = True) -> Composer:
        self.prompt.focus(scroll_visible)
        return self

    # -- state -------------------------------------------------------------------------------------------------------

    def watch_busy(self, busy: bool) -> None:
        self.prompt.placeholder = HINT_BUSY if busy else HINT
        # A class of the composer's own would have everything in it styled anew, 7 ms before an answer is seen.
        self.query_one("#prompt-mark").set_class(busy, "-busy")

    def watch_new_below(self, count: int) -> None:
        self.border_title = f"↓ {count} new" if count else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "complete":
                return self._can_complete or self._fragment_here() is not None
            case "close_completion":
                return self._can_complete
            case "key_sheet":
                return self._is_blank
            case "clear":
                return not self._is_blank and not self.busy
        return True

    @on(TextArea.Changed)
    def _text_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self.last_key_at = monotonic()
        self._is_blank = self.prompt.is_empty
        if self._cursor.is_walking and self.prompt.text != self._recalled:
            self._cursor.reset()
        first = self.prompt.document.get_line(0)
        self.query_one("#prompt-mark", Label).update("!" if first.startswith(("!", "%%")) else "❯")
        self._look_for_fragment()

    @on(TextArea.SelectionChanged)
    def _cursor_moved(self, event: TextArea.SelectionChanged) -> None:
        event.stop()
        self._look_for_fragment()

    # -- sending -----------------------------------------------------------------------------------------------------

    def action_submit(self) -> None:
        """Take the suggestion, unfold the paste under the cursor, or send."""
        if self._enter_completes():
            self.action_complete()
            return
        if self.prompt.selection.is_empty and self.prompt.unfold_chip(self.prompt.cursor_location):
            return
        text = self.text
        if text.strip():
            self._cursor.reset()
            self._history.add(text)
            self.prompt.load_text("")
            self.send(text)
        elif not self.busy and (waiting := self.take_queued()) is not None:
            self.send(waiting)

    def send(self, text: str) -> None:
        """As if the user had typed and sent it."""
        if self.busy:
            self._queue.append(text)
        else:
            self.post_message(self.Submitted(self, text))

    @on(MessageQueue.TakeBack)
    def _take_back(self, event: MessageQueue.TakeBack) -> None:
        event.stop()
        if (text := self._queue.pop(event.index)) is not None:
            if not self.is_empty:
                self._history.add(self.text)
            self.fill(text)
            self.focus()

    def action_clear(self) -> None:
        self._history.add(self.text)
        self._cursor.reset()
        self.prompt.load_text("")

    async def action_end(self) -> None:
        if self.is_empty:
            await self.app.run_action("quit")
        else:
            self.prompt.action_delete_right()

    async def action_key_sheet(self) -> None:
        await self.app.run_action("key_sheet")

    # -- history -----------------------------------------------------------------------------------------------------

    def action_up(self) -> None:
        if self._completions.is_open:
            self._completions.move(-1)
        elif self.prompt.cursor_at_first_line:
            self._recall_earlier()
        else:
            self.prompt.action_cursor_up()

    def action_down(self) -> None:
        if self._completions.is_open:
            self._completions.move(1)
        elif not self.prompt.cursor_at_last_line:
            self.prompt.action_cursor_down()
        elif (text := self._cursor.following()) is not None:
            self._recall(text)

    def _recall_earlier(self) -> None:
        waiting = self._queue
        if waiting.texts and self.is_empty:
            self.fill(waiting.pop(-1) or "")
        elif (text := self._cursor.previous(self.text)) is not None:
            self._recall(text)

    def _recall(self, text: str) -> None:
        self.prompt.fill(text)
        self._recalled = self.prompt.text

    def action_search(self) -> None:
        self.add_class("-searching")
        self.query_one(HistorySearch).open(self._history, self.text if len(self.text) < 80 else "")

    @on(HistorySearch.Closed)
    def _search_closed(self, event: HistorySearch.Closed) -> None:
        event.stop()
        self.remove_class("-searching")
        if event.text is not None:
            self.prompt.fill(event.text)
        self.prompt.focus()

    # -- completion --------------------------------------------------------------------------------------------------

    def _fragment_here(self) -> Fragment | None:
        if not self.prompt.selection.is_empty:
            return None
        row, column = self.prompt.cursor_location
        return fragment_before(self.prompt.document.get_line(row)[:column], is_first=row == 0)

    def _look_for_fragment(self) -> None:
        fragment = self._fragment_here()
        if fragment is None or fragment == self._refused:
            self._offer(None, [])
            return
        self._refused = None
        if fragment.kind is Kind.COMMAND:
            self._offer(fragment, self.completer.commands_like(fragment.typed))
        else:
            self._find(fragment)

    @work(exclusive=True, group="completion", exit_on_error=False)
    async def _find(self, fragment: Fragment) -> None:
        self._offer(fragment, await self.completer.files(fragment.typed))

    def _offer(self, fragment: Fragment | None, items: Sequence[Completion]) -> None:
        if fragment is None:
            self.workers.cancel_group(self, "completion")
        self._fragment = fragment
        self._completions.offer(items)
        self._can_complete = bool(items)

    def _enter_completes(self) -> bool:
        """Enter takes the suggestion unless it is already written out."""
        choice = self._completions.choice
        if choice is None or self._fragment is None or self._fragment != self._fragment_here():
            return False
        row, column = self.prompt.cursor_location
        return self.prompt.document.get_line(row)[self._fragment.start : column] != choice.text

    @on(CompletionList.Chosen)
    def _suggestion_clicked(self, event: CompletionList.Chosen) -> None:
        event.stop()
        self._insert(event.completion)

    def action_complete(self) -> None:
        """Take the suggestion. Where there is none yet, nothing happens; the focus stays, for sure."""
        if self._fragment != self._fragment_here():
            self._look_for_fragment()
        if (choice := self._completions.choice) is not None:
            self._insert(choice)

    def _insert(self, completion: Completion) -> None:
        if self._fragment is None:
            return
        row, column = self.prompt.cursor_location
        ends = "" if completion.text.endswith("/") else " "
        start = (row, self._fragment.start)
        result = self.prompt.replace(completion.text + ends, start, (row, column))
        self.prompt.move_cursor(result.end_location)
        self.prompt.focus()

    def action_close_completion(self) -> None:
        self._refused = self._fragment
        self._offer(None, [])

    # -- editor ------------------------------------------------------------------------------------------------------

    def action_edit_outside(self) -> None:
        self._edit_outside()

    @work(exclusive=True, group="editor", exit_on_error=False)
    async def _edit_outside(self) -> None:
        try:
            edited = await edit_text(self.app, self.text)
        except NoEditor as error:
            self.notify(str(error), severity="warning", markup=False)
            return
        if edited is not None:
            self.fill(edited)
