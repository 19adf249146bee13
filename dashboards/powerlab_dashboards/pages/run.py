"""The run page: what was found, the run over time, its latencies and layers; how it was measured is folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Response
from sqlalchemy.orm import Session

from powerlab.analysis.budget import RULE, SHOWN, Row, limit, rows_by_rail, rows_by_source
from powerlab.analysis.surroundings import surroundings
from powerlab.domain.power import Rail, RailQuantity, Trace
from powerlab.domain.quantity import METRICS, POWER_FIGURES, Metric, MetricKind
from powerlab.domain.run import Contribution, Run
from powerlab.domain.statistics import NORMAL_95
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.maintenance.retired import why_no_traces
from powerlab.store.reads import queries
from powerlab.store.reads.layers import profile_beside
from powerlab.store.reads.neighbours import neighbours
from powerlab.store.traces.base import FOREVER_NS, trace_store
from powerlab_dashboards.charts.registry import LAYER_CHARTS, RUN_CHARTS
from powerlab_dashboards.charts.run_traces import RunTraces
from powerlab_dashboards.charts.series import mean_power_w
from powerlab_dashboards.format import decimals_for, fixed, significant
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark
from powerlab_dashboards.pages.figures import figure_response, view_of
from powerlab_dashboards.pages.sweep import sweep_title
from powerlab_dashboards.render import not_found, page

_GIVES = {RailQuantity.POWER: mark("power"), RailQuantity.ENERGY: mark("energy counter (shown as its slope)")}
_UNITS = {RailQuantity.POWER: "W", RailQuantity.ENERGY: "J"}
HEADLINES = ("latency_p50_ms", "latency_p99_ms", "throughput_img_per_s", "power_w", "efficiency_img_per_s_per_w")
"""The figures at the top of the page; the table below has all of them."""
ZOOMED = "power-trace"
"""The chart that can be zoomed: the part that is looked at is fetched anew, with as many samples as the whole."""
_BESIDE = 0.25
"""How much is fetched beside that part, as a share of it, so that lines go on to its edges."""
Seconds = Annotated[float | None, Query(ge=-1e9, le=1e9, allow_inf_nan=False)]


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/runs/{id}`` and the figures of its charts."""

    @router.get("/runs/{run_id}")
    def run_page(run_id: str) -> Response:
        try:
            with store.session() as session:
                run, retired = queries.run(session, run_id), why_no_traces(session, run_id)
                traces = [] if retired else queries.power_traces(session, run_id)
                record = queries.sweep(session, run.sweep_id)
                beside = neighbours(session, run_id)
                profile = profile_beside(session, record.device_id, run.point)
        except NotFoundError as error:
            return not_found(str(error))
        return page(
            "run.html",
            section="sweeps",
            run=run,
            sweep_title=sweep_title(record),
            window_s=(run.window_ns[1] - run.window_ns[0]) / 1e9,
            figures=_figures(run),
            headlines=[(METRICS[name], run.metric(name)) for name in HEADLINES],
            beside=beside,
            profile=profile,
            layer_charts=LAYER_CHARTS.values(),
            zoomed=ZOOMED,
            rails=rail_rows(run, traces),
            retired=retired,
            charts=RUN_CHARTS.values(),
            budget=budget_table(run.budget),
            surroundings=surroundings(run),
        )

    @router.get("/runs/{run_id}/charts/{name}")
    def run_figure(
        run_id: str,
        name: str,
        *,
        theme: str = "light",
        narrow: bool = False,
        from_s: Seconds = None,
        to_s: Seconds = None,
    ) -> Response:
        """Return a chart, of a part of its time where ``from_s`` and ``to_s`` name one."""
        span_s = (from_s, to_s) if from_s is not None and to_s is not None and from_s < to_s else None
        try:
            chart = RUN_CHARTS[name]
            with store.session() as session:
                data = run_traces(session, run_id, span_s if name == ZOOMED else None)
        except KeyError:
            return not_found(f"There is no chart named {name}; there are {', '.join(RUN_CHARTS)}.")
        except NotFoundError as error:
            return not_found(str(error))
        return figure_response(chart.build(data, view_of(theme, narrow=narrow)))


