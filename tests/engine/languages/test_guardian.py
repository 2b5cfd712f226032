"""Programs under a guardian: whatever they start, nothing of it survives oi-tui."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from oi_tui.engine.languages import guardian
from oi_tui.engine.languages.process_tree import Process, describe_status, spawn

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups are POSIX")

# A program as nasty as they come: a daemon in its own session, one that ignores hang-ups, one that ignores TERM.
NASTY = """
setsid -f sleep 301 >/dev/null 2>&1 </dev/null
nohup sleep 302 >/dev/null 2>&1 &
(trap '' TERM HUP INT; while :; do sleep 303; done) &
echo ready
sleep 304
"""


async def until(condition: Callable[[], bool], limit: float = 20.0) -> None:
    """Wait on a condition, generously."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.01)


def marked(mark: str) -> list[int]:
    """The living processes that carry the mark, wherever they are in the process tree."""
    return [e.pid for e in guardian.process_table(mark).values() if e.marked and not e.zombie]


@pytest.fixture
async def nasty() -> AsyncIterator[Process]:
    reader, writer = os.pipe()
    process = await spawn(["bash", "-c", NASTY], env=os.environ, stdout=writer)
    os.close(writer)
    assert await asyncio.to_thread(os.read, reader, 64) == b"ready\n"
    os.close(reader)
    yield process
    await process.kill_tree(grace=0)


async def test_a_program_runs_in_its_own_session_without_a_terminal() -> None:
    reader, writer = os.pipe()
    process = await spawn(["sh", "-c", "ps -o tty= -p $$; cat; pwd"], env=os.environ, cwd="/", stdout=writer)
    os.close(writer)
    assert await process.wait() == 0
    assert os.read(reader, 100).split() == [b"?", b"/"]
    os.close(reader)
    await process.kill_tree()


async def test_a_signal_reaches_the_whole_group_and_the_status_says_so() -> None:
    process = await spawn(["sh", "-c", "sleep 300; sleep 301"], env=os.environ)
    await until(
        lambda: "sleep 300" in [command for _, command in process.background()]
    )  # dash drops what comes earlier
    ended: list[int] = []
    process.on_exit(ended.append)
    process.signal(signal.SIGINT)
    assert await process.wait() == -signal.SIGINT
    assert ended == [-signal.SIGINT]
    assert describe_status(process.returncode or 0) == "was ended by SIGINT"
    await process.kill_tree()


async def test_a_program_that_does_not_exist_is_an_error_and_leaves_nothing() -> None:
    before = set(os.listdir("/dev/fd"))
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        await spawn(["no-such-program"], env=os.environ)
    with pytest.raises(FileNotFoundError):
        await spawn(["true"], env=os.environ, cwd="/no/such/folder")
    assert set(os.listdir("/dev/fd")) == before


async def test_a_terminal_becomes_the_controlling_one() -> None:
    outer, inner = os.openpty()
    process = await spawn(["sh", "-c", "echo hi >/dev/tty; read x; echo got $x"], env=os.environ, pty=inner)
    os.close(inner)
    os.write(outer, b"there\n")
    seen = b""
    while b"got there" not in seen:
        seen += await asyncio.to_thread(os.read, outer, 1000)
    assert seen.startswith(b"hi") or b"hi" in seen
    assert await process.wait() == 0
    await process.kill_tree()
    os.close(outer)


async def test_background_processes_can_be_listed_and_all_of_them_ended(nasty: Process) -> None:
    wanted = {"sleep 301", "sleep 302", "sleep 303"}
    await until(lambda: wanted <= {command for _, command in nasty.background()})
    await nasty.kill_tree(grace=0.1)
    assert marked(nasty.mark) == []


async def test_background_processes_end_although_their_parent_is_long_gone(nasty: Process) -> None:
    nasty.signal(signal.SIGKILL, group=False)
    assert await nasty.wait() == -signal.SIGKILL
    assert "sleep 301" in [command for _, command in nasty.background()]
    await nasty.kill_tree()
    assert marked(nasty.mark) == []


async def test_a_killed_guardian_takes_the_program_along_and_the_rest_is_found(nasty: Process) -> None:
    os.kill(nasty._popen.pid, signal.SIGKILL)
    assert await nasty.wait() == -signal.SIGKILL
    await nasty.kill_tree(grace=0)
    await until(lambda: marked(nasty.mark) == [])


async def test_what_the_user_wants_to_keep_lives_on(nasty: Process) -> None:
    nasty.release()
    await until(lambda: nasty.pid not in marked(nasty.mark) and nasty._popen.poll() is not None)
    kept = marked(nasty.mark)
    assert len(kept) >= 3
    for pid in kept:
        guardian.send(pid, signal.SIGKILL)
    await until(lambda: marked(nasty.mark) == [])


async def test_a_folder_goes_with_the_tree(tmp_path: Path) -> None:
    folder = tmp_path / "of the program"
    (folder / "deep").mkdir(parents=True)
    process = await spawn(["sleep", "300"], env=os.environ, folder=folder)
    await process.kill_tree(grace=0)
    assert not folder.exists() and tmp_path.exists()


async def test_closing_without_waiting_ends_the_tree_as_well(nasty: Process) -> None:
    nasty.close()
    await until(lambda: marked(nasty.mark) == [])


PARENT = """
import asyncio, os, sys
from oi_tui.engine.languages.process_tree import spawn

async def main():
    process = await spawn(["bash", "-c", sys.argv[1]], env=os.environ, stdout=1)
    print(process.mark, flush=True)
    {fork}
    await asyncio.sleep(600)

asyncio.run(main())
"""


def start_parent(fork: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", PARENT.format(fork=fork), NASTY],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        cwd=Path(__file__).parents[3],
        start_new_session=True,
    )


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("fork", ["", "os.fork()"], ids=["alone", "its socket held by a forked copy"])
async def test_nothing_survives_the_death_of_oi_tui(signum: int, fork: str) -> None:
    parent = start_parent(fork)
    assert parent.stdout is not None
    lines = sorted([parent.stdout.readline().decode().strip(), parent.stdout.readline().decode().strip()], key=len)
    assert lines[0] == "ready"
    await until(lambda: len(marked(lines[1])) >= 4)
    parent.send_signal(signum)
    parent.wait()
    await until(lambda: marked(lines[1]) == [])
    parent.stdout.close()
    try:
        os.killpg(parent.pid, signal.SIGKILL)  # the forked copy
    except ProcessLookupError:
        pass
