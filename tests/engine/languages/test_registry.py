"""Which languages there are: names, aliases, what is missing, and that asking costs nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from oi_tui.engine.languages import catalogue, jupyter_kernels
from oi_tui.engine.languages.catalogue import Entry, built_in_entries
from oi_tui.engine.languages.place import environment_for_code
from oi_tui.engine.languages.registry import Registry, default_registry
from oi_tui.engine.settings import Settings

ABSENT = Entry(
    name="absent",
    title="Absent",
    load="nowhere:Nothing",
    file_extension="abs",
    lexer="text",
    executables=("oi-tui-has-no-such-program",),
    packages={"*": "absent-runtime", "url": "https://absent.example"},
)


class Parrot:
    """Custom language as documented: no constructor, a sync generator."""

    name = "Parrot"
    aliases = ("polly", "js")
    file_extension = "sqk"
    system_message = "Parrot repeats."

    def run(self, code: str) -> Iterator[dict[str, str]]:
        yield {"type": "console", "format": "output", "content": code}

    def stop(self) -> None: ...

    def terminate(self) -> None: ...


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("shell", "shell"),
        ("bash", "shell"),
        ("SH", "shell"),
        ("zsh", "shell"),
        (" Bash ", "shell"),
        ("py", "python"),
        ("python3", "python"),
        ("js", "javascript"),
        ("node", "javascript"),
        ("rb", "ruby"),
        ("R", "r"),
        ("pwsh", "powershell"),
        ("jsx", "react"),
        ("cobol", None),
        ("", None),
    ],
)
def test_every_name_leads_to_one_language(tag: str, name: str | None) -> None:
    assert Registry(built_in_entries("linux")).canonical(tag) == name


def test_aliases_share_one_instance() -> None:
    registry = Registry()
    assert registry.get("bash") is registry.get("zsh") is registry.get("shell") is not None


def test_powershell_is_the_shell_on_windows() -> None:
    registry = Registry(built_in_entries("win32"))
    assert registry.canonical("bash") == registry.canonical("shell") == registry.canonical("bat") == "powershell"


def test_no_two_languages_share_a_name() -> None:
    for platform in ("linux", "win32", "darwin"):
        names = [name for entry in built_in_entries(platform) for name in (entry.name, *entry.aliases)]
        assert len(names) == len(set(names))


def test_a_missing_runtime_is_not_offered_and_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "find_executable", lambda name: name if name == "apt-get" else None)
    registry = Registry([ABSENT])
    assert registry.names == ()
    assert registry.get("absent") is None
    line = registry.missing["absent"]
    assert "sudo apt install absent-runtime" in line
    assert registry.explain("absent") == line
    assert "\n" not in line


def test_without_an_installer_the_line_says_where_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "find_executable", lambda name: None)
    assert "https://absent.example" in Registry([ABSENT]).missing["absent"]


def test_a_language_of_another_platform_says_so() -> None:
    other = Entry(
        name="x", title="XScript", load="x:X", file_extension="x", lexer="text", platforms=("no-such-platform",)
    )
    assert "XScript" in Registry([other]).missing["x"]


def test_the_settings_restrict_what_is_offered() -> None:
    registry = default_registry(Settings(languages=("bash", "HTML", "nonsense")))
    assert registry.names == ("shell", "html")
    assert registry.get("python") is None
    assert "turned off" in registry.explain("python")
    assert "There is no language" in registry.explain("cobol")
    assert registry.explain("shell") == ""


def test_a_custom_language_takes_its_name_and_aliases() -> None:
    registry = Registry()
    registry.add(Parrot)
    assert registry.canonical("polly") == registry.canonical("js") == registry.canonical("parrot") == "parrot"
    assert registry.canonical("node") == "javascript"
    assert "Parrot repeats." in registry.system_messages()
    assert registry.file_extension("polly") == "sqk"
    registry.use_only([Parrot])
    assert registry.names == ("parrot",)


def kernel(folder: Path, name: str, language: str, program: str = sys.executable, title: str = "") -> None:
    (folder / name).mkdir(parents=True)
    spec = {"argv": [program, "{connection_file}"], "language": language, "display_name": title or name}
    (folder / name / "kernel.json").write_text(json.dumps(spec))


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder with Jupyter kernels."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    monkeypatch.setattr(jupyter_kernels, "kernel_folders", lambda: [folder])
    return folder


def test_every_jupyter_kernel_is_a_language(kernels: Path) -> None:
    kernel(kernels, "julia-1.10", "julia", title="Julia 1.10")
    kernel(kernels, "xcpp17", "C++17")
    registry = default_registry(Settings())
    assert {"julia", "c++17"} <= set(registry.names)
    assert registry.canonical("julia-1.10") == registry.canonical("jupyter:julia-1.10") == "julia"
    assert registry.title("julia") == "Julia 1.10"
    assert registry.file_extension("julia") == "jl"
    language = registry.get("Julia")
    assert language is not None
    assert language.name == "julia"
    assert "Julia 1.10" in language.description


def test_a_built_in_language_wins_unless_the_user_says_otherwise(kernels: Path) -> None:
    kernel(kernels, "ir", "R", title="IRkernel")
    kernel(kernels, "bash", "bash", title="Bash kernel")
    plain = default_registry(Settings())
    assert "ir" not in plain.names
    assert plain.title("r") == "R"
    assert plain.title("ir") == "IRkernel"
    assert plain.canonical("bash") == "shell"
    assert plain.title("jupyter:bash") == "Bash kernel"
    chosen = default_registry(Settings(languages=("python", "ir", "jupyter:bash")))
    assert chosen.names == ("python", "shell", "r")
    assert chosen.title("r") == "IRkernel"
    assert chosen.title("sh") == "Bash kernel"
    both = default_registry(Settings(languages=("html", "react", "shell", "jupyter:bash")))
    assert both.names == ("shell", "html", "react", "jupyter:bash")


def test_a_kernel_steps_in_where_the_runtime_is_missing(kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "find_executable", lambda name: name if name == sys.executable else None)
    kernel(kernels, "ijava", "java", title="IJava")
    registry = default_registry(Settings())
    assert "java" in registry.names
    assert registry.title("java") == "IJava"
    assert "javascript" in registry.missing


def test_kernels_that_cannot_be_used_are_no_trouble(kernels: Path) -> None:
    kernel(kernels, "gone", "klingon", program="/no/such/program")
    kernel(kernels, "python3", "python")
    kernel(kernels, "other-env", "python", title="Other Python")
    for name, text in {"broken": "{", "empty": "", "list": "[]", "noargv": '{"language": "x"}'}.items():
        (kernels / name).mkdir()
        (kernels / name / "kernel.json").write_text(text)
    (kernels / "file").write_text("")
    os.mkfifo(kernels / "fifo")
    registry = default_registry(Settings())
    assert "klingon" in registry.missing
    assert registry.get("klingon") is None
    assert registry.canonical("python3") == "python"
    assert registry.canonical("other-env") is None
    assert registry.canonical("broken") is None
    named = default_registry(Settings(languages=("python", "other-env")))
    assert named.names == ("python", "other-env")


async def test_closing_and_asking_again() -> None:
    registry = Registry()
    first = registry.get("html")
    assert registry.live == (first,)
    assert registry.running == ()
    await registry.interrupt()
    await registry.kill()
    await registry.terminate_all()
    assert registry.get("html") is first
    await registry.aclose()
    await registry.aclose()
    assert registry.live == ()
    assert registry.get("html") is not first


def test_there_is_always_a_python_for_the_program_itself() -> None:
    registry = Registry()
    registry.use_only([Parrot])
    assert registry.python.name == "python"
    assert registry.get("python") is None
    assert registry.python in registry.live


def test_colours_and_extensions() -> None:
    from pygments.lexers import get_lexer_by_name

    registry = Registry()
    for entry in catalogue.BUILT_IN:
        get_lexer_by_name(registry.lexer(entry.name))
    assert (registry.file_extension("bash"), registry.file_extension("js"), registry.file_extension("?")) == (
        "sh",
        "js",
        "txt",
    )


def test_asking_what_there_is_imports_and_starts_nothing() -> None:
    script = (
        "import sys\n"
        "from oi_tui.engine.languages.registry import default_registry\n"
        "from oi_tui.engine.settings import Settings\n"
        "registry = default_registry(Settings())\n"
        "assert registry.names and registry.canonical('bash')\n"
        "heavy = {'jupyter_client', 'IPython', 'zmq', 'litellm', 'textual', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_code_is_not_given_the_keys_of_the_model() -> None:
    base = {"PATH": "/bin", "OPENAI_API_KEY": "a", "Anthropic_Api_Key": "b", "MY_KEY": "secret", "AWS_PROFILE": "me"}
    assert environment_for_code("secret", base=base) == {"PATH": "/bin", "AWS_PROFILE": "me"}
    assert environment_for_code(None, base=base)["MY_KEY"] == "secret"
    assert environment_for_code("secret", keep_keys=True, base=base) == base
