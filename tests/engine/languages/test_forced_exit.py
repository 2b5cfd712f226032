"""When oi-tui is killed in the middle of running code, in whatever way, nothing of that code remains."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.languages.running import until

PARENT = """
import asyncio, sys
from pathlib import Path
from oi_tui.engine.languages.place import Place
from oi_tui.engine.languages.registry import Registry
from tests.engine.languages.running import Running

CODE = {
    "shell": "(trap '' TERM HUP INT; sleep 600) & nohup sleep 600 & echo started; while :; do :; done",
    "javascript": "console.log('started'); while (true) {}",
    "ruby": "fork { Process.daemon(true, true); sleep }; puts 'started'; sleep",
    "r": "cat('started\\n'); repeat {}",
}

async def main():
    registry = Registry(place=Place(cwd=Path(sys.argv[1])))
    running = [Running(registry.get(name), CODE[name]) for name in sys.argv[2:]]
    for one in running:
        await one.prints("started")
    print("all started", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""

RUNTIMES = {"shell": "bash", "javascript": "node", "ruby": "ruby", "r": "R"}


@pytest.mark.terminal
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked up in /proc")
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
async def test_nothing_survives(tmp_path: Path, signum: int) -> None:
    names = [name for name, program in RUNTIMES.items() if shutil.which(program)]
    work, temporary = tmp_path / "work", tmp_path / "tmp"
    work.mkdir()
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", PARENT, str(work), *names]
    parent = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "all started\n"
        assert len(_working_in(work)) >= len(names)
        assert any(temporary.iterdir())
    finally:
        parent.send_signal(signum)
        parent.communicate()
    await until(lambda: not _working_in(work), limit=30)
    await until(lambda: not any(temporary.glob("oi-tui-*")), limit=30)


def _working_in(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd") == str(folder):
                found.append(int(entry.name))
        except OSError:
            continue
    return found
