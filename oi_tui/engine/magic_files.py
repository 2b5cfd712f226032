"""Magic commands that write the conversation to a file, or read one. A file that is there is never replaced unless the
line ends with `--force`; Open Interpreter's own `messages.json` is."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from oi_tui.engine.errors import EngineError, SettingsError
from oi_tui.engine.exporters import export
from oi_tui.engine.exporters.base import Conversation

if TYPE_CHECKING:
    from oi_tui.engine.session import Session

FORCE = "--force"
MESSAGES = "messages.json"


async def save_message(session: Session, argument: str) -> str:
    """Write the messages as JSON."""
    path = _path(argument, MESSAGES, ".json")
    written = await _export(session, "json", path, force=FORCE in argument.split() or path.name == MESSAGES)
    return f"Saved {len(session.history)} messages in {written}."


async def load_message(session: Session, argument: str) -> str:
    """Take the messages of a JSON file in place of the present ones. Nothing runs. Raises `SettingsError`."""
    from oi_tui.engine.private_files import read_regular
    from oi_tui.engine.store.open_interpreter import LARGEST, parse, to_messages

    path = _path(argument, MESSAGES, ".json")
    try:
        read = await asyncio.to_thread(lambda: parse(read_regular(path, LARGEST)))
    except FileNotFoundError:
        raise SettingsError(f"There is no file {path}.") from None
    messages, problems = to_messages(read.messages)
    if read.problems and not messages:
        raise EngineError(f"{path}: {read.problems[0]}.")
    session.messages = [message.to_dict() for message in messages]
    notes = "".join(f"\n{problem}" for problem in (*read.problems, *problems))
    return f"Loaded {len(messages)} messages from {path}. Nothing was run.{notes}"


async def save_jupyter(session: Session, argument: str) -> str:
    """Write a notebook."""
    path = _path(argument, f"{_stem(session)}.ipynb", ".ipynb")
    return f"Notebook: {await _export(session, 'notebook', path, force=FORCE in argument.split())}"


async def save_markdown(session: Session, argument: str) -> str:
    """Write Markdown."""
    path = _path(argument, f"{_stem(session)}.md", ".md")
    return f"Markdown: {await _export(session, 'markdown', path, force=FORCE in argument.split())}"


async def _export(session: Session, format: str, path: Path, *, force: bool) -> Path:
    """Raises `ExportError`."""
    opening = next((m.text for m in session.history if m.role == "user" and m.type == "message"), "Conversation")
    title = " ".join(opening.split())[:200]
    model = session.settings.llm.model or ""
    conversation = Conversation(title, list(session.history), created=None, model=model)
    keys = [session.settings.llm.api_key] if session.settings.llm.api_key else []
    (written,) = await asyncio.to_thread(export, conversation, format, path, force=force, keys=keys)
    return written.resolve()


def _path(argument: str, default: str, suffix: str) -> Path:
    """What was typed, with the right ending; in the present folder."""
    typed = " ".join(word for word in argument.split(" ") if word != FORCE).strip().strip("\"'")
    path = Path(typed or default).expanduser()
    return path if path.suffix.lower() == suffix else path.with_name(path.name + suffix)


def _stem(session: Session) -> str:
    opening = next((m.text for m in session.history if m.role == "user" and m.type == "message"), "")
    words = re.sub(r"[^\w-]+", "-", opening)[:40].strip("-_") or "conversation"
    return f"{words}-{time.strftime('%Y-%m-%d-%H%M%S')}"
