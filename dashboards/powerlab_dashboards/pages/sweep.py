"""The sweep page: the verdict first, then the picker, charts, all points and the runs behind them."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request, Response
from sqlalchemy.orm import Session

from powerlab.analysis.dimensions import varied
from powerlab.analysis.operating_point.bounds import BOUND_KINDS
from powerlab.analysis.summary import MIN_VALID, PointSummary
from powerlab.domain.quantity import METRICS
from powerlab.domain.run import Run
from powerlab.protocol.records import SweepRecord
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.reads import queries
from powerlab.store.reads.sweep_results import summaries_of_sweep, verdicts_of_sweep
from powerlab.store.writes.clones import newest_clone
from powerlab_dashboards.charts.axes import axes_of
from powerlab_dashboards.charts.choice import COSTS, GAINS
from powerlab_dashboards.charts.heatmap import metric_of
from powerlab_dashboards.charts.pareto_front import fronts
from powerlab_dashboards.charts.registry import SWEEP_CHARTS
from powerlab_dashboards.charts.words import missing_power
from powerlab_dashboards.format import model_label
from powerlab_dashboards.pages.figures import figure_response, view_of
from powerlab_dashboards.pages.home import STATE_WORDS, UNFINISHED
from powerlab_dashboards.pages.sweep_actions import actions_of
from powerlab_dashboards.pages.sweep_asked import BOUND_TITLES, GOALS, Asked
from powerlab_dashboards.pages.sweep_now import sweep_now
from powerlab_dashboards.pages.sweep_picker import cost_of, figure_of, picked
from powerlab_dashboards.pages.sweep_table import table_of
from powerlab_dashboards.pages.sweep_verdict import GOAL_TITLES, answers_for, cards_by_work, search_lines, verdict_lines
from powerlab_dashboards.places import naming
from powerlab_dashboards.render import not_found, page
from powerlab_dashboards.visitor import visit_of

RUNS_SHOWN = 24
"""Runs on the sweep's own page; it links to the others."""
_LATENCY_METRICS = ("latency_p50_ms", "latency_p90_ms", "latency_p99_ms", "throughput_img_per_s")


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/sweeps/{id}`` and the figures of its charts."""

    @router.get("/sweeps/{sweep_id}")
    def sweep_page(request: Request, sweep_id: str) -> Response:
        asked, server = Asked.of(request.query_params), str(request.base_url).rstrip("/")
        try:
            with store.session() as session:
                record, summaries = queries.sweep(session, sweep_id), summaries_of_sweep(session, sweep_id)
                runs = queries.runs_of_sweep(session, sweep_id, most=RUNS_SHOWN)
                all_shown = record.stored_run_count <= len(runs)
                answers = answers_for(session, record, summaries, runs if all_shown else None)
                searched = search_lines(session, record, summaries, runs if all_shown else None)
                verdicts = verdicts_of_sweep(session, sweep_id)
                newest = newest_clone(session, sweep_id)
                doing = sweep_now(session, record, store.clock())
                board = board_of(session, record)
                choice = asked.choice(summaries)
                found = picked(session, sweep_id, asked, server)
        except NotFoundError as error:
            return not_found(str(error))
        points = [summary.point for summary in summaries]
        low_precision = any(point.workload.precision != "fp32" for point in points)
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
            verdict_lines=verdict_lines(record, answers, summaries),
            cards=cards_by_work(record, answers, summaries, server),
            searched=searched,
            goal_titles=GOAL_TITLES,
            min_valid=MIN_VALID,
            asked=asked,
            goals=GOALS,
            bound_kinds={name: kind for name, kind in BOUND_KINDS.items() if low_precision or not kind.fp32_keeps},
            bound_titles=BOUND_TITLES,
            metrics=METRICS,
            picked=found,
            choice=choice,
            named=naming(points),
            cost_of=lambda cost: cost_of(cost, points),
            figure_of=figure_of,
            varied=varied(points),
            axes=axes_of(points, asked.x, asked.y),
            metric=metric_of(summaries, asked.metric),
            fronts=fronts(summaries, choice),
            costs=COSTS,
            gains=GAINS,
            table=table_of(summaries, asked, record.plan, board=board, barred=choice.barred),
            point_count=len(summaries),
            best_cells={(answer.point.id, answer.metric.name) for answer in answers},
            missing_reason=missing_power(summaries),
            findings_of_points=[finding for summary in summaries for finding in summary.findings],
            runs=runs,
            latency_note=common_provenance_word(runs),
            run_count=sum(verdicts.values()),
            verdicts=[(verdict.value, number) for verdict, number in verdicts.items()],
            wide_charts=len(record.plan.models) > 1,
            charts=SWEEP_CHARTS,
        )

    @router.get("/sweeps/{sweep_id}/charts/{name}")
    def sweep_figure(
        request: Request, sweep_id: str, name: str, theme: str = "light", narrow: bool = False
    ) -> Response:
        try:
            chart = SWEEP_CHARTS[name]
            with store.session() as session:
                summaries = summaries_of_sweep(session, sweep_id)
        except KeyError:
            return not_found(f"There is no chart named {name}; there are {', '.join(SWEEP_CHARTS)}.")
        except NotFoundError as error:
            return not_found(str(error))
        choice = Asked.of(request.query_params).choice(summaries, f"/sweeps/{sweep_id}/runs?point=")
        return figure_response(chart.build(summaries, view_of(theme, narrow=narrow, choice=choice)))


def sweep_title(record: SweepRecord) -> str:
    """Return ``resnet50, alexnet on bench-1``."""
    return f"{', '.join(model_label(model) for model in record.plan.models)} on {record.place}"


def board_of(session: Session, record: SweepRecord) -> str | None:
    """Return the simulated board that a sweep measured; None for a real device."""
    return queries.device(session, record.device_id).device.board if record.simulated else None


def common_provenance_word(said: Sequence[PointSummary] | Sequence[Run]) -> str:
    """Return the provenance shared by all latencies and throughputs; empty if they differ (each states its own)."""
    found = {
        metric.provenance.value for one in said for name in _LATENCY_METRICS if (metric := one.metric(name)) is not None
    }
    return found.pop() if len(found) == 1 else ""
