"""The sweep page: the best points first, then charts, all points and the runs behind them."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request, Response

from powerlab.analysis.best import Best, best_points, contenders, work_of
from powerlab.analysis.budget import limit
from powerlab.analysis.dimensions import shown
from powerlab.analysis.searched import in_contest
from powerlab.analysis.summary import PointSummary
from powerlab.domain.run import Run
from powerlab.protocol.records import SweepRecord
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.reads import queries
from powerlab.store.reads.sweep_results import runs_of_points, summaries_of_sweep, verdicts_of_sweep
from powerlab.store.writes.clones import newest_clone
from powerlab_dashboards.charts.registry import SWEEP_CHARTS
from powerlab_dashboards.charts.words import missing_power
from powerlab_dashboards.format import model_label
from powerlab_dashboards.pages.figures import figure_response, view_of
from powerlab_dashboards.pages.home import STATE_WORDS, UNFINISHED
from powerlab_dashboards.pages.sweep_actions import actions_of
from powerlab_dashboards.pages.sweep_now import sweep_now
from powerlab_dashboards.render import not_found, page
from powerlab_dashboards.visitor import visit_of

GOAL_TITLES = {"latency": "Lowest latency", "throughput": "Highest throughput", "efficiency": "Best efficiency"}
RUNS_SHOWN = 100
"""Runs per page; a sweep's page links to the others."""
_LATENCY_METRICS = ("latency_p50_ms", "latency_p90_ms", "latency_p99_ms", "throughput_img_per_s")


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/sweeps/{id}`` and the figures of its charts."""

    @router.get("/sweeps/{sweep_id}")
    def sweep_page(request: Request, sweep_id: str) -> Response:
        try:
            with store.session() as session:
                record, summaries = queries.sweep(session, sweep_id), summaries_of_sweep(session, sweep_id)
                runs = queries.runs_of_sweep(session, sweep_id, most=RUNS_SHOWN)
                all_shown = record.stored_run_count <= len(runs)
                compared = runs if all_shown else runs_of_points(session, sweep_id, contenders(summaries))
                verdicts = verdicts_of_sweep(session, sweep_id)
                newest = newest_clone(session, sweep_id)
                doing = sweep_now(session, record, store.clock())
        except NotFoundError as error:
            return not_found(str(error))
        answers = answers_by_work(in_contest(summaries, record.plan), compared)
        return page(
            "sweep.html",
            **doing,
            section="sweeps",
            sweep=record,
            title=sweep_title(record),
            state_words=STATE_WORDS[record.state],
            unfinished=record.state in UNFINISHED,
            visit=visit_of(request),
            actions=actions_of(record.state),
            clone_key=f"button of {sweep_id}, after {newest}",
            summaries=summaries,
            dimensions=[one for one in shown(summary.point for summary in summaries) if one.usual is not None],
            answers=answers,
            winners={(best.summary.point.id, best.metric.name) for _, bests in answers for best in bests},
            goal_titles=GOAL_TITLES,
            latency_note=common_provenance_word(summaries),
            limit=limit,
            missing_reason=missing_power(summaries),
            runs=runs,
            run_count=sum(verdicts.values()),
            verdicts=[(verdict.value, number) for verdict, number in verdicts.items()],
            wide_charts=len(record.plan.models) > 1 or len(record.plan.batch_sizes) > 2,
            charts=SWEEP_CHARTS.values(),
        )

    @router.get("/sweeps/{sweep_id}/charts/{name}")
    def sweep_figure(sweep_id: str, name: str, theme: str = "light", narrow: bool = False) -> Response:
        try:
            chart = SWEEP_CHARTS[name]
            with store.session() as session:
                summaries = summaries_of_sweep(session, sweep_id)
        except KeyError:
            return not_found(f"There is no chart named {name}; there are {', '.join(SWEEP_CHARTS)}.")
        except NotFoundError as error:
            return not_found(str(error))
        return figure_response(chart.build(summaries, view_of(theme, narrow=narrow)))


def sweep_title(record: SweepRecord) -> str:
    """Return ``resnet50, alexnet on bench-1``."""
    return f"{', '.join(model_label(model) for model in record.plan.models)} on {record.place}"


def answers_by_work(summaries: Sequence[PointSummary], runs: Sequence[Run]) -> list[tuple[str, tuple[Best, ...]]]:
    """Return the best points, grouped by workload."""
    answers: dict[str, list[Best]] = {}
    for best in best_points(summaries, runs):
        answers.setdefault(work_of(best.summary.point), []).append(best)
    return [(work, tuple(bests)) for work, bests in answers.items()]


def common_provenance_word(said: Sequence[PointSummary] | Sequence[Run]) -> str:
    """Return the provenance shared by all latencies and throughputs; empty if they differ (each states its own)."""
    found = {
        metric.provenance.value for one in said for name in _LATENCY_METRICS if (metric := one.metric(name)) is not None
    }
    return found.pop() if len(found) == 1 else ""
