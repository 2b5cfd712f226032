"""Which languages there are: names, aliases, what is missing, and that asking costs nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from oi_tui.engine.languages import catalogue
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
