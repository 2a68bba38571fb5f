"""The errors that calls raise. All of them are a MnemeError."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._core import Recorded


class MnemeError(Exception):
    """Any failure of a call."""

    recorded: Sequence[Recorded] = ()  #: of record(): what the requests before the failed one stored


class UnreachableError(MnemeError):
    """The server could not be reached, or the connection broke, even at the last try.

    What you recorded may be in the log nevertheless. Record it again with the same id.
    """


class ProblemError(MnemeError):
    """The server refused a request. The subclasses say why.

    Its text is the server's, which says what to do.
    """

    def __init__(self, status: int, detail: str, errors: list[dict[str, Any]], retry_after: str) -> None:
        reasons = "; ".join(f"{e.get('location', '')}: {e.get('message', '')}" for e in errors if e.get("location", "") not in detail)
        super().__init__(f"{status}: {detail}" + (f" ({reasons})" if reasons else ""))
        self.status = status  #: the HTTP status
        self.detail = detail
        self.errors = errors  #: what is wrong with which parameter or event (body[0] is the first after recorded): location, message and perhaps value
        self.retry_after = retry_after  #: the header Retry-After, "" if there is none

    def __reduce__(self) -> tuple[Any, ...]:  # for pickle, which pools of processes use
        return type(self), (self.status, self.detail, self.errors, self.retry_after), self.__dict__


class InvalidError(ProblemError):
    """A parameter or an event is wrong, or too large: errors names it."""


class UnauthorizedError(ProblemError):
    """The server asks for a token, and there is none that is valid."""


class ForbiddenError(ProblemError):
    """The token does not allow this."""


class NotFoundError(ProblemError):
    """There is no such conversation, project or route."""


class ConflictError(ProblemError):
    """Something else is recorded under this id already, or other clients are changing the conversation."""

    existing_seq: int | None = None  #: sequence of the event that is recorded under the id, and counts


class UnavailableError(ProblemError):
    """The server did not answer, or had too much to do, even at the last try.

    What you recorded may be in the log nevertheless. Record it again with the same id.
    """


class BehindError(ProblemError):
    """What was recorded did not become readable in time (wait_ms). It is in the log: read again later."""


class LogFullError(ProblemError):
    """The log is full: an operator must make room."""


_BY_STATUS: dict[int, type[ProblemError]] = {
    400: InvalidError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    413: InvalidError,
    415: InvalidError,
    422: InvalidError,
    429: UnavailableError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
    507: LogFullError,
}


def problem(method: str, status: int, media: str, body: str, retry_after: str) -> ProblemError:
    """Return the error for an answer."""
    document = None
    if media.startswith("application/problem+json"):
        try:
            document = json.loads(body)
        except ValueError:
            pass
    kind = _BY_STATUS.get(status, ProblemError)
    if not isinstance(document, dict):  # the answer is a proxy's
        return kind(status, body[:300].strip() or "the server gave no reason", [], retry_after)
    if status == 504 and method == "GET":
        kind = BehindError
    detail = document.get("detail") or document.get("title") or "the server gave no reason"
    error = kind(status, detail, document.get("errors") or [], retry_after)
    if isinstance(error, ConflictError):
        error.existing_seq = document.get("existing_seq")
    return error
