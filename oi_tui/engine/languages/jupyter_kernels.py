"""Every Jupyter kernel that is installed, as a language: Julia, R, Deno, xeus, …

They are found by reading the folders that Jupyter keeps them in, which takes a millisecond, and started only when they
are used, by the same client as Python's.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oi_tui.engine.languages.base import Language
from oi_tui.engine.languages.catalogue import PYTHON, Entry
from oi_tui.engine.languages.place import Place

PREFIX = "jupyter:"
"""Before a kernel's name where that name alone means something else, as in `jupyter:bash`."""

_EXTENSIONS = {
    "bash": "sh",
    "c++": "cpp",
    "clojure": "clj",
    "csharp": "cs",
    "c#": "cs",
    "f#": "fs",
    "fsharp": "fs",
    "haskell": "hs",
    "javascript": "js",
    "julia": "jl",
    "kotlin": "kts",
    "ocaml": "ml",
    "octave": "m",
    "matlab": "m",
    "perl": "pl",
    "powershell": "ps1",
    "python": "py",
    "ruby": "rb",
    "rust": "rs",
    "typescript": "ts",
}


@dataclass(frozen=True, slots=True)
class InstalledKernel:
    """One `kernel.json`."""

    name: str
    """Its folder's name, by which Jupyter calls it."""
    language: str
    """Lower case."""
    title: str
    folder: Path
    spec: dict[str, Any]

    @property
    def program(self) -> str:
        return str((self.spec.get("argv") or [""])[0])


def kernel_folders() -> list[Path]:
    """Where Jupyter looks for kernels, in its order."""
    data = [Path(folder) for folder in os.environ.get("JUPYTER_PATH", "").split(os.pathsep) if folder]
    own = os.environ.get("JUPYTER_DATA_DIR")
    if own:
        data.append(Path(own))
    elif sys.platform == "darwin":
        data.append(Path.home() / "Library" / "Jupyter")
    elif sys.platform == "win32":
        data.append(Path(os.environ.get("APPDATA") or Path.home()) / "jupyter")
    else:
        data.append(Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "jupyter")
    data.append(Path(sys.prefix) / "share" / "jupyter")
    if sys.platform == "win32":
        data.append(Path(os.environ.get("PROGRAMDATA") or "C:\\ProgramData") / "jupyter")
    else:
        data += [Path("/usr/local/share/jupyter"), Path("/usr/share/jupyter")]
    return list(dict.fromkeys(folder / "kernels" for folder in data))


def installed_kernels(folders: Iterable[Path] | None = None) -> list[InstalledKernel]:
    """The kernels that are there, the first of each name. A broken `kernel.json` is passed over."""
    found: dict[str, InstalledKernel] = {}
    for folder in kernel_folders() if folders is None else folders:
        try:
            entries = sorted(folder.iterdir())
        except OSError:
            continue
        for entry in entries:
            name = entry.name.lower()
            if name not in found and (kernel := _read(entry, name)) is not None:
                found[name] = kernel
    return list(found.values())


def _read(folder: Path, name: str) -> InstalledKernel | None:
    try:
        with (folder / "kernel.json").open("rb") as file:
            spec = json.loads(file.read(1_000_000))
    except (OSError, ValueError):
        return None
    if not isinstance(spec, dict) or not isinstance(spec.get("argv"), list) or not spec["argv"]:
        return None
    language = str(spec.get("language") or name).strip().lower()
    return InstalledKernel(name, language, str(spec.get("display_name") or name), folder, spec)


def with_kernels(
    entries: Sequence[Entry], kernels: Iterable[InstalledKernel], wanted: Sequence[str] | None = None
) -> tuple[Entry, ...]:
    """The entries with one more for each kernel.

    A kernel whose language is not built in is offered under the language's name. Where there is a built-in language
    the kernel has its own name (`ir`) and is not offered beside it, unless `wanted` names the kernel: then it takes
    the built-in one's place if that is not wanted as well. It also takes its place where its runtime is missing.
    """
    made = list(entries)
    wishes = {tag.strip().lower() for tag in wanted or ()}
    for kernel in kernels:
        is_wished = bool(wishes & {kernel.name, PREFIX + kernel.name})
        built_in = next((e for e in entries if kernel.language in (e.name, *e.aliases)), None)
        if built_in is PYTHON and (kernel.name in PYTHON.aliases or not is_wished):
            continue  # that is what `--kernel` is for
        taken = {name for entry in made for name in (entry.name, *entry.aliases)}
        if built_in is None:
            name = kernel.language if kernel.language not in taken else kernel.name
            made.append(_entry(kernel, name if name not in taken else PREFIX + kernel.name, taken))
            continue
        is_wished = is_wished and (kernel.name not in taken or PREFIX + kernel.name in wishes)
        rival = is_wished and not wishes & {built_in.name, *built_in.aliases}
        if rival or not built_in.is_available:
            if built_in in made:
                other_names = (*built_in.aliases, *_own_names(kernel, taken))
                made[made.index(built_in)] = _entry(kernel, built_in.name, set(), other_names, like=built_in)
                continue
        name = kernel.name if kernel.name not in taken else PREFIX + kernel.name
        made.append(replace(_entry(kernel, name, taken, like=built_in), is_offered=is_wished))
    return tuple(made)


def _own_names(kernel: InstalledKernel, taken: set[str]) -> tuple[str, ...]:
    return tuple(name for name in (kernel.name, PREFIX + kernel.name) if name not in taken)


def _entry(
    kernel: InstalledKernel,
    name: str,
    taken: set[str],
    aliases: tuple[str, ...] | None = None,
    *,
    like: Entry | None = None,
) -> Entry:
    aliases = _own_names(kernel, taken) if aliases is None else aliases

    def make(place: Place) -> Language:
        from oi_tui.engine.languages.jupyter_language import JupyterLanguage  # brings zmq

        return JupyterLanguage(kernel, entry, place=place)

    entry = Entry(
        name=name,
        title=kernel.title,
        load=make,
        file_extension=like.file_extension if like else _EXTENSIONS.get(kernel.language, kernel.language[:8] or "txt"),
        lexer=like.lexer if like else kernel.language,
        aliases=tuple(alias for alias in aliases if alias != name),
        executables=(kernel.program,),
        packages={"url": "the documentation of that Jupyter kernel"},
    )
    return entry
