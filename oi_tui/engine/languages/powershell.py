"""PowerShell, in one persistent runspace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from oi_tui.engine.languages.catalogue import find_executable
from oi_tui.engine.languages.process_language import DRIVERS, ProcessLanguage
from oi_tui.engine.languages.pty_process import PtyProcess


class PowerShell(ProcessLanguage):
    """See `drivers/powershell.ps1` for how blocks are run."""

    name = "powershell"
    title = "PowerShell"
    aliases = ("pwsh", "ps1")
    file_extension = "ps1"
    start_timeout = 60.0

    @property
    def description(self) -> str:
        return f"PowerShell {self._version}".strip() + f", {self._program()}"

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "POWERSHELL_TELEMETRY_OPTOUT": "1", "POWERSHELL_UPDATECHECK": "Off"}

    def command(self, folder: Path) -> Sequence[str]:
        options = ["-NoLogo", "-NoProfile", "-ExecutionPolicy", "Bypass"]
        return [self._program(), *options, "-File", str(DRIVERS / "powershell.ps1"), str(folder)]

    def submit(self, process: PtyProcess, code: Path) -> None:
        process.send(f"run {code}")

    def send_interrupt(self, process: PtyProcess) -> None:
        process.send("interrupt")  # PowerShell itself would end by SIGINT

    @staticmethod
    def _program() -> str:
        return find_executable("pwsh") or find_executable("powershell") or "pwsh"
