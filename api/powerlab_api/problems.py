"""Every error as an RFC 9457 problem: one sentence for people, a type for programs, never a traceback."""

from __future__ import annotations

import logging
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DataError, IntegrityError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionError
from starlette.exceptions import HTTPException

from powerlab.access.limits import TooManyRequestsError
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import Problem
from powerlab.protocol.wire import encode
from powerlab.store.errors import (
    ConflictError,
    ForbiddenError,
    MisplacedError,
    NotFoundError,
    RetiredError,
    StaleLeaseError,
    TooLargeError,
    UnauthorisedError,
    UnavailableError,
)

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "tag:powerlab,2026:problem/"

_STATUS: tuple[tuple[type[PowerlabError], int, str], ...] = (
    (StaleLeaseError, 409, "stale-lease"),
    (MisplacedError, 409, "mismatching-upload-offset"),
    (ConflictError, 409, "conflict"),
    (NotFoundError, 404, "not-found"),
    (UnauthorisedError, 401, "unauthorised"),
    (ForbiddenError, 403, "forbidden"),
    (RetiredError, 410, "retired"),
    (TooLargeError, 413, "too-large"),
    (TooManyRequestsError, 429, "too-many-requests"),
    (UnavailableError, 503, "no-traces"),
    (PowerlabError, 422, "cannot-be-done"),
)
_log = logging.getLogger("powerlab.api")


def problem(status: int, detail: str, kind: str | None = None, instance: str | None = None) -> Response:
    """Return a problem as a response."""
    body = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        type=f"{TYPE_PREFIX}{kind}" if kind else "about:blank",
        instance=instance,
    )
    headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else None
    return Response(encode(body), status_code=status, media_type=MEDIA_TYPE, headers=headers)


def install(app: FastAPI) -> None:
    """Let the app answer every error with a problem."""
    app.add_exception_handler(PowerlabError, _known)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(IntegrityError, _contradiction)
    app.add_exception_handler(OperationalError, _no_database)
    app.add_exception_handler(NoConnectionError, _no_connection)
    app.add_exception_handler(DataError, _too_much)  # PostgreSQL
    app.add_exception_handler(OverflowError, _too_much)  # SQLite's driver, and Python's own


def _known(request: Request, error: Exception) -> Response:
    status, kind = next((status, kind) for wanted, status, kind in _STATUS if isinstance(error, wanted))
    answer = problem(status, str(error), kind, request.url.path)
    if isinstance(error, MisplacedError):
        answer.headers["Upload-Offset"] = str(error.offset)
    if isinstance(error, TooManyRequestsError):
        answer.headers["Retry-After"] = str(error.retry_after_s)
    return answer


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class alone
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return problem(422, f"the request is wrong at {place}: {first['msg']}.", "invalid-request", request.url.path)


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class alone
    detail = str(error.detail)
    if error.status_code == HTTPStatus.NOT_FOUND and detail == HTTPStatus.NOT_FOUND.phrase:
        detail = f"there is nothing at {request.url.path}; the API's addresses stand in /api/v1/openapi.json."
    answer = problem(error.status_code, detail, None, request.url.path)
    answer.headers.update(error.headers or {})
    return answer


def _contradiction(request: Request, error: Exception) -> Response:
    _log.warning("the database refused a write at %s: %s", request.url.path, error)
    return problem(
        409, "the request contradicts what was stored at the same moment; try again.", "conflict", request.url.path
    )


def _too_much(request: Request, error: Exception) -> Response:
    _log.warning("the database cannot store a value at %s: %s", request.url.path, error)
    detail = "a value of the request is too long, too large, or holds a character that the database cannot store."
    return problem(422, detail, "cannot-be-done", request.url.path)


def _no_database(request: Request, error: Exception) -> Response:
    _log.error("the database failed at %s: %s", request.url.path, error)
    if _is_full(error):
        return problem(507, "the database has no room left; free some space on its disk.", "no-room", request.url.path)
    return problem(503, "the database cannot be reached now; try again later.", "no-database", request.url.path)


def _no_connection(request: Request, error: Exception) -> Response:
    _log.error("no connection to the database was free at %s: %s", request.url.path, error)
    answer = problem(503, "every connection to the database is in use; try again later.", "busy", request.url.path)
    answer.headers["Retry-After"] = "2"
    return answer


def _is_full(error: Exception) -> bool:
    """Whether a disk is full: SQLite says so in words (SQLITE_FULL), PostgreSQL with the SQLSTATE 53100."""
    reason = getattr(error, "orig", None)
    return getattr(reason, "sqlstate", None) == "53100" or "disk is full" in str(reason)
