"""Signs by which a fault is recognised: what an exception carries, and what providers write into their errors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

MAX_WORDS = 240
"""Characters of a provider's own words that are quoted in an error line."""

_CONTEXT = re.compile(
    r"context.?(length|window|size)|prompt is too long|input is too long|too many (input )?tokens"
    r"|reduce the length of the messages|input token count .{0,40}exceeds",
    re.IGNORECASE,
)
_QUOTA = re.compile(
    r"(exceeded your current|out of) quota|credit balance|insufficient (balance|credit|funds)", re.IGNORECASE
)
_NO_TOOLS = re.compile(
    r"(does not|doesn't|not) support(ed)? .{0,24}(tool|function)|(tools?|functions?) (use )?(is|are) not supported"
    r"|no endpoints found that support tool",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(
    r"(unknown|invalid|no such) model|model .{0,80}(not found|does not exist|not exist)", re.IGNORECASE
)
_NO_KEY = re.compile(
    r"missing.{0,30}(api.?key|credentials)|(unable to locate|no|default) credentials|api_key.{0,40}must be set",
    re.IGNORECASE,
)
_BAD_KEY = re.compile(
    r"(invalid|incorrect|not valid|missing).{0,20}api.?key|api.?key.{0,20}(invalid|not valid)", re.IGNORECASE
)


def is_context(words: str, code: str = "") -> bool:
    """The conversation is too long."""
    return code in ("context_length_exceeded", "exceed_context_size_error") or bool(_CONTEXT.search(words))


def is_quota(words: str, code: str = "") -> bool:
    """There is no credit left, which is not the same as too many requests at once."""
    codes = ("insufficient_quota", "billing_hard_limit_reached", "insufficient_balance")
    return code in codes or bool(_QUOTA.search(words))


def is_without_tools(words: str) -> bool:
    return bool(_NO_TOOLS.search(words))


def is_unknown_model(words: str) -> bool:
    return bool(_UNKNOWN_MODEL.search(words))


def is_about_model(what: str) -> bool:
    """Whether a "not found" of ours is about the model, and not about the address."""
    return "does not know the model" in what


def is_missing_key(words: str) -> bool:
    return bool(_NO_KEY.search(words))


def is_bad_key(words: str) -> bool:
    return bool(_BAD_KEY.search(words))


def is_html(text: str) -> bool:
    return bool(re.match(r"\s*(<!doctype|<html|<head|<body)", text, re.IGNORECASE))


def chain(error: BaseException) -> list[BaseException]:
    """The exception and what caused it, outermost first. litellm wraps without `from`, so contexts count as well."""
    links: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo and len(links) < 20:
        link = todo.pop(0)
        if link is None or any(link is known for known in links):
            continue
        links.append(link)
        todo += [getattr(link, "original_exception", None), link.__cause__, link.__context__]
        todo += list(getattr(link, "exceptions", ()))
    return links


def real_response(link: BaseException) -> tuple[int, Any, Mapping[str, str]] | None:
    """Status, body and headers of the error response that an exception carries.

    litellm invents responses where there was none; these have no headers.
    """
    response: Any = getattr(link, "response", None)
    status, headers = getattr(response, "status_code", None), getattr(response, "headers", None)
    if not isinstance(status, int) or not headers or status < 400:
        return None
    body = getattr(link, "body", None)
    if body is None:
        try:
            body = response.json()
        except Exception:  # not JSON, not read yet, closed: any of it means there is no body to quote
            body = _text_of(response)
    return status, body, {str(k).lower(): str(v) for k, v in dict(headers).items()}


def _text_of(response: Any) -> str:
    try:
        return str(response.text)
    except Exception:  # httpx raises ResponseNotRead and others; without the body there are just no words to quote
        return ""


def words_of(payload: Any) -> tuple[str, str]:
    """The message and the machine code in an error body, wherever providers put them."""
    if isinstance(payload, list) and payload:
        payload = payload[0]
    if not isinstance(payload, dict):
        return (payload if isinstance(payload, str) else ""), ""
    inner = payload.get("error", payload)
    if isinstance(inner, str):
        return inner, str(payload.get("code") or "")
    if not isinstance(inner, dict):
        inner = payload
    words = next((inner[k] for k in ("message", "detail", "msg", "error") if isinstance(inner.get(k), str)), "")
    if not words and isinstance(inner.get("detail"), list):
        words = "; ".join(str(d.get("msg", d)) if isinstance(d, dict) else str(d) for d in inner["detail"])
    code = inner.get("code") if isinstance(inner.get("code"), str) else inner.get("type")
    return words, str(code or "")


def own_words(links: Sequence[BaseException]) -> str:
    """What the outermost exception says, without the class names that litellm puts in front."""
    words = str(links[0]).partition("\nTraceback")[0].partition(" Original exception:")[0]
    return re.sub(r"^((litellm\.)?\w+(Error|Exception)\b(?: -|:)\s*)+", "", words).strip()


def one_line(text: str) -> str:
    """Foreign words on one line, without control characters, at most `MAX_WORDS` characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 1] + "…"
