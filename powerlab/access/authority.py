"""Authentication: who sent a request."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from powerlab.access.form_token import form_token
from powerlab.access.limits import Limits
from powerlab.access.origin import check_origin
from powerlab.access.principal import CONFIGURED, LOCAL_USER, Principal, principal_of
from powerlab.access.session_cookie import COOKIE, VALID_S, fingerprint, seal, unseal
from powerlab.protocol.access import Role, TokenRecord
from powerlab.store import Store
from powerlab.store.errors import ForbiddenError, UnauthorisedError
from powerlab.store.reads.tokens import session_key, token_by_hash, token_by_id
from powerlab.store.secrets import sha256
from powerlab.store.writes.audit import record
from powerlab.store.writes.tokens import is_use_due, note_use

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

_BY_ID = "token "
_log = logging.getLogger("powerlab.access")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What of a request tells who asks.

    Attributes:
        method: ``GET``, ``POST``, ...
        headers: by name, whatever case.
        cookies: by name.
        address: where it comes from.
    """

    method: str
    headers: Mapping[str, str]
    cookies: Mapping[str, str]
    address: str

    @classmethod
    def of(cls, request: HTTPConnection) -> Asking:
        """Return it of a request as Starlette has it."""
        address = request.client.host if request.client is not None else ""
        return cls(method=request.scope["method"], headers=request.headers, cookies=request.cookies, address=address)


@dataclass(slots=True, kw_only=True)
class Authority:
    """Knows tokens and sessions.

    Attributes:
        store: the database with the tokens.
        configured_token: one more token, an admin's, from the server's environment.
        login_needed: False where whoever reaches the server is its user.
        limits: how often somebody may ask.
    """

    store: Store
    configured_token: str | None = None
    login_needed: bool = False
    limits: Limits = field(default_factory=Limits)
    _key: bytes | None = None

    def identify(self, asking: Asking) -> Principal:
        """Return who asks.

        Raises:
            UnauthorisedError: nobody that is known.
            ForbiddenError: a browser asks for a page of another site.
            TooManyRequestsError: too often.
        """
        found = self._by_bearer(asking) or self._by_session(asking)
        if found is not None:
            self.limits.requests.spend(found.name)
            return found
        if self.login_needed:
            raise UnauthorisedError(_missing(asking))
        check_origin(asking.method, asking.headers, browser=False)
        return LOCAL_USER

    def form_token(self, principal: Principal, asking: Asking) -> str:
        """Return what the forms of a page carry that is made for this visitor."""
        return form_token(self._session_key(), principal.name, asking.cookies.get(COOKIE, ""))

    def log_in(self, token: str, address: str) -> str:
        """Return the value of a cookie that stands for a token for a while.

        Raises:
            UnauthorisedError: the token is none.
            ForbiddenError: it is an agent's.
            TooManyRequestsError: too many wrong ones came from that address.
        """
        self.limits.guesses.check(address)
        principal = self._holder(token, address)
        if principal is None:
            raise UnauthorisedError("this is no token of this server; ask an admin for one.")
        if principal.role is Role.AGENT:
            raise ForbiddenError("this is an agent's token; people have tokens of their own.")
        now = self.store.clock()
        with self.store.write() as session:
            record(session, now, principal.name, "log in", principal.name)
        subject = self._configured_subject() if principal.token_id is None else f"{_BY_ID}{principal.token_id}"
        return seal(self._session_key(), subject, now + timedelta(seconds=VALID_S))

    def _by_bearer(self, asking: Asking) -> Principal | None:
        scheme, _, token = asking.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        found = self._holder(token.strip(), asking.address)
        if found is None and self.login_needed:
            raise UnauthorisedError("this token is unknown; ask an admin for one, or enrol the device again.")
        return found

    def _holder(self, token: str, address: str) -> Principal | None:
        """Return whose token it is.

        A token of the table has 256 random bits, so that nobody guesses it. The configured one is as good as whoever
        chose it made it: after too many wrong ones from an address it is not even compared.
        """
        with self.store.session() as session:
            known = token_by_hash(session, sha256(token), self.store.clock())
        if known is not None:
            return self._used(known)
        if self.configured_token is not None:
            self.limits.guesses.check(address)
            if hmac.compare_digest(token.encode(), self.configured_token.encode()):
                return CONFIGURED
        if self.login_needed:
            self.limits.guesses.spend(address)
            _log.warning("a wrong token came from %s", address)
        return None

    def _by_session(self, asking: Asking) -> Principal | None:
        cookie = asking.cookies.get(COOKIE)
        subject = unseal(self._session_key(), cookie, self.store.clock()) if cookie else None
        if subject is None:
            return None
        if subject.startswith(_BY_ID):
            with self.store.session() as session:
                known = token_by_id(session, int(subject.removeprefix(_BY_ID)), self.store.clock())
            found = None if known is None else self._used(known)
        else:
            found = CONFIGURED if subject == self._configured_subject() else None
        if found is not None:
            check_origin(asking.method, asking.headers, browser=True)
        return found

    def _used(self, token: TokenRecord) -> Principal:
        now = self.store.clock()
        if is_use_due(token.last_used_at, now):
            with self.store.write() as session:
                note_use(session, token, now)
        return principal_of(token)

    def _configured_subject(self) -> str:
        if self.configured_token is None:
            return ""
        return f"configured {fingerprint(self._session_key(), self.configured_token)}"

    def _session_key(self) -> bytes:
        if self._key is None:
            with self.store.session() as session:
                self._key = session_key(session)
        return self._key


def _missing(asking: Asking) -> str:
    over = "your login is over; " if COOKIE in asking.cookies else ""
    return f"{over}this server wants a token: send one (Authorization: Bearer; POWERLAB_TOKEN), or log in at /login."
