"""The buttons of a sweep: plain forms that need no script. Each POST redirects to a page (303)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session

from powerlab.access.form_token import is_form_token
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.access import Role
from powerlab.protocol.messages import CloneRequest
from powerlab.protocol.records import OVER, SweepState
from powerlab.store import Store
from powerlab.store.errors import ConflictError, ForbiddenError, NotFoundError
from powerlab.store.writes import control
from powerlab.store.writes.clones import cloned
from powerlab.store.writes.repeats import add_repeats
from powerlab.store.writes.sweeps import submit_sweep
from powerlab_dashboards.forms import fields_of, own_address
from powerlab_dashboards.language import mark
from powerlab_dashboards.render import HEADERS, not_found, page
from powerlab_dashboards.visitor import Visit, visit_of

_OPEN = tuple(state for state in SweepState if state not in OVER)


@dataclass(frozen=True, slots=True)
class Action:
    """A button.

    Attributes:
        label: its text.
        states: the sweep states in which it is shown.
        change: the function it calls.
        question: the confirmation shown before an action that cannot be undone.
    """

    label: str
    states: tuple[SweepState, ...]
    change: Callable[[Session, str, str, datetime], None]
    question: str = ""


ACTIONS = {
    "pause": Action(mark("Pause"), (SweepState.QUEUED, SweepState.RUNNING), control.pause),
    "resume": Action(mark("Resume"), (SweepState.PAUSED,), control.resume),
    "cancel": Action(
        mark("Cancel"),
        _OPEN,
        control.cancel,
        mark("This cannot be undone. Completed runs and the run in progress are kept."),
    ),
    "repeat": Action(mark("Add 3 repeats"), (SweepState.DONE, SweepState.FAILED), add_repeats),
}
CLONE = "clone"
_STATUS = {NotFoundError: 404, ConflictError: 409, ForbiddenError: 403}


def actions_of(state: SweepState) -> dict[str, Action]:
    """Return the buttons for a sweep in this state, except the one that clones it."""
    return {name: action for name, action in ACTIONS.items() if state in action.states}


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/sweeps/{id}/pause``, ``resume``, ``cancel``, ``repeat`` and ``clone``."""

    @router.post("/sweeps/{sweep_id}/{action}")
    async def act(request: Request, sweep_id: str, action: str) -> Response:
        if action not in ACTIONS and action != CLONE:
            return not_found(f"There is no sweep action named {action}.")
        given = fields_of(await request.body())
        try:
            check_may(visit_of(request), given.get("form_token", ""))
            shown = await run_in_threadpool(_do, store, visit_of(request).principal.name, sweep_id, action, given)
        except PowerlabError as error:
            status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 422)
            return page("not_done.html", status=status, section="sweeps", sweep_id=sweep_id, sentence=str(error))
        back = given.get("back")
        return RedirectResponse(own_address(back) if back else f"/sweeps/{shown}", status_code=303, headers=HEADERS)


def check_may(visit: Visit, form_token: str) -> None:
    """Raise ForbiddenError unless the visitor may act on sweeps and the form comes from a page made for them."""
    if not visit.may_operate:
        raise ForbiddenError(
            f"this needs the role {Role.OPERATOR}; {visit.principal.name!r} is {visit.principal.role}."
        )
    if not is_form_token(visit.form_token, form_token):
        raise ForbiddenError("this form does not belong to your login session; reload the page and try again.")


def _do(store: Store, by: str, sweep_id: str, action: str, given: dict[str, str]) -> str:
    """Perform the action and return the id of the sweep to show next."""
    with store.write() as session:
        if action != CLONE:
            ACTIONS[action].change(session, sweep_id, by, store.clock())
            return sweep_id
        request = cloned(session, sweep_id, CloneRequest())
        # Idempotent: pressing the button twice creates one sweep.
        new_id, _ = submit_sweep(
            session, request, store.clock(), by=by, key=given.get("key") or None, cloned_from=sweep_id
        )
        return new_id
