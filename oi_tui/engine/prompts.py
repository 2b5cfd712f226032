"""What the model is told before the conversation: who it works for, on what machine, and how its code gets run."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from oi_tui.engine.settings import Settings

_SPAN = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)

_TASK = """\
You are a capable assistant in a terminal. You get things done on the user's computer by writing code that runs there. \
The user sees all code and may change, decline or stop it; accept that and work with it.

Work in small steps. Before code, say in a sentence what it does. Read the real output before the next step. When \
something fails, find out why and try another way. Never invent output, and never say that something is done before \
you have seen that it is. Look at what is there before you change it, and ask before you delete or overwrite anything \
the user may need. Variables and imports stay between code blocks of one language. Code may ask the user a question \
with input(). When the task is done, answer briefly in plain words. Questions that need no code get an answer \
without code."""

TOOL_INSTRUCTIONS = "To run code, call the tool execute with the language and the code. Languages: {languages}."

EXECUTION_INSTRUCTIONS = """\
To run code, write it in a Markdown code block that begins with its language, like this:

```{example}
{sample}
```

The block is run once the user agrees, and its output is sent to you. So stop after the block and wait: write nothing \
more, and do not write the output yourself. Languages that can run: {languages}. Any other block, such as \
```text, is only shown."""

_SAMPLES = {"python": 'print("hello")', "shell": "echo hello", "javascript": 'console.log("hello")'}


@dataclass(frozen=True, slots=True)
class Machine:
    """What the model should know of the computer."""

    system: str
    shell: str
    folder: str
    python: str

    @classmethod
    def here(cls, python: str = "") -> Machine:
        """This machine; `python` describes the Python that runs code."""
        try:
            folder = os.getcwd()
        except OSError:
            folder = "(the folder is gone)"
        shell = os.environ.get("SHELL") or os.environ.get("COMSPEC") or "unknown"
        if not python:
            python = f"Python {platform.python_version()}, {sys.executable}"
        return cls(_system_name(), shell, folder, python)

    def facts(self, today: date) -> str:
        """One line for each fact."""
        return "\n".join(
            (
                f"Operating system: {self.system}",
                f"Shell: {self.shell}",
                f"Working folder: {self.folder}",
                f"Python code runs in: {self.python}",
                f"Date: {today.isoformat()}",
            )
        )


def system_message(
    settings: Settings,
    *,
    languages: Sequence[str],
    language_notes: Sequence[str] = (),
    tool_mode: bool,
    python: str = "",
    machine: Machine | None = None,
    today: date | None = None,
    template_values: Mapping[str, str] | None = None,
) -> str:
    """The whole system message, in Open Interpreter's order: the message itself, the languages' own, the user's
    instructions, and in text mode how to write code.

    `template_values` holds the text of each `{{ expression }}` in the user's own settings (see `templates`); an
    expression without a value stays as it is. The built-in parts are never templates, so that a folder's name is not.
    """
    values = template_values or {}
    if settings.system_message is None:
        machine = machine or Machine.here(python)
        parts = [_TASK, machine.facts(today or date.today())]
        if tool_mode and languages:
            parts.append(TOOL_INSTRUCTIONS.replace("{languages}", _listed(languages)))
    else:
        parts = [fill(settings.system_message, values)]
    parts += language_notes
    parts.append(fill(settings.custom_instructions, values))
    if not tool_mode:
        parts.append(execution_instructions(settings, languages))
    return "\n\n".join(part.strip() for part in parts if part.strip())


def execution_instructions(settings: Settings, languages: Sequence[str]) -> str:
    """How to write code in text mode: the user's text if there is one, otherwise ours."""
    if settings.llm.execution_instructions is not None:
        return settings.llm.execution_instructions
    if not languages:
        return ""
    example = next((name for name in languages if name in _SAMPLES), languages[0])
    text = EXECUTION_INSTRUCTIONS.replace("{example}", example).replace("{sample}", _SAMPLES.get(example, "…"))
    return text.replace("{languages}", _listed(languages))


def templates(settings: Settings) -> list[str]:
    """The expressions of all `{{ … }}` spans in the settings that may hold them, each once, in order."""
    texts = [settings.system_message or "", settings.custom_instructions]
    return list(dict.fromkeys(span for text in texts for span in template_spans(text)))


def template_spans(text: str) -> list[str]:
    """The expressions between `{{` and `}}`, without the space around them."""
    return [found[1].strip() for found in _SPAN.finditer(text) if found[1].strip()]


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with each `{{ expression }}` replaced by its value, once: values are not searched for spans."""
    return _SPAN.sub(lambda found: values.get(found[1].strip(), found[0]), text)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _system_name() -> str:
    system = platform.system()
    if system == "Darwin":
        return f"macOS {platform.mac_ver()[0]} ({platform.machine()})"
    if system == "Linux":
        try:
            name = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
        except OSError:
            name = "Linux"
        return f"{name} (Linux {platform.release()}, {platform.machine()})"
    return f"{system} {platform.release()} ({platform.machine()})"
