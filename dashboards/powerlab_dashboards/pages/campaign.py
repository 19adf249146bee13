"""A campaign, one plan on each of several devices: its sweeps, what each device answers, and the devices compared."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Response

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.records import OVER, SweepRecord
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.reads.campaigns import campaign
from powerlab_dashboards.charts.registry import SET_CHARTS
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.pages.compared_sets import FEWEST, MOST, Asked, find_sets, run_sets
from powerlab_dashboards.pages.comparison import Comparison, comparison
from powerlab_dashboards.pages.home import STATE_WORDS, UNFINISHED
from powerlab_dashboards.pages.sweep_list import listed
from powerlab_dashboards.render import not_found, page


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/campaigns/{id}``."""

    @router.get("/campaigns/{campaign_id}")
    def campaign_page(campaign_id: str) -> Response:
        try:
            with store.session() as session:
                record = campaign(session, campaign_id)
                rows = listed(session, record.sweeps)
        except NotFoundError as error:
            return not_found(str(error))
        wanted = Asked(words=tuple(one.id for one in record.sweeps if one.stored_run_count)[:MOST])
        found, problem = _compared(store, wanted)
        return page(
            "campaign.html",
            section="compare",
            campaign=record,
            rows=rows,
            state_words=STATE_WORDS,
            unfinished_states=UNFINISHED,
            unfinished=any(one.state in UNFINISHED for one in record.sweeps),
            over_count=sum(one.state in OVER for one in record.sweeps),
            planned=sum(one.planned_run_count for one in record.sweeps),
            stored=sum(one.stored_run_count for one in record.sweeps),
            plan=_plan_of(record.sweeps),
            asked=wanted,
            left_out=len([one for one in record.sweeps if one.stored_run_count]) - len(wanted.words),
            found=found,
            problem=problem,
            charts=SET_CHARTS.values() if found else (),
        )


def _compared(store: Store, wanted: Asked) -> tuple[Comparison | None, str]:
    """Return the comparison of the sweeps that have runs, or why there is none."""
    if len(wanted.words) < FEWEST:
        return None, _("Two devices with runs are needed to compare them.")
    try:
        with store.session() as session:
            return comparison(run_sets(find_sets(session, wanted.words))), ""
    except PowerlabError as error:
        return None, str(error)


def _plan_of(sweeps: Sequence[SweepRecord]) -> SweepRecord | None:
    return sweeps[0] if sweeps else None
