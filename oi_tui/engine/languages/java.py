"""Java, in one persistent JShell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oi_tui.engine.languages.catalogue import find_executable
from oi_tui.engine.languages.process_language import DRIVERS, ProcessLanguage, first_code_line
from oi_tui.engine.languages.pty_process import PtyProcess
from oi_tui.engine.languages.run import Run


class Java(ProcessLanguage):
    """See `drivers/Jshell.java` for how blocks are run."""

    name = "java"
    title = "Java"
    aliases = ("jshell",)
    file_extension = "java"
    start_timeout = 60.0
    state = "its variables, methods and classes are gone"

    @property
    def description(self) -> str:
        return f"Java {self._version}".strip() + f", {self._program()}"

    def command(self, folder: Path) -> Sequence[str]:
        return [
            self._program(),
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            str(DRIVERS / "Jshell.java"),
            str(folder),
        ]

    def submit(self, process: PtyProcess, code: Path) -> None:
        process.send(f"run {code}")

    def first_line(self, run: Run) -> int | None:
        return first_code_line(run.code.code, "//", "/*", "*")

    def send_interrupt(self, process: PtyProcess) -> None:
        process.send("interrupt")  # the JVM itself would end by SIGINT

    @staticmethod
    def _program() -> str:
        """The `java` that belongs to the `jshell` on the path: a JDK, not a runtime alone."""
        jshell = find_executable("jshell")
        if jshell is not None:
            java = Path(jshell).resolve().with_name("java")
            if java.exists():
                return str(java)
        return find_executable("java") or "java"
