"""The code that was run, as a script for each language."""

from __future__ import annotations

from oi_tui.engine.exporters.base import Block, Conversation, parts_of

EXTENSIONS = {
    "python": "py",
    "shell": "sh",
    "javascript": "js",
    "html": "html",
    "ruby": "rb",
    "r": "r",
    "powershell": "ps1",
    "java": "java",
    "applescript": "applescript",
    "react": "jsx",
}
_COMMENTS = {"javascript": "//", "java": "//", "react": "//", "applescript": "--"}
_UNCOMMENTED = frozenset({"html"})


def languages_of(conversation: Conversation) -> list[str]:
    """The languages in which something was run, in order of appearance."""
    return list(dict.fromkeys(block.language for block in _run(conversation)))


def render(conversation: Conversation, language: str) -> str:
    """All code of one language that was run, as it was run, in order."""
    blocks = [block for block in _run(conversation) if block.language == language]
    if language in _UNCOMMENTED:
        return "\n".join(block.code.text.rstrip("\n") for block in blocks) + "\n"
    sign = _COMMENTS.get(language, "#")
    parts = ["#!/usr/bin/env bash"] if language == "shell" else []
    title = " ".join(conversation.title.split())
    parts.append(f"{sign} {title}\n")
    for number, block in enumerate(blocks, 1):
        remark = f" ({block.remark})" if block.remark else ""
        parts.append(f"{sign} {number}{' '.join(remark.splitlines())}\n{block.code.text.rstrip()}\n")
    return "\n".join(parts)


def _run(conversation: Conversation) -> list[Block]:
    return [
        part for part in parts_of(conversation.messages) if isinstance(part, Block) and part.was_run and part.code.text
    ]
