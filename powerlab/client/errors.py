"""Errors between a client and its server."""

from __future__ import annotations

from powerlab.domain.errors import PowerlabError


class ServerAwayError(PowerlabError):
    """No answer, or one that says "later" (5xx, 429): trying again may help.

    Attributes:
        after_s: how long the server asks to be left alone, in seconds; None where it says nothing.
    """

    def __init__(self, detail: str, after_s: float | None = None) -> None:
        super().__init__(detail)
        self.after_s = after_s


class StatusError(PowerlabError):
    """The server said no.

    Attributes:
        kind: the last part of the problem's type (RFC 9457), for example ``not-found``.
        status: the HTTP status.
    """

    def __init__(self, detail: str, kind: str, status: int = 0) -> None:
        super().__init__(detail)
        self.kind = kind
        self.status = status
