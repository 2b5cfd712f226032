"""Program output as a model should read it: what a terminal would show at the end, and not more than fits.

The stored output stays as it was; this is done each time a request is made.
"""

from __future__ import annotations

import re
from functools import lru_cache

from oi_tui.engine.llm.partial_json import join_surrogates

_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC with their text
    r"|\x1b[ -/]+[0-~]|\x1b[0-OQ-WYZ\\`-~]"  # the others
)
_UNFINISHED = re.compile(r"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*|\x1b[\]PX^_][^\x07\x1b\x9c\n]*|\x1b[ -/]*)\Z")
_ERASE = re.compile(r"\x1b\[[0-2]?K")
_CONTROL = re.compile(r"[\x00-\x07\x0b-\x1f\x7f-\x9f]")
_ANY_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ERASED = "\x00"
"""Stands for an erased line while carriage returns are worked out."""
_WINDOW = 64 * 1024
"""Longer output is cut to its two ends before anything else is done to it, so that the cost does not grow with it."""
_REMEMBERED_LENGTH = 8 * 1024


def clean_output(text: str) -> str:
    """Without escape sequences and control characters; a line that was overwritten shows what it showed last."""
    if not _ANY_CONTROL.search(text):
        return text
    text = _ERASE.sub(_ERASED, join_surrogates(text).replace("\x00", ""))
    text = _UNFINISHED.sub("", _ESCAPE.sub("", text))
    if "\r" in text or "\b" in text or _ERASED in text:
        lines = text.replace("\r\n", "\n").split("\n")
        text = "\n".join(_settled(line) for line in lines)
    return _CONTROL.sub("", text)


def _settled(line: str) -> str:
    """What a line shows after its carriage returns and backspaces. Linear: works from the last writing backwards."""
    if "\r" in line:
        shown = ""
        for part in reversed(line.split("\r")):
            shown += part.rpartition(_ERASED)[2][len(shown) :]
            if _ERASED in part and (part.startswith(_ERASED) or shown):
                break
        line = shown
    line = line.replace(_ERASED, "")
    if "\b" not in line:
        return line
    kept: list[str] = []
    at = 0
    for char in line:
        if char == "\b":
            at = max(0, at - 1)
        else:
            kept[at : at + 1] = [char]
            at += 1
    return "".join(kept)


def truncate_output(text: str, limit: int, full_path: str | None = None) -> str:
    """Head and tail of a text that is longer than `limit` characters, with a note between them of what is left out.

    The note is not counted. The tail is longer than the head, because errors stand at the end; cuts are moved to the
    ends of lines where that costs little, and never fall into an escape sequence. `full_path` is named in the note.
    """
    limit = max(0, limit)
    if len(text) <= limit:
        return text
    head_end = _line_start_before(text, limit * 2 // 5, reach=limit // 10)
    tail_start = _line_start_after(text, len(text) - (limit - limit * 2 // 5), reach=limit // 10)
    tail_start = max(tail_start, head_end)
    left_out = text[head_end:tail_start]
    size = f"{len(left_out):,} characters"
    if lines := left_out.count("\n"):
        size += f" ({lines:,} {'line' if lines == 1 else 'lines'})"
    where = f" The whole output is in the file {full_path}; read the part you need from there." if full_path else ""
    head, tail = text[:head_end].rstrip("\n"), text[tail_start:]
    return f"{head}\n[… {size} left out here.{where}]\n{tail}".lstrip("\n")


def model_output(text: str, limit: int, full_path: str | None = None) -> str:
    """`clean_output`, then `truncate_output`, at a cost that does not grow with the text.

    Results for short texts are remembered: each request is made of the whole conversation again.
    """
    return (_remembered if len(text) <= _REMEMBERED_LENGTH else _model_output)(text, limit, full_path)


def _model_output(text: str, limit: int, full_path: str | None) -> str:
    window = max(_WINDOW, 8 * limit)
    if len(text) <= 2 * window:
        return truncate_output(clean_output(text), limit, full_path)
    head_end = _line_start_before(text, window, reach=window // 8)
    tail_start = _line_start_after(text, len(text) - window, reach=window // 8)
    head, tail = clean_output(text[:head_end]), clean_output(text[tail_start:])
    middle = text[head_end:tail_start]
    size = f"{len(middle) + max(0, len(head) + len(tail) - limit):,} characters"
    where = f" The whole output is in the file {full_path}; read the part you need from there." if full_path else ""
    kept_head = head[: _line_start_before(head, limit * 2 // 5, reach=limit // 10)].rstrip("\n")
    kept_tail = tail[_line_start_after(tail, len(tail) - (limit - limit * 2 // 5), reach=limit // 10) :]
    return f"{kept_head}\n[… about {size} left out here.{where}]\n{kept_tail}".lstrip("\n")


_remembered = lru_cache(maxsize=512)(_model_output)


def _line_start_before(text: str, cut: int, *, reach: int) -> int:
    """The beginning of a line at most `reach` before `cut`; otherwise `cut`, moved out of an escape sequence."""
    line = text.rfind("\n", max(0, cut - reach), cut)
    return line + 1 if line >= 0 else _outside_escape(text, cut, after=False)


def _line_start_after(text: str, cut: int, *, reach: int) -> int:
    if 0 < cut <= len(text) and text[cut - 1] == "\n":
        return cut
    line = text.find("\n", cut, cut + reach)
    return line + 1 if line >= 0 else _outside_escape(text, cut, after=True)


def _outside_escape(text: str, cut: int, *, after: bool) -> int:
    """`cut`, or the nearest end of the escape sequence or surrogate pair that it would divide."""
    if 0 < cut < len(text) and "\ud800" <= text[cut - 1] <= "\udbff" and "\udc00" <= text[cut] <= "\udfff":
        cut += 1 if after else -1
    begin = text.rfind("\x1b", max(0, cut - 64), cut)
    if begin >= 0 and (found := _ESCAPE.match(text, begin)) and found.end() > cut:
        return found.end() if after else begin
    return cut
