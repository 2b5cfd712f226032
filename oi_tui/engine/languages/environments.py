"""Which Python runs the code: from what the user said to a command line that starts a kernel."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from oi_tui.engine.errors import KernelStartFailed

KernelSpecs: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Name of each installed Jupyter kernel to the content of its `kernel.json`."""

CHOOSE = "Choose another one with --kernel: a Jupyter kernel's name, a Python, or the folder of a virtual environment."

EXAMINATION_LIMIT = 5.0
"""Seconds."""
_EXAMINATION = "print('ipykernel:', __import__('importlib.util').util.find_spec('ipykernel') is not None)"
"""Begins so that a program that is no Python does no harm with it."""

# The code of a conversation is kept in the conversation, not in the history of the user's own IPython.
_OPTIONS = ("--HistoryManager.hist_file=:memory:",)


@dataclass(frozen=True, slots=True)
class KernelEnvironment:
    """How to start a kernel. `{connection_file}` in `argv` stands for the file's path."""

    argv: tuple[str, ...]
    name: str
    """Of the environment, for people: ".venv", "conda:base", or the kernelspec's display name."""
    version: str = ""
    """Of the Python, where it is known before the kernel runs."""
    language: str = "python"
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables to set."""
    interrupt_mode: Literal["signal", "message"] = "signal"

    @property
    def python(self) -> str:
        """The Python to name in advice."""
        return self.argv[0]

    def describe(self, version: str = "") -> str:
        """ "Python 3.12.3 (.venv)". `version`: what the running kernel said."""
        language = "Python" if self.language == "python" else self.language
        return " ".join(filter(None, (language, version or self.version, f"({self.name})" if self.name else "")))


def choose_environment(
    kernel: str | None, *, find_specs: Callable[[], KernelSpecs], cwd: Path | None = None
) -> KernelEnvironment:
    """What `--kernel` means; None: the Python that runs oi-tui. Raises `KernelStartFailed` with what can be chosen.

    A path (relative ones to `cwd`) is a Python or a virtual environment; a bare name is a Jupyter kernel, then a folder
    in `cwd`, then a Python on the path. `find_specs` may be slow and is called only when a name has to be looked up.
    """
    if kernel is None or not kernel.strip():
        return _own()
    path = (cwd or Path.cwd()) / Path(kernel).expanduser()
    if os.sep in kernel or (os.altsep and os.altsep in kernel) or kernel.startswith("~"):
        return _from_path(path)
    specs = find_specs()
    if kernel in specs:
        return _from_spec(kernel, specs[kernel])
    if path.exists():
        return _from_path(path)
    on_path = shutil.which(kernel)
    if on_path and Path(kernel).name.startswith(("python", "pypy")):
        return _from_python(Path(on_path))
    known = ", ".join(sorted(specs)) or "none"
    raise KernelStartFailed(f"There is no kernel called {kernel!r}. Installed Jupyter kernels: {known}.", CHOOSE)


def _own() -> KernelEnvironment:
    if importlib.util.find_spec("ipykernel") is None:
        raise KernelStartFailed("The Python that runs oi-tui has no ipykernel.", f"Install ipykernel, or: {CHOOSE}")
    version = ".".join(map(str, sys.version_info[:3]))
    return _python(Path(sys.executable), version, Path(sys.prefix) if sys.prefix != sys.base_prefix else None)


def _from_path(path: Path) -> KernelEnvironment:
    if path.is_dir():
        for candidate in (path / "bin" / "python", path / "Scripts" / "python.exe", path / "python.exe"):
            if candidate.exists():
                return _from_python(candidate)
        if (path / "bin" / "python").is_symlink():
            raise KernelStartFailed(
                f"The Python of {path} is gone: its link leads nowhere.", f"Make it anew, or: {CHOOSE}"
            )
        raise KernelStartFailed(f"{path} is not a virtual environment: there is no Python in it.", CHOOSE)
    if not path.exists():
        raise KernelStartFailed(f"There is no {path}.", CHOOSE)
    if not os.access(path, os.X_OK):
        raise KernelStartFailed(f"{path} cannot be executed.", CHOOSE)
    return _from_python(path)


def _from_python(python: Path) -> KernelEnvironment:
    folder = python.parent.parent
    venv = folder if (folder / "pyvenv.cfg").is_file() else None
    return _python(python, _venv_version(venv) if venv else "", venv)


def _from_spec(name: str, spec: Mapping[str, Any]) -> KernelEnvironment:
    argv = tuple(str(word) for word in spec.get("argv") or ())
    if not argv:
        raise KernelStartFailed(f"The Jupyter kernel {name!r} does not say how it is started.", CHOOSE)
    if argv[0] in ("python", "python3", f"python3.{sys.version_info[1]}"):
        argv = (sys.executable, *argv[1:])  # as jupyter_client does
    resources = str(spec.get("resource_dir") or "")
    return KernelEnvironment(
        argv=tuple(word.replace("{resource_dir}", resources) for word in argv),
        name=str(spec.get("display_name") or name),
        language=str(spec.get("language") or "python").lower(),
        env={str(key): str(value) for key, value in (spec.get("env") or {}).items()},
        interrupt_mode="message" if spec.get("interrupt_mode") == "message" else "signal",
    )


def _python(python: Path, version: str, venv: Path | None) -> KernelEnvironment:
    argv = (str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}", *_OPTIONS)
    # `!pip` and `!python` mean this environment's, as if it were activated.
    path = os.pathsep.join(filter(None, (str(python.parent), os.environ.get("PATH", ""))))
    env = {"PATH": path, "VIRTUAL_ENV": str(venv)} if venv else {"PATH": path}
    conda = (
        os.environ.get("CONDA_DEFAULT_ENV", "") if os.environ.get("CONDA_PREFIX") == str(python.parent.parent) else ""
    )
    name = venv.name if venv else f"conda:{conda}" if conda else str(python)
    return KernelEnvironment(argv, name, version, env=env)


def _venv_version(venv: Path) -> str:
    try:
        lines = (venv / "pyvenv.cfg").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        key, _, value = line.partition("=")
        if key.strip() in ("version", "version_info"):
            return ".".join(value.strip().split(".")[:3])
    return ""


def examine(environment: KernelEnvironment, *, cwd: Path, env: Mapping[str, str]) -> KernelStartFailed | None:
    """What is wrong with the Python of an environment, found without starting a kernel. Blocks; some 20 ms, or
    `EXAMINATION_LIMIT`: a Python that takes longer is given the benefit of the doubt, and so is any other program."""
    python = environment.argv[0]
    if environment.argv[1:3] != ("-m", "ipykernel_launcher") or python == sys.executable:
        return None
    try:
        ran = subprocess.run(
            (python, "-c", _EXAMINATION),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=EXAMINATION_LIMIT,
            cwd=cwd,
            env={**env, **environment.env},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    except OSError as error:
        return KernelStartFailed(f"{python} cannot be started: {error.strerror or error}.", CHOOSE)
    if b"ipykernel: True" in ran.stdout:
        return None
    if b"ipykernel: False" in ran.stdout:
        return _without_ipykernel(environment)
    said = ran.stderr.decode(errors="replace").strip().splitlines() or [f"it ended with status {ran.returncode}"]
    return KernelStartFailed(f"{python} does not work as a Python: {sentence(said[-1][:300])}", CHOOSE)


def _without_ipykernel(environment: KernelEnvironment) -> KernelStartFailed:
    install = f"{environment.python} -m pip install ipykernel"
    return KernelStartFailed(f"{environment.python} has no ipykernel.", f"Install it with: {install}. Or: {CHOOSE}")


def explain_start(environment: KernelEnvironment, stderr: str, status: str) -> KernelStartFailed:
    """What to tell the user about a kernel that ended before it was ready. `status`: how it ended."""
    if "No module named" in stderr and "ipykernel" in stderr.rpartition("No module named")[2]:
        return _without_ipykernel(environment)
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    reason = lines[-1][:300] if lines else status
    what = environment.describe()
    return KernelStartFailed(f"The kernel of {what} did not start: {sentence(reason)}", CHOOSE)


def sentence(text: str) -> str:
    """Somebody else's words with an end, so that ours can follow."""
    words = text.strip()
    return words if words.endswith((".", "!", "?", "…")) else f"{words}."
