"""A conversation as a Jupyter notebook (format 4.5), with outputs, pictures and prompts; and back.

What a notebook has no words for stands in each cell's metadata under `oi_tui`, so that a notebook of ours opens as the
conversation it was made of. Code that failed carries the tag that lets a notebook run on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from oi_tui.engine.approval import digest_of
from oi_tui.engine.errors import SettingsError
from oi_tui.engine.exporters.base import Block, Conversation, Said, fence_for, parts_of, picture_type
from oi_tui.engine.history import CodeFate
from oi_tui.engine.llm.output_text import clean_output
from oi_tui.engine.lmc import Message, new_id
from oi_tui.engine.private_files import read_regular

LARGEST = 256 * 1024 * 1024
_SHELL = frozenset({"shell", "bash", "sh", "zsh"})
_KEPT = ("state", "digest", "original", "note", "exit", "line_times", "error_line", "seconds")
_ERROR = re.compile(
    r"^(?P<name>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning|Iteration))(?:: (?P<value>.*))?$"
)


def render(conversation: Conversation) -> str:
    """The notebook as JSON."""
    cells = []
    count = 0
    for number, part in enumerate(parts_of(conversation.messages)):
        if isinstance(part, Said):
            cell = _said(part.message)
        elif part.was_run and (part.language == "python" or part.language in _SHELL) and part.code.text:
            count += 1
            cell = _code_cell(part, count)
        else:
            cell = _unrun(part)
        cells.append({"id": f"c{number}-{_identifier(part)}", **cell})
    return (
        json.dumps(
            {
                "cells": cells,
                "metadata": {
                    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                    "language_info": {"name": "python"},
                    "oi_tui": {"title": conversation.title, "model": conversation.model},
                    "title": conversation.title,
                },
                "nbformat": 4,
                "nbformat_minor": 5,
            },
            indent=1,
            ensure_ascii=False,
        )
        .encode("utf-8", "backslashreplace")
        .decode()
        + "\n"
    )


def _identifier(part: Said | Block) -> str:
    message = part.message if isinstance(part, Said) else part.code
    return re.sub(r"[^A-Za-z0-9_-]", "", message.id)[:40]


def _said(message: Message) -> dict[str, Any]:
    meta = {"oi_tui": {"role": message.role, "type": message.type}}
    if (kind := picture_type(message)) is not None:
        meta["oi_tui"]["format"] = message.format or ""
        name = f"picture.{kind.partition('/')[2]}"
        return {
            "cell_type": "markdown",
            "metadata": meta,
            "source": f"![picture](attachment:{name})",
            "attachments": {name: {kind: message.text}},
        }
    text = message.text.strip()
    if message.role == "user":
        text = "\n".join(f"> {line}" for line in text.splitlines())
    elif message.role == "server":
        text = f"**Error:** {text}"
    return {"cell_type": "markdown", "metadata": meta, "source": text}


def _code_cell(block: Block, count: int) -> dict[str, Any]:
    source = block.code.text
    if block.language in _SHELL:
        source = f"%%bash\n{source}"
    outputs = _outputs(block, count)
    metadata: dict[str, Any] = {"oi_tui": _about(block)}
    if any(output["output_type"] == "error" for output in outputs) or block.code.meta.get("exit"):
        metadata["tags"] = ["raises-exception"]
    return {
        "cell_type": "code",
        "execution_count": count,
        "metadata": metadata,
        "outputs": outputs,
        "source": source.rstrip("\n"),
    }


def _about(block: Block) -> dict[str, Any]:
    kept = {name: block.code.meta[name] for name in _KEPT if name in block.code.meta}
    return {"role": block.code.role, "type": "code", "language": block.language, **kept}


def _unrun(block: Block) -> dict[str, Any]:
    """Code that did not run, or runs elsewhere, is text: running the notebook must not run it."""
    fence = fence_for(block.code.text)
    source = f"{fence}{block.language}\n{block.code.text.rstrip()}\n{fence}" if block.code.text else ""
    if block.remark:
        source += f"\n\n*({block.remark})*"
    if text := block.text.strip("\n"):
        fence = fence_for(text)
        source += f"\n\n{fence}\n{text}\n{fence}"
    about = _about(block)
    about["code"], about["output"] = block.code.text, block.text
    return {"cell_type": "markdown", "metadata": {"oi_tui": about}, "source": source.strip("\n")}


def _outputs(block: Block, count: int) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for output in block.outputs:
        if output.type == "console":
            out += _console(clean_output(output.text), is_shell=block.language in _SHELL)
        elif (kind := picture_type(output)) is not None:
            out.append({"output_type": "display_data", "metadata": {}, "data": {kind: output.text}})
        elif output.type == "image":
            data = {"text/plain": output.text}
            out.append({"output_type": "display_data", "metadata": {}, "data": data})
        elif output.type == "code":
            kind = "application/javascript" if output.format == "javascript" else "text/html"
            out.append({"output_type": "display_data", "metadata": {}, "data": {kind: output.text}})
    return out


def _console(text: str, *, is_shell: bool) -> list[dict[str, Any]]:
    if not text:
        return []
    at = -1 if is_shell else text.find("Traceback (most recent call last)")
    last = text.rstrip().rpartition("\n")[2]
    match = _ERROR.match(last)
    if at < 0 or match is None:
        return [{"output_type": "stream", "name": "stdout", "text": text}]
    line_start = text.rfind("\n", 0, at) + 1
    begin = text.rfind("\n", 0, max(0, line_start - 1)) + 1
    if not re.fullmatch(r"-{5,}", text[begin : line_start - 1]):
        begin = line_start
    out: list[dict[str, Any]] = []
    if text[:begin]:
        out.append({"output_type": "stream", "name": "stdout", "text": text[:begin]})
    out.append(
        {
            "output_type": "error",
            "ename": match["name"],
            "evalue": match["value"] or "",
            "traceback": text[begin:].splitlines(),
        }
    )
    return out


# -- back -------------------------------------------------------------------------------------------------------------


def read(path: Path) -> Conversation:
    """The conversation in a notebook, ours or anybody's. Raises `SettingsError` saying what is wrong, and where."""
    try:
        text = read_regular(path, LARGEST).decode("utf-8-sig")
    except FileNotFoundError:
        raise SettingsError(f"There is no file {path}.") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is no notebook: byte {error.start + 1} is not UTF-8.") from None
    try:
        notebook = json.loads(text)
    except json.JSONDecodeError as error:
        raise SettingsError(f"{path} is no notebook: line {error.lineno}: {error.msg}.") from None
    except RecursionError:
        raise SettingsError(f"{path} is no notebook: it is nested too deeply.") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        older = isinstance(notebook, dict) and "worksheets" in notebook
        raise SettingsError(
            f"{path} is a notebook of an old format." if older else f"{path} is no notebook: it has no list of cells.",
            "Convert it: jupyter nbconvert --to notebook" if older else "",
        )
    messages: list[Message] = []
    language = _language(notebook.get("metadata"))
    for number, cell in enumerate(notebook["cells"], 1):
        if not isinstance(cell, dict) or "cell_type" not in cell:
            raise SettingsError(f"{path} is no notebook: cell {number} is not a cell.")
        messages += _read_cell(cell, language)
    about = _mapping(_mapping(notebook.get("metadata")).get("oi_tui"))
    return Conversation(str(about.get("title") or path.stem), messages, model=str(about.get("model") or ""))


