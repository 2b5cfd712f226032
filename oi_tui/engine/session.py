"""A session: one conversation with its model and its languages, opened and closed together.

This is what front ends hold. It builds the interpreter from settings, passes on what changes, and ends everything.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from oi_tui.engine.approval import Answerer, Approver
from oi_tui.engine.dialogue import Dialogue
from oi_tui.engine.errors import EngineError
from oi_tui.engine.history import History
from oi_tui.engine.interpreter import Interpreter
from oi_tui.engine.languages.registry import Registry, default_registry
from oi_tui.engine.llm.base import ChatModel, Usage
from oi_tui.engine.llm.choose import choose_model
from oi_tui.engine.lmc import Chunk, LmcDict, Message
from oi_tui.engine.settings import Settings


class Session:
    """One conversation. Use as an async context manager, or call `aclose`.

    `folder` holds what belongs to the conversation (complete outputs, for one); without it a private temporary folder
    is used and removed at the end.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        model: ChatModel | None = None,
        languages: Registry | None = None,
        folder: Path | None = None,
    ) -> None:
        self._owns_folder = folder is None
        self.folder = folder if folder is not None else Path(tempfile.mkdtemp(prefix="oi-tui-"))
        self.languages = languages or default_registry(settings, cwd=Path.cwd(), folder=self.folder)
        self._model = model or choose_model(settings.llm)
        self._own_model = model is None
        self._dialogue = Dialogue(self._model, self.languages, settings)
        self._interpreter = Interpreter(
            settings=settings,
            dialogue=self._dialogue,
            languages=self.languages,
            history=History(),
            folder=self.folder,
        )
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    # -- state --------------------------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        return self._interpreter.settings

    @property
    def history(self) -> History:
        return self._interpreter.history

    @property
    def messages(self) -> list[LmcDict]:
        """The conversation as LMC messages: fresh copies, safe to change."""
        return [message.to_dict() for message in self.history]

    @messages.setter
    def messages(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self._interpreter.history = History.from_lmc(messages)

    @property
    def shown(self) -> Sequence[Message]:
        """What a screen begins with. A stored conversation has errors and notices between its messages."""
        return tuple(self.history)

    @property
    def usage(self) -> Usage:
        """Tokens and cost of all requests of this session."""
        return self._dialogue.usage

    @property
    def context_used(self) -> int:
        """Tokens that the last request and its answer took."""
        return self._dialogue.context_used

    @property
    def context_window(self) -> int | None:
        """Tokens the model takes; None when unknown."""
        return self._dialogue.context_window

    @property
    def last_error(self) -> EngineError | None:
        """What ended the last turn early, if anything did."""
        return self._interpreter.last_error

    # -- changing it --------------------------------------------------------------------------------------------

    def configure(self, **changes: Any) -> None:
        """Change settings from the next request on."""
        self._apply(replace(self.settings, **changes))

    async def configure_llm(self, **changes: Any) -> None:
        """Change model settings from the next request on; another kind of model replaces the present one."""
        llm = replace(self.settings.llm, **changes)
        if self._own_model:
            model = choose_model(llm)
            other_function = llm.completions is not self.settings.llm.completions
            if type(model) is not type(self._model) or other_function:
                old, self._model = self._model, model
                self._dialogue.model = model
                await old.aclose()
        self._apply(replace(self.settings, llm=llm))

    def _apply(self, settings: Settings) -> None:
        self._interpreter.settings = settings
        self._dialogue.settings = settings

    # -- turns --------------------------------------------------------------------------------------------------

    async def prewarm(self) -> None:
        """Start what the first turn needs: the model's worker and a kernel. Never raises; errors show when used."""
        await asyncio.gather(self._model.warm(), self.languages.python.warm(), return_exceptions=True)

    def respond(
        self, message: str | Sequence[Mapping[str, Any]] | None, *, approve: Approver, answer: Answerer
    ) -> AsyncGenerator[Chunk, None]:
        """One turn; see `Interpreter.respond`. Consume it inside `contextlib.aclosing`."""
        return self._interpreter.respond(message, approve=approve, answer=answer)

    def run_code(self, language: str, code: str, *, approve: Approver, answer: Answerer) -> AsyncGenerator[Chunk, None]:
        """Run the user's own code, without asking the model; see `Interpreter.run_code`."""
        return self._interpreter.run_code(language, code, approve=approve, answer=answer)

    async def interrupt(self) -> None:
        """Interrupt the running code; state kept, the turn ends."""
        await self._interpreter.interrupt()

    def take_notices(self) -> list[Chunk]:
        """Notices that no turn has yielded, each once: to be shown after a turn that was cancelled."""
        return self._interpreter.take_notices()

    async def kill(self) -> None:
        """Terminate the running language; state lost, the turn ends."""
        await self._interpreter.kill()

    async def reset(self) -> None:
        """Forget the conversation and end all languages; the next run starts them afresh."""
        self._interpreter.history = History()
        self._dialogue.forget()
        await self.languages.terminate_all()

    async def aclose(self) -> None:
        """End the model's worker, every language and all their children. Idempotent."""
        if self._closed:
            return
        self._closed = True
        await asyncio.gather(self._model.aclose(), self.languages.aclose(), return_exceptions=True)
        if self._owns_folder:
            await asyncio.to_thread(shutil.rmtree, self.folder, True)
