"""kill -9 at random points of a streaming, running conversation: `python -m tests.engine.store.kill_test 200`."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from oi_tui.engine.store.database import FILE_NAME
from oi_tui.engine.store.store import Store

STREAMED = 1.0
"""Seconds of streamed text that may be lost."""


def kill_once(folder: Path, after: float) -> list[str]:
    """Run the program, kill it `after` seconds after its first request, and say what is missing."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.engine.store.killed_program", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    heard: list[tuple[float, str]] = []
    began = threading.Event()

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            heard.append((time.monotonic(), line.decode().strip()))
            if line.startswith(b"sent"):
                began.set()

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        if not began.wait(60):
            return ["the program never began"]
        time.sleep(after)
        killed_at = time.monotonic()
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
        listener.join()
        assert process.stdout is not None
        process.stdout.close()
    return missing(folder, heard, killed_at)


def missing(folder: Path, heard: list[tuple[float, str]], killed_at: float) -> list[str]:
    """What was acknowledged and is not in the store."""
    problems = []
    raw = sqlite3.connect(folder / FILE_NAME)
    if (verdict := raw.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
        problems.append(f"integrity: {verdict}")
    raw.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    raw.close()
    store = Store(folder)
    stored = store.load(heard[0][1].split()[1])
    if stored.damaged:
        problems.append(f"{stored.damaged} damaged messages")
    requests = [m.text for m in stored.messages if m.role == "user"]
    done = sum(line.startswith("done") for _, line in heard)
    sent = done + (not heard[-1][1].startswith("done"))
    if requests[:sent] != [f"request {number}" for number in range(1, sent + 1)]:
        problems.append(f"{sent} requests were sent, there are {requests}")
    by_id = {m.id: m for m in stored.messages}
    last_done = max((i for i, (_, line) in enumerate(heard) if line.startswith("done")), default=-1)
    for index, (at, line) in enumerate(heard):
        if line.startswith("text"):
            _, message_id, length = line.split()
            is_due = index < last_done or at < killed_at - STREAMED
            text = by_id[message_id].text if message_id in by_id else ""
            if is_due and len(text) < int(length):
                problems.append(f"{length} characters were shown, {len(text)} are there")
    runs = [m for m in stored.messages if m.type == "code"]
    for run in runs[:-1]:
        if not any(m.meta.get("code_id") == run.id and m.type == "image" for m in stored.messages):
            problems.append("a finished run has lost its picture")
    store.close()
    return problems


def main(count: int, seed: int | None = None) -> int:
    """Kill `count` times; the exit status is 1 if anything was missing."""
    seed = random.randrange(1 << 30) if seed is None else seed
    chance = random.Random(seed)
    bad = 0
    for number in range(1, count + 1):
        with tempfile.TemporaryDirectory() as folder:
            problems = kill_once(Path(folder), chance.uniform(0.0, 2.0))
        bad += bool(problems)
        print(f"{number}/{count} {'ok' if not problems else problems}", flush=True)
    print(f"{count - bad} of {count} kills lost nothing that was acknowledged (seed {seed})")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, int(sys.argv[2]) if len(sys.argv) > 2 else None)
    )
