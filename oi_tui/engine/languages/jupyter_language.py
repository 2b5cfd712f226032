"""Any language, in a Jupyter kernel that is installed."""

from __future__ import annotations

import functools

from oi_tui.engine.languages.catalogue import Entry
from oi_tui.engine.languages.environments import choose_environment
from oi_tui.engine.languages.jupyter_kernels import InstalledKernel
from oi_tui.engine.languages.kernel_language import KernelLanguage
from oi_tui.engine.languages.place import Place


class JupyterLanguage(KernelLanguage):
    """A language that runs in the kernel of this name."""

    def __init__(self, kernel: InstalledKernel, entry: Entry, *, place: Place) -> None:
        specs = {kernel.name: {**kernel.spec, "resource_dir": str(kernel.folder)}}
        choose = functools.partial(choose_environment, kernel.name, find_specs=lambda: specs, cwd=place.cwd)
        super().__init__(choose, cwd=place.cwd, env=place.environment)
        self.name = entry.name
        self.aliases = entry.aliases
        self.file_extension = entry.file_extension
        self.title = f"{kernel.title} kernel"

    @property
    def description(self) -> str:
        info = self._kernel.info.get("language_info") if self._kernel is not None else None
        version = f" {info['version']}" if isinstance(info, dict) and info.get("version") else ""
        return f"{self.title.removesuffix(' kernel')}{version} (Jupyter)"
