"""Conversations: the list, words in them, a preview, and what can be done with one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, Label, Static

from oi_tui.engine.errors import EngineError
from oi_tui.engine.store.reading import ConversationInfo
from oi_tui.engine.store.store import Store
from oi_tui.rendering.sanitise import sanitise, sanitise_line
from oi_tui.widgets.conversation_browser import ConversationBrowser, Entry, readable_size, when

TITLES = "Filter titles; / or Tab looks in every word"
WORDS = "Words in prompts, answers, code and outputs; Tab goes back to titles"
_FIRST = 200
"""Conversations that are read before the first paint."""
_WRITTEN_PATIENCE = 3.0
_PREVIEW_AFTER = 0.2


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen: the conversation, and the message to jump to."""

    conversation: str
    message: str | None = None


class ConversationsScreen(Screen[Choice | None]):
    """Enter goes on with a conversation; Esc goes back to the present one."""

    DEFAULT_CSS = """
    ConversationsScreen {
        & #browser-heading { height: 1; padding: 0 1; color: $text-quiet; }
        & #browser-line {
            height: 1;
            padding: 0 1;
            & Label { width: auto; color: $accent; padding-right: 1; }
            & Input { border: none; padding: 0; height: 1; width: 1fr; background: transparent; }
        }
        & #browser-panes { height: 1fr; padding: 1 0; }
        & #browser-preview { width: 45%; padding: 0 2; border-left: solid $rail; display: none; }
        &.-wide #browser-preview { display: block; }
        & #browser-said { height: auto; max-height: 3; padding: 0 1; color: $caution; }
        & #browser-keys { height: 1; padding: 0 1; color: $text-quiet; }
    }
    """
    AUTO_FOCUS = "#browser-line Input"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape,ctrl+s,f3", "back", "back", tooltip="Back to the conversation.", id="browser.back", priority=True
        ),
        Binding("up", "move(-1)", "up", show=False, id="browser.up", priority=True),
        Binding("down", "move(1)", "down", show=False, id="browser.down", priority=True),
        Binding("pageup", "page(-1)", "page up", show=False, id="browser.page-up", priority=True),
        Binding("pagedown", "page(1)", "page down", show=False, id="browser.page-down", priority=True),
        Binding("tab", "toggle_search", "words", tooltip="Titles, or every word.", id="browser.search", priority=True),
        Binding("f2", "rename", "rename", tooltip="Give it a title.", id="browser.rename", priority=True),
        Binding(
            "delete", "delete", "delete", tooltip="Delete it; ^Z brings it back.", id="browser.delete", priority=True
        ),
        Binding("ctrl+z", "undo", "undo", tooltip="Bring back what was deleted.", id="browser.undo", priority=True),
        Binding("f4", "archive", "archive", tooltip="Into the archive, or out.", id="browser.archive", priority=True),
        Binding(
            "f5", "show_archived", "archived", tooltip="Show the archive too.", id="browser.archived", priority=True
        ),
        Binding("f6", "fork", "fork", tooltip="A copy, to go on differently.", id="browser.fork", priority=True),
        Binding("f7", "export", "export", tooltip="Write it to a file.", id="browser.export", priority=True),
    ]

    def __init__(self, store: Store, *, current: str | None = None) -> None:
        super().__init__()
        self._store = store
        self._current = current
        self._all: list[ConversationInfo] = []
        self._every: list[Entry] = []
        self._titles: list[str] = []
        self._in_words = False
        self._with_archive = False
        self._editing = ""  # "rename" or "export" while the line is used for that
        self._filter = ""
        self._target: ConversationInfo | None = None
        self._replace: Path | None = None
        self._deleted: list[ConversationInfo] = []

    def compose(self) -> ComposeResult:
        yield Static("Conversations", id="browser-heading", markup=False)
        with Horizontal(id="browser-line"):
            yield Label("titles", markup=False)
            yield Input(placeholder=TITLES, compact=True, select_on_focus=False)
        with Horizontal(id="browser-panes"):
            yield ConversationBrowser()
            with VerticalScroll(id="browser-preview", can_focus=False), Vertical():
                yield Static("", id="browser-text", markup=False)
        yield Static("", id="browser-said", markup=False)
        yield Static(
            "enter go on  f2 rename  del delete  ^Z undo  f4 archive  f5 archived  f6 fork  f7 export  esc back",
            id="browser-keys",
            markup=False,
        )

    def on_mount(self) -> None:
        self.query_one(Input).cursor_blink = False
        self.set_class(self.app.size.width >= 100, "-wide")
        self._reload()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= 100, "-wide")

    @property
    def browser(self) -> ConversationBrowser:
        return self.query_one(ConversationBrowser)

    # -- the list ----------------------------------------------------------------------------------------------------

    def _reload(self, keep: str | None = None) -> None:
        """Read the list again: what fits the screen at once, the rest in a thread."""
        try:
            first = self._store.listing(archived=None if self._with_archive else False, limit=_FIRST)
            self._take(first, entries_of(first))
        except EngineError as error:
            self._say(str(error))
        self._show(keep or self._current)
        if len(self._all) == _FIRST:
            self._read_rest(keep)

    @work(exclusive=True, group="list", exit_on_error=False)
    async def _read_rest(self, keep: str | None) -> None:
        try:
            listed = await asyncio.to_thread(self._store.listing, archived=None if self._with_archive else False)
        except EngineError as error:
            self._say(str(error))
            return
        entry = self.browser.entry
        self._take(listed, await asyncio.to_thread(entries_of, listed))
        if not self._in_words:
            self._show(keep or (entry.conversation.id if entry is not None else None))

    def _take(self, listed: list[ConversationInfo], rows: tuple[list[Entry], list[str]]) -> None:
        self._all = listed
        self._every, self._titles = rows
        total = f"{len(listed):,}".replace(",", " ") + ("+" if len(listed) == _FIRST else "")
        self.query_one("#browser-heading", Static).update(f"Conversations · {total}")

    def _show(self, keep: str | None = None) -> None:
        if self._in_words:
            self._search(self._filter)
            return
        words = self._filter.casefold().split()
        if words:
            pairs = zip(self._every, self._titles, strict=True)
            found = [entry for entry, title in pairs if all(word in title for word in words)]
        else:
            found = self._every
        self._offer(found, keep)

    def _offer(self, entries: Sequence[Entry], keep: str | None = None) -> None:
        self.browser.show(entries, keep=keep)
        if not entries:
            self._say("Nothing found." if self._filter else "No conversation is stored yet.")
        else:
            self._say("")

    @work(exclusive=True, group="search", exit_on_error=False)
    async def _search(self, words: str) -> None:
        if not words.strip():
            self._offer(self._every)
            return
        try:
            hits = await asyncio.to_thread(self._store.search, words)
        except EngineError as error:
            self._say(str(error))
            return
        self._offer([Entry(hit.conversation, hit.message, hit.line or "…") for hit in hits])

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if self._editing:
            self._replace = None
            return
        if not self._in_words and event.value.startswith("/"):
            self._set_search(True)
            with event.input.prevent(Input.Changed):
                event.input.value = event.value[1:]
        self._filter = event.input.value
        self._show()

    def action_toggle_search(self) -> None:
        if not self._editing:
            self._set_search(not self._in_words)
            self._show()

    def _set_search(self, in_words: bool) -> None:
        self._in_words = in_words
        self.query_one("#browser-line Label", Label).update("words" if in_words else "titles")
        self.query_one(Input).placeholder = WORDS if in_words else TITLES

    # -- moving and choosing -----------------------------------------------------------------------------------------

    def action_move(self, step: int) -> None:
        self.browser.action_move(step)

    def action_page(self, direction: int) -> None:
        self.browser.page(direction)

    @on(ConversationBrowser.Moved)
    def _moved(self, event: ConversationBrowser.Moved) -> None:
        event.stop()
        if self.has_class("-wide"):
            self._preview(event.entry)

    @work(exclusive=True, group="preview", exit_on_error=False)
    async def _preview(self, entry: Entry | None) -> None:
        if entry is None:
            self.query_one("#browser-text", Static).update("")
            return
        await asyncio.sleep(_PREVIEW_AFTER)  # while the cursor runs through the list nothing is read
        try:
            rows = await asyncio.to_thread(self._store.preview, entry.conversation.id, around=entry.message)
        except EngineError as error:
            self._say(str(error))
            return
        self.query_one("#browser-text", Static).update(preview_of(entry, rows))
        self.query_one("#browser-preview").scroll_home(animate=False)

    @on(ConversationBrowser.Chosen)
    def _chosen(self, event: ConversationBrowser.Chosen) -> None:
        event.stop()
        self.dismiss(Choice(event.entry.conversation.id, event.entry.message))

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        if self._editing == "rename":
            self._rename_to(event.value)
        elif self._editing == "export":
            self._export_to(event.value)
        elif (entry := self.browser.entry) is not None:
            self.dismiss(Choice(entry.conversation.id, entry.message))

    def action_back(self) -> None:
        if self._editing:
            self._stop_editing()
        elif self._in_words or self._filter:
            self._set_search(False)
            self.query_one(Input).value = ""
            self._filter = ""
            self._show()
        else:
            self.dismiss(None)

    # -- what can be done --------------------------------------------------------------------------------------------

    def action_rename(self) -> None:
        if (entry := self.browser.entry) is not None:
            self._edit("rename", entry.conversation, entry.conversation.title)

    def action_export(self) -> None:
        if (entry := self.browser.entry) is not None:
            self._say("The ending says how: .md .ipynb .html .json .py .sh …")
            self._edit("export", entry.conversation, str(Path.home() / f"{file_stem(entry.conversation.title)}.ipynb"))

    def _edit(self, what: str, target: ConversationInfo, value: str) -> None:
        self._editing, self._target = what, target
        self.query_one("#browser-line Label", Label).update("title" if what == "rename" else "export to")
        line = self.query_one(Input)
        with line.prevent(Input.Changed):
            line.value = value
        line.cursor_position = len(value)

    def _stop_editing(self) -> None:
        self._editing, self._target, self._replace = "", None, None
        line = self.query_one(Input)
        with line.prevent(Input.Changed):
            line.value = self._filter
        self._set_search(self._in_words)

    @work(group="change", exit_on_error=False)
    async def _rename_to(self, title: str) -> None:
        target = self._target
        self._stop_editing()
        if target is not None and await self._written(self._store.rename(target.id, title)):
            self._reload(target.id)

    @work(group="change", exit_on_error=False)
    async def _export_to(self, written: str) -> None:
        from oi_tui.engine.exporters import PathExists, export, format_for

        target, path = self._target, as_path(written)
        if target is None or not written.strip():
            self._stop_editing()
            return
        try:
            stored = await asyncio.to_thread(self._store.load, target.id)
            await asyncio.to_thread(export, stored, format_for(path), path, force=self._replace == path)
        except PathExists as error:
            self._replace = path
            self._say(f"{error.what} Enter again replaces it.")
            return
        except EngineError as error:
            self._say(str(error))
            return
        self._stop_editing()
        self._say(f"Written: {path}")

    @work(group="change", exit_on_error=False)
    async def action_delete(self) -> None:
        entry = self.browser.entry
        if entry is None or self._editing:
            return
        if entry.conversation.id == self._current:
            self._say("This is the conversation you are in; begin another one first (^N).")
            return
        if await self._written(self._store.delete(entry.conversation.id)):
            self._deleted.append(entry.conversation)
            near = self._neighbour(entry.conversation.id)
            self._reload(near)
            self._say(f"Deleted “{sanitise_line(entry.conversation.title, 60)}”. ^Z brings it back.")

    def _neighbour(self, conversation: str) -> str | None:
        """The conversation below, or above, which the cursor goes to."""
        ids = [entry.conversation.id for entry in self.browser.entries]
        at = ids.index(conversation)
        return ids[at + 1] if at + 1 < len(ids) else ids[at - 1] if at else None

    @work(group="change", exit_on_error=False)
    async def action_undo(self) -> None:
        if self._deleted and await self._written(self._store.undelete(self._deleted[-1].id)):
            self._reload(self._deleted.pop().id)

    @work(group="change", exit_on_error=False)
    async def action_archive(self) -> None:
        entry = self.browser.entry
        if entry is None or self._editing:
            return
        archived = not entry.conversation.archived
        near = entry.conversation.id if self._with_archive else self._neighbour(entry.conversation.id)
        if await self._written(self._store.archive(entry.conversation.id, archived)):
            self._reload(near)
            self._say("Archived; F5 shows the archive." if archived else "Back in the list.")

    def action_show_archived(self) -> None:
        self._with_archive = not self._with_archive
        self._reload(self.browser.entry.conversation.id if self.browser.entry else None)

    @work(group="change", exit_on_error=False)
    async def action_fork(self) -> None:
        """A copy of the whole conversation, or up to the message that was found."""
        entry = self.browser.entry
        if entry is None or self._editing:
            return
        until = None
        if entry.message is not None:
            stored = await asyncio.to_thread(self._store.load, entry.conversation.id)
            places = [i for i, message in enumerate(stored.messages) if message.id == entry.message]
            until = places[0] + 1 if places else None
        new = self._store.fork(entry.conversation.id, until=until, title=f"{entry.conversation.title} (fork)")
        if await asyncio.to_thread(self._store.flush, _WRITTEN_PATIENCE):
            self._set_search(False)
            self._filter = self.query_one(Input).value = ""
            self._reload(new)
            self._say("A copy. Enter goes on with it.")
        else:
            self._say(self._store.fault or "It could not be written yet.")

    async def _written(self, done: Future[Any]) -> bool:
        """Wait for a change to be on the disk; says why when it is not."""
        future = asyncio.wrap_future(done)
        await asyncio.wait({future}, timeout=_WRITTEN_PATIENCE)
        if future.done() and future.exception() is None:
            return True
        self._say(self._store.fault or (str(future.exception()) if future.done() else "It could not be written yet."))
        return False

    def _say(self, text: str) -> None:
        self.query_one("#browser-said", Static).update(sanitise_line(text, 300))


