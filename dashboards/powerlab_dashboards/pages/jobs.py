"""The queue of all devices: what waits, runs, is paused, and what ended how; the filters stand in the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from powerlab.protocol.records import JobRecord, SweepRecord, SweepState
from powerlab.store import Store
from powerlab.store.reads.bookings import BookingFilter, list_bookings
from powerlab.store.reads.jobs import JobFilter, list_jobs
from powerlab.store.reads.queries import sweeps_by_id
from powerlab.store.tables import DeviceRow, JobRow
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark
from powerlab_dashboards.pages.home import STATE_WORDS, UNFINISHED
from powerlab_dashboards.pages.place import place_after, place_in
from powerlab_dashboards.pages.sweep_actions import actions_of
from powerlab_dashboards.render import page
from powerlab_dashboards.visitor import visit_of

LIMIT = 50
OPEN = "open"
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedJob:
    """A job with its sweep.

    Attributes:
        record: the job.
        sweep: what it carries out.
        silent: whether its agent has said nothing for longer than its lease.
        waits_for: why it does not run, in words; empty where it does, or is over.
    """

    record: JobRecord
    sweep: SweepRecord
    silent: bool
    waits_for: str


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/jobs``."""

    @router.get("/jobs")
    def jobs_page(
        request: Request, state: str = "", device: str = "", submitter: str = "", after: str = ""
    ) -> Response:
        """Show jobs, newest first: those in a state (``open``: not over), of a device, of a submitter."""
        now = store.clock()
        wanted = next((one for one in SweepState if one.value == state), None)
        filters = JobFilter(
            state=wanted,
            states=UNFINISHED if state == OPEN else None,
            device_id=device or None,
            submitter=submitter.strip()[:_LONGEST_NAME] or None,
            limit=LIMIT + 1,
            after=place_in(after),
        )
        with store.session() as session:
            found = list_jobs(session, filters)
            listed = _listed(session, found[:LIMIT], now)
            numbers = _numbers(session)
            devices = session.execute(select(DeviceRow.id, DeviceRow.name).order_by(DeviceRow.name)).all()
        query = {"state": state if wanted or state == OPEN else "", "device": device, "submitter": submitter}
        return page(
            "jobs.html",
            section="jobs",
            jobs=listed,
            unfinished=any(one.record.state in UNFINISHED for one in listed),
            tabs=_tabs(numbers, query),
            state_words=STATE_WORDS,
            devices=devices,
            device=device,
            submitter=submitter,
            chosen_state=query["state"],
            filtered=bool(device or submitter),
            more=_address(query | _next(found)) if len(found) > LIMIT else "",
            first=_address(query) if after else "",
            visit=visit_of(request),
            actions_of=actions_of,
            now=now,
        )


def _next(found: Sequence[JobRecord]) -> dict[str, str]:
    last = found[LIMIT - 1]
    return {"after": place_after(last.created_at, last.id)}


def _listed(session: Session, found: Sequence[JobRecord], now: datetime) -> list[ListedJob]:
    sweeps = sweeps_by_id(session, [one.sweep_id for one in found])
    booked = {
        one.device_id: one for one in reversed(list_bookings(session, BookingFilter(ends_after=now)))
        if one.starts_at <= now
    }  # fmt: skip
    busy = set(session.scalars(select(JobRow.device_id).where(JobRow.state == SweepState.RUNNING.value)))
    return [
        ListedJob(
            record=one,
            sweep=sweeps[one.sweep_id],
            silent=one.state is SweepState.RUNNING and one.held_until is not None and one.held_until < now,
            waits_for=_waits_for(one, booked, busy),
        )
        for one in found
        if one.sweep_id in sweeps
    ]


def _waits_for(one: JobRecord, booked: Mapping[str, Any], busy: set[str]) -> str:
    if one.detail:
        return one.detail
    if one.state is not SweepState.QUEUED:
        return ""
    if one.candidates:
        return _("the first of %(devices)s that is free", devices=", ".join(one.candidates))
    if one.device_id in booked:
        booking = booked[one.device_id]
        return _("%(device)s, booked: %(kind)s", device=one.device_name, kind=_(booking.kind.value))
    if one.device_id in busy:
        return _("%(device)s, which measures another sweep", device=one.device_name)
    return _("the agent of %(device)s", device=one.device_name)


def _numbers(session: Session) -> dict[SweepState, int]:
    """Return how many jobs are in each state."""
    rows = session.execute(select(JobRow.state, func.count()).group_by(JobRow.state))
    return {SweepState(state): number for state, number in rows}


def _tabs(numbers: Mapping[SweepState, int], query: Mapping[str, str]) -> list[tuple[str, str, str, bool]]:
    """Return what leads to each state: its title, how many jobs, the address, and whether it is shown."""
    titles = [("", mark("all"), sum(numbers.values())), (OPEN, mark("not over"), _sum(numbers, UNFINISHED))]
    titles += [(one.value, STATE_WORDS[one], numbers.get(one, 0)) for one in SweepState]
    return [
        (_(title), str(number), _address({**query, "state": state}), query["state"] == state)
        for state, title, number in titles
    ]


def _sum(numbers: Mapping[SweepState, int], states: Sequence[SweepState]) -> int:
    return sum(numbers.get(state, 0) for state in states)


def _address(query: Mapping[str, str]) -> str:
    given = {key: value for key, value in query.items() if value}
    return f"/jobs?{urlencode(given)}" if given else "/jobs"
