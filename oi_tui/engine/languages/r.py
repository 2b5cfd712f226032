"""R, in one persistent interactive process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from oi_tui.engine.languages.catalogue import find_executable
from oi_tui.engine.languages.process_language import DRIVERS, ProcessLanguage, first_code_line
from oi_tui.engine.languages.pty_process import PtyProcess
from oi_tui.engine.languages.run import Run


class R(ProcessLanguage):
    """See `drivers/r.R` for how blocks are run."""

    name = "r"
    title = "R"
    aliases = ("rscript",)
    file_extension = "r"

    @property
    def description(self) -> str:
        return f"R {self._version}".strip() + f", {find_executable('R') or 'R'}"

    def command(self, folder: Path) -> Sequence[str]:
        return ["R", "--no-save", "--no-restore", "--no-echo", "--no-readline", "--quiet"]

    def introduce(self, process: PtyProcess) -> None:
        """Type what an interactive R is to evaluate: with a file as its input it would not be interactive."""
        driver, folder = json.dumps(str(DRIVERS / "r.R")), json.dumps(str(process.folder))
        process.terminal.type_unseen(f"sys.source({driver}, list2env(list(folder = {folder}), parent = globalenv()))")

    def submit(self, process: PtyProcess, code: Path) -> None:
        process.send(f"run {code}")

    def first_line(self, run: Run) -> int | None:
        return first_code_line(run.code.code, "#")
