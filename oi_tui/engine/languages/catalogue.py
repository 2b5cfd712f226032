"""What oi-tui knows about each built-in language before anything of it is started or even imported."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oi_tui.engine.languages.base import Language
    from oi_tui.engine.languages.place import Place

_INSTALLERS = (
    ("apt-get", "sudo apt install"),
    ("dnf", "sudo dnf install"),
    ("pacman", "sudo pacman -S"),
    ("zypper", "sudo zypper install"),
    ("apk", "sudo apk add"),
    ("brew", "brew install"),
    ("winget", "winget install"),
    ("choco", "choco install"),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One language: its names, how its files are called and coloured, what must be installed to run it.

    `load` makes the `Language`: "module:class" below `oi_tui.engine.languages` (the class takes `(*, place)`), or a
    function of the place.
    """

    name: str
    title: str
    load: str | Callable[[Place], Language]
    file_extension: str
    lexer: str
    """The name under which Pygments knows the language."""
    aliases: tuple[str, ...] = ()
    executables: tuple[str, ...] = ()
    """Any one of these must be on the path. Empty: nothing needs to be installed."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Installer (see `_INSTALLERS`) to package name; key `*` for all others; key `url` when no installer has it."""
    is_offered: bool = True
    """False: it can be asked for by name, but is not offered to the model unless the user names it."""
    platforms: tuple[str, ...] = ()
    """Values of `sys.platform` on which the language exists at all. Empty: all."""

    @property
    def is_available(self) -> bool:
        """Whether its runtime is installed. Looked up once per process."""
        if self.platforms and sys.platform not in self.platforms:
            return False
        return not self.executables or any(find_executable(name) for name in self.executables)

    @property
    def missing(self) -> str:
        """One line: what is missing and the command that installs it. Empty when the language is available."""
        if self.is_available:
            return ""
        if self.platforms and sys.platform not in self.platforms:
            return f"{self.title} exists on macOS only."
        return f"{self.title} is not installed (no {' or '.join(self.executables)} on the path). {self._install_hint()}"

    def _install_hint(self) -> str:
        for program, command in _INSTALLERS:
            package = self.packages.get(program, self.packages.get("*"))
            if package and find_executable(program):
                return f"Install it with: {command} {package}"
        return f"See {self.packages['url']}." if "url" in self.packages else "Install it, then try again."


@functools.cache
def find_executable(name: str) -> str | None:
    """`shutil.which`, remembered for the life of the process."""
    return shutil.which(name)


PYTHON = Entry(
    name="python",
    title="Python",
    load="python_kernel:PythonKernel",
    file_extension="py",
    lexer="ipython3",
    aliases=("py", "python3", "ipython", "ipython3", "python3.11", "python3.12", "python3.13"),
)

_SHELL_ALIASES = ("bash", "sh", "zsh", "shellscript", "shell-script", "shell-session", "console", "terminal")

SHELL = Entry(
    name="shell",
    title="Shell",
    load="shell:Shell",
    file_extension="sh",
    lexer="bash",
    aliases=(*_SHELL_ALIASES, "batch", "bat"),
    executables=("bash", "zsh", "sh"),
)

JAVASCRIPT = Entry(
    name="javascript",
    title="JavaScript",
    load="javascript:JavaScript",
    file_extension="js",
    lexer="javascript",
    aliases=("js", "node", "nodejs", "node.js", "mjs", "cjs", "ecmascript"),
    executables=("node", "nodejs"),
    packages={
        "pacman": "nodejs",
        "brew": "node",
        "winget": "OpenJS.NodeJS.LTS",
        "*": "nodejs",
        "url": "https://nodejs.org",
    },
)

RUBY = Entry(
    name="ruby",
    title="Ruby",
    load="ruby:Ruby",
    file_extension="rb",
    lexer="ruby",
    aliases=("rb", "irb"),
    executables=("ruby",),
    packages={"winget": "RubyInstallerTeam.Ruby.3.3", "*": "ruby", "url": "https://www.ruby-lang.org"},
)

R = Entry(
    name="r",
    title="R",
    load="r:R",
    file_extension="r",
    lexer="r",
    aliases=("rscript", "rlang", "splus"),
    executables=("R", "Rscript"),
    packages={
        "apt-get": "r-base-core",
        "dnf": "R-core",
        "zypper": "R-base",
        "winget": "RProject.R",
        "choco": "r.project",
        "apk": "R",
        "*": "r",
        "url": "https://cran.r-project.org",
    },
)

POWERSHELL = Entry(
    name="powershell",
    title="PowerShell",
    load="powershell:PowerShell",
    file_extension="ps1",
    lexer="powershell",
    aliases=("pwsh", "ps1", "posh"),
    executables=("pwsh", "powershell"),
    packages={
        "brew": "powershell",
        "winget": "Microsoft.PowerShell",
        "choco": "powershell-core",
        "url": "https://aka.ms/install-powershell",
    },
)

JAVA = Entry(
    name="java",
    title="Java",
    load="java:Java",
    file_extension="java",
    lexer="java",
    aliases=("jshell", "jsh"),
    executables=("jshell",),
    packages={
        "apt-get": "default-jdk-headless",
        "dnf": "java-latest-openjdk-devel",
        "pacman": "jdk-openjdk",
        "zypper": "java-21-openjdk-devel",
        "apk": "openjdk21-jdk",
        "brew": "openjdk",
        "winget": "EclipseAdoptium.Temurin.21.JDK",
        "choco": "temurin",
        "url": "https://adoptium.net",
    },
)

APPLESCRIPT = Entry(
    name="applescript",
    title="AppleScript",
    load="applescript:AppleScript",
    file_extension="applescript",
    lexer="applescript",
    aliases=("osascript", "scpt"),
    executables=("osascript",),
    platforms=("darwin",),
)

HTML = Entry(
    name="html", title="HTML", load="html:Html", file_extension="html", lexer="html", aliases=("htm", "xhtml", "html5")
)

REACT = Entry(
    name="react", title="React", load="react:React", file_extension="jsx", lexer="jsx", aliases=("jsx", "reactjs")
)

BUILT_IN: tuple[Entry, ...] = (PYTHON, SHELL, JAVASCRIPT, RUBY, R, POWERSHELL, JAVA, APPLESCRIPT, HTML, REACT)
"""In the order in which the model is told about them."""


def built_in_entries(platform: str = sys.platform) -> tuple[Entry, ...]:
    """The built-in languages of a platform. On Windows PowerShell answers to the shell's names too."""
    if platform != "win32":
        return BUILT_IN
    powershell = replace(POWERSHELL, aliases=(*POWERSHELL.aliases, SHELL.name, *SHELL.aliases, "cmd"))
    return tuple(powershell if entry is POWERSHELL else entry for entry in BUILT_IN if entry is not SHELL)
