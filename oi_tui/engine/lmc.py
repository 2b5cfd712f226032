"""LMC: the messages and chunks that a turn is made of.

LMC ("language model computer") is Open Interpreter's wire format, a superset of the chat roles with a third
role, `computer`. A `Message` is one kind of data; a `Chunk` is a piece of one on its way. Flag chunks with
`start` or `end` and no content bracket each message:

    code start, code…, code end, confirmation, console start, active_line n, output…, active_line null,
    console end, message start, message…, message end

Both are immutable values. The dictionaries made by `to_dict` are the wire and disk form; each call makes a new
one, so nothing that a consumer does to it reaches the engine.

Beyond the documented protocol the engine speaks to its own front ends with a few more chunks, all of them
recognisable by `Chunk.is_protocol` being false: `assistant/reasoning` (the model's thinking, kept apart from the
answer), `server/notice` (one line for the user; `format` says which kind), `server/usage` (tokens and cost of
a request), `server/decision` (what was decided about a code block) and `computer/console/line_times`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

Role: TypeAlias = Literal["user", "assistant", "computer", "server"]
Content: TypeAlias = str | int | Mapping[str, Any] | None
LmcDict: TypeAlias = dict[str, Any]
"""The wire and disk form of a chunk or a message."""

ROLES: frozenset[str] = frozenset({"user", "assistant", "computer", "server"})

_EXTENSION_FORMATS = frozenset({"line_times", "error_line", "active_statement", "clear_output"})
EPHEMERAL_FORMATS = frozenset({"active_line"}) | _EXTENSION_FORMATS
"""Console formats that travel inside a console block but are not part of its text.

Beside `active_line`: `error_line` (int: where the code failed), `active_statement` (int or None: the statement of the
block from which the active line was reached, where they differ), `line_times` (dict: line as text → seconds) and
`clear_output` (True: what the code printed so far may be taken off the screen).
"""

EPHEMERAL_TYPES = frozenset({"confirmation", "review", "notice", "usage", "decision", "status", "error"})
"""Types that are events, not messages: they have no start and end and are never sent to the model."""

_EXTENSION_TYPES = frozenset({"reasoning", "notice", "usage", "decision"})


def new_id() -> str:
    """A fresh message id: 12 hexadecimal digits, unique within any conversation."""
    return uuid.uuid4().hex[:12]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of a message on its way, or one event of a turn.

    `id` names the message the chunk belongs to. Chunks with role `computer` carry the id of the **code message**
    whose run produced them, so a screen can put output under its code. The id is not part of the wire form.
    """

    role: Role
    type: str
    format: str | None = None
    content: Content = None
    start: bool = False
    end: bool = False
    recipient: str | None = None
    id: str | None = None

    @property
    def text(self) -> str:
        """The content if it is text, otherwise the empty string."""
        return self.content if isinstance(self.content, str) else ""

    @property
    def is_flag(self) -> bool:
        return self.start or self.end

    @property
    def is_ephemeral(self) -> bool:
        """True for events that are shown but never stored as a message."""
        return self.type in EPHEMERAL_TYPES or (self.type == "console" and self.format in EPHEMERAL_FORMATS)

    @property
    def is_protocol(self) -> bool:
        """True for what the documented LMC protocol knows; the rest is for the program's own front ends."""
        return self.type not in _EXTENSION_TYPES and self.format not in _EXTENSION_FORMATS

    def to_dict(self) -> LmcDict:
        """The wire form: flags carry `start` or `end`, everything else carries `content` (which may be null)."""
        wire: LmcDict = {"role": self.role, "type": self.type}
        if self.format is not None:
            wire["format"] = self.format
        if self.start:
            wire["start"] = True
        elif self.end:
            wire["end"] = True
        else:
            wire["content"] = dict(self.content) if isinstance(self.content, Mapping) else self.content
        if self.recipient is not None:
            wire["recipient"] = self.recipient
        return wire

    @classmethod
    def from_dict(cls, wire: Mapping[str, Any], *, id: str | None = None) -> Chunk:
        """Read a wire chunk. Raises `ValueError` for anything that is not one."""
        role, kind = wire.get("role"), wire.get("type")
        if role not in ROLES or not isinstance(kind, str):
            raise ValueError(f"not an LMC chunk: role {role!r}, type {kind!r}")
        return cls(
            role=role,
            type=kind,
            format=wire.get("format"),
            content=wire.get("content"),
            start=bool(wire.get("start")),
            end=bool(wire.get("end")),
            recipient=wire.get("recipient"),
            id=id,
        )


