"""From what a kernel publishes to LMC chunks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

from oi_tui.engine.lmc import Chunk

HTML_TEXT_LIMIT = 20_000
"""Characters of HTML that are turned into text for the model."""

# What objects without a text form of their own say: "<IPython.core.display.HTML object>".
_MEANINGLESS = re.compile(r"\s*<[\w.]+ (object|at)\b[^\n]*>\s*\Z")


def rich_chunks(data: Mapping[str, Any], code_id: str) -> list[Chunk]:
    """The chunks for one display: its best form, in the order png, jpeg, html, svg, text, javascript.

    HTML goes to the user (`code/html`, recipient `user`) and its text form to the model (`console/output`, recipient
    `assistant`). A front end that cannot show HTML shows that text in its place: the two always come in this order.
    """
    for mime, kind in (("image/png", "base64.png"), ("image/jpeg", "base64.jpeg")):
        if mime in data:
            return [Chunk("computer", "image", kind, "".join(_text(data[mime]).split()), id=code_id)]
    for mime in ("text/html", "image/svg+xml"):
        if mime in data:
            html = _text(data[mime])
            shown = Chunk("computer", "code", "html", html, recipient="user", id=code_id)
            plain = _plain(data) or html_to_text(html)
            return [shown, *_output(plain, code_id, recipient="assistant")]
    if plain := _plain(data):
        return _output(plain, code_id)
    if "application/javascript" in data:
        script = _text(data["application/javascript"])
        return [Chunk("computer", "code", "javascript", script, recipient="user", id=code_id)]
    return _output(_text(data.get("text/plain", "")), code_id)


def traceback_text(content: Mapping[str, Any]) -> str:
    """The text of an `error` message, coloured as Jupyter does."""
    lines = content.get("traceback")
    if lines:
        return "\n".join(map(str, lines)) + "\n"
    return f"{content.get('ename', 'Error')}: {content.get('evalue', '')}\n"


def payload_text(payload: object) -> str:
    """What IPython wants to be shown beside the output: the pager's text, or code for the next input."""
    if not isinstance(payload, Mapping):
        return ""
    if payload.get("source") == "page":
        text = _text((payload.get("data") or {}).get("text/plain", ""))
    elif payload.get("source") == "set_next_input":
        text = _text(payload.get("text", ""))
    else:
        return ""
    return text if not text or text.endswith("\n") else text + "\n"


def html_to_text(html: str) -> str:
    """The words of a piece of HTML, a line per block, cells of a table apart by tabs."""
    reader = _TextReader()
    reader.feed(html[:HTML_TEXT_LIMIT])
    reader.close()
    lines = (" ".join(line.split(" ")).strip() for line in "".join(reader.parts).split("\n"))
    return "\n".join(line for line in lines if line)


class _TextReader(HTMLParser):
    _BLOCKS = frozenset("p div br tr table ul ol li h1 h2 h3 h4 h5 h6 pre section details summary".split())
    _SILENT = frozenset(("script", "style", "head", "svg"))

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in self._SILENT
        if tag in self._BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._SILENT:
            self._silent = max(0, self._silent - 1)
        if tag in self._BLOCKS:
            self.parts.append("\n")
        elif tag in ("td", "th"):
            self.parts.append("\t")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(" ".join(data.split()) + (" " if data[-1:].isspace() else "") if data.strip() else "")


def _plain(data: Mapping[str, Any]) -> str:
    """The best text form that says anything."""
    for mime in ("text/latex", "text/markdown", "text/plain"):
        text = _text(data.get(mime, ""))
        if text and not _MEANINGLESS.match(text):
            return text
    return ""


def _output(text: str, code_id: str, recipient: str | None = None) -> list[Chunk]:
    if not text:
        return []
    line = text if text.endswith("\n") else text + "\n"
    return [Chunk("computer", "console", "output", line, recipient=recipient, id=code_id)]


def _text(value: object) -> str:
    """A bundle's value: a string, or a list of its lines."""
    if isinstance(value, list):
        return "".join(map(str, value))
    return value if isinstance(value, str) else str(value)