def _language(metadata: Any) -> str:
    for owner, name in (("kernelspec", "language"), ("language_info", "name")):
        found = _mapping(_mapping(metadata).get(owner)).get(name)
        if isinstance(found, str) and found:
            return found.lower()
    return "python"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _joined(value: Any) -> str:
    """Texts are strings, or lists of lines."""
    if isinstance(value, list):
        return "".join(item for item in value if isinstance(item, str))
    return value if isinstance(value, str) else ""


def _read_cell(cell: Mapping[str, Any], language: str) -> list[Message]:
    about = _mapping(_mapping(cell.get("metadata")).get("oi_tui"))
    source = _joined(cell.get("source"))
    if cell["cell_type"] == "code":
        return _read_code(cell, source, language, about)
    if about.get("type") == "code":
        return _read_unrun(about)
    role = about.get("role")
    if role == "server":
        return []
    attached = [
        Message("user", "image", _joined(data), f"base64.{kind.partition('/')[2]}")
        for pictures in _mapping(cell.get("attachments")).values()
        for kind, data in _mapping(pictures).items()
        if kind.startswith("image/")
    ]
    if about.get("type") == "image" and attached:
        return attached
    if role == "user":
        source = "\n".join(line.removeprefix("> ").removeprefix(">") for line in source.splitlines())
    if not source.strip():
        return attached
    return [Message("assistant" if role == "assistant" else "user", "message", source), *attached]


