"""What routes ask for, as Annotated types."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy.orm import Session

from powerlab.store import Store
from powerlab.store.errors import UnauthorisedError
from powerlab.store.writes.devices import authenticate
from powerlab.store.writes.sweeps import OPERATOR
from powerlab_api.settings import Settings

_bearer = HTTPBearer(auto_error=False, description="An agent's token from its enrolment, or the operator's token.")


def _store(request: Request) -> Store:
    store: Store = request.app.state.store
    return store


def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


StoreDep = Annotated[Store, Depends(_store)]
SettingsDep = Annotated[Settings, Depends(_settings)]
BearerDep = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


def _session(store: StoreDep) -> Iterator[Session]:
    with store.session() as session:
        yield session


def _agent(store: StoreDep, bearer: BearerDep) -> str:
    if bearer is None:
        raise UnauthorisedError("this address is for agents; send the token of an enrolled agent as bearer token.")
    with store.write() as session:
        return authenticate(session, bearer.credentials, store.clock())


def _submitter() -> str:
    return OPERATOR


def _operator(settings: SettingsDep, bearer: BearerDep) -> None:
    if settings.operator_token is None:
        return
    given = bearer.credentials if bearer else ""
    if not hmac.compare_digest(given.encode(), settings.operator_token.encode()):
        raise UnauthorisedError("this needs the operator's token; send it as bearer token (POWERLAB_OPERATOR_TOKEN).")


ReadSession = Annotated[Session, Depends(_session)]
AgentDevice = Annotated[str, Depends(_agent)]
"""The id of the device whose agent asks."""
OperatorOnly = Depends(_operator)
Submitter = Annotated[str, Depends(_submitter)]
"""The name of whoever asks for something."""
Limit = Annotated[int, Query(ge=1, le=500, description="items on a page")]
Cursor = Annotated[str | None, Query(description="next_cursor of the page before")]
