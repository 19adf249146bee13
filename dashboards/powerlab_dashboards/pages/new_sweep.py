"""The form for a new sweep: what to measure where, how many runs that takes, and the button that queues it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.domain.model_name import StoredModelName
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.access import Role
from powerlab.protocol.messages import SweepRequest
from powerlab.protocol.records import SweepPreview
from powerlab.store import Store
from powerlab.store.errors import ForbiddenError
from powerlab.store.reads import queries
from powerlab.store.reads.models import list_models
from powerlab.store.reads.previews import preview
from powerlab.store.writes.sweeps import submit_sweep
from powerlab_dashboards.forms import lists_of
from powerlab_dashboards.pages.sweep_actions import check_may
from powerlab_dashboards.pages.sweep_fields import FIELDS, Offer
from powerlab_dashboards.pages.sweep_form import Entered, entered
from powerlab_dashboards.render import HEADERS, page
from powerlab_dashboards.visitor import Visit, visit_of

MODELS_SHOWN = 100
"""Uploaded models that can be ticked; others are swept with the command line."""
Given = Mapping[str, list[str]]


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/sweeps/new``: GET shows the form and what it would take, POST queues the sweep."""

    @router.get("/sweeps/new")
    def new_sweep(request: Request) -> Response:
        visit = visit_of(request)
        if not visit.may_operate:
            sentence = f"this needs the role {Role.OPERATOR}; {visit.principal.name!r} is {visit.principal.role}."
            return page("not_done.html", status=403, section="home", sweep_id="", sentence=sentence)
        return _form(store, visit, lists_of(request.url.query))

    @router.post("/sweeps/new")
    async def start(request: Request) -> Response:
        visit, given = visit_of(request), lists_of((await request.body()).decode(errors="replace"))
        try:
            check_may(visit, given.get("form_token", [""])[0])
            return await run_in_threadpool(_start, store, visit, given)
        except ForbiddenError as error:
            return page("not_done.html", status=403, section="home", sweep_id="", sentence=str(error))


def _start(store: Store, visit: Visit, given: Given) -> Response:
    """Queue the sweep on every chosen device, all or none, or on all as one; show the form again if that fails."""
    key = given.get("key", [""])[0] or str(uuid.uuid4())
    try:
        with store.write() as session:
            offer = _offer(session, given)
            found = entered(given, offer) if offer.devices else None
            if found is None or found.plan is None or found.problems:
                return _page(session, store, visit, given, status=422)
            made = [
                submit_sweep(
                    session,
                    request,
                    store.clock(),
                    by=visit.principal.name,
                    key=f"form {key[:100]}, {request.device_id}",  # pressing the button twice makes one sweep a device
                )[0]
                for _, request in _requests(offer, found.plan)
            ]
    except PowerlabError as error:
        return _form(store, visit, given, problem=str(error), status=422)
    address = f"/sweeps/{made[0]}" if len(made) == 1 else "/"
    return RedirectResponse(address, status_code=303, headers=HEADERS)


def _requests(offer: Offer, plan: SweepPlan) -> list[tuple[str, SweepRequest]]:
    """Return what is asked for, each with the names of its devices."""
    names, ids = [one.device.name for one in offer.devices], [one.id for one in offer.devices]
    if offer.together:
        return [(", ".join(names), SweepRequest(device_id=ids[0], with_ids=tuple(ids[1:]), plan=plan))]
    return [(name, SweepRequest(device_id=one, plan=plan)) for name, one in zip(names, ids, strict=True)]


def _form(store: Store, visit: Visit, given: Given, *, problem: str = "", status: int = 200) -> Response:
    with store.session() as session:
        return _page(session, store, visit, given, problem=problem, status=status)


def _page(
    session: Session, store: Store, visit: Visit, given: Given, *, problem: str = "", status: int = 200
) -> Response:
    devices, offer = queries.list_devices(session), _offer(session, given)
    found = entered(given, offer) if offer.devices else None
    context: dict[str, Any] = {
        "devices": devices,
        "chosen": {one.id for one in offer.devices},
        "offer": offer,
        "fields": FIELDS,
        "entered": found,
        "problem": problem or (found.problems.get("", "") if found else ""),
        "previews": _previews(session, store, offer, found),
        "form_token": visit.form_token,
        "key": given.get("key", [""])[0] or str(uuid.uuid4()),
    }
    return page("new_sweep.html", section="home", status=status, **context)


def _offer(session: Session, given: Given) -> Offer:
    """Return the chosen devices, or the only one there is, and the uploaded models."""
    devices = queries.list_devices(session)
    wanted = set(given.get("device", ()))
    chosen = devices if len(devices) == 1 else [one for one in devices if one.id in wanted]
    models = list_models(session, limit=MODELS_SHOWN)
    uploaded = [str(StoredModelName(name=row.name, sha256=row.sha256)) for row in models]
    return Offer(devices=chosen, uploaded=uploaded, together="together" in given and len(chosen) > 1)


def _previews(
    session: Session, store: Store, offer: Offer, found: Entered | None
) -> Sequence[tuple[str, SweepPreview]]:
    """Return what the sweep would take on each device, or on all as one; nothing while a field is wrong."""
    if found is None or found.plan is None or found.problems:
        return ()
    return [(name, preview(session, request, store.clock())) for name, request in _requests(offer, found.plan)]
