"""What could be meant: a short list above the prompt, for files after `@` and commands after `%`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from oi_tui.completer import MOST, Completion
from oi_tui.rendering.sanitise import sanitise_line
from oi_tui.widgets.component_style import component_style

_FILE = re.compile(r"(?:^|(?<=[\s(\[{\"'`,;:=]))@(\"[^\"\n]*|[^\s\"@]*)$")
_COMMAND = re.compile(r"^%(\w*)$")


class Kind(Enum):
    FILE = auto()
    COMMAND = auto()


@dataclass(frozen=True, slots=True)
class Fragment:
    """What is being typed and could be completed: from `start` to the cursor, in its line."""

    kind: Kind
    start: int
    typed: str
    """Without the `@` or `%` and without an opening quote."""


def fragment_before(line: str, *, is_first: bool) -> Fragment | None:
    """The completable fragment that ends this piece of a line, if there is one."""
    if is_first and (found := _COMMAND.match(line)):
        return Fragment(Kind.COMMAND, 0, found[1])
    if found := _FILE.search(line):
        return Fragment(Kind.FILE, found.start(), found[1].removeprefix('"'))
    return None


class CompletionList(Widget):
    """At most eight candidates, one highlighted. Shown while `items` is not empty; keys come from the prompt."""

    DEFAULT_CSS = """
    CompletionList {
        display: none;
        overlay: screen;
        constrain: inside none;
        width: auto;
        min-width: 24;
        max-width: 90%;
        height: auto;
        max-height: 8;
        text-wrap: nowrap;
        background: $block-raised;
        color: $foreground;
        &.-open { display: block; }
        & .completion-list--highlight {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
        }
        & .completion-list--hint { color: $text-quiet; }
        &:ansi .completion-list--hint { text-style: dim; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"completion-list--highlight", "completion-list--hint"}
    ALLOW_SELECT = False
    MOST = MOST

    @dataclass
    class Chosen(Message):
        """A candidate was clicked."""

        completion_list: CompletionList
        completion: Completion

        @property
        def control(self) -> CompletionList:
            return self.completion_list

    items: reactive[tuple[Completion, ...]] = reactive((), layout=True)
    highlighted: reactive[int] = reactive(0)

    @property
    def is_open(self) -> bool:
        return bool(self.items)

    @property
    def choice(self) -> Completion | None:
        return self.items[self.highlighted] if self.items else None

    def offer(self, items: Sequence[Completion]) -> None:
        """Show these candidates, best first."""
        self.highlighted = 0
        self.items = tuple(items[: self.MOST])

    def close(self) -> None:
        self.items = ()

    def move(self, step: int) -> None:
        """Move the highlight, round the ends."""
        if self.items:
            self.highlighted = (self.highlighted + step) % len(self.items)

    def watch_items(self, items: tuple[Completion, ...]) -> None:
        self.set_class(bool(items), "-open")
        self.styles.offset = (0, -len(items))  # it grows upwards from where it stands

    def render(self) -> Content:
        highlight = component_style(self, "completion-list--highlight")
        hint = component_style(self, "completion-list--hint")
        width = max((self._label(item).cell_length for item in self.items), default=0)
        rows = []
        for index, item in enumerate(self.items):
            label = self._label(item).pad_right(width - self._label(item).cell_length)
            row = Content.assemble(" ", label, "  ", (sanitise_line(item.hint, 60), hint), " ")
            if index == self.highlighted:
                row = row.extend_right(max(0, self.size.width - row.cell_length)).stylize(highlight)
            rows.append(row)
        return Content("\n").join(rows)

    @staticmethod
    def _label(item: Completion) -> Content:
        return Content(sanitise_line(item.label, 70))

    def on_click(self, event: events.Click) -> None:
        event.stop()
        if event.y < len(self.items):
            self.post_message(self.Chosen(self, self.items[event.y]))
