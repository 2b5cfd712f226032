"""The process of a kernel and its private folder."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from oi_tui.engine.errors import KernelStartFailed
from oi_tui.engine.languages.environments import CHOOSE, KernelEnvironment, explain_start
from oi_tui.engine.languages.kernel_channels import Connection
from oi_tui.engine.languages.process_tree import Process, describe_status, spawn

_RAW_TAIL = 16 * 1024
"""Bytes kept of what the kernel itself writes to its real stdout and stderr: logs, the last words of a crash."""
HAS_IPC = sys.platform != "win32"
_LONGEST_SOCKET_PATH = 100
"""Bytes; the system's limit is 104 to 108 with the final zero."""


class KernelProcess:
    """A kernel in a session of its own, without a terminal, listening in a folder that only its user can enter."""

    def __init__(self, folder: Path, connection: Connection, environment: KernelEnvironment) -> None:
        self.folder = folder
        self.connection = connection
        self.environment = environment
        self.died = asyncio.Event()
        self._process: Process | None = None
        self._raw = bytearray()
        self._raw_reader = -1
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def start(cls, environment: KernelEnvironment, *, cwd: Path, env: Mapping[str, str]) -> KernelProcess:
        """Start the process; it is not ready yet. Raises `KernelStartFailed`."""
        folder = _prepare(cwd)
        key = secrets.token_hex(32)
        connection = Connection.over_ipc(folder, key) if HAS_IPC else Connection.over_tcp(key)
        self = cls(folder, connection, environment)
        try:
            await self._spawn(cwd, env)
        except OSError as error:
            await self.end()
            reason = error.strerror or str(error)
            raise KernelStartFailed(f"{environment.argv[0]} cannot be started: {reason}.", CHOOSE) from error
        except BaseException:
            await self.end()
            raise
        return self

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    @property
    def status(self) -> str:
        """How it ended, for people."""
        code = self._process.returncode if self._process else None
        if code is None:
            return "is running"
        return describe_status(code) + (", often a sign of too little memory" if code == -signal.SIGKILL else "")

    @property
    def raw_output(self) -> str:
        """The newest part of what it wrote past Jupyter."""
        return self._raw.decode(errors="replace")

    def start_failure(self) -> KernelStartFailed:
        """Why it ended before it was ready."""
        return explain_start(self.environment, self.raw_output, f"it {self.status}.")

    def interrupt(self) -> None:
        """SIGINT to its process group, so that programs it waits for stop too."""
        if self._process is not None:
            self._process.signal(signal.SIGINT)

    async def end(self, *, grace: float = 0.0) -> None:
        """End it with everything it started, and remove its folder. Idempotent."""
        if self._process is not None:
            await self._process.kill_tree(grace=grace)
        self._close_raw()
        await asyncio.to_thread(shutil.rmtree, self.folder, True)

    async def _spawn(self, cwd: Path, env: Mapping[str, str]) -> None:
        file = self._write_connection_file()
        argv = [word.replace("{connection_file}", str(file)) for word in self.environment.argv]
        self._raw_reader, writer = os.pipe()
        os.set_blocking(self._raw_reader, False)
        try:
            self._process = await spawn(
                argv,
                env=await asyncio.to_thread(self._env, env),
                cwd=cwd,
                stdout=writer,
                stderr=writer,
                folder=self.folder,
            )
        finally:
            os.close(writer)
        self._loop.add_reader(self._raw_reader, self._read_raw)
        self._process.on_exit(lambda _: self._exited())

    def _write_connection_file(self) -> Path:
        file = self.folder / "connection.json"
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
            json.dump(self.connection.to_json(self.environment.name), out)
        return file

    def _env(self, env: Mapping[str, str]) -> dict[str, str]:
        # ipykernel does not capture what C code prints when it finds this one, and every test run has it.
        own = {name: value for name, value in env.items() if name not in ("PYTEST_CURRENT_TEST", "PYTHONHOME")}
        own |= self.environment.env
        if self.environment.language == "python":
            # Pictures come inline, without importing matplotlib for those who do not use it.
            own["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
            own.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
            if not _can_keep_files(_ipython_folder(own)):
                own["IPYTHONDIR"] = str(self.folder / "ipython")
        return own

    def _exited(self) -> None:
        self._read_raw()
        self.died.set()

    def _read_raw(self) -> None:
        while self._raw_reader >= 0:
            try:
                data = os.read(self._raw_reader, 65536)
            except BlockingIOError:
                return
            if not data:
                self._close_raw()
                return
            self._raw += data
            del self._raw[:-_RAW_TAIL]

    def _close_raw(self) -> None:
        if self._raw_reader >= 0:
            self._loop.remove_reader(self._raw_reader)
            os.close(self._raw_reader)
            self._raw_reader = -1


def _ipython_folder(env: Mapping[str, str]) -> Path:
    """Where IPython will keep its profile."""
    if chosen := env.get("IPYTHONDIR"):
        return Path(chosen).expanduser()
    return Path(env.get("HOME") or os.path.expanduser("~")) / ".ipython"


def _can_keep_files(folder: Path) -> bool:
    """Found out by doing it: what the system says about rights is wrong for root, and on odd file systems."""
    try:
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _prepare(cwd: Path) -> Path:
    if not cwd.is_dir():
        raise KernelStartFailed(f"The working folder {cwd} does not exist.", "Start oi-tui in another one.")
    try:
        return private_folder()
    except OSError as error:
        raise KernelStartFailed(f"No folder for the kernel's sockets: {error.strerror}.") from error


def private_folder() -> Path:
    """A new folder (0700) whose path is short enough for sockets in it. Raises `OSError`."""
    for parent in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):
        if parent and os.access(parent, os.W_OK) and len(os.fsencode(parent)) < _LONGEST_SOCKET_PATH - 24:
            return Path(tempfile.mkdtemp(prefix="oi-tui-", dir=parent))
    return Path(tempfile.mkdtemp(prefix="oi-tui-"))
