"""A conversation as Markdown."""

from __future__ import annotations

from oi_tui.engine.exporters.base import Block, Conversation, Said, fence_for, parts_of, picture_type

_WHO = {"user": "User", "assistant": "Assistant", "server": "Error"}


def render(conversation: Conversation) -> str:
    """Headings for who speaks, fences for code and output, pictures within the file."""
    lines = [f"# {' '.join(conversation.title.split())}", ""]
    speaker = ""
    for part in parts_of(conversation.messages):
        role = part.message.role if isinstance(part, Said) else part.code.role
        role = "assistant" if role == "computer" else role
        if role != speaker:
            lines += [f"## {_WHO.get(role, role)}", ""]
            speaker = role
        lines += _said(part) if isinstance(part, Said) else _block(part)
    return "\n".join(lines).rstrip() + "\n"


def _said(part: Said) -> list[str]:
    message = part.message
    if (kind := picture_type(message)) is not None:
        return [f"![picture](data:{kind};base64,{message.text})", ""]
    if message.type in ("image", "file"):
        return [f"`{message.text}`", ""]
    return [message.text.strip(), ""]


def _block(block: Block) -> list[str]:
    lines = _fenced(block.code.text, block.language) if block.code.text else []
    if block.remark:
        lines += [f"*({block.remark})*", ""]
    if text := block.text.strip("\n"):
        lines += _fenced(text, "output")
    for output in block.outputs:
        if (kind := picture_type(output)) is not None:
            lines += [f"![picture](data:{kind};base64,{output.text})", ""]
        elif output.type == "code":
            lines += _fenced(output.text, output.format or "html")
    return lines


def _fenced(text: str, language: str) -> list[str]:
    fence = fence_for(text)
    return [f"{fence}{language}", text.rstrip("\n"), fence, ""]
