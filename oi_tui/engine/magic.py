"""Magic commands: `%reset`, `%undo` and the like, as functions over a session. Front ends show what they return."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oi_tui._version import __version__
from oi_tui.engine.errors import EngineError, SettingsError
from oi_tui.engine.magic_files import load_message, save_jupyter, save_markdown, save_message
from oi_tui.engine.settings_sources import checked, explain, nearest

if TYPE_CHECKING:
    from oi_tui.engine.session import Session

MAGIC = "%"
SHELL_PREFIXES = ("%%", "!")
"""What a line for the session's shell begins with. Front ends run it with `Session.run_code`."""


@dataclass(frozen=True, slots=True)
class MagicResult:
    """What a command did. `text` is for the user; `transcript_changed`: messages are gone, draw them anew."""

    text: str
    transcript_changed: bool = False


@dataclass(frozen=True, slots=True)
class MagicCommand:
    """One command. `run` gets the session and what stands behind the name."""

    name: str
    argument: str
    summary: str
    run: Callable[[Session, str], Awaitable[MagicResult]]

    @property
    def usage(self) -> str:
        return f"{MAGIC}{self.name} {self.argument}".strip()


def is_magic(line: str) -> bool:
    """Whether a line is a magic command, known or not."""
    return line.startswith(MAGIC) and shell_line(line) is None


def shell_line(line: str) -> str | None:
    """The shell command of a `%%` or `!` line; None for other lines."""
    for prefix in SHELL_PREFIXES:
        if line.startswith(prefix):
            return line.removeprefix(prefix).strip()
    return None


async def run_magic(session: Session, line: str) -> MagicResult:
    """Run one line such as `%verbose true`. Faults of the user become the result's text; nothing is raised for them."""
    name, _, argument = line.strip().removeprefix(MAGIC).partition(" ")
    command = COMMANDS.get(name.lower())
    if command is None:
        guess = nearest(name.lower(), COMMANDS)
        said = f"There is no command {MAGIC}{name}." + (f" Did you mean {MAGIC}{guess}?" if guess else "")
        return MagicResult(f"{said}\n{_help_text()}")
    try:
        return await command.run(session, argument.strip())
    except SettingsError as error:
        return MagicResult(f"{error} Usage: {command.usage}")
    except EngineError as error:
        return MagicResult(str(error))


def _help_text() -> str:
    width = max(len(command.usage) for command in COMMANDS.values())
    lines = [f"  {command.usage:<{width}}  {command.summary}" for command in COMMANDS.values()]
    return "\n".join(lines)


async def _help(session: Session, argument: str) -> MagicResult:
    return MagicResult(
        f"{_help_text()}\n  {'!command':<{max(len(c.usage) for c in COMMANDS.values())}}  run in the shell"
    )


async def _reset(session: Session, argument: str) -> MagicResult:
    await session.reset()
    return MagicResult("A new conversation. The languages were ended, their variables are gone.", True)


async def _undo(session: Session, argument: str) -> MagicResult:
    messages = list(session.history)
    last = next((i for i in reversed(range(len(messages))) if messages[i].role == "user"), None)
    if last is None:
        return MagicResult("There is nothing to undo.")
    dropped = session.history.truncate_to(last)
    text = next((message.text for message in dropped if message.type == "message"), "")
    shown = " ".join(text.split())
    shown = shown if len(shown) <= 60 else shown[:59] + "…"
    count = "1 message" if len(dropped) == 1 else f"{len(dropped)} messages"
    return MagicResult(f"Dropped {count} from “{shown}” on. What code did is not undone.", True)


async def _tokens(session: Session, argument: str) -> MagicResult:
    window = session.context_window
    share = f" of {window:,} ({session.context_used / window:.0%})" if window else ""
    usage = session.usage
    cost = "unknown price" if usage.cost is None else f"${usage.cost:.4f}"
    about = "about " if usage.estimated else ""
    return MagicResult(
        f"Context: {session.context_used:,} tokens{share}.\n"
        f"This session: {about}{usage.prompt_tokens:,} tokens in, {usage.completion_tokens:,} out, {cost}."
    )


async def _info(session: Session, argument: str) -> MagicResult:
    settings = session.settings
    shown = {name: value for name, value, _ in explain(settings)}
    rows = {
        "oi-tui": f"{__version__}, litellm {_version('litellm')}, ipykernel {_version('ipykernel')}",
        "system": f"{platform.platform()}, Python {platform.python_version()} ({sys.executable})",
        "model": shown["llm.model"],
        "endpoint": shown["llm.api_base"] if settings.llm.api_base else "the provider's own",
        "code": session.languages.python.description,
        "languages": ", ".join(session.languages.names),
        "approval": "code runs without asking" if settings.auto_run else "each time",
        "safe mode": settings.safe_mode,
        "profile": settings.profile or "default",
        "folder": os.getcwd(),
        "messages": str(len(session.history)),
    }
    return MagicResult("\n".join(f"{name:<9}  {value}" for name, value in rows.items()))


def _version(package: str) -> str:
    from importlib import metadata  # brings the email package: 2 MB that only %info needs

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _switched(name: str, now: bool, argument: str) -> bool:
    """The new value of a switch: what is written, or the opposite of now. Raises `SettingsError`."""
    return bool(checked(name, argument)) if argument else not now


async def _verbose(session: Session, argument: str) -> MagicResult:
    value = _switched("verbose", session.settings.verbose, argument)
    session.configure(verbose=value)
    return MagicResult("More is told from now on." if value else "Less is told from now on.")


async def _auto_run(session: Session, argument: str) -> MagicResult:
    value = _switched("auto_run", session.settings.auto_run, argument)
    if value and session.settings.safe_mode != "off":
        return MagicResult("Safe mode is on, so code is always asked for.")
    session.configure(auto_run=value)
    return MagicResult("Code runs without asking from now on." if value else "You are asked before code runs.")


async def _save(session: Session, argument: str) -> MagicResult:
    return MagicResult(await save_message(session, argument))


async def _load(session: Session, argument: str) -> MagicResult:
    return MagicResult(await load_message(session, argument), True)


async def _jupyter(session: Session, argument: str) -> MagicResult:
    return MagicResult(await save_jupyter(session, argument))


async def _markdown(session: Session, argument: str) -> MagicResult:
    return MagicResult(await save_markdown(session, argument))


COMMANDS: Mapping[str, MagicCommand] = {
    command.name: command
    for command in (
        MagicCommand("help", "", "these commands", _help),
        MagicCommand("reset", "", "a new conversation and fresh languages", _reset),
        MagicCommand("undo", "", "drop your last message and all after it", _undo),
        MagicCommand("tokens", "", "tokens and cost so far", _tokens),
        MagicCommand("info", "", "versions, model, kernel, folder", _info),
        MagicCommand("save_message", "[path]", "write the messages to a JSON file", _save),
        MagicCommand("load_message", "[path]", "go on with the messages of a JSON file", _load),
        MagicCommand("jupyter", "[path]", "write a notebook with outputs and pictures", _jupyter),
        MagicCommand("markdown", "[path]", "write the conversation as Markdown", _markdown),
        MagicCommand("auto_run", "[true|false]", "run code without asking, or ask", _auto_run),
        MagicCommand("verbose", "[true|false]", "tell more, or less", _verbose),
    )
}
