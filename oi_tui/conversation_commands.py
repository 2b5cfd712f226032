"""`oi-tui export`, `oi-tui import` and `oi-tui open`: conversations to files and from files.

Bare words are a task for the model as well, so a command is taken for one only when its words fit: `export this table
as a picture` is a task.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from oi_tui.engine.errors import EngineError
from oi_tui.flags import CommandLine, UsageError, say

if TYPE_CHECKING:
    from oi_tui.engine.store.sessions import StoredSessions

EXIT_FAILED = 1
EXPORT_USAGE = "oi-tui export ID|last|--all FORMAT PATH [--force]"


def run_command(line: CommandLine) -> int | None:
    """Do what the words say, if they are a command. Returns the exit status, or None. Raises `UsageError`."""
    words = line.words
    if not words:
        return None
    try:
        if words[0] == "export" and (wanted := _export_words(line)) is not None:
            return _export(*wanted, force=line.has("force"))
        if words[0] == "import" and _is_import(words):
            return _import(words[1:])
    except EngineError as error:
        print(f"oi-tui: {error}", file=sys.stderr)
        return EXIT_FAILED
    return None


def notebook_named(line: CommandLine) -> Path | None:
    """The notebook of `oi-tui open FILE.ipynb`; None if the words are no such command."""
    words = line.words
    if len(words) == 2 and words[0] == "open" and words[1].lower().endswith(".ipynb"):
        return Path(words[1]).expanduser()
    return None


def open_notebook(sessions: StoredSessions, path: Path, *, keep: bool) -> None:
    """The next session is the conversation in a notebook; stored, unless nothing is to be `kept`. Raises
    `EngineError`."""
    from oi_tui.engine.exporters import notebook

    read = notebook.read(path)
    sessions.take(read.messages, title=read.title, keep=keep)


# -- export -----------------------------------------------------------------------------------------------------------


def _export_words(line: CommandLine) -> tuple[str | None, str, Path] | None:
    """Which conversation (None: all), the format and the path. Raises `UsageError` for words that can only be meant as
    an export and are not right."""
    from oi_tui.engine.exporters import format_named, known_formats

    words = line.words[1:]
    if line.has("all"):
        words = ["", *words]
    if not words or not (line.has("all") or words[0] == "last" or re.fullmatch(r"[0-9a-f]{4,16}", words[0])):
        return None
    if len(words) != 3:
        raise UsageError(f"usage: {EXPORT_USAGE}")
    if (format := format_named(words[1])) is None:
        raise UsageError(f"{words[1]} is no format. There are: {', '.join(known_formats())}")
    return words[0] or None, format, Path(words[2]).expanduser()


def _export(name: str | None, format: str, path: Path, *, force: bool) -> int:
    from oi_tui.engine.exporters import PathExists, export
    from oi_tui.engine.store.store import Store, StoreError

    store = Store()
    if name is None:
        return _export_all(store, format, path, force=force)
    found = store.find(name)
    if found is None:
        raise StoreError("There is no conversation yet." if name == "last" else f"There is no conversation {name}.")
    stored = store.load(found.id)
    try:
        written = export(stored, format, path, force=force)
    except PathExists as error:
        if not _agrees(f"{error.what} Replace it? [y/N] "):
            raise
        written = export(stored, format, path, force=True)
    for file in written:
        say(str(file))
    return 0


def _export_all(store: object, format: str, folder: Path, *, force: bool) -> int:
    from oi_tui.engine.exporters import FORMATS, ExportError, export, scripts
    from oi_tui.engine.store.store import Store

    assert isinstance(store, Store)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(f"{folder} cannot be made: {error.strerror}.") from None
    ending = FORMATS.get(format, scripts.EXTENSIONS.get(format, ""))
    written = failed = 0
    for info in store.listing(archived=None):
        stem = re.sub(r"[^\w-]+", "-", info.title)[:50].strip("-_") or "conversation"
        path = folder / (f"{stem}-{info.id[:8]}" + (f".{ending}" if ending else ""))
        try:
            export(store.load(info.id), format, path, force=force)
            written += 1
        except EngineError as error:
            failed += 1
            print(f"{info.id}: {error}", file=sys.stderr)
    say(f"{written} conversations in {folder}" + (f", {failed} could not be written" if failed else ""))
    return EXIT_FAILED if failed else 0


def _agrees(question: str) -> bool:
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# -- import -----------------------------------------------------------------------------------------------------------


def _is_import(words: Sequence[str]) -> bool:
    """`import` alone, or with something that is a path."""
    return len(words) == 1 or (len(words) == 2 and ("/" in words[1] or Path(words[1]).expanduser().exists()))


def _import(words: Sequence[str]) -> int:
    from oi_tui.engine.store.open_interpreter import files_in, find_folder, import_all
    from oi_tui.engine.store.store import Store, StoreError
    from oi_tui.rendering.sanitise import sanitise_line

    folder = Path(words[0]).expanduser() if words else find_folder()
    if folder is None:
        raise StoreError(
            "Open Interpreter's conversations were not found here.", "Name their folder: oi-tui import PATH"
        )
    store = Store()
    shows = sys.stderr is not None and sys.stderr.isatty()

    def progress(done: int, total: int) -> None:
        if shows:
            width = 30
            bar = "█" * (done * width // total)
            print(f"\r{bar:<{width}} {done}/{total}", end="" if done < total else "\n", file=sys.stderr, flush=True)

    try:
        report = import_all(store, files_in(folder), progress=progress)
    finally:
        store.close(10)
    for line in report.lines():
        say(sanitise_line(line, 400))
    return EXIT_FAILED if report.problems else 0
