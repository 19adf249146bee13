"""The home page: the fleet at a glance, what is measured now, and the answers of the last sweeps."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from powerlab.protocol.records import OVER, SweepState
from powerlab.store import Store
from powerlab.store.reads import queries
from powerlab.store.reads.filters import SweepFilter
from powerlab.store.reads.fleet_status import fleet_status
from powerlab.store.reads.readings import last_readings
from powerlab_dashboards.pages.fleet_tiles import power_tiles, tiles_of
from powerlab_dashboards.pages.phases import PHASE_WORDS
from powerlab_dashboards.pages.sweep_list import listed
from powerlab_dashboards.render import page
from powerlab_dashboards.visitor import visit_of

SWEEP_LIMIT = 50
UNFINISHED = tuple(state for state in SweepState if state not in OVER)
STATE_WORDS = {state: state.label for state in SweepState}
_LONGEST_SEARCH = 200


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/``."""

    @router.get("/")
    def home(request: Request, q: str = "", state: str = "") -> Response:
        """Show the fleet and the newest sweeps: those that name ``q`` and are in a state, where these are given."""
        text = q.strip()[:_LONGEST_SEARCH]
        wanted = next((one for one in SweepState if one.value == state), None)
        now = store.clock()
        with store.session() as session:
            members = fleet_status(session, now)
            readings = last_readings(session, now)
            records = queries.list_sweeps(session, SweepFilter(text=text or None, state=wanted), limit=SWEEP_LIMIT)
            sweeps = listed(session, records)
        return page(
            "home.html",
            section="home",
            members=members,
            may_operate=visit_of(request).may_operate,
            tiles=[*tiles_of(members), *power_tiles(members, readings)],
            now=now,
            readings=readings,
            phase_words=PHASE_WORDS,
            running=[one for one in members if one.running is not None],
            sweeps=sweeps,
            sweep_limit=SWEEP_LIMIT,
            text=text,
            chosen_state=wanted,
            states=tuple(SweepState),
            state_words=STATE_WORDS,
            unfinished_states=UNFINISHED,
        )
