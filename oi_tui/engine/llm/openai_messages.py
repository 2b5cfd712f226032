"""From the conversation, as LMC keeps it, to a request in the form of the OpenAI chat API.

Tool mode: a code block is an assistant message with one call of `execute`, and what became of it is one tool result.
Text mode: code is a fenced block in an assistant message, and its output is said by the user. Pictures travel in user
messages in both. The same history gives the same request each time, so that a provider's cache can work.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from oi_tui.engine.llm.call_reader import TOOL_NAME
from oi_tui.engine.llm.code_report import CodeReport, report_on
from oi_tui.engine.llm.image_parts import ImageFailed, image_part, images_to_send
from oi_tui.engine.llm.output_text import model_output, truncate_output
from oi_tui.engine.llm.partial_json import join_surrogates
from oi_tui.engine.llm.request_form import ApiMessage, repair
from oi_tui.engine.lmc import Message
from oi_tui.engine.settings import Settings

__all__ = ["to_openai", "truncate_output"]

_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_SIGNED_ID = re.compile(r"([A-Za-z0-9_-]{1,60})__thought__[A-Za-z0-9+/=_-]+")
"""litellm carries Gemini's thought signatures in the ids of calls; Gemini wants them back."""


@dataclass(slots=True)
class _Block:
    """A code message and what the computer answered to it."""

    code: Message
    outputs: list[Message] = field(default_factory=list)


def to_openai(
    messages: Sequence[Message], *, system: str, tool_mode: bool, settings: Settings, supports_vision: bool
) -> list[dict[str, Any]]:
    """The request for this history. Always valid, and never empty: at least a user message is in it."""
    conversion = _Conversion(messages, settings, tool_mode=tool_mode, supports_vision=supports_vision)
    head = [ApiMessage({"role": "system", "content": join_surrogates(system.strip())})] if system.strip() else []
    return repair([*head, *conversion.messages()])


class _Conversion:
    """One conversion: the settings that matter, and what must be known of the whole history."""

    def __init__(self, messages: Sequence[Message], settings: Settings, *, tool_mode: bool, supports_vision: bool):
        self._settings = settings
        self._tool_mode = tool_mode
        self._entries = _grouped(messages)
        self._call_ids: set[str] = set()
        self._keep_signatures = "gemini" in (settings.llm.model or "").lower()
        self._images = images_to_send(_pictures(self._entries)) if supports_vision else set()
        self._supports_vision = supports_vision
        said = [entry for entry in self._entries if isinstance(entry, Message) and _is_said(entry)]
        self._templated = {m.id for m in (said if settings.always_apply_user_message_template else said[-1:])}

    def messages(self) -> list[ApiMessage]:
        out: list[ApiMessage] = []
        for position, entry in enumerate(self._entries):
            if isinstance(entry, Message):
                out += self._message(entry)
                continue
            follower = self._entries[position + 1] if position + 1 < len(self._entries) else None
            words_follow = (
                isinstance(follower, Message) and _is_said(follower) and follower.text == entry.code.meta.get("note")
            )
            out += self._block(entry, words_follow)
        return out

    # Messages.

    def _message(self, message: Message) -> Iterable[ApiMessage]:
        if message.role == "computer":
            return self._stray_output(message)
        if message.role == "assistant":
            return [_text("assistant", message.text)] if message.type == "message" else []
        if message.type == "image":
            return [self._user_image(message)]
        if message.type == "file":
            return [_text("user", f"File: {message.text}", opens=True)]
        text = message.text.strip()
        if message.id in self._templated and text:
            text = self._settings.user_message_template.replace("{content}", text)
        return [_text("user", text, opens=True)]

    def _user_image(self, message: Message) -> ApiMessage:
        if message.format == "description":
            return _text("user", f"Picture: {message.text}", opens=True)
        about = f"Picture {message.text}" if message.format == "path" else "Picture"
        return ApiMessage({"role": "user", "content": self._shown([message], about)}, opens_exchange=True)

    def _stray_output(self, message: Message) -> Iterable[ApiMessage]:
        """Output of no code that is known."""
        if message.type == "image":
            return [_carrier(self._shown([message], "A picture from the computer"))]
        if message.type != "console" or message.recipient == "user":
            return []
        text = model_output(message.text, self._settings.max_output).strip()
        return [_carrier(f"Output from the computer:\n{text}")] if text else []

    def _shown(self, images: Sequence[Message], about: str) -> str | list[dict[str, Any]]:
        """Pictures with a line about them; only the line where they cannot be shown."""
        parts: list[dict[str, Any]] = []
        missing: list[str] = []
        for image in images:
            if image.id not in self._images:
                missing.append("no longer shown" if self._supports_vision else "not visible to you")
                continue
            try:
                parts.append(image_part(image, shrink=self._settings.shrink_images))
            except ImageFailed as error:
                missing.append(str(error))
        notes = "".join(f" ({note})" for note in dict.fromkeys(missing))
        about = join_surrogates(about + notes)
        return [{"type": "text", "text": f"{about}:"}, *parts] if parts else f"[{about}.]"

    # Code.

    def _block(self, block: _Block, words_follow: bool) -> list[ApiMessage]:
        report = report_on(block.code, block.outputs, max_output=self._settings.max_output, words_follow=words_follow)
        if block.code.role == "user":
            return self._own_code(block.code, report)
        if self._tool_mode:
            return [*self._call(block.code, report), *self._picture_messages(report)]
        return [_text("assistant", fenced(block.code.format or "", block.code.text)), *self._told(report)]

    def _own_code(self, code: Message, report: CodeReport) -> list[ApiMessage]:
        """Code that the user ran: never a call, the model did not make it."""
        printed = report.text or "It printed nothing."
        said = f"I ran this code myself:\n{fenced(code.format or '', code.text)}\n{printed}"
        return [_text("user", said, opens=True), *self._picture_messages(report)]

    def _call(self, code: Message, report: CodeReport) -> list[ApiMessage]:
        call_id = self._call_id(code)
        arguments = json.dumps(
            {"language": join_surrogates(code.format or "text"), "code": join_surrogates(code.text)}, ensure_ascii=False
        )
        function = {"name": TOOL_NAME, "arguments": arguments}
        call = {"id": call_id, "type": "function", "function": function}
        text = report.text
        if report.has_run and not report.output:
            text = "\n\n".join(part for part in (report.remarks, "No output.") if part)
        result = {"role": "tool", "tool_call_id": call_id, "content": join_surrogates(text)}
        return [ApiMessage({"role": "assistant", "content": "", "tool_calls": [call]}), ApiMessage(result)]

    def _call_id(self, code: Message) -> str:
        """The provider's own id where every provider would take it, otherwise one made from the message's id; always
        the same for a message, and never one that another call of the request has."""
        given = str(code.meta.get("call_id") or "")
        if (signed := _SIGNED_ID.fullmatch(given)) and not self._keep_signatures:
            given = signed[1]
        safe = _SAFE_ID.fullmatch(given) or (signed and self._keep_signatures)
        call_id = given if safe and given not in self._call_ids else ""
        call_id = call_id or "c" + hashlib.sha256(f"{code.id}/{given}".encode(errors="replace")).hexdigest()[:8]
        self._call_ids.add(call_id)
        return call_id

    def _picture_messages(self, report: CodeReport) -> list[ApiMessage]:
        pictures = [image for image in report.images if image.format != "description"]
        if not pictures:
            return []
        return [_carrier(self._shown(pictures, _made_by_code(len(pictures))))]

    def _told(self, report: CodeReport) -> list[ApiMessage]:
        """The result in text mode, said by `code_output_sender`."""
        pictures = self._picture_messages(report)
        if not report.has_run:
            return [_carrier(report.remarks), *pictures]
        settings = self._settings
        if settings.code_output_sender == "assistant":
            remarks = [_carrier(report.remarks)] if report.remarks else []
            return [*remarks, _text("assistant", fenced("output", report.output or "No output.")), *pictures]
        template = settings.code_output_template if report.output else settings.empty_code_output_template
        told = template.replace("{content}", report.output)
        return [_carrier("\n\n".join(part for part in (report.remarks, told) if part)), *pictures]


