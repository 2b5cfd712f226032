"""Languages written by users, in the form that Open Interpreter documents.

A class with `name`, `run(code)`, `stop()` and `terminate()`. `run` is a generator, sync or async, of LMC dictionaries
without a role: `{"type": "console", "format": "output", "content": "…"}`. Sync generators run in a thread of their
own, so a slow one never holds up the screen.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from oi_tui.engine.approval import Answerer, ApprovedCode
from oi_tui.engine.errors import LanguageError
from oi_tui.engine.languages.base import Language
from oi_tui.engine.lmc import Chunk

_SEAM = ("run", "warm", "interrupt", "restart", "aclose")
_STOP_PATIENCE = 10.0
"""Seconds that `stop()` has to make the generator end before it is given up."""


def adapt(language: Any, *, computer: Any = None) -> Language:
    """A `Language` for what the user gave: unchanged if it is one already, otherwise wrapped.

    Classes are instantiated, with `computer` if their constructor wants an argument. Raises `LanguageError` for
    what has no `name` or no `run`.
    """
    made = _instantiate(language, computer) if isinstance(language, type) else language
    if all(callable(getattr(made, part, None)) for part in _SEAM):
        return cast(Language, made)
    name = getattr(made, "name", None)
    if not isinstance(name, str) or not name.strip():
        raise LanguageError(f"{_kind(made)} cannot be a language: it has no `name`.", 'Give it `name = "…"`.')
    if not callable(getattr(made, "run", None)):
        raise LanguageError(f"The language “{name}” has no `run(code)`.", "See docs/languages.md, “Your own language”.")
    return CustomLanguage(made)


def _instantiate(kind: type, computer: Any) -> Any:
    try:
        wanted = [
            parameter
            for parameter in inspect.signature(kind).parameters.values()
            if parameter.default is parameter.empty
            and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
    except ValueError:
        wanted = []
    return kind(computer) if wanted else kind()


def _kind(thing: Any) -> str:
    return type(thing).__name__


class CustomLanguage:
    """A documented custom language behind the seam."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.name: str = str(inner.name).strip().lower()
        self.title: str = str(inner.name).strip()
        self.aliases: tuple[str, ...] = tuple(str(alias).lower() for alias in getattr(inner, "aliases", None) or ())
        self.file_extension: str = str(getattr(inner, "file_extension", None) or "txt").lstrip(".")
        self.system_message: str = str(getattr(inner, "system_message", None) or "")
        self._running: ApprovedCode | None = None

    @property
    def description(self) -> str:
        return f"{self.title} ({_kind(self._inner)})"

    @property
    def is_running(self) -> bool:
        return self._running is not None

    async def warm(self) -> None:
        """Nothing is known that would help."""

    async def run(self, code: ApprovedCode, *, answer: Answerer) -> AsyncGenerator[Chunk, None]:
        if self._running is not None:
            raise LanguageError(f"{self.title} is still busy with other code.", "Wait, or stop it first.")
        self._running = code
        pieces = self._pieces(code.code)
        active = False
        try:
            async with contextlib.aclosing(pieces):
                async for piece in pieces:
                    for chunk in _chunks(piece, code.id):
                        active = active or chunk.format == "active_line"
                        yield chunk
            if active:
                yield Chunk("computer", "console", "active_line", None, id=code.id)
        finally:
            self._running = None

    async def interrupt(self) -> None:
        if self._running is not None:
            await self._call("stop")

    async def restart(self) -> None:
        await self._call("stop" if self._running is not None else "")
        await self._call("terminate")

    async def aclose(self) -> None:
        await self._call("terminate")

    async def _call(self, method: str) -> None:
        function = getattr(self._inner, method, None) if method else None
        if function is None:
            return
        result = function() if inspect.iscoroutinefunction(function) else await asyncio.to_thread(function)
        if inspect.isawaitable(result):
            await result

    async def _pieces(self, code: str) -> AsyncGenerator[Any, None]:
        """What the inner `run` yields, whatever kind of function it is. An error in it becomes console text."""
        try:
            made = self._inner.run(code)
            if isinstance(made, AsyncIterator):
                async for piece in made:
                    yield piece
            elif inspect.isawaitable(made):
                yield await made
            elif isinstance(made, Mapping | str) or made is None:
                yield made
            else:
                async with contextlib.aclosing(_in_thread(made, lambda: self._call("stop"))) as pieces:
                    async for piece in pieces:
                        yield piece
        except LanguageError:
            raise
        except Exception as error:  # the user's code may raise anything
            yield f"{type(error).__name__}: {error}\n"


def _chunks(piece: Any, id: str) -> Iterable[Chunk]:
    """The chunks in one piece. Flags are left out: the engine brackets messages itself."""
    if piece is None:
        return
    if isinstance(piece, str):
        yield Chunk("computer", "console", "output", piece, id=id)
        return
    if isinstance(piece, Chunk):
        yield replace(piece, id=id)
        return
    if not isinstance(piece, Mapping):
        yield Chunk("computer", "console", "output", str(piece), id=id)
        return
    if piece.get("start") or piece.get("end"):
        return
    wire = {"role": "computer", "type": "console", **piece}
    if wire["type"] == "console" and wire.get("format") is None:
        wire["format"] = "output"
    if wire.get("format") == "active_line" and isinstance(wire.get("content"), str):
        wire["content"] = int(wire["content"]) if wire["content"].strip().isdigit() else None
    yield Chunk.from_dict(wire, id=id)


_END = object()


async def _in_thread(pieces: Iterable[Any], stop: Callable[[], Any]) -> AsyncGenerator[Any, None]:
    """Iterate a sync generator in a daemon thread, one piece ahead at most.

    When the consumer leaves early, `stop` is called and the generator has `_STOP_PATIENCE` seconds to end.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Any] = asyncio.Queue(maxsize=64)
    room = threading.Semaphore(64)
    leave = threading.Event()
    ended = asyncio.Event()

    def put(item: Any) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, item)

    def iterate() -> None:
        last: Any = _END
        try:
            for piece in pieces:
                room.acquire()
                if leave.is_set():
                    break
                put(piece)
            if leave.is_set() and hasattr(pieces, "close"):
                pieces.close()
        except BaseException as error:
            last = error
        with contextlib.suppress(RuntimeError):  # the loop was closed while the generator went on
            if not leave.is_set():
                room.acquire()
                put(last)
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=iterate, name="custom-language", daemon=True).start()
    try:
        while (item := await queue.get()) is not _END:
            room.release()
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        leave.set()
        room.release()
        if not ended.is_set():
            await stop()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), _STOP_PATIENCE)
