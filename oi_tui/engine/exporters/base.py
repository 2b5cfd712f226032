"""What every exporter gets: a conversation cut into what was said and what was run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from oi_tui.engine.history import CodeFate
from oi_tui.engine.llm.output_text import clean_output
from oi_tui.engine.lmc import Message

_FATES = {
    CodeFate.DECLINED: "declined",
    CodeFate.SKIPPED: "not run",
    CodeFate.REFUSED: "refused",
    CodeFate.INCOMPLETE: "received only in part",
    CodeFate.PENDING: "not run",
}


@dataclass(frozen=True, slots=True)
class Conversation:
    """What is exported. `messages` in order; errors and notices (role server) may be among them."""

    title: str
    messages: Sequence[Message]
    created: float | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the user or the model."""

    message: Message


@dataclass(slots=True)
class Block:
    """Code and what came of it."""

    code: Message
    outputs: list[Message] = field(default_factory=list)

    @property
    def language(self) -> str:
        return self.code.format or "text"

    @property
    def was_run(self) -> bool:
        return bool(self.code.meta.get("state", CodeFate.RUN if self.outputs else None) == CodeFate.RUN)

    @property
    def remark(self) -> str:
        """What became of code that is not simply run, in words."""
        meta = self.code.meta
        if self.was_run:
            parts = ["edited by the user"] if "original" in meta else []
            parts += [str(meta["exit"])] if meta.get("exit") else []
            return ", ".join(parts)
        words = _FATES.get(meta.get("state", CodeFate.SKIPPED), "not run")
        return f"{words}: {meta['note']}" if meta.get("note") else words

    @property
    def text(self) -> str:
        """What it printed, without escape sequences."""
        return clean_output("".join(m.text for m in self.outputs if m.type == "console"))


def parts_of(messages: Iterable[Message]) -> Iterator[Said | Block]:
    """The conversation in order: what was said, and blocks with all that belongs to them."""
    waiting: Block | None = None
    for message in messages:
        if message.role == "computer":
            if waiting is None:
                waiting = Block(Message("computer", "code", "", "text", meta={"state": CodeFate.RUN}))
            waiting.outputs.append(message)
            continue
        if waiting is not None:
            yield waiting
            waiting = None
        if message.type == "code":
            waiting = Block(message)
        elif message.type in ("message", "image", "file", "error") and message.role != "server":
            yield Said(message)
        elif message.type == "error":
            yield Said(message)
    if waiting is not None:
        yield waiting


def picture_type(message: Message) -> str | None:
    """The MIME type of a picture that is here as base64; None for everything else."""
    if message.type != "image" or not (message.format or "").startswith("base64"):
        return None
    extension = (message.format or "").partition(".")[2].lower() or "png"
    return {
        "png": "image/png",
        "jpeg": "image/jpeg",
        "jpg": "image/jpeg",
        "gif": "image/gif",
        "webp": "image/webp",
    }.get(extension)


def fence_for(text: str) -> str:
    """A fence longer than any in the text."""
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return "`" * max(3, longest + 1)
