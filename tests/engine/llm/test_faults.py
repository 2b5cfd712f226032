"""Every fault in one line: what happened, whose fault it is, what next."""

from __future__ import annotations

import errno
import json
import socket
import ssl
from typing import Any

import httpx
import openai
import pytest

from oi_tui.engine import errors
from oi_tui.engine.errors import ModelError
from oi_tui.engine.llm.endpoint import Endpoint
from oi_tui.engine.llm.faults import explain, explain_event, explain_status
from oi_tui.engine.llm.retry_after import asked_pause

LOCAL = Endpoint("127.0.0.1:1234", "openai/llama", is_custom=True, key_origin="the settings")
HOSTED = Endpoint("OpenAI", "gpt-5", key_variable="OPENAI_API_KEY", known_models=("gpt-4o", "gpt-4o-mini", "gpt-5"))


def caused(outer: Exception, *causes: BaseException) -> Exception:
    """`outer`, raised because of the first, because of the second…"""
    link: BaseException = outer
    for cause in causes:
        link.__context__ = cause
        link = cause
    return outer


class InternalServerError(Exception):
    """As litellm wraps everything it cannot tell apart."""

    status_code = 500


def status_error(status: int, body: Any, headers: dict[str, str] | None = None) -> Exception:
    """What litellm raises for an HTTP error: a wrapper whose class says little, the real response inside."""
    request = httpx.Request("POST", "http://127.0.0.1:1234/v1/chat/completions")
    content = body if isinstance(body, str) else json.dumps(body)
    response = httpx.Response(status, headers={"x": "y", **(headers or {})}, content=content, request=request)
    return caused(InternalServerError("wrapped"), openai.APIStatusError("told", response=response, body=None))


