"""Rich output that may be replaced: `clear_output` and `update_display`.

What has been yielded cannot be taken back, so a picture that the code is going to replace anyway is held until it has
stood for a second or the run ends. An animation of a thousand frames costs the model few of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from oi_tui.engine.languages.chunk_queue import ChunkQueue
from oi_tui.engine.languages.kernel_output import rich_chunks
from oi_tui.engine.lmc import Chunk

STANDS = 1.0
"""Seconds after which something that may yet be replaced is shown."""

_CLEARED = ""
"""The place of what was displayed after `clear_output`."""


class Displays:
    """The rich output of one run."""

    def __init__(self, queue: ChunkQueue, code_id: str) -> None:
        self._queue = queue
        self._code_id = code_id
        self._clear_pending = False
        self._replaces = False
        self._held: dict[str, tuple[float, list[Chunk]]] = {}
        self._loop = asyncio.get_running_loop()

    def show(self, data: Mapping[str, Any], display_id: str, is_update: bool) -> None:
        """Show something, or hold it when it is likely to be replaced soon."""
        self.before_output()
        chunks = rich_chunks(data, self._code_id)
        place = display_id if is_update else _CLEARED
        if is_update or (self._replaces and any(chunk.type != "console" for chunk in chunks)):
            earlier = [] if is_update else self._held.get(place, (0.0, []))[1]
            self._held[place] = (self._loop.time(), earlier + chunks)
            return
        for chunk in chunks:
            if chunk.recipient is None and chunk.type == "console":
                self._queue.text(chunk.text)
            else:
                self._queue.put(chunk)

    def clear(self, *, wait: bool) -> None:
        """`clear_output`. With `wait`, as soon as there is something new to see."""
        self._held.pop(_CLEARED, None)
        self._replaces = True
        self._clear_pending = True
        if not wait:
            self.before_output()

    def before_output(self) -> None:
        """Call before any output: a clearing that waited for it takes place."""
        if self._clear_pending:
            self._clear_pending = False
            self._queue.put(Chunk("computer", "console", "clear_output", True, id=self._code_id))

    def show_what_stands(self) -> None:
        """Show what has not been replaced for a while. Call now and then."""
        now = self._loop.time()
        for place in [place for place, (since, _) in self._held.items() if now - since >= STANDS]:
            self._release(place)

    def finish(self) -> None:
        """The run has ended: nothing will be replaced any more."""
        for place in list(self._held):
            self._release(place)

    def _release(self, place: str) -> None:
        for chunk in self._held.pop(place)[1]:
            self._queue.put(chunk)
