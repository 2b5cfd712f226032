"""Errors a user can meet. Each says in one line what happened, whose fault it is and what to do next.

`str(error)` is the line to show. `code` is stable and goes into `server/error` chunks as their `format`.
"""

from __future__ import annotations

from typing import ClassVar


class EngineError(Exception):
    """Base of everything the engine tells a user. `what` happened; `hint` says what to do next."""

    code: ClassVar[str] = "error"

    def __init__(self, what: str, hint: str = "") -> None:
        self.what = what
        self.hint = hint
        super().__init__(what, hint)

    def __str__(self) -> str:
        return f"{self.what} {self.hint}".strip()


class SettingsError(EngineError):
    """A flag, a profile or a setting has a value that cannot be used."""

    code = "settings"


class ModelError(EngineError):
    """A request to the model failed. `retryable`: it may work when sent again, `retry_after` seconds later.

    The class says what is usual; an instance may know better (a refused connection is not worth three more tries).
    """

    code = "model"
    retryable: bool = False

    def __init__(
        self, what: str, hint: str = "", *, retry_after: float | None = None, retryable: bool | None = None
    ) -> None:
        super().__init__(what, hint)
        self.retry_after = retry_after
        if retryable is not None:
            self.retryable = retryable


class NoModel(ModelError):
    """No model is configured."""

    code = "no_model"


class AuthenticationFailed(ModelError):
    """401: the key is missing or wrong."""

    code = "authentication"


class PermissionDenied(ModelError):
    """403: the key may not use this model."""

    code = "permission"


class ModelNotFound(ModelError):
    """404: the endpoint does not know the model."""

    code = "model_not_found"


class QuotaExceeded(ModelError):
    """The account's credit or quota is used up: trying again does not help."""

    code = "quota"


class RequestRejected(ModelError):
    """400: the endpoint does not accept the request."""

    code = "rejected"


class ToolsUnsupported(RequestRejected):
    """The model takes no tools: text mode is the way."""

    code = "no_tools"


class ContextTooLong(ModelError):
    """The conversation does not fit into the model's context window."""

    code = "context"


class RateLimited(ModelError):
    """429."""

    code = "rate_limit"
    retryable = True


class ServiceUnavailable(ModelError):
    """5xx and 529: the provider is down or overloaded."""

    code = "unavailable"
    retryable = True


class ConnectionFailed(ModelError):
    """Refused, reset, unresolvable, or no answer before the headers."""

    code = "connection"
    retryable = True


class StreamStalled(ModelError):
    """Nothing arrived for the idle limit."""

    code = "stalled"
    retryable = True


class StreamBroken(ModelError):
    """The answer ended or became unreadable in the middle."""

    code = "broken_stream"
    retryable = True


class EmptyAnswer(ModelError):
    """The model answered with nothing at all."""

    code = "empty"
    retryable = True


class AnswerCut(ModelError):
    """The model's code keeps arriving in part."""

    code = "incomplete"


class TooManyRequests(ModelError):
    """The model was asked as often as it may be without the user doing anything."""

    code = "request_limit"


class BudgetExceeded(ModelError):
    """The next request could pass `max_budget`."""

    code = "budget"


class WorkerDied(ModelError):
    """The process that talks to the model ended unexpectedly."""

    code = "worker"
    retryable = True


class LanguageError(EngineError):
    """A language cannot run code."""

    code = "language"


class KernelStartFailed(LanguageError):
    """The kernel's process ended or stayed silent before it was ready."""

    code = "kernel_start"


class KernelDied(LanguageError):
    """The kernel's process ended while code ran. Its variables are gone."""

    code = "kernel_died"
