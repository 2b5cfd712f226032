"""One output on the whole screen."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from oi_tui.rendering.sanitise import sanitise_line, sanitise_stream
from oi_tui.widgets.code_block import CodeBlock
from oi_tui.widgets.frame import grouped
from oi_tui.widgets.key_bar import KeyBar
from oi_tui.widgets.output_pane import OutputPane

FRAME = 1 / 10
"""Seconds between looks at an output that is still growing."""


class OutputScreen(Screen[None]):
    """The output of `block`. `complete` is the file with all of it, where there is one: the pane keeps the newest
    lines only."""

    DEFAULT_CSS = """
    OutputScreen > #output-title { height: 1; padding: 0 1; color: $text-quiet; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Back", tooltip="Back to the conversation.", id="output.close"),
    ]

    def __init__(self, block: CodeBlock, complete: Path | None = None) -> None:
        super().__init__()
        self._block = block
        self._complete = complete
        self._seen_lines = -1

    def compose(self) -> ComposeResult:
        yield Static(id="output-title", markup=False)
        yield OutputPane(self._block.output.terminal)
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(OutputPane).focus()
        self._look()
        if self._block.state.is_live:
            self.set_interval(FRAME, self._look)

    def _look(self) -> None:
        self.query_one(OutputPane).update()
        terminal = self._block.output.terminal
        if terminal.end == self._seen_lines:
            return
        self._seen_lines = terminal.end
        kept = f"; the newest {grouped(terminal.end - terminal.first)} are here" if terminal.first else ""
        name = sanitise_line(self._block.language, 20)
        title = f"{name} output · {self._block.short_digest} · {grouped(terminal.end)} lines{kept}"
        self.query_one("#output-title", Static).update(Content(title))

    def action_close(self) -> None:
        self.dismiss(None)

    @on(OutputPane.CopyRequested)
    def _copy(self, event: OutputPane.CopyRequested) -> None:
        event.stop()
        self.app.copy_to_clipboard(self.get_selected_text() or self._block.output.text)

    @on(OutputPane.SaveRequested)
    def _save_requested(self, event: OutputPane.SaveRequested) -> None:
        event.stop()
        self._save()

    @work(exclusive=True, group="save", exit_on_error=False)
    async def _save(self) -> None:
        path = _free_name(Path.cwd() / f"output-{self._block.short_digest}.txt")
        try:
            await asyncio.to_thread(self._write, path)
        except OSError as error:
            self.notify(f"Not saved: {error.strerror}.", severity="warning", markup=False)
        else:
            self.notify(f"Saved {path.name}", markup=False)

    def _write(self, path: Path) -> None:
        """Write the whole text, without controls: it may be shown in a terminal again."""
        complete = self._complete
        with path.open("w", encoding="utf-8") as target:
            if complete is None or not complete.is_file():
                target.write(self._block.output.text)
                return
            with complete.open(encoding="utf-8", errors="replace", newline="") as source:
                pieces = iter(lambda: source.read(1 << 16), "")
                target.writelines(sanitise_stream(pieces))

    @on(OutputPane.PagerRequested)
    def _pager_requested(self, event: OutputPane.PagerRequested) -> None:
        event.stop()
        self._page()

    @work(exclusive=True, group="pager", exit_on_error=False)
    async def _page(self) -> None:
        command = shlex.split(os.environ.get("PAGER") or "less")
        if shutil.which(command[0]) is None:
            self.notify(f"{command[0]} is not installed. Set PAGER.", severity="warning", markup=False)
            return
        with tempfile.TemporaryDirectory(prefix="oi-tui-output-") as folder:
            path = Path(folder) / "output.txt"
            await asyncio.to_thread(self._write, path)
            try:
                with self.app.suspend():
                    process = await asyncio.create_subprocess_exec(*command, str(path))
                    await process.wait()
            except SuspendNotSupported:
                self.notify("This terminal cannot be handed over to a pager.", severity="warning", markup=False)


def _free_name(path: Path) -> Path:
    """The path, or the next one with a number that does not exist."""
    number = 1
    free = path
    while free.exists():
        number += 1
        free = path.with_stem(f"{path.stem}-{number}")
    return free