def _read_unrun(about: Mapping[str, Any]) -> list[Message]:
    code = Message(
        "user" if about.get("role") == "user" else "assistant",
        "code",
        _joined(about.get("code")),
        str(about.get("language") or "text"),
        meta=_state(about, CodeFate.SKIPPED),
    )
    output = _joined(about.get("output"))
    if not output:
        return [code]
    return [code, Message("computer", "console", output, "output", meta={"code_id": code.id})]


def _state(about: Mapping[str, Any], otherwise: CodeFate) -> dict[str, Any]:
    meta = {name: about[name] for name in _KEPT if name in about}
    if meta.get("state") not in set(CodeFate) or meta["state"] == CodeFate.PENDING:
        meta["state"] = otherwise
    return meta


def _read_code(cell: Mapping[str, Any], source: str, language: str, about: Mapping[str, Any]) -> list[Message]:
    if not source.strip():
        return []
    if (magic := re.match(r"%%(bash|sh|shell)[ \t]*\n", source)) is not None:
        source, language = source[magic.end() :], "shell"
    outputs = cell.get("outputs")
    outputs = outputs if isinstance(outputs, list) else []
    was_run = bool(outputs) or isinstance(cell.get("execution_count"), int)
    meta = _state(about, CodeFate.RUN if was_run else CodeFate.SKIPPED)
    meta["digest"] = digest_of(source)
    role: Literal["assistant", "user"] = "assistant" if about.get("role") == "assistant" else "user"
    code = Message(role, "code", source, str(about.get("language") or language), id=new_id(), meta=meta)
    owner = {"code_id": code.id}
    results = [m for output in outputs if isinstance(output, Mapping) for m in _read_output(output, owner)]
    if was_run and not any(m.type == "console" for m in results) and not results:
        results = [Message("computer", "console", "", "output", meta=owner)]
    return [code, *_merged(results)]


def _merged(messages: list[Message]) -> list[Message]:
    """Neighbouring pieces of printed text as one."""
    out: list[Message] = []
    for message in messages:
        if out and message.type == "console" and out[-1].type == "console":
            last = out.pop()
            message = Message("computer", "console", last.text + message.text, "output", meta=last.meta)
        out.append(message)
    return out


def _read_output(output: Mapping[str, Any], owner: Mapping[str, Any]) -> list[Message]:
    match output.get("output_type"):
        case "stream":
            return [Message("computer", "console", _joined(output.get("text")), "output", meta=owner)]
        case "error":
            lines = output.get("traceback")
            text = "\n".join(line for line in lines if isinstance(line, str)) if isinstance(lines, list) else ""
            text = text or f"{output.get('ename')}: {output.get('evalue')}"
            return [Message("computer", "console", text + "\n", "output", meta=owner)]
        case "display_data" | "execute_result":
            return _read_data(_mapping(output.get("data")), owner)
    return []


def _read_data(data: Mapping[str, Any], owner: Mapping[str, Any]) -> list[Message]:
    """The richest form that we can show."""
    for kind in ("image/png", "image/jpeg", "image/gif", "image/webp"):
        if text := _joined(data.get(kind)):
            return [Message("computer", "image", "".join(text.split()), f"base64.{kind[6:]}", meta=owner)]
    if text := _joined(data.get("text/html")):
        return [Message("computer", "code", text, "html", meta=owner)]
    if text := _joined(data.get("text/plain")):
        return [Message("computer", "console", text + "\n", "output", meta=owner)]
    return []
