"""Chunks become messages: brackets the raw chunks of a turn and stores what they add up to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oi_tui.engine.history import CodeFate, History
from oi_tui.engine.lmc import Chunk, Framer, Message, new_id
from oi_tui.engine.output import OutputCapture


class Recording:
    """Frames the chunks of one turn and keeps the history in step with them.

    Nothing is lost when a turn is cut: `close` stores what has arrived of the open message. Console text goes through
    an `OutputCapture`, so memory stays bounded and the whole text is on disk.
    """

    def __init__(self, history: History, folder: Path) -> None:
        self._history = history
        self._folder = folder
        self._framer = Framer()
        self._parts: list[str] = []
        self._capture: OutputCapture | None = None
        self._open: Chunk | None = None
        self._meta: dict[str, dict[str, Any]] = {}

    def feed(self, chunk: Chunk) -> list[Chunk]:
        """The chunk with its flags; stores each message as its end comes by."""
        framed = self._framer.feed(chunk)
        for piece in framed:
            self._store(piece)
        return framed

    def close(self, **meta: Any) -> list[Chunk]:
        """End the open message; `meta` is kept with it."""
        if self._open is not None and meta:
            self.note(self._open.id, **meta)
        framed = self._framer.close()
        for piece in framed:
            self._store(piece)
        return framed

    def note(self, message_id: str | None, **meta: Any) -> None:
        """Keep these keys in the `meta` of the message with this id, when it is stored."""
        if message_id is not None:
            self._meta.setdefault(message_id, {}).update(meta)

    def _store(self, piece: Chunk) -> None:
        if piece.start:
            self._open, self._parts = piece, []
            if piece.type == "console":
                self._capture = self._new_capture(piece.id or "")
        elif piece.end:
            self._finish()
        elif piece.format == "clear_output" and piece.id is not None:
            self._history.drop_output(piece.id)
            if self._capture is not None:
                self._capture.close()
                self._capture = self._new_capture(piece.id)
        elif not piece.is_ephemeral:
            if self._capture is not None:
                self._capture.feed(piece.text)
            else:
                self._parts.append(piece.text)

    def _new_capture(self, code_id: str) -> OutputCapture:
        return OutputCapture(self._folder / f"{code_id}-{new_id()}.txt")

    def _finish(self) -> None:
        opened, self._open = self._open, None
        if opened is None:
            return
        meta = self._meta.pop(opened.id or "", {})
        if opened.type == "console":
            meta |= self._finish_capture()
        content = meta.pop("content", None)
        text = "".join(self._parts) if content is None else content
        message_id = new_id() if opened.role == "computer" else opened.id or new_id()
        if opened.role == "computer":
            meta["code_id"] = opened.id
            self._history.drop_empty_console(opened.id)
            if opened.type == "console" and not text and self._history.has_output(opened.id):
                return
        elif opened.type == "code":
            partial = meta.get("partial") and opened.role == "assistant"
            meta.setdefault("state", CodeFate.INCOMPLETE if partial else CodeFate.PENDING)
        fmt = "output" if opened.type == "console" else opened.format
        recipient = opened.recipient
        self._history.add(Message(opened.role, opened.type, text, fmt, recipient, message_id, meta))

    def _finish_capture(self) -> dict[str, Any]:
        capture, self._capture = self._capture, None
        if capture is None:
            return {}
        capture.close()
        found: dict[str, Any] = {"content": capture.text}
        if capture.path is not None:
            found["full_output"] = str(capture.path)
        return found
