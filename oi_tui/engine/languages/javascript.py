"""JavaScript, in one persistent Node.js."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oi_tui.engine.languages.catalogue import find_executable
from oi_tui.engine.languages.process_language import DRIVERS, ProcessLanguage, first_code_line
from oi_tui.engine.languages.pty_process import PtyProcess
from oi_tui.engine.languages.run import Run


class JavaScript(ProcessLanguage):
    """See `drivers/javascript/main.js` for how blocks are run."""

    name = "javascript"
    title = "JavaScript"
    aliases = ("js", "node")
    file_extension = "js"

    @property
    def description(self) -> str:
        return f"Node.js {self._version}".strip() + f", {self._program()}"

    def command(self, folder: Path) -> Sequence[str]:
        return [self._program(), str(DRIVERS / "javascript" / "main.js"), str(folder)]

    def submit(self, process: PtyProcess, code: Path) -> None:
        process.send(f"run {code}")

    def first_line(self, run: Run) -> int | None:
        return first_code_line(run.code.code, "//", "/*", "*")

    def send_interrupt(self, process: PtyProcess) -> None:
        process.send("interrupt")
        process.interrupt()  # for programs that the code runs and waits for

    @staticmethod
    def _program() -> str:
        return find_executable("node") or find_executable("nodejs") or "node"
