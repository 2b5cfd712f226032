"""From whatever went wrong with a request to one typed error with one clear line: what, whose fault, what next.

Used in the worker, but free of litellm: exceptions are told apart by what they carry (a real HTTP response, an error of
the operating system) and only then by their name, because litellm's own classes are not reliable (a 529 arrives as
`BadRequestError`, a refused connection as `InternalServerError`).
"""

from __future__ import annotations

import difflib
import errno
import re
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oi_tui.engine import errors
from oi_tui.engine.errors import ModelError
from oi_tui.engine.llm import fault_signs as signs
from oi_tui.engine.llm.endpoint import Endpoint
from oi_tui.engine.llm.retry_after import asked_pause


def explain(error: BaseException, endpoint: Endpoint, *, began: bool) -> ModelError:
    """The typed error for an exception out of litellm, httpx, aiohttp, or an SDK. `began`: the answer had begun."""
    links = signs.chain(error)
    answered = next((found for link in reversed(links) if (found := signs.real_response(link))), None)
    if answered is not None:
        return explain_status(*answered, endpoint)
    if (known := _of_the_connection(links, endpoint, began)) is not None:
        return known
    words = signs.own_words(links)
    if (known := _of_the_set_up(links, words, endpoint)) is not None:
        return known
    claimed = getattr(error, "status_code", None)
    if isinstance(claimed, int) and claimed >= 400:
        return explain_status(claimed, words, {}, endpoint)
    return ModelError(f"The request to {endpoint.host} failed: {_quoted(words) or type(error).__name__}.")


def explain_status(status: int, payload: Any, headers: Mapping[str, str], endpoint: Endpoint) -> ModelError:
    """The typed error for an HTTP answer that is one. `payload` is the body: parsed JSON, or text."""
    words, code = signs.words_of(payload)
    said = f" It says: {_quoted(words)}" if words and not signs.is_html(words) else ""
    pause = asked_pause(headers, words)
    if signs.is_context(words, code) or status == 413:
        return _context_too_long(words, endpoint)
    if status == 402 or signs.is_quota(words if pause is None else "", code):
        return errors.QuotaExceeded(
            f"The account at {endpoint.host} has no credit or quota left.", "Top it up, or choose another model."
        )
    if status == 401:
        return _authentication(endpoint, said)
    if status == 429:
        return errors.RateLimited(f"{endpoint.host} limits requests (429).{said}", retry_after=pause)
    if signs.is_without_tools(words):
        return errors.ToolsUnsupported(
            f"{endpoint.model} takes no tools.", "Use text mode: --no-llm_supports_functions."
        )
    if status == 404 or code == "model_not_found" or signs.is_unknown_model(words):
        return _not_found(words, said, endpoint)
    if status == 403:
        return errors.PermissionDenied(
            f"{endpoint.host} does not allow this key to use {endpoint.model} (403).{said}",
            "Choose another model, or ask its provider for access.",
        )
    if status in (503, 529) or "overloaded" in words.lower():
        return errors.ServiceUnavailable(
            f"{endpoint.host} is overloaded ({status}).{said}", "Try again in a moment.", retry_after=pause
        )
    if status >= 500 or status in (408, 409, 425):
        what = f"{endpoint.host} has a problem of its own ({status}).{said}"
        return errors.ServiceUnavailable(what, "Try again in a moment.", retry_after=pause)
    return _rejected(status, words, said, endpoint)


def explain_event(payload: Any, endpoint: Endpoint) -> ModelError:
    """The typed error for an error that arrives inside a stream, after status 200."""
    inner = payload.get("error") if isinstance(payload, dict) else None
    status = next((s for key in ("status", "code", "status_code") if (s := _status(inner, key))), None)
    words, code = signs.words_of(payload)
    if status is None and not (signs.is_context(words, code) or signs.is_quota(words, code)):
        what = f"{endpoint.host} broke off the answer."
        return errors.StreamBroken(f"{what} It says: {_quoted(words)}" if words else what, "Try again.")
    return explain_status(status or 400, payload, {}, endpoint)