@dataclass(frozen=True, slots=True)
class Message:
    """One complete message. `meta` holds what the program knows beyond LMC; it is never sent as such.

    Keys of `meta` in use: `state` of a code message (see `CodeState`), `digest`, `original` (the model's code before
    the user edited it), `note` (the user's words when declining), `code_id` (on computer messages: the code that
    produced them), `call_id` (the provider's id of the tool call), `full_output` (path of the complete output),
    `exit` (how the run ended), `lost` and `lost_before` (on code: what became of its language's state).
    """

    role: Role
    type: str
    content: Content = ""
    format: str | None = None
    recipient: str | None = None
    id: str = field(default_factory=new_id)
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The content if it is text, otherwise the empty string."""
        return self.content if isinstance(self.content, str) else ""

    def with_meta(self, **changes: Any) -> Message:
        """A copy whose `meta` has these keys set."""
        return replace(self, meta={**self.meta, **changes})

    def to_dict(self) -> LmcDict:
        """The LMC form: role, type, content and, where there is one, format and recipient."""
        wire: LmcDict = {"role": self.role, "type": self.type}
        if self.format is not None:
            wire["format"] = self.format
        wire["content"] = self.content
        if self.recipient is not None:
            wire["recipient"] = self.recipient
        return wire

    @classmethod
    def from_dict(cls, wire: Mapping[str, Any]) -> Message:
        """Read an LMC message. Raises `ValueError` for anything that is not one."""
        role, kind, content = wire.get("role"), wire.get("type", "message"), wire.get("content", "")
        if role not in ROLES or not isinstance(kind, str):
            raise ValueError(f"not an LMC message: role {role!r}, type {kind!r}")
        if content is None:
            content = ""
        if not isinstance(content, str | int | Mapping):
            raise ValueError(f"not an LMC message: content is a {type(content).__name__}")
        return cls(role=role, type=kind, content=content, format=wire.get("format"), recipient=wire.get("recipient"))

    def to_chunks(self) -> list[Chunk]:
        """The three chunks that replay this message: start, content, end. Console text keeps format `output`. What is
        an event (an error, a notice) is one chunk."""
        if self.type in EPHEMERAL_TYPES:
            return [Chunk(self.role, self.type, self.format, self.content, recipient=self.recipient, id=self.id)]
        flag_format = None if self.type == "console" else self.format
        owner = self.meta.get("code_id", self.id) if self.role == "computer" else self.id
        base = Chunk(self.role, self.type, flag_format, recipient=self.recipient, id=owner)
        body = replace(base, format="output" if self.type == "console" else self.format, content=self.content)
        return [replace(base, start=True), body, replace(base, end=True)]


class Framer:
    """Brackets a stream of content chunks with start and end flags, so that a consumer can tell messages apart.

    Two chunks belong to one block when role, type, format, recipient and id agree; console text and active lines
    share one block. An image is always a block of its own, so two figures stay two. Empty text is dropped. A producer
    may say that its block is complete by sending a chunk with `end`; other flags in the input are dropped.
    """

    def __init__(self) -> None:
        self._open: Chunk | None = None

    def feed(self, chunk: Chunk) -> list[Chunk]:
        """The chunk with the flags that it makes necessary, in order."""
        if chunk.end:
            return self.close()
        if chunk.start or chunk.content == "":
            return []
        if chunk.type in EPHEMERAL_TYPES:
            # An event of the turn closes what was open, except notices, which may appear in the middle of anything.
            return [chunk] if chunk.type in ("notice", "usage") else [*self.close(), chunk]
        flag = self._flag(chunk)
        out: list[Chunk] = []
        if self._open is not None and self._open != flag:
            out += self.close()
        if self._open is None:
            out.append(replace(flag, start=True))
            self._open = flag
        out.append(chunk)
        if chunk.type == "image":
            out += self.close()
        return out

    def close(self) -> list[Chunk]:
        """The end flag of the open block, if there is one."""
        if self._open is None:
            return []
        end = replace(self._open, end=True)
        self._open = None
        return [end]

    @staticmethod
    def _flag(chunk: Chunk) -> Chunk:
        fmt = None if chunk.type == "console" else chunk.format
        return Chunk(chunk.role, chunk.type, fmt, recipient=chunk.recipient, id=chunk.id)


def accumulate(chunks: Iterable[Chunk | Mapping[str, Any]]) -> list[LmcDict]:
    """Join streamed chunks into LMC messages, as a client of the protocol does.

    A `start` opens a message, content is appended, `end` closes it; events and active lines are left out.
    """
    messages: list[LmcDict] = []
    parts: list[str] = []
    for item in chunks:
        chunk = item if isinstance(item, Chunk) else Chunk.from_dict(item)
        if chunk.is_ephemeral:
            continue
        if chunk.start:
            parts = []
            messages.append(replace(chunk, start=False).to_dict() | {"content": ""})
        elif chunk.end:
            if messages:
                messages[-1]["content"] = "".join(parts)
        elif messages:
            parts.append(chunk.text)
            if chunk.type == "console" and chunk.format is not None:
                messages[-1]["format"] = chunk.format
    if messages and not messages[-1]["content"]:
        messages[-1]["content"] = "".join(parts)  # the stream was cut before its end flag
    return messages


def notice(kind: str, text: str) -> Chunk:
    """One line for the user about what the engine does. Notices of the same kind in a row replace each other."""
    return Chunk("server", "notice", kind, text)
