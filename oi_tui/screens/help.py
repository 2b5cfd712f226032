"""Help (F1) and the key sheet (?)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Label, Static

from oi_tui.keymap import PLACES, KeyEntry, display
from oi_tui.styles import STYLES

ABOUT = """\
You say what you want; the model writes code; you read it, change it, run it, and see what it does. \
Nothing runs that you have not seen and allowed, and what runs is, byte for byte, what is shown.

**When code waits**   y runs exactly this code. n declines. e edits it in place; the model is told what you changed. \
Esc declines with your words. a allows more than this one block; it never runs anything by itself.

**While it runs**   The line that runs is lit. Esc interrupts and keeps the variables; Esc again within three seconds \
ends the kernel. A program that asks gets a field under its block.

**Modes**   Shift+Tab: "ask" asks for every block, "ask with rules" runs what you allowed before in this conversation, \
"run all" asks nothing and has a red frame.

**The prompt**   ^J starts a new line. @ finds a file, % lists the commands, ! runs a line in the shell. \
↑ brings back what you sent, ^R searches it. What you send while a turn runs waits above the prompt; ↑ takes it back.

**Looking back**   PgUp and PgDn scroll, End follows again. [ and ] walk from block to block; Space folds, c copies, \
r runs again. ^F finds a word. ^Y copies the selection, or the block.
"""


class KeySheet(ModalScreen[None]):
    """Every key, by the place where it acts."""

    CSS_PATH = STYLES / "dialogues.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,f1,enter", "dismiss", "close", show=False),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("down,j", "scroll(1)", show=False),
    ]
    AUTO_FOCUS = "VerticalScroll"

    def __init__(self, entries: Sequence[KeyEntry], problems: Sequence[str] = (), file: str = "") -> None:
        super().__init__(classes="dialogue")
        self._entries = [entry for entry in entries if entry.tooltip or entry.description]
        self._problems = problems
        self._file = file

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialogue-box -tall") as box:
            box.border_title = "Keys"
            box.border_subtitle = "esc closes"
            for problem in self._problems:
                yield Label(problem, classes="dialogue-problem", markup=False)
            for place, entries in groupby(self._entries, key=lambda entry: entry.place):
                yield Label(PLACES.get(place, place), classes="dialogue-heading", markup=False)
                yield Static(_table(list(entries)), classes="dialogue-table", markup=False)
            if self._file:
                yield Label(f"Change keys in {self._file}", classes="dialogue-hint", markup=False)

    def action_scroll(self, step: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=step, animate=False)


def _table(entries: Sequence[KeyEntry]) -> Content:
    """Rows "keys   what they do", the keys in a column of their own."""
    rows = []
    for entry in entries:
        keys = "  ".join(display(key) for key in entry.keys[:3])
        rows.append(Content.assemble((f"{keys:<26} ", "$accent"), entry.tooltip or entry.description))
    return Content("\n").join(rows)


class HelpScreen(ModalScreen[None]):
    """What the program is and how one works with it."""

    CSS_PATH = STYLES / "dialogues.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f1,enter", "dismiss", "close", show=False),
        Binding("question_mark", "keys", "keys", show=False),
    ]
    AUTO_FOCUS = "VerticalScroll"

    def __init__(self, facts: Mapping[str, str]) -> None:
        super().__init__(classes="dialogue")
        self._facts = facts

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialogue-box -tall") as box:
            box.border_title = "Help"
            box.border_subtitle = "? all keys · esc closes"
            yield Static(_bold_parts(ABOUT), classes="dialogue-text", markup=False)
            yield Static(_fact_table(self._facts), classes="dialogue-facts", markup=False)

    async def action_keys(self) -> None:
        self.dismiss()
        await self.app.run_action("key_sheet")


def _bold_parts(text: str) -> Content:
    """The text with what stands between ** in bold. Only for our own words."""
    parts = text.split("**")
    return Content.assemble(*((part, "bold" if index % 2 else "") for index, part in enumerate(parts)))


def _fact_table(facts: Mapping[str, str]) -> Content:
    width = max((len(name) for name in facts), default=0)
    rows = [Content.assemble((f"{name:<{width}}   ", "$text-quiet"), value) for name, value in facts.items()]
    return Content("\n").join(rows)
