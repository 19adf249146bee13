"""What admins look after: tokens, the log of who did what, and what the server is and keeps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from powerlab.access.form_token import is_form_token
from powerlab.protocol.access import AuditEvent, Role, TokenRecord
from powerlab.store import Store
from powerlab.store.errors import ForbiddenError, NotFoundError
from powerlab.store.reads.audit_log import EventFilter, actions_and_actors, list_events
from powerlab.store.reads.server_facts import server_facts
from powerlab.store.reads.tokens import agent_names, list_tokens
from powerlab.store.writes import tokens
from powerlab_dashboards.forms import fields_of
from powerlab_dashboards.pages.place import numbered_place_in, place_after
from powerlab_dashboards.render import HEADERS, page
from powerlab_dashboards.visitor import Visit, visit_of

TOKENS_SHOWN, EVENTS_SHOWN = 50, 100
_LONGEST_WORD = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedToken:
    """A token, and whether it still opens the server."""

    record: TokenRecord
    state: str


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/admin``, ``/admin/log`` and the button that revokes a token."""

    @router.get("/admin")
    def admin_page(request: Request, after: str = "") -> Response:
        """Show tokens, newest first, and the server's facts."""
        visit = _admin(request)
        now = store.clock()
        with store.session() as session:
            found = list_tokens(session, limit=TOKENS_SHOWN + 1, after=numbered_place_in(after))
            facts = server_facts(session, store)
            agents = agent_names(session)
        shown = found[:TOKENS_SHOWN]
        return page(
            "admin.html",
            section="admin",
            visit=visit,
            tokens=[ListedToken(record=one, state=_state(one, now)) for one in shown],
            more=f"/admin?{urlencode(_after(shown[-1].created_at, shown[-1].id))}" if len(found) > TOKENS_SHOWN else "",
            first="/admin" if after else "",
            facts=facts,
            agents=agents,
        )

    @router.get("/admin/log")
    def log_page(request: Request, actor: str = "", action: str = "", subject: str = "", after: str = "") -> Response:
        """Show who did what, newest first: by somebody, of a kind, to something."""
        _admin(request)
        asked = {key: value.strip()[:_LONGEST_WORD] for key, value in
                 {"actor": actor, "action": action, "subject": subject}.items()}  # fmt: skip
        filters = EventFilter(
            actor=asked["actor"] or None,
            action=asked["action"] or None,
            subject=asked["subject"] or None,
            limit=EVENTS_SHOWN + 1,
            after=numbered_place_in(after),
        )
        with store.session() as session:
            found = list_events(session, filters)
            actions, actors = actions_and_actors(session)
            agents = agent_names(session)
        shown = found[:EVENTS_SHOWN]
        query = {key: value for key, value in asked.items() if value}
        return page(
            "admin_log.html",
            section="admin",
            events=[(one, _details(one)) for one in shown],
            actions=actions,
            agents=agents,
            actors=actors,
            asked=asked,
            filtered=bool(query),
            more=_log_address(query | _after(shown[-1].at, shown[-1].id)) if len(found) > EVENTS_SHOWN else "",
            first=_log_address(query) if after else "",
        )

    @router.post("/admin/tokens/{token_id}/revoke")
    async def revoke(request: Request, token_id: int) -> Response:
        visit = _admin(request)
        given = fields_of(await request.body())
        if not is_form_token(visit.form_token, given.get("form_token", "")):
            raise ForbiddenError("this form does not belong to your login session; reload the page and try again.")
        await run_in_threadpool(partial(_revoke, store, token_id, by=visit.principal.name))
        return RedirectResponse("/admin", status_code=303, headers=HEADERS)


def _admin(request: Request) -> Visit:
    visit = visit_of(request)
    if not visit.may_administer:
        who = visit.principal
        raise ForbiddenError(f"this needs the role {Role.ADMIN}; {who.name!r} is {who.role}.")
    return visit


def _revoke(store: Store, token_id: int, *, by: str) -> None:
    if not 0 < token_id < 2**62:
        raise NotFoundError(f"there is no token {token_id}.")
    with store.write() as session:
        tokens.revoke_token(session, token_id, store.clock(), actor=by)


def _state(token: TokenRecord, now: datetime) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if token.expires_at is not None and token.expires_at <= now else "valid"


def _details(one: AuditEvent) -> list[tuple[str, Any]]:
    return [(key, value) for key, value in one.detail.items() if value not in (None, "", [], {})]


def _after(at: datetime, number: int) -> dict[str, str]:
    return {"after": place_after(at, number)}


def _log_address(query: dict[str, str]) -> str:
    return f"/admin/log?{urlencode(query)}" if query else "/admin/log"
