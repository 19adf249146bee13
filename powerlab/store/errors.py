"""Errors of well-formed requests to the store; the API maps each to a status."""

from __future__ import annotations

from powerlab.domain.errors import PowerlabError


class NotFoundError(PowerlabError):
    """There is no such thing (404)."""


class ConflictError(PowerlabError):
    """The request contradicts what is stored (409)."""


class StaleLeaseError(ConflictError):
    """The job was given to somebody else since; the holder of an old lease may no longer write (409)."""


class UnauthorisedError(PowerlabError):
    """A token or code is missing, unknown, used up or expired (401)."""


class ForbiddenError(PowerlabError):
    """The token is good, but its role is not enough, or the thing belongs to another device (403)."""


class MisplacedError(ConflictError):
    """A part of an upload does not begin where the last one ended (409).

    Attributes:
        offset: where the upload goes on.
    """

    def __init__(self, detail: str, offset: int) -> None:
        super().__init__(detail)
        self.offset = offset


class RetiredError(PowerlabError):
    """It was there, and is no longer kept (410)."""


class UnavailableError(PowerlabError):
    """Where traces lie cannot be reached now; later it may (503)."""


class TooLargeError(PowerlabError):
    """The thing is larger than the server takes (413)."""
