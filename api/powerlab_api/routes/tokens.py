"""Tokens of people and programs. Agents get theirs by enrolment; they are listed and revoked here too."""

from __future__ import annotations

from fastapi import APIRouter, status

from powerlab.protocol.access import NewToken, TokenPage, TokenRequest
from powerlab.store.reads import tokens as token_queries
from powerlab.store.writes import tokens
from powerlab_api.cursor import from_counted_cursor, to_cursor
from powerlab_api.dependencies import Cursor, Limit, ReadSession, StoreDep
from powerlab_api.roles import Caller, Requires

router = APIRouter(prefix="/tokens", tags=["tokens"])


@router.post("", status_code=status.HTTP_201_CREATED, dependencies=[Requires.admin])
def create_token(store: StoreDep, caller: Caller, request: TokenRequest) -> NewToken:
    """Make a token; its secret is shown only here."""
    with store.write() as session:
        return tokens.create_token(session, request, store.clock(), actor=caller.name)


@router.get("", dependencies=[Requires.admin])
def list_tokens(session: ReadSession, *, limit: Limit = 100, cursor: Cursor = None) -> TokenPage:
    """Return tokens without their secrets, newest first, those that are over too."""
    found = token_queries.list_tokens(session, limit=limit + 1, after=from_counted_cursor(cursor))
    items = found[:limit]
    more = to_cursor(items[-1].created_at, str(items[-1].id)) if len(found) > limit else None
    return TokenPage(items=tuple(items), next_cursor=more)


@router.delete("/{token_id}", status_code=status.HTTP_204_NO_CONTENT, dependencies=[Requires.admin])
def revoke_token(store: StoreDep, caller: Caller, token_id: int) -> None:
    """End a token, and every login that was made with it; doing it again changes nothing."""
    with store.write() as session:
        tokens.revoke_token(session, token_id, store.clock(), actor=caller.name)
