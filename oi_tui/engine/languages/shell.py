"""The shell: one persistent interactive bash, as at a prompt.

It is started as the user's environment has it (`~/.bashrc` and all). Each block lies unchanged in a file that the
shell reads with `.`; end, status and lines come through the private channel, so nothing of ours is in the output, in
the script, or in the way of a program that reads its input.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

from oi_tui.engine.errors import LanguageError
from oi_tui.engine.languages.place import Place
from oi_tui.engine.languages.process_language import ProcessLanguage
from oi_tui.engine.languages.pty_process import PtyProcess
from oi_tui.engine.languages.run import Run
from oi_tui.engine.languages.shell_lines import BlockLines, LineProbe
from oi_tui.engine.languages.shell_startup import dialect_of
from oi_tui.engine.languages.terminal_input import MAYBE, waiting_for_input
from oi_tui.engine.lmc import Chunk


class Shell(ProcessLanguage):
    """bash, or another shell that the user chose, in a terminal of its own."""

    name = "shell"
    title = "The shell"
    file_extension = "sh"
    start_timeout = 8.0
    state = "its variables, functions and jobs are gone"

    def __init__(self, *, place: Place | None = None) -> None:
        super().__init__(place=place)
        self._program = find_shell(self._place.shell)
        self._dialect = dialect_of(self._program)
        self._cwd: Path | None = None
        self._own_startup = True
        """Whether the user's own start-up file is read."""
        self._block = ""
        """The file of the block that runs."""
        self._exit_status: int | None = None
        self._probe: LineProbe | None = None
        self._sampling = False
        self._lines = BlockLines("")

    @property
    def description(self) -> str:
        return " ".join(filter(None, (self._dialect.name, self._version))) + f", {self._program}"

    @property
    def cwd(self) -> Path:
        return self._cwd or self._place.cwd

    def environment(self) -> dict[str, str]:
        env = {**super().environment(), "SHELL": self._program}
        for name in ("ZDOTDIR", "ENV"):
            if name in env:
                env[f"OI_TUI_{name}"] = env[name]
        return env

    def prepare(self, folder: Path) -> None:
        self._dialect.write_startup(folder, self._program, own_startup=self._own_startup)

    def command(self, folder: Path) -> Sequence[str]:
        variables = [f"{name}={value}" for name, value in self._dialect.environment(folder).items()]
        return [*(("/usr/bin/env", *variables) if variables else ()), *self._dialect.command(self._program, folder)]

    def submit(self, process: PtyProcess, code: Path) -> None:
        text = code.read_bytes().decode("utf-8", "replace")
        self._lines = BlockLines(text)
        self._exit_status = None
        self._block = str(code)
        traced = self._dialect.traces and not _TRACES_ITSELF.search(text)
        self._sampling = not traced
        process.unsend()
        process.terminal.type_unseen(f" . {shlex.quote(str(code))}; {_source(process, 'hooks')}")
        process.send(str(code) if traced else "-")

    def close_input(self, process: PtyProcess) -> None:
        if process.in_foreground and waiting_for_input(process.terminal, "", MAYBE):
            # A shell that reads its keyboard although the code was interrupted is at a prompt that is not ours.
            process.terminal.type_unseen(f" {_source(process, 'rejoin')}")
        else:
            super().close_input(process)

    def say_goodbye(self, process: PtyProcess) -> None:
        """What closing a terminal's window does; interactive shells do not listen to SIGTERM."""
        with contextlib.suppress(OSError):
            (process.folder / "closing").touch()
        process.process.signal(signal.SIGHUP, group=False)

    def first_line(self, run: Run) -> int | None:
        return self._lines.first if self._dialect.traces or self._probe is not None else None

    def sample_line(self, process: PtyProcess, run: Run) -> int | None:
        if self._probe is None or not self._sampling:
            return None
        return self._lines.at(*self._probe.look())

    def on_event(self, run: Run, verb: str, argument: str) -> list[Chunk]:
        match verb:
            case "at":
                line, _, file = argument.partition(" ")
                # A job that an earlier block left in the background reports lines as well.
                return run.at_line(int(line)) if file == self._block and line.isdecimal() else []
            case "hot":
                self._sampling = True
            case "cwd":
                self._cwd = Path(argument)
            case "exit":
                self._exit_status = int(argument)
            case "version":  # it has started itself again
                self._look_inside()
        return []

    def end_status(self, argument: str) -> int:
        status = super().end_status(argument)
        return status if self._exit_status is None else self._exit_status

    async def _start(self) -> PtyProcess:
        try:
            process = await super()._start()
        except LanguageError as error:
            if not self._own_startup:
                raise
            # The user's start-up file ends the shell, replaces it, or waits for something.
            self._own_startup = False
            process = await super()._start()
            self._news.append(f"The shell runs without your start-up file, which keeps it from starting. {error.hint}")
        self._look_inside(process)
        return process

    def _look_inside(self, process: PtyProcess | None = None) -> None:
        self._probe = None
        if (process := process or self._process) is not None:
            with contextlib.suppress(OSError):
                self._probe = LineProbe(process.process.pid)


def _source(process: PtyProcess, name: str) -> str:
    """The command that reads one of the files that `shell_startup` wrote."""
    return f". {shlex.quote(str(process.folder / name))}"


_TRACES_ITSELF = re.compile(r"\bDEBUG\b|\bfunctrace\b|\bset\s+-[a-z]*T")
"""Scripts whose own tracing ours would disturb."""


def find_shell(wanted: str | None = None) -> str:
    """The path of the shell to use: the wanted one, bash, or sh. Raises `LanguageError`."""
    for name in (os.path.expanduser(wanted),) if wanted else ("bash", "sh"):
        if path := shutil.which(name):
            return path
    raise LanguageError(
        f"There is no shell called “{wanted or 'bash'}”.", "Set `shell` to the path of bash, zsh or sh."
    )
