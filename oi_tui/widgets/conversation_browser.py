"""The list of conversations: one row each, or two where words were found in them. Draws only the rows in view."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from oi_tui.engine.store.reading import ConversationInfo
from oi_tui.rendering.sanitise import sanitise_line


class Entry(NamedTuple):
    """A row of the list: a conversation, and where something was found in it the message and the line."""

    conversation: ConversationInfo
    message: str | None = None
    line: str = ""


class ConversationBrowser(ScrollView, can_focus=True):
    """Shows `entries`; the cursor is moved with keys or clicks."""

    DEFAULT_CSS = """
    ConversationBrowser {
        height: 1fr;
        overflow: hidden auto;
        scrollbar-size-vertical: 1;
        & .browser--title { color: $foreground; }
        & .browser--quiet { color: $text-quiet; }
        & .browser--found { color: $accent; }
        & .browser--cursor { background: $accent 25%; }
        &:ansi .browser--cursor { text-style: reverse; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"browser--title", "browser--quiet", "browser--found", "browser--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Up", show=False),
        Binding("down", "move(1)", "Down", show=False),
        Binding("enter", "choose", "Open", show=False),
    ]
    ALLOW_SELECT = False

    @dataclass
    class Moved(Message):
        """The cursor is on another entry; None: the list is empty."""

        entry: Entry | None

    @dataclass
    class Chosen(Message):
        """The user wants this entry."""

        entry: Entry

    cursor: reactive[int] = reactive(0, always_update=True)

    def __init__(self) -> None:
        super().__init__()
        self._entries: Sequence[Entry] = ()
        self._rows_each = 1

    @property
    def entries(self) -> Sequence[Entry]:
        return self._entries

    @property
    def entry(self) -> Entry | None:
        """What the cursor is on."""
        return self._entries[self.cursor] if 0 <= self.cursor < len(self._entries) else None

    def show(self, entries: Sequence[Entry], *, keep: str | None = None) -> None:
        """Show these. `keep`: the id of the conversation that the cursor should stay on."""
        self._entries = entries
        self._rows_each = 2 if any(entry.line for entry in entries[:1]) else 1
        self.virtual_size = Size(max(1, self.size.width), len(entries) * self._rows_each)
        places = (i for i, entry in enumerate(entries) if keep is not None and entry.conversation.id == keep)
        self.cursor = next(places, 0)
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        self.virtual_size = Size(max(1, event.size.width), len(self._entries) * self._rows_each)

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, len(self._entries) - 1))

    def watch_cursor(self) -> None:
        self.scroll_to_region(
            Region(0, self.cursor * self._rows_each, 1, self._rows_each), animate=False, force=True, immediate=True
        )
        self.refresh()
        self.post_message(self.Moved(self.entry))

    def action_move(self, step: int) -> None:
        self.cursor += step

    def page(self, direction: int) -> None:
        """Move by a screenful."""
        self.cursor += direction * max(1, self.size.height // self._rows_each - 1)

    def action_choose(self) -> None:
        if self.entry is not None:
            self.post_message(self.Chosen(self.entry))

    def on_click(self, event: events.Click) -> None:
        event.stop()
        row = (event.y + self.scroll_offset.y) // self._rows_each
        if row >= len(self._entries):
            return
        if row == self.cursor and event.chain > 1:
            self.action_choose()
        self.cursor = row

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        number, part = divmod(y + self.scroll_offset.y, self._rows_each)
        if number >= len(self._entries) or width < 1:
            return Strip.blank(width, self.rich_style)
        entry = self._entries[number]
        segments = self._found(entry, width) if part else self._row(entry.conversation, width)
        strip = Strip(
            [Segment(text, self.get_component_rich_style(f"browser--{kind}", partial=True)) for text, kind in segments]
        )
        style = self.rich_style
        if number == self.cursor:
            style += self.get_component_rich_style("browser--cursor", partial=True)
        return strip.adjust_cell_length(width).apply_style(style)

    def _row(self, info: ConversationInfo, width: int) -> list[tuple[str, str]]:
        about = f"{when(info.changed):>12} "
        if width >= 70:
            about = f"{short_model(info.model)}  {info.messages:>4} msgs  {readable_size(info.size):>7}  {about}"
        room = max(1, width - cell_len(about) - 3)
        mark = "⌂ " if info.archived else "  "
        title = sanitise_line(info.title, 300)
        if cell_len(title) > room:
            title = set_cell_size(title, room - 1) + "…"
        return [(mark, "quiet"), (set_cell_size(title, room) + " ", "title"), (about, "quiet")]

    def _found(self, entry: Entry, width: int) -> list[tuple[str, str]]:
        return [("    ", "quiet"), (set_cell_size(sanitise_line(entry.line, 400), max(1, width - 5)), "found")]


def short_model(model: str) -> str:
    """The name without its provider, cut to a column."""
    name = sanitise_line(model.rpartition("/")[2], 40)
    return set_cell_size(name, 16)


def readable_size(count: int) -> str:
    """ "12 kB"."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.0f} kB" if count < 1_000_000 else f"{count / 1e6:.1f} MB"


def when(at: float, now: float | None = None) -> str:
    """A time in words that fit a column: 14:05 today, "3 Mar" this year, "3 Mar 2024" before."""
    try:
        then, today = time.localtime(at), time.localtime(now)
    except (OverflowError, ValueError, OSError):
        return "?"
    if (then.tm_year, then.tm_yday) == (today.tm_year, today.tm_yday):
        return time.strftime("%H:%M", then)
    day = f"{then.tm_mday} {time.strftime('%b', then)}"
    return day if then.tm_year == today.tm_year else f"{day} {then.tm_year}"