def run_traces(session: Session, run_id: str, span_s: tuple[float, float] | None = None) -> RunTraces:
    """Return a run with what was recorded with it, or with what lies around a part of its time.

    Raises:
        NotFoundError: there is no such run.
    """
    run, retired = queries.run(session, run_id), why_no_traces(session, run_id)
    if retired:
        return RunTraces(run=run, traces=(), retired=retired)
    if span_s is None:
        return RunTraces(run=run, traces=tuple(queries.recorded(session, run_id)))
    room_s = _BESIDE * (span_s[1] - span_s[0])
    first_ns = run.window_ns[0] + round(1e9 * (span_s[0] - room_s))
    last_ns = run.window_ns[0] + round(1e9 * (span_s[1] + room_s))
    around = trace_store(session).window(session, run_id, max(0, first_ns), min(FOREVER_NS, max(0, last_ns)))
    return RunTraces(run=run, traces=tuple(around), span_s=span_s)


def _figures(run: Run) -> list[tuple[MetricKind, Metric | None]]:
    """Return a run's figures, and None for each missing power figure; other figures depend on the scenario."""
    found = ((name, kind, run.metric(name)) for name, kind in METRICS.items())
    return [(kind, metric) for name, kind, metric in found if metric is not None or name in POWER_FIGURES]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetTable:
    """The uncertainty budget of power and energy.

    Attributes:
        metrics: heading and unit of the figures, by name.
        by_source: one row per effect, with the rails of a source combined.
        by_rail: one row per rail and effect; empty if that adds nothing.
        limits: the main uncertainty of each figure, as sentences.
        rule: how the rows are combined.
    """

    metrics: dict[str, tuple[str, str]]
    by_source: tuple[Row, ...]
    by_rail: tuple[Row, ...]
    limits: tuple[str, ...]
    rule: str = RULE


def budget_table(budget: Sequence[Contribution]) -> BudgetTable | None:
    """Return the table of a run's budget; None if it has none."""
    by_source, by_rail = rows_by_source(budget), rows_by_rail(budget)
    if not by_source:
        return None
    metrics = {
        name: (heading, METRICS[name].unit)
        for name, heading in SHOWN.items()
        if any(name in row.cells for row in by_source)
    }
    return BudgetTable(
        metrics=metrics,
        by_source=by_source,
        by_rail=by_rail if len(by_rail) > len(by_source) else (),
        limits=tuple(limit(budget, name) for name in metrics),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RailRow:
    """One row of the rail table; None where there are too few samples."""

    key: str
    gives: str
    provenance: str
    mean_w: float | None
    sample_count: int
    spacing_ms: float | None
    read_cost_us: float
    resolution: str
    error_percent: float
    lag: str


def rail_rows(run: Run, traces: Sequence[Trace]) -> list[RailRow]:
    """Return one row per trace, in their order."""
    return [
        RailRow(
            key=trace.rail.key,
            gives=_GIVES[trace.rail.quantity],
            provenance=trace.rail.provenance.value,
            mean_w=mean_power_w(trace, run.window_ns),
            sample_count=len(trace.time_ns),
            spacing_ms=float(np.median(np.diff(trace.time_ns))) / 1e6 if len(trace.time_ns) > 1 else None,
            read_cost_us=trace.read_cost_ns / 1e3,
            resolution=_resolution(trace),
            error_percent=100 * trace.rail.relative_error,
            lag=_lag(trace.rail),
        )
        for trace in traces
    ]


def _lag(rail: Rail) -> str:
    """Return ``48 ±6`` in ms, with the half-width of the 95 % interval; empty where nobody calibrated the rail."""
    if rail.lag_error_s <= 0:
        return ""
    half_width_ms = 1e3 * NORMAL_95 * rail.lag_error_s
    decimals = decimals_for(half_width_ms, half_width_ms)
    return f"{fixed(1e3 * rail.lag_s, decimals)} ±{fixed(half_width_ms, decimals)}"


def _resolution(trace: Trace) -> str:
    if trace.rail.resolution == 0:
        return _("unknown")
    return f"{significant(trace.rail.resolution, 2)} {_UNITS[trace.rail.quantity]}"
