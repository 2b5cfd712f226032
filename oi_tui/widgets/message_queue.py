"""Messages typed while a turn runs, shown above the prompt until their turn comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from oi_tui.rendering.sanitise import sanitise_line
from oi_tui.widgets.component_style import component_style


class MessageQueue(Widget):
    """One row per waiting message, oldest first. A click takes one back into the prompt, a click on × drops it."""

    DEFAULT_CSS = """
    MessageQueue {
        display: none;
        height: auto;
        max-height: 4;
        color: $text-quiet;
        &.-waiting { display: block; }
        & .message-queue--hint { color: $text-faint; }
        &:ansi { text-style: dim; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"message-queue--hint"}
    ALLOW_SELECT = False
    MOST_SHOWN = 4

    @dataclass
    class TakeBack(Message):
        """A waiting message was clicked: it should go back into the prompt."""

        message_queue: MessageQueue
        index: int

        @property
        def control(self) -> MessageQueue:
            return self.message_queue

    texts: reactive[tuple[str, ...]] = reactive((), layout=True)

    def append(self, text: str) -> None:
        self.texts = (*self.texts, text)

    def pop(self, index: int = 0) -> str | None:
        """Take a message out of the queue; None when there is none."""
        texts = list(self.texts)
        if not texts:
            return None
        text = texts.pop(index)
        self.texts = tuple(texts)
        return text

    def watch_texts(self, texts: tuple[str, ...]) -> None:
        self.set_class(bool(texts), "-waiting")

    def render(self) -> Content:
        hint = component_style(self, "message-queue--hint")
        width = self.content_size.width
        rows = []
        for text in self._shown:
            label = sanitise_line(text, max(1, width - 14))
            row = Content.assemble(("queued  ", hint), label)
            rows.append(row.pad_right(max(1, width - row.cell_length - 2)) + Content("× "))
        if hidden := len(self.texts) - len(rows):
            rows.append(Content.assemble((f"        and {hidden} more", hint)))
        return Content("\n").join(rows)

    @property
    def _shown(self) -> tuple[str, ...]:
        return self.texts if len(self.texts) <= self.MOST_SHOWN else self.texts[: self.MOST_SHOWN - 1]

    def on_click(self, event: events.Click) -> None:
        event.stop()
        if event.y >= len(self._shown):
            return
        if event.x >= self.content_size.width - 3:
            self.pop(event.y)
        else:
            self.post_message(self.TakeBack(self, event.y))
