"""Entering a stored conversation: what the screen says and does when the kernel is another one."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING

from oi_tui.engine.lmc import notice
from oi_tui.engine.rebuild import PastRun, past_runs

if TYPE_CHECKING:
    from oi_tui.engine.session import Session
    from oi_tui.engine.store.store import Store
    from oi_tui.screens.chat import ChatScreen


def enter(chat: ChatScreen, session: Session, *, message: str | None = None) -> None:
    """Say that the kernel is new, ask again about code that waits, and show the message that was looked for. Nothing
    runs."""
    said = []
    if note := getattr(session, "note", ""):
        said.append(notice("fork", note))
    runs = past_runs(session.history)
    if runs:
        said.append(notice("kernel", lost_state(runs)))
    chat.transcript.apply(said)
    chat.transcript.action_follow()
    if session.history.pending_code() is not None:
        chat.ask_again()
    elif message is not None:
        chat.show_message(message)


def lost_state(runs: list[PastRun]) -> str:
    """What the user has to know about a kernel that has forgotten."""
    if len(runs) == 1:
        return "The kernel is new: what the block above defined is gone. F8 runs it again."
    count = f"{len(runs)} blocks"
    return f"The kernel is new: what {count} above defined is gone. F8 lists them and runs them again, in order."


async def offer_import(store: Store) -> str:
    """On the first start: words about Open Interpreter's conversations, if they are here. Later: tidies up."""
    if store.path.exists():
        await asyncio.to_thread(
            importlib.import_module, "oi_tui.screens.conversations"
        )  # so that the list opens at once
        store.sweep()
        return ""
    reader = await asyncio.to_thread(importlib.import_module, "oi_tui.engine.store.open_interpreter")
    if (folder := await asyncio.to_thread(reader.find_folder)) is None:
        return ""
    return f"Open Interpreter's conversations are in {folder}. “oi-tui import” brings them in; they stay there too."
