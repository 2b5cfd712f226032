"""AppleScript, by `osascript`: macOS only. Each block is a script of its own."""

from __future__ import annotations

import shlex
from pathlib import Path

from oi_tui.engine.languages.place import Place
from oi_tui.engine.languages.pty_process import PtyProcess
from oi_tui.engine.languages.run import Run
from oi_tui.engine.languages.shell import Shell
from oi_tui.engine.lmc import Chunk


class AppleScript(Shell):
    """Runs each block with `osascript`, from a shell of its own: what that asks on the terminal can be answered."""

    name = "applescript"
    title = "AppleScript"
    aliases = ("osascript",)
    file_extension = "applescript"
    state = "there was no state to lose"

    def __init__(self, *, place: Place | None = None) -> None:
        super().__init__(place=place)
        self._own_startup = False

    @property
    def description(self) -> str:
        return "AppleScript, /usr/bin/osascript"

    def first_line(self, run: Run) -> int | None:
        return None

    def on_event(self, run: Run, verb: str, argument: str) -> list[Chunk]:
        """The shell's lines are not the script's."""
        return [] if verb == "at" else super().on_event(run, verb, argument)

    def submit(self, process: PtyProcess, code: Path) -> None:
        """A file, not `-e`: quotes and lines stay as they are."""
        script = code.with_suffix(".sh")
        script.write_text(f"osascript {shlex.quote(str(code))}\n", encoding="utf-8")
        super().submit(process, script)
