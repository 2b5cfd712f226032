"""The bar under the code that waits or runs: the one place where code is approved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from time import monotonic
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.style import Style
from textual.widget import Widget

from oi_tui.engine.scopes import Scope
from oi_tui.widgets.click_guard import ClickGuard

QUIET_TIME = 0.75
"""Seconds during which keys are ignored after the bar has taken the focus by itself, and after code was shown that has
not been read. Longer than any keyboard waits before it repeats a key that is held down."""
TYPING_PAUSE = 1.0
"""Seconds without a keystroke before a bar that took the focus by itself listens."""
ARRIVAL_TIME = 0.25
"""Seconds during which nothing runs after the user has come to the bar with a key."""
BURST = 0.025
"""Seconds between keys that only a paste can keep; `y` waits this long for a second key before it counts."""
SWALLOW_ENTER = 1.0
"""Seconds after `y` in which Enter means nothing: hands that type "y, Enter" must not send a prompt."""
_HARMLESS = frozenset({"edit", "decline", "allow", "diff", "revert", "restore_edit", "external_editor"})
"""Actions that may follow at once on a key that brought the user here: nothing runs by them."""


class BarMode(StrEnum):
    WAITING = auto()
    EDITING = auto()
    SCOPES = auto()
    RUNNING = auto()


Hint = tuple[str, str, str]
"""Key as written, what it does, the action to run on a click."""

_HINTS: dict[BarMode, Sequence[Hint]] = {
    BarMode.WAITING: (
        ("y", "run", "run"),
        ("e", "edit", "edit"),
        ("n", "no", "decline"),
        ("esc", "instead…", "instead"),
        ("a", "allow…", "allow"),
        ("d", "my diff", "diff"),
        ("u", "original", "revert"),
        ("^G", "$EDITOR", "external_editor"),
    ),
    BarMode.EDITING: (("esc", "done", "stop_editing"), ("F5", "run", "run_now"), ("^Z", "undo", "")),
    BarMode.SCOPES: (
        ("1", "this very code", "scope('this_code')"),
        ("2", "all {language}", "scope('language')"),
        ("3", "everything", "scope('everything')"),
        ("esc", "back", "instead"),
    ),
    BarMode.RUNNING: (("esc", "interrupt", "interrupt"), ("tab", "answer", "answer")),
}


class RunBar(Widget, can_focus=True):
    """Run, edit or decline the code above. Listens to letters only while it has the focus."""

    DEFAULT_CSS = """
    RunBar {
        height: 1;
        color: $text-quiet;
        & .run-bar--rail { color: $rail-active; }
        & .run-bar--key { color: $accent; text-style: bold; }
        & .run-bar--label { color: $text-quiet; }
        & .run-bar--warning { color: $caution; }
        &:focus .run-bar--label { color: $foreground; }
        &:ansi .run-bar--label { text-style: dim; }
        &:ansi:focus .run-bar--label { text-style: none; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"run-bar--rail", "run-bar--key", "run-bar--label", "run-bar--warning"}
    ALLOW_SELECT = False

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "run", "Run", tooltip="Run exactly this code.", id="code.run"),
        Binding("f5,ctrl+enter", "run_now", "Run", show=False, tooltip="Run exactly this code.", id="code.run-now"),
        Binding("e,enter,up,down,left,right", "edit", "Edit", tooltip="Edit the code here.", id="code.edit"),
        Binding("n", "decline", "No", tooltip="Do not run it, and stop.", id="code.decline"),
        Binding("escape", "instead", "Instead…", tooltip="Do not run it; say what to do instead.", id="code.instead"),
        Binding("a", "allow", "Allow…", tooltip="Choose what runs without asking from now on.", id="code.allow"),
        Binding("d", "diff", "Diff", show=False, tooltip="Show what you changed.", id="code.diff"),
        Binding("u", "revert", "Original", show=False, tooltip="To the model's code, and back.", id="code.revert"),
        Binding("ctrl+z", "restore_edit", "Your edit", show=False, tooltip="Undo u.", id="code.restore-edit"),
        Binding(
            "ctrl+g", "external_editor", "$EDITOR", show=False, tooltip="Edit in $EDITOR.", id="code.external-editor"
        ),
        Binding("1", "scope('this_code')", "This very code", show=False, id="code.scope-code"),
        Binding("2", "scope('language')", "This language", show=False, id="code.scope-language"),
        Binding("3", "scope('everything')", "Everything", show=False, id="code.scope-everything"),
    ]

    mode: reactive[BarMode] = reactive(BarMode.WAITING, bindings=True)
    is_edited: reactive[bool] = reactive(False, bindings=True)
    has_reverted: reactive[bool] = reactive(False, bindings=True)
    """The model's version stands in the place of an edit that can come back."""
    lines_more: reactive[int] = reactive(0)
    """Lines of the code that have not been on the screen."""
    language: reactive[str] = reactive("")
    is_asking_input: reactive[bool] = reactive(False)
    """Running code waits for a line."""
    is_answering: reactive[bool] = reactive(False)
    """The user is writing that line."""
    remark: reactive[str] = reactive("")
    """A few words at the right end."""

    @dataclass
    class Asked(Message):
        """Something was asked for with a key or a click; the subclasses say what."""

        run_bar: RunBar

        @property
        def control(self) -> RunBar:
            return self.run_bar

    class RunRequested(Asked):
        """Run exactly the code above."""

    class Declined(Asked):
        """Do not run it."""

    class InsteadRequested(Asked):
        """Do not run it; the user will say what to do instead."""

    class EditRequested(Asked):
        """Edit the code in place."""

    class EditEnded(Asked):
        """Editing is over."""

    class ExternalEditRequested(Asked):
        """Edit the code in `$EDITOR`."""

    class RevertRequested(Asked):
        """Go back to the model's code."""

    class RestoreRequested(Asked):
        """Bring back the edit from before going back to the model's version."""

    class DiffRequested(Asked):
        """Show the user's changes, or the code again."""

    class InterruptRequested(Asked):
        """Interrupt the running code."""

    class AnswerRequested(Asked):
        """Go to the input field."""

    @dataclass
    class ScopeChosen(Asked):
        """From now on, code like this runs without asking. This block still waits."""

        scope: Scope

    @dataclass
    class TypedElsewhere(Message):
        """A printable key that means nothing here: it was meant for the prompt."""

        character: str

    def __init__(self, *, clock: Callable[[], float] = monotonic, id: str | None = None) -> None:
        super().__init__(id=id)
        self._clock = clock
        self._armed_at = 0.0
        self._pause = TYPING_PAUSE  # how long it must be quiet before keys count
        self._guards_all = True  # while keys are ignored: all of them, or only those that run or leave
        self._ran_at = float("-inf")
        self._held: str | None = None  # the key that ran the code, as long as it may be held down
        self._held_until = float("-inf")
        self._click_guard = ClickGuard(clock)
        self._last_key = float("-inf")
        self._last_key_name: str | None = None
        self._single_at = 0.0  # the last key that came alone, and the last one that did not
        self._burst_at = -1.0
        self._targets: list[tuple[int, int, str]] = []

    def on_mount(self) -> None:
        self.watch(self.app, "app_focus", self._click_guard.window_focused, init=False)

    def on_hide(self, event: events.Hide) -> None:
        """Out of view is not gone: the focus stays."""
        event.prevent_default()

    # -- guards ------------------------------------------------------------------------------------------------------

    def take_focus(self, last_keystroke: float) -> None:
        """Take the focus although nobody asked for it: be deaf for a moment. `last_keystroke` is on the clock."""
        self._pause, self._guards_all = TYPING_PAUSE, True
        self._arm(max(self._clock() + QUIET_TIME, last_keystroke + TYPING_PAUSE))
        self.focus(scroll_visible=False)

    def listen(self) -> None:
        """Take the focus because the user came here: listen soon."""
        self._pause, self._guards_all = ARRIVAL_TIME, False
        self._arm(self._clock() + ARRIVAL_TIME)
        self.focus(scroll_visible=False)

    def pause(self) -> None:
        """More code has come into view instead of running: the next decision takes a key that is pressed anew."""
        self._pause, self._guards_all = QUIET_TIME, False
        self._held = None
        self._arm(self._clock() + QUIET_TIME)

    @property
    def is_armed(self) -> bool:
        """False while keys are ignored."""
        return self._clock() >= self._armed_at

    def _arm(self, at: float) -> None:
        self._armed_at = at
        self.refresh()
        self.set_timer(max(0.0, at - self._clock()) + 0.01, self.refresh)

    async def on_key(self, event: events.Key) -> None:
        now = self._clock()
        is_burst = now - self._last_key < BURST
        self._last_key, self._last_key_name = now, event.key
        if is_burst:
            self._burst_at = now
        else:
            self._single_at = now
        if event.key == "enter" and now - self._ran_at < SWALLOW_ENTER:
            self._swallow(event)
        elif event.key == self._held and now < self._held_until:
            self._held_until = now + QUIET_TIME
            self._swallow(event)
        elif self.mode is BarMode.RUNNING:
            if event.is_printable and event.character is not None:
                self._swallow(event)
                self.post_message(self.TypedElsewhere(event.character))
        elif not self.is_armed and (self._guards_all or not self._is_harmless(event.key)):
            self._swallow(event)
            self._arm(max(self._armed_at, now + self._pause))
        elif is_burst and event.key != "escape":
            self._swallow(event)

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        self._last_key = self._clock()

    def _is_harmless(self, key: str) -> bool:
        """True for letters by which nothing runs. Not for keys that also end or leave something, and may repeat."""
        if len(key) > 1 and key != "ctrl+z":
            return False
        for node, bindings in self.screen._binding_chain:
            if node is self:
                return any(binding.action in _HARMLESS for binding in bindings.key_to_bindings.get(key, ()))
        return False

    def _swallow(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()

    # -- actions -----------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        mode = self.mode
        if action == "instead":
            return mode in (BarMode.WAITING, BarMode.SCOPES)
        if action == "scope":
            return mode is BarMode.SCOPES
        if action == "run_now":
            return mode in (BarMode.WAITING, BarMode.EDITING)
        if action == "diff":
            return mode is BarMode.WAITING and self.is_edited
        if action == "revert":
            return mode is BarMode.WAITING and (self.is_edited or self.has_reverted)
        if action == "restore_edit":
            return mode is BarMode.WAITING and self.has_reverted
        if action in ("run", "edit", "decline", "allow", "external_editor"):
            return mode is BarMode.WAITING
        return True

    def action_run(self) -> None:
        """`y`: counts when no second key follows at once, for then it was a paste and not a decision."""
        self.set_timer(BURST, self._run_unless_pasted)

    def _run_unless_pasted(self) -> None:
        if self._burst_at < self._single_at:
            self._run()

    def action_run_now(self) -> None:
        self._run()

    def _run(self) -> None:
        if self.mode in (BarMode.WAITING, BarMode.EDITING):
            self._ran_at = self._clock()
            self._held, self._held_until = self._last_key_name, self._ran_at + QUIET_TIME
            self.post_message(self.RunRequested(self))

    def action_edit(self) -> None:
        self.post_message(self.EditRequested(self))

    def action_stop_editing(self) -> None:
        self.post_message(self.EditEnded(self))

    def action_decline(self) -> None:
        self.post_message(self.Declined(self))

    def action_instead(self) -> None:
        if self.mode is BarMode.SCOPES:
            self.mode = BarMode.WAITING
        else:
            self.post_message(self.InsteadRequested(self))

    def action_allow(self) -> None:
        self.mode = BarMode.SCOPES

    def action_scope(self, scope: str) -> None:
        self.mode = BarMode.WAITING
        self.post_message(self.ScopeChosen(self, Scope(scope)))

    def action_diff(self) -> None:
        self.post_message(self.DiffRequested(self))

    def action_revert(self) -> None:
        self.post_message(self.RevertRequested(self))

    def action_restore_edit(self) -> None:
        self.post_message(self.RestoreRequested(self))

    def action_external_editor(self) -> None:
        self.post_message(self.ExternalEditRequested(self))

    def action_interrupt(self) -> None:
        self.post_message(self.InterruptRequested(self))

    def action_answer(self) -> None:
        self.post_message(self.AnswerRequested(self))

    async def on_click(self, event: events.Click) -> None:
        """A click on a hint does what its key does; never the click that gave the window its focus."""
        event.stop()
        if self._click_guard.allows() and self.is_armed:
            for start, end, action in self._targets:
                if start <= event.x < end and action:
                    await self.run_action(action)
                    return

    # -- drawing -----------------------------------------------------------------------------------------------------

    def hints(self) -> list[Hint]:
        """What can be done now, most important first."""
        if self.mode is BarMode.RUNNING and self.is_answering:
            return [("enter", "answer", ""), ("esc", "interrupt", "interrupt")]
        hints = [(key, label.format(language=self.language), action) for key, label, action in _HINTS[self.mode]]
        if not self.is_edited:
            hints = [hint for hint in hints if hint[2] not in ("diff", "revert")]
        if self.has_reverted and self.mode is BarMode.WAITING:
            hints.insert(3, ("u", "my edit", "revert"))
        if not self.is_asking_input:
            hints = [hint for hint in hints if hint[2] != "answer"]
        return hints

    def render(self) -> Content:
        rail, key_style, label_style = self._style("rail"), self._style("key"), self._style("label")
        if self.mode in (BarMode.WAITING, BarMode.SCOPES) and not (self.has_focus and self.is_armed):
            key_style = label_style
        width = self.size.width
        remark = self._remark()
        room = width - 5 - (len(remark) + 2 if remark else 0)
        content = Content.styled("╰ ", rail)
        if self.mode is BarMode.SCOPES:
            content += Content.styled("allow ", label_style)
        self._targets = []
        for key, label, action in self.hints():
            hint = Content.assemble((key, key_style), (f" {label}", label_style))
            if content.cell_length + hint.cell_length > room:
                break
            self._targets.append((content.cell_length, content.cell_length + hint.cell_length, action))
            content += hint + Content("  ")
        content = content[:-1] if self._targets else content
        end = Content.assemble((f" {remark} ", self._style("warning")) if remark else "", ("─╯", rail))
        fill = max(0, width - content.cell_length - end.cell_length)
        return content + Content.styled("─" * fill, rail) + end

    def _remark(self) -> str:
        if self.mode is not BarMode.WAITING:
            return self.remark
        more = f"{self.lines_more} line{'s' if self.lines_more != 1 else ''} more" if self.lines_more else ""
        if self.has_focus:
            return f"{more}: y goes on" if more else self.remark
        return f"{more}, tab to decide" if more else self.remark or "tab to decide"

    def _style(self, name: str) -> Style:
        return self.get_visual_style(f"run-bar--{name}", partial=True)