def not_an_answer(body: str, endpoint: Endpoint) -> ModelError:
    """The typed error for status 200 with something that is neither a stream nor JSON."""
    if signs.is_html(body):
        what = f"{endpoint.host} answered with a web page instead of an answer."
    else:
        what = f"{endpoint.host} answered with something unreadable: {_quoted(body)}"
    return errors.RequestRejected(what, "Check that api_base is the address of the API (often it ends in /v1).")


def unreadable(endpoint: Endpoint) -> ModelError:
    """The typed error for broken JSON in the middle of a stream."""
    return errors.StreamBroken(f"{endpoint.host} sent something unreadable in the middle of the answer.", "Try again.")


def cut_off(endpoint: Endpoint) -> ModelError:
    """The typed error for a stream that ended before the answer did."""
    return errors.StreamBroken(f"The connection to {endpoint.host} broke in the middle of the answer.", "Try again.")


def too_slow(endpoint: Endpoint, *, began: bool) -> ModelError:
    """The typed error for nothing having arrived within the idle limit."""
    seconds = f"{endpoint.idle_timeout:g} s"
    if began:
        return errors.StreamStalled(f"{endpoint.host} sent nothing more for {seconds}.", "Try again.")
    hint = "Try again, or raise idle_timeout for a slow model."
    return errors.ConnectionFailed(f"{endpoint.host} did not answer within {seconds}.", hint)


# -- kinds of faults


def _authentication(endpoint: Endpoint, said: str) -> ModelError:
    variable = (
        f"Set {endpoint.key_variable}, or enter it under “Choose model”."
        if endpoint.key_variable
        else "Set OI_TUI_API_KEY, or enter it under “Choose model”."
    )
    if endpoint.key_origin is None:
        if endpoint.withheld_variable:
            own = f"{endpoint.withheld_variable} is sent to its own provider only"
            variable = f"Enter it under “Choose model”, or set OI_TUI_API_KEY ({own})."
        return errors.AuthenticationFailed(f"{endpoint.host} wants an API key, and there is none.", variable)
    what = f"{endpoint.host} does not accept the API key from {endpoint.key_origin}.{said}"
    return errors.AuthenticationFailed(what, "Check it, or enter another under “Choose model”.")


def _context_too_long(words: str, endpoint: Endpoint) -> ModelError:
    sizes = [int(n.replace(",", "")) for n in re.findall(r"\b\d[\d,]{2,}\b", words)]
    window = f" ({min(sizes):,} tokens)" if sizes else ""
    return errors.ContextTooLong(
        f"The conversation does not fit into the context window of {endpoint.model}{window}.",
        "Start a new conversation, or set context_window so that old messages are left out in time.",
    )


def _not_found(words: str, said: str, endpoint: Endpoint) -> ModelError:
    if endpoint.is_custom and "model" not in words.lower():
        what = f"{endpoint.host} has no chat API at this address (404)."
        return errors.ModelNotFound(what, "Check that api_base is the address of the API (often it ends in /v1).")
    near = nearest(endpoint.model, endpoint.known_models)
    hint = f"Did you mean {' or '.join(near)}?" if near else "Check the name given with --model."
    return errors.ModelNotFound(f"{endpoint.host} does not know the model {endpoint.model}.{said}", hint)


def _rejected(status: int, words: str, said: str, endpoint: Endpoint) -> ModelError:
    if re.search(
        r"(invalid|incorrect|not valid|missing).{0,20}api.?key|api.?key.{0,20}(invalid|not valid)", words, re.I
    ):
        return _authentication(endpoint, said)
    return errors.RequestRejected(f"{endpoint.host} rejected the request ({status}).{said}")