def entries_of(listed: Sequence[ConversationInfo]) -> tuple[list[Entry], list[str]]:
    """Entries, and their titles as they are filtered."""
    return [Entry(info) for info in listed], [info.title.casefold() for info in listed]


def preview_of(entry: Entry, rows: Sequence[tuple[str, str, str, str]]) -> Content:
    """A conversation in a few lines."""
    info = entry.conversation
    cost = f" · ${info.cost:.2f}" if info.cost else ""
    parts: list[Content | str | tuple[str, str]] = [
        (sanitise_line(info.title, 200), "bold"),
        "\n",
        (f"{when(info.created)} – {when(info.changed)} · {sanitise_line(info.model, 60)}{cost}\n", "$text-quiet"),
        (f"{info.messages} messages · {readable_size(info.size)} · {sanitise_line(info.id, 20)}\n\n", "$text-quiet"),
    ]
    for message, role, kind, text in rows:
        sign = {"user": "❯ ", "assistant": "● "}.get(role, "  ")
        sign = "│ " if kind in ("code", "console") else sign
        shown = "(picture)" if kind == "image" else sanitise(text.strip())
        lines = shown.splitlines()[:8]
        style = "$accent" if message == entry.message else "$text-quiet" if kind == "console" else "$foreground"
        for line in lines:
            parts.append((f"{sign}{line[:300]}\n", style))
            sign = "│ " if kind in ("code", "console") else "  "
        parts.append("\n")
    return Content.assemble(*parts)


def as_path(written: str) -> Path:
    """What somebody typed as a path."""
    return Path(written.strip()).expanduser()


def file_stem(title: str) -> str:
    """A harmless file name made of a title."""
    words = "".join(c if c.isalnum() or c in "-_" else " " for c in title).split()
    return "-".join(words)[:60].strip("-_") or "conversation"