def error(message: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": code}}


@pytest.mark.parametrize(
    ("problem", "kind", "words"),
    [
        (
            status_error(401, error("Bad key.")),
            errors.AuthenticationFailed,
            "does not accept the API key from the sett",
        ),
        (status_error(403, error("Not yours.")), errors.PermissionDenied, "It says: Not yours."),
        (status_error(404, error("model 'llama' not found")), errors.ModelNotFound, "does not know the model"),
        (status_error(404, "404 page not found"), errors.ModelNotFound, "often it ends in /v1"),
        (status_error(404, {"detail": "Not Found"}), errors.ModelNotFound, "has no chat API at this address"),
        (status_error(429, error("Slow down")), errors.RateLimited, "limits requests (429)"),
        (status_error(429, error("No money", "insufficient_quota")), errors.QuotaExceeded, "no credit or quota left"),
        (status_error(402, error("Insufficient Balance")), errors.QuotaExceeded, "Top it up"),
        (status_error(400, error("x", "context_length_exceeded")), errors.ContextTooLong, "context window"),
        (status_error(400, error("prompt is too long: 9000 tokens > 8192")), errors.ContextTooLong, "(8,192 tokens)"),
        (status_error(413, "too large"), errors.ContextTooLong, "does not fit"),
        (status_error(400, error("gemma does not support tools")), errors.ToolsUnsupported, "takes no tools"),
        (status_error(400, error("bad temperature")), errors.RequestRejected, "rejected the request (400)"),
        (status_error(422, {"detail": [{"msg": "field required"}]}), errors.RequestRejected, "field required"),
        (status_error(400, error("API key not valid.")), errors.AuthenticationFailed, "API key"),
        (status_error(500, error("boom")), errors.ServiceUnavailable, "a problem of its own (500)"),
        (status_error(502, "<html>Bad Gateway</html>"), errors.ServiceUnavailable, "its own (502). Try again"),
        (status_error(503, error("busy")), errors.ServiceUnavailable, "is overloaded (503)"),
        (status_error(529, error("Overloaded")), errors.ServiceUnavailable, "is overloaded (529)"),
        (status_error(408, error("late")), errors.ServiceUnavailable, "(408)"),
    ],
)
def test_an_http_error_is_named(problem: Exception, kind: type[ModelError], words: str) -> None:
    found = explain(problem, LOCAL, began=False)
    assert type(found) is kind
    assert words in str(found)
    assert "127.0.0.1:1234" in str(found) or "openai/llama" in str(found)
    assert "\n" not in str(found)


def timeout() -> Exception:
    return caused(InternalServerError("x"), httpx.ReadTimeout("slow"))


@pytest.mark.parametrize(
    ("problem", "began", "kind", "words", "retryable"),
    [
        (
            caused(InternalServerError("x"), httpx.ConnectError("no"), OSError(errno.ECONNREFUSED, "refused")),
            False,
            errors.ConnectionFailed,
            "Nothing answers at 127.0.0.1:1234 (connection refused). Is the server running?",
            False,
        ),
        (
            caused(InternalServerError("x"), socket.gaierror(-2, "unknown")),
            False,
            errors.ConnectionFailed,
            "The name of 127.0.0.1:1234 cannot be resolved.",
            False,
        ),
        (
            caused(InternalServerError("x"), ssl.SSLCertVerificationError(1, "CERTIFICATE_VERIFY_FAILED")),
            False,
            errors.ConnectionFailed,
            "The secure connection to 127.0.0.1:1234 failed",
            False,
        ),
        (
            caused(InternalServerError("x"), OSError(errno.ENETUNREACH, "unreachable")),
            False,
            errors.ConnectionFailed,
            "network unreachable",
            False,
        ),
        (
            caused(InternalServerError("x"), httpx.UnsupportedProtocol("no scheme")),
            False,
            errors.ConnectionFailed,
            "should look like http://localhost:1234/v1",
            False,
        ),
        (timeout(), False, errors.ConnectionFailed, "did not answer within 60 s", True),
        (timeout(), True, errors.StreamStalled, "sent nothing more for 60 s", True),
        (
            caused(InternalServerError("x"), httpx.RemoteProtocolError("gone")),
            True,
            errors.StreamBroken,
            "broke in the middle of the answer",
            True,
        ),
        (
            caused(InternalServerError("x"), ConnectionResetError()),
            False,
            errors.ConnectionFailed,
            "closed the connection without an answer",
            True,
        ),
        (json.JSONDecodeError("x", "y", 0), True, errors.StreamBroken, "something unreadable", True),
        (ModuleNotFoundError("No module named 'google'"), False, ModelError, "needs another package", False),
        (ValueError("Unable to locate credentials"), False, errors.AuthenticationFailed, "API key", False),
        (ValueError("litellm.X: whatever it is\nTraceback: …"), False, ModelError, "whatever it is", False),
        (KeyError("bug"), False, ModelError, "failed: 'bug'", False),
    ],
)
def test_a_failed_connection_is_named(
    problem: Exception, began: bool, kind: type[ModelError], words: str, retryable: bool
) -> None:
    found = explain(problem, LOCAL, began=began)
    assert type(found) is kind and words in str(found) and found.retryable is retryable


def test_a_missing_key_names_the_variable_and_a_wrong_one_its_origin() -> None:
    missing = explain_status(401, error("No key"), {}, HOSTED)
    assert str(missing).startswith("OpenAI wants an API key, and there is none. Set OPENAI_API_KEY, or enter it")
    wrong = explain_status(401, "", {}, Endpoint("OpenAI", "gpt-5", key_origin="OPENAI_API_KEY"))
    assert "does not accept the API key from OPENAI_API_KEY." in str(wrong)


def test_a_key_that_was_held_back_is_explained() -> None:
    endpoint = Endpoint("example.com", "m", withheld_variable="OPENAI_API_KEY", is_custom=True)
    found = explain_status(401, "", {}, endpoint)
    assert "or set OI_TUI_API_KEY (OPENAI_API_KEY is sent to its own provider only)." in str(found)


def test_an_unknown_model_suggests_the_nearest() -> None:
    endpoint = Endpoint("OpenAI", "gpt-4o-mni", known_models=HOSTED.known_models)
    assert "Did you mean gpt-4o-mini" in str(explain_status(404, error("no such model"), {}, endpoint))


def test_a_model_without_a_provider_says_how_to_name_one() -> None:
    problem = ValueError("litellm.BadRequestError: LLM Provider NOT provided. Pass model as E.g. …")
    found = explain(problem, Endpoint("the model", "foobar-7b"), began=False)
    assert "Which provider foobar-7b belongs to is not known." in str(found) and "--api_base" in str(found)


def test_foreign_words_are_one_line_without_controls_and_short() -> None:
    found = explain_status(400, error("a\x1b]52;c;Zm9v\x07\nb\u202e" + "x" * 5000), {}, LOCAL)
    assert "\x1b" not in str(found) and "\u202e" not in str(found) and "\n" not in str(found)
    assert len(str(found)) < 400


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        ({"error": {"message": "Overloaded", "code": 529}}, errors.ServiceUnavailable),
        ({"error": {"message": "slow down", "status": 429}}, errors.RateLimited),
        ({"error": {"message": "maximum context length"}}, errors.ContextTooLong),
        ({"error": "it broke"}, errors.StreamBroken),
        ({"error": {"message": "it broke", "code": "server_error"}}, errors.StreamBroken),
        ({"error": True}, errors.StreamBroken),
    ],
)
def test_an_error_inside_the_stream_is_named(payload: Any, kind: type[ModelError]) -> None:
    assert type(explain_event(payload, LOCAL)) is kind


@pytest.mark.parametrize(
    ("headers", "words", "seconds"),
    [
        ({"retry-after": "3"}, "", 3),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after": "-7"}, "", 0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, "", 1.5),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}, "", 30),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT", "date": "Wed, 21 Oct 2015 08:00:00 GMT"}, "", 0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT"}, "", 30),
        ({"retry-after": "nan"}, "", None),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "inf"}, "", None),
        ({}, "Please try again in 1m2.5s. Visit …", 62.5),
        ({}, "Please retry in 22.4s.", 22.4),
        ({}, "Please try again in 20ms.", 0.02),
        ({}, "Please try again later.", None),
        ({}, "", None),
    ],
)
def test_the_pause_asked_for_is_read_in_all_its_forms(
    headers: dict[str, str], words: str, seconds: float | None
) -> None:
    assert asked_pause(headers, words, now=1445412480.0) == (pytest.approx(seconds) if seconds is not None else None)


def test_a_free_tier_that_says_when_to_come_back_is_a_limit_and_not_an_empty_account() -> None:
    words = "You exceeded your current quota, please check your plan. Please retry in 22.4s."
    found = explain_status(429, [{"error": {"message": words, "code": 429}}], {}, HOSTED)
    assert type(found) is errors.RateLimited and found.retry_after == pytest.approx(22.4)
