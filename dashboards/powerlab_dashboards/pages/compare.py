"""Sets of runs beside each other: sweeps, devices, models, engines or modes; the address says which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from powerlab.analysis.sets import compare_sets
from powerlab.analysis.summary import summarise
from powerlab.analysis.wording import ratio_words, verdict_words
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import METRICS
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.reads.campaigns import newest_campaigns
from powerlab.store.reads.run_sets import StoredSet
from powerlab_dashboards.charts.base import NoChart
from powerlab_dashboards.charts.registry import SET_CHARTS
from powerlab_dashboards.charts.set_fronts import ComparedSet
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.pages.compare_choices import SWEEP_LIMIT, choices, chosen, splits
from powerlab_dashboards.pages.compared_sets import FEWEST, MOST, Asked, asked, find_sets, run_sets
from powerlab_dashboards.pages.comparison import COMPARED, CommonPoint, comparison
from powerlab_dashboards.pages.figures import figure_response, view_of
from powerlab_dashboards.render import HEADERS, not_found, page

POINTS_SHOWN = 50
"""Points in common per page."""
_MOST_POINTS = 1_000_000
_LONGEST_SEARCH = 200


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/compare`` and the figures of its charts."""

    @router.get("/compare")
    def compare(request: Request, after: Annotated[int, Query(ge=0, le=_MOST_POINTS)] = 0, q: str = "") -> Response:
        """Compare two to eight sets, or show what can be compared."""
        wanted = asked(request.query_params)
        try:
            form = chosen(request.query_params)
            if form is not None:
                return RedirectResponse(form.address(), status_code=303, headers=HEADERS)
            with store.session() as session:
                sets = find_sets(session, wanted.words)
            if len(sets) >= FEWEST:
                context = comparison_context(sets, wanted, after)
                return page("compare.html", section="compare", **context)
        except PowerlabError as error:
            status = 404 if isinstance(error, NotFoundError) else 422
            return _choose(store, q, wanted, problem=str(error), status=status)
        return _choose(store, q, wanted, sets)

    @router.get("/compare/charts/{name}")
    def compare_figure(request: Request, name: str, theme: str = "light", narrow: bool = False) -> Response:
        if name not in SET_CHARTS:
            return not_found(f"There is no chart named {name}; there are {', '.join(SET_CHARTS)}.")
        wanted, view = asked(request.query_params), view_of(theme, narrow=narrow)
        try:
            with store.session() as session:
                sets = find_sets(session, wanted.words)
            data = chart_data(name, sets, _ignored(sets, wanted))
        except PowerlabError as error:
            return figure_response(NoChart(str(error)))
        return figure_response(SET_CHARTS[name].build(data, view))


def chart_data(name: str, sets: Sequence[StoredSet], ignored: Sequence[str]) -> Sequence[Any]:
    """Return what a chart of sets is drawn from; raises PowerlabError as :func:`comparison`."""
    runs = run_sets(sets)
    if len(runs) < FEWEST:
        raise PowerlabError(f"A comparison takes {FEWEST} sets.")
    if name == "set-fronts":
        return [ComparedSet(label=one.label, summaries=summarise(one.runs)) for one in runs]
    there = {metric.name for one in runs for run in one.runs for metric in run.metrics}
    return [compare_sets(runs, metric, ignored) for metric in COMPARED if metric in there]


def _ignored(sets: Sequence[StoredSet], wanted: Asked) -> tuple[str, ...]:
    """Return the dimensions in which points may differ: those asked for, and those that the sets were selected by."""
    return tuple(dict.fromkeys((*wanted.ignored, *(title for one in sets for title in one.meant.dimensions))))


def comparison_context(sets: Sequence[StoredSet], wanted: Asked, after: int = 0) -> dict[str, Any]:
    """Return what the template of a comparison needs; raises PowerlabError as :func:`comparison`."""
    ignored = _ignored(sets, wanted)
    found = comparison(run_sets(sets), ignored)
    metric = wanted.metric if wanted.metric in found.metrics else found.first_metric()
    points = found.points(metric) if metric else ()
    return {
        "sets": sets,
        "names": _joined([one.runs.label for one in sets]),
        "asked": wanted,
        "ignored": ignored,
        "found": found,
        "metric": metric,
        "metric_kinds": METRICS,
        "points": points[after : after + POINTS_SHOWN],
        "point_count": len(points),
        "provenance_note": _common_provenance(points),
        "wide_charts": len({run.point.workload.model for one in sets for run in one.runs.runs}) > 1,
        "after": after,
        "points_shown": POINTS_SHOWN,
        "charts": SET_CHARTS.values(),
        "ratio_words": ratio_words,
        "verdict_words": verdict_words,
        "undo": replace(wanted, ignored=()).address(),
    }


def _joined(labels: Sequence[str]) -> str:
    """Return ``a and b``, ``a, b and c``, in the visitor's language."""
    *others, last = labels
    return _("%(others)s and %(last)s", others=", ".join(others), last=last)


def _common_provenance(points: Sequence[CommonPoint]) -> str:
    """Return the provenance that all figures share, to be said once in the heading; empty where they differ."""
    sides = [side for point in points for side in (point.baseline, *(match.one for match in point.matches if match))]
    found = {side.metric.provenance.value for side in sides if side.metric is not None}
    return found.pop() if len(found) == 1 else ""


def _choose(
    store: Store, q: str, wanted: Asked, sets: Sequence[StoredSet] = (), *, problem: str = "", status: int = 200
) -> Response:
    """Show what can be compared; with one set also what it can be compared with of itself."""
    text = q.strip()[:_LONGEST_SEARCH]
    with store.session() as session:
        offered, campaigns = choices(session, text), newest_campaigns(session)
    return page(
        "compare_choose.html",
        status=status,
        section="compare",
        text=text,
        problem=problem,
        wanted=wanted,
        chosen_words=wanted.words,
        splits=[split for one in sets if one.sweep is not None for split in splits(one.sweep, one.runs.runs)],
        offered=offered,
        campaigns=campaigns,
        sweep_limit=SWEEP_LIMIT,
        most=MOST,
    )
