"""Ruby, in one persistent process whose blocks share a binding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oi_tui.engine.languages.catalogue import find_executable
from oi_tui.engine.languages.process_language import DRIVERS, ProcessLanguage, first_code_line
from oi_tui.engine.languages.pty_process import PtyProcess
from oi_tui.engine.languages.run import Run


class Ruby(ProcessLanguage):
    """See `drivers/ruby.rb` for how blocks are run."""

    name = "ruby"
    title = "Ruby"
    aliases = ("rb", "irb")
    file_extension = "rb"

    @property
    def description(self) -> str:
        return f"Ruby {self._version}".strip() + f", {self._program()}"

    def command(self, folder: Path) -> Sequence[str]:
        return [self._program(), str(DRIVERS / "ruby.rb"), str(folder)]

    def submit(self, process: PtyProcess, code: Path) -> None:
        process.send(f"run {code}")

    def first_line(self, run: Run) -> int | None:
        return first_code_line(run.code.code, "#")

    @staticmethod
    def _program() -> str:
        return find_executable("ruby") or "ruby"