def _of_the_connection(links: Sequence[BaseException], endpoint: Endpoint, began: bool) -> ModelError | None:
    hint = "Check api_base and the network." if endpoint.is_custom else "Check the network."
    names = " ".join(type(link).__name__ for link in links)
    if any(isinstance(link, socket.gaierror) for link in links) or "DNSError" in names:
        return errors.ConnectionFailed(f"The name of {endpoint.host} cannot be resolved.", hint, retryable=False)
    if any(isinstance(link, ssl.SSLError) for link in links) or re.search(r"SSL|Certificate", names):
        return _tls(links, endpoint)
    if any(_has_errno(link, errno.ECONNREFUSED) for link in links):
        what = f"Nothing answers at {endpoint.host} (connection refused)."
        return errors.ConnectionFailed(what, "Is the server running?", retryable=False)
    if any(_has_errno(link, errno.ENETUNREACH, errno.EHOSTUNREACH) for link in links):
        return errors.ConnectionFailed(
            f"There is no way to {endpoint.host}: network unreachable.", hint, retryable=False
        )
    if re.search(r"InvalidU[rR][lL]|UnsupportedProtocol|LocalProtocolError", names):
        what = f"{endpoint.host} is not an address that can be asked."
        return errors.ConnectionFailed(what, "It should look like http://localhost:1234/v1.", retryable=False)
    if re.search(r"Timeout", names):
        return too_slow(endpoint, began=began)
    if re.search(r"Decod(e|ing)Error|JSONDecode|ResponseValidation", names):
        return unreadable(endpoint)
    if re.search(r"ConnectionReset|Disconnected|RemoteProtocol|ReadError|PayloadError|BrokenPipe|WriteError", names):
        if began:
            return cut_off(endpoint)
        return errors.ConnectionFailed(f"{endpoint.host} closed the connection without an answer.", "Try again.")
    if re.search(r"ConnectError|ConnectorError|ProxyError|NetworkError", names):
        return errors.ConnectionFailed(f"{endpoint.host} cannot be reached.", hint)
    return None


def _tls(links: Sequence[BaseException], endpoint: Endpoint) -> ModelError:
    reason = next((str(r) for link in reversed(links) if (r := getattr(link, "verify_message", ""))), "")
    reason = reason or next((str(r) for link in reversed(links) if (r := getattr(link, "reason", ""))), "")
    why = f": {_quoted(reason.replace('_', ' ').lower())}" if reason and reason.isprintable() else "."
    what = f"The secure connection to {endpoint.host} failed{why}"
    return errors.ConnectionFailed(
        what, "Check its certificate, or whether the address should begin with http://.", retryable=False
    )


def _of_the_set_up(links: Sequence[BaseException], words: str, endpoint: Endpoint) -> ModelError | None:
    if "LLM Provider NOT provided" in words:
        near = nearest(endpoint.model, endpoint.known_models)
        hint = f"Did you mean {' or '.join(near)}? " if near else ""
        return errors.ModelNotFound(
            f"Which provider {endpoint.model} belongs to is not known.",
            f"{hint}Put the provider in front (openai/…, ollama/…), or give the address with --api_base.",
        )
    missing = next((link for link in links if isinstance(link, ImportError)), None)
    if missing is not None:
        what = f"LiteLLM needs another package for this provider: {_quoted(str(missing))}"
        return ModelError(what, "Install it into the environment of oi-tui.")
    if signs.is_missing_key(words):
        return _authentication(endpoint, "")
    if signs.is_context(words):
        return _context_too_long(words, endpoint)
    return None


# -- words


def nearest(model: str, known: Iterable[str], count: int = 2) -> list[str]:
    """The known names most like this one, at most `count`."""
    return difflib.get_close_matches(model, list(known), n=count, cutoff=0.72)


def _quoted(words: str) -> str:
    line = signs.one_line(words)
    return line if not line or line[-1] in ".!?…" else line + "."


def _status(inner: Any, key: str) -> int | None:
    value = inner.get(key) if isinstance(inner, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600 else None


def _has_errno(link: BaseException, *numbers: int) -> bool:
    return isinstance(link, OSError) and link.errno in numbers
