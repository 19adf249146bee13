"""Where tokens are kept: behind a server, or in a database that this process may write."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from powerlab.cli.arguments.server import connect
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.access import NewToken, TokenPage, TokenRecord, TokenRequest
from powerlab.protocol.messages import EnrolmentCode, EnrolmentCodeRequest

if TYPE_CHECKING:
    from powerlab.store import Store


class TokenStore(Protocol):
    """What can be done with tokens; every method raises PowerlabError where it cannot be done."""

    def create(self, request: TokenRequest) -> NewToken:
        """Make a token."""
        ...

    def tokens(self) -> Iterator[TokenRecord]:
        """Yield every token, newest first."""
        ...

    def revoke(self, token_id: int) -> None:
        """End a token."""
        ...

    def make_code(self, request: EnrolmentCodeRequest) -> EnrolmentCode:
        """Make an enrolment code."""
        ...


class ServerTokens:
    """Asks a server."""

    def __init__(self, server: str) -> None:
        self._api = connect(server).transport

    def create(self, request: TokenRequest) -> NewToken:
        """Make a token."""
        return self._api.post("/tokens", request, NewToken)

    def tokens(self) -> Iterator[TokenRecord]:
        """Yield every token, newest first."""
        fields: dict[str, str | int] = {"limit": 500}
        while True:
            page = self._api.get("/tokens", TokenPage, **fields)
            yield from page.items
            if page.next_cursor is None:
                return
            fields["cursor"] = page.next_cursor

    def revoke(self, token_id: int) -> None:
        """End a token."""
        self._api.delete(f"/tokens/{token_id}")

    def make_code(self, request: EnrolmentCodeRequest) -> EnrolmentCode:
        """Make an enrolment code."""
        return self._api.post("/enrolment-codes", request, EnrolmentCode)


@dataclass(frozen=True, slots=True)
class DatabaseTokens:
    """Works on a database."""

    store: Store

    @classmethod
    @contextmanager
    def opened(cls, address: str) -> Iterator[DatabaseTokens]:
        """Open a database, made where it is missing, for as long as the context lasts."""
        if importlib.util.find_spec("sqlalchemy") is None:
            raise PowerlabError("a database needs the server extra; install `powerlab[server]`, or ask a --server.")
        from powerlab.store import open_store

        with closing(open_store(address)) as store:
            yield cls(store)

    def create(self, request: TokenRequest) -> NewToken:
        """Make a token."""
        from powerlab.store.writes.audit import COMMAND_LINE
        from powerlab.store.writes.tokens import create_token

        with self.store.write() as session:
            return create_token(session, request, self.store.clock(), actor=COMMAND_LINE)

    def tokens(self) -> Iterator[TokenRecord]:
        """Yield every token, newest first."""
        from powerlab.store.reads.tokens import list_tokens

        with self.store.session() as session:
            yield from list_tokens(session)

    def revoke(self, token_id: int) -> None:
        """End a token."""
        from powerlab.store.writes.audit import COMMAND_LINE
        from powerlab.store.writes.tokens import revoke_token

        with self.store.write() as session:
            revoke_token(session, token_id, self.store.clock(), actor=COMMAND_LINE)

    def make_code(self, request: EnrolmentCodeRequest) -> EnrolmentCode:
        """Make an enrolment code."""
        from powerlab.store.writes.devices import make_enrolment_code

        with self.store.write() as session:
            return make_enrolment_code(session, request, self.store.clock())
