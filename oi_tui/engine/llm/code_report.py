"""What the model is told about a code block: what ran, what came of it, or why nothing did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from oi_tui.engine.approval import edit_diff
from oi_tui.engine.history import CodeFate
from oi_tui.engine.llm.output_text import model_output
from oi_tui.engine.llm.request_form import NOT_RUN
from oi_tui.engine.lmc import Message

_FATES: dict[str, str] = {
    CodeFate.DECLINED: "The user declined to run this code.",
    CodeFate.SKIPPED: "This code was not run: the user went on without it, or stopped before its turn.",
    CodeFate.INCOMPLETE: "This code arrived only in part, because the answer was cut off, and it was not run. "
    "If it is still needed, send it again, in smaller parts if it is long.",
    CodeFate.REFUSED: NOT_RUN,
    CodeFate.PENDING: NOT_RUN,
}
_EXITS = {"interrupted": "[The user stopped this code before it had finished. What it had done by then is done.]"}
"""How a run ended, where its output does not say so itself."""

_RICH_SHOWN = "[It made a rich display, which the user can see.]"


@dataclass(slots=True)
class CodeReport:
    """The result of one code block.

    `output` is what the code printed and how it ended; `remarks` is what to say before it; `images` are its pictures.
    `has_run` is False for a block that was declined, skipped, refused or incomplete; then `remarks` says so.
    """

    has_run: bool
    remarks: str = ""
    output: str = ""
    images: list[Message] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n\n".join(part for part in (self.remarks, self.output) if part)


def report_on(code: Message, outputs: Sequence[Message], *, max_output: int, words_follow: bool = False) -> CodeReport:
    """What became of a block. `words_follow`: the user's words about it are in the next message."""
    fate = code.meta.get("state")
    printed = _printed(outputs, max_output)
    images = [message for message in outputs if message.type == "image"]
    if fate is None:
        fate = CodeFate.RUN if outputs else CodeFate.PENDING
    if fate != CodeFate.RUN:
        return CodeReport(False, _reason(code, str(fate), printed, words_follow), images=images)
    remarks = "\n\n".join(part for part in (_edit(code), _losses(code, "lost_before")) if part)
    output = "\n".join(part for part in (printed, _exit(code, outputs), _losses(code, "lost")) if part)
    return CodeReport(True, remarks, output, images)


def _printed(outputs: Sequence[Message], max_output: int) -> str:
    """The text of a run, and what else the user saw of it."""
    console = [m for m in outputs if m.type == "console" and m.recipient != "user"]
    full_path = ", ".join(str(m.meta["full_output"]) for m in console if m.meta.get("full_output")) or None
    text = model_output("".join(m.text for m in console), max_output, full_path)
    parts = [text.strip("\n").rstrip()]
    parts += [f"Picture: {m.text.strip()}" for m in outputs if m.type == "image" and m.format == "description"]
    if any(m.type == "code" for m in outputs):
        parts.append(_RICH_SHOWN)
    return "\n".join(part for part in parts if part)


def _exit(code: Message, outputs: Sequence[Message]) -> str:
    ends = [str(m.meta["exit"]) for m in (code, *outputs) if m.meta.get("exit")]
    return next((_EXITS[end] for end in ends if end in _EXITS), "")


def _losses(code: Message, when: str) -> str:
    """What became of the language's state before this code ran, or while it did."""
    before = "Before this code ran: " if when == "lost_before" else ""
    return "\n".join(f"[{before}{loss}]" for loss in code.meta.get(when) or ())


def _edit(code: Message) -> str:
    original = code.meta.get("original")
    if not isinstance(original, str) or not (diff := edit_diff(original, code.text)):
        return ""
    return f"The user changed your code before it ran. What ran is the changed code; the change:\n{diff}"


def _reason(code: Message, fate: str, printed: str, words_follow: bool) -> str:
    """Why it did not run. What the engine itself said about it stands in the output."""
    problem = code.meta.get("problem")
    said = printed or (str(problem) if problem else "")
    reason = said if said and fate != CodeFate.DECLINED else _FATES.get(fate, NOT_RUN)
    note = code.meta.get("note")
    if fate == CodeFate.DECLINED and isinstance(note, str) and note.strip() and not words_follow:
        reason += f" The user's words: {note.strip()}"
    return reason
