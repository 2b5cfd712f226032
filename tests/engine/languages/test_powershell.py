"""PowerShell and AppleScript: tried where their runtimes are, else up to the missing program."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from oi_tui.engine.errors import LanguageError
from oi_tui.engine.languages.applescript import AppleScript
from oi_tui.engine.languages.catalogue import APPLESCRIPT, POWERSHELL
from oi_tui.engine.languages.place import Place
from oi_tui.engine.languages.powershell import PowerShell
from tests.engine.languages.running import Answers, Running, run

HAS_POWERSHELL = shutil.which("pwsh") is not None
HAS_OSASCRIPT = shutil.which("osascript") is not None


@pytest.mark.terminal
@pytest.mark.skipif(not HAS_POWERSHELL, reason="PowerShell is not installed: its driver is not tried")
async def test_powershell_keeps_state_reports_errors_and_stops(tmp_path: Path) -> None:
    powershell = PowerShell(place=Place(cwd=tmp_path))
    try:
        assert (await run(powershell, "$x = 41; function twice($n) { $n * 2 }")).output == ""
        assert (await run(powershell, "$x + 1; twice 4")).output.split() == ["42", "8"]
        assert "exit status 1" in (await run(powershell, "1\nthrow 'bad thing'")).output
        assert "exit status 3" in (await run(powershell, "sh -c 'exit 3'")).output
        assert "hi Ada" in (await run(powershell, "$n = Read-Host 'name'; \"hi $n\"", answer=Answers("Ada"))).output
        running = Running(powershell, "'started'; while ($true) {}")
        await running.prints("started")
        await powershell.interrupt()
        assert (await running.end()).output.endswith("interrupted\n")
        assert (await run(powershell, "$x")).output == "41\n"
    finally:
        await powershell.aclose()


@pytest.mark.skipif(HAS_POWERSHELL, reason="PowerShell is installed")
async def test_without_powershell_one_line_says_so(tmp_path: Path) -> None:
    assert "\n" not in POWERSHELL.missing
    assert "PowerShell is not installed" in POWERSHELL.missing
    with pytest.raises(LanguageError, match="PowerShell could not be started"):
        await run(PowerShell(place=Place(cwd=tmp_path)), "1")


def test_powershell_is_started_without_profile_and_telemetry() -> None:
    powershell = PowerShell()
    command = powershell.command(Path("/private"))
    assert "-NoProfile" in command
    assert command[-1] == "/private"
    assert Path(command[-2]).is_file()
    assert powershell.environment()["POWERSHELL_TELEMETRY_OPTOUT"] == "1"


@pytest.mark.skipif(sys.platform == "darwin", reason="AppleScript exists here")
def test_applescript_elsewhere_is_a_clear_word() -> None:
    assert APPLESCRIPT.missing == "AppleScript exists on macOS only."


@pytest.mark.terminal
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
async def test_applescript_hands_over_the_file_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for `osascript` that shows what it was given; the real one where it is."""
    if not HAS_OSASCRIPT:
        (tmp_path / "osascript").write_text('#!/bin/sh\ncat "$1"\nexit 2\n')
        (tmp_path / "osascript").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    script = AppleScript(place=Place(cwd=tmp_path))
    try:
        ran = await run(script, 'return "a \\"quoted\\" word"')
        if HAS_OSASCRIPT:
            assert ran.output == 'a "quoted" word\n'
        else:
            assert ran.output == 'return "a \\"quoted\\" word"\nexit status 2\n'
        assert ran.lines == []
    finally:
        await script.aclose()