def fenced(tag: str, text: str) -> str:
    """A fenced block, with a fence longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{tag}\n{text}\n{fence}"


def _grouped(messages: Sequence[Message]) -> list[Message | _Block]:
    """The history as the model may know it, every output with its code."""
    entries: list[Message | _Block] = []
    blocks: dict[str, _Block] = {}
    hidden: set[str] = set()
    for message in messages:
        if message.role == "computer":
            code_id = message.meta.get("code_id")
            last = entries[-1] if entries else None
            if code_id in blocks:
                blocks[code_id].outputs.append(message)
            elif isinstance(last, _Block) and code_id is None:
                last.outputs.append(message)
            elif code_id not in hidden and message.recipient != "user":
                entries.append(message)
        elif message.recipient not in (None, "assistant") or message.role == "server":
            hidden.add(message.id)
        elif message.type == "code":
            blocks[message.id] = block = _Block(message)
            entries.append(block)
        elif message.type in ("message", "image", "file"):
            entries.append(message)
    return entries


def _pictures(entries: Iterable[Message | _Block]) -> list[Message]:
    messages: list[Message] = []
    for entry in entries:
        messages += entry.outputs if isinstance(entry, _Block) else [entry]
    return messages


def _is_said(message: Message) -> bool:
    return message.role == "user" and message.type == "message"


def _text(role: str, text: str, *, opens: bool = False) -> ApiMessage:
    return ApiMessage({"role": role, "content": join_surrogates(text.strip())}, opens_exchange=opens)


def _carrier(content: str | list[dict[str, Any]]) -> ApiMessage:
    """A user message that the user did not say."""
    content = join_surrogates(content.strip()) if isinstance(content, str) else content
    return ApiMessage({"role": "user", "content": content}, opens_exchange=False)


def _made_by_code(count: int) -> str:
    return "The code above made this picture" if count == 1 else f"The code above made these {count} pictures"
