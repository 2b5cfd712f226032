"""Python, in a Jupyter kernel. The only module that imports jupyter_client, and only to look up kernels by name."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oi_tui.engine.errors import LanguageError
from oi_tui.engine.languages.base import MASKED
from oi_tui.engine.languages.environments import KernelSpecs, choose_environment
from oi_tui.engine.languages.kernel_language import KernelLanguage
from oi_tui.engine.languages.kernel_setup import call
from oi_tui.engine.languages.place import environment_for_code
from oi_tui.engine.languages.running_kernel import MIME

ANSWER_TIMEOUT = 10.0
"""Seconds that the kernel has to answer a question of ours between two runs."""


class PythonKernel(KernelLanguage):
    """Runs Python; see `Language`.

    `kernel` is what `--kernel` means (see `environments`); None: the Python that runs oi-tui. `env` is the whole
    environment of the kernel; None: the user's, without the keys of model providers. `folder`, the conversation's own,
    is not needed here: the kernel has a private one for its sockets.
    """

    name = "python"
    aliases = ("py", "python3")
    file_extension = "py"
    title = "Python kernel"

    def __init__(
        self,
        kernel: str | None = None,
        *,
        cwd: Path | None = None,
        folder: Path | None = None,
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        cwd = cwd or Path.cwd()
        choose = functools.partial(choose_environment, kernel, find_specs=installed_kernels, cwd=cwd)
        super().__init__(choose, cwd=cwd, env=environment_for_code() if env is None else env, **options)
        self._wanted = kernel
        self._variables: list[dict[str, str]] = []

    @property
    def description(self) -> str:
        if self._kernel is not None:
            return self._kernel.description
        if self._wanted is not None:
            return f"Python ({self._wanted})"
        return choose_environment(None, find_specs=dict).describe()

    async def evaluate(self, source: str) -> str:
        """What the source prints, and its last expression's value, as text; nothing of it is shown to the user.

        Raises `LanguageError` when it fails, takes too long, or code runs at present.
        """
        if self.is_running:
            raise LanguageError("Python is busy.")
        async with self._lock:
            data = await self._ask(call("evaluate", source))
        if "error" in data:
            raise LanguageError(str(data["error"]))
        return str(data.get("text", ""))

    async def variables(self) -> list[dict[str, str]]:
        """The user's variables, in the order of their making: `name`, `type`, `value` (short; a shape for arrays).

        Calls no code of the user's objects. While code runs, and when the kernel cannot be asked: what was last known.
        """
        if self._kernel is None or self._kernel.died.is_set():
            self._variables = []
        elif not self._lock.locked():
            async with self._lock:
                try:
                    self._variables = (await self._ask(call("variables"))).get("variables", [])
                except LanguageError:
                    pass
        secrets = self._kernel.secrets if self._kernel is not None else ()
        hides = [row for row in self._variables if any(secret in row["value"] for secret in secrets)]
        return [{**row, "value": MASKED} if row in hides else dict(row) for row in self._variables]

    async def complete(self, code: str, cursor: int) -> list[str]:
        """Completions of what ends at `cursor`, as IPython offers them; none while code runs."""
        if self._kernel is None or self._lock.locked():
            return []
        async with self._lock:
            try:
                reply = await self._kernel.request(
                    "complete_request", {"code": code, "cursor_pos": cursor}, timeout=ANSWER_TIMEOUT
                )
            except (TimeoutError, LanguageError):
                return []
        return [str(match) for match in reply.get("matches") or ()]

    async def _ask(self, expression: str) -> Mapping[str, Any]:
        kernel = await self._ready()
        try:
            data = await kernel.ask(expression, timeout=ANSWER_TIMEOUT)
        except TimeoutError:
            kernel.interrupt()
            raise LanguageError(f"Python did not answer within {ANSWER_TIMEOUT:.0f} s.") from None
        answer: Mapping[str, Any] = data.get(MIME) or {}
        return answer


def installed_kernels() -> KernelSpecs:
    """Every Jupyter kernel that is installed: name to its `kernel.json` and `resource_dir`. Blocks; 0.2 s at first."""
    from jupyter_client.kernelspec import KernelSpecManager

    found: dict[str, dict[str, Any]] = {}
    for name, entry in KernelSpecManager().get_all_specs().items():
        found[name] = {**entry["spec"], "resource_dir": entry["resource_dir"]}
    # The kernel that ipykernel offers without having been installed is the Python that runs oi-tui.
    if "python3" in found and found["python3"]["argv"][0] in ("python", "python3"):
        found["python3"]["argv"][0] = sys.executable
    return found
