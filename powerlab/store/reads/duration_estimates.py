"""Estimated duration of a plan on a device: the runner's formula with latencies of stored runs."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from powerlab.domain.device import Capabilities
from powerlab.domain.order import visits
from powerlab.domain.power import Availability, Rail
from powerlab.domain.sweep import SweepPlan
from powerlab.measure.duration import expected_s, longest_s
from powerlab.measure.recording.margins import margin_s
from powerlab.store.tables import PointRow, RunMetricRow, RunRow, SweepRow, WorkloadRow

_NEWEST_SWEEPS = 100
"""Of a device with a long past only the newest sweeps tell how long a point takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Seconds that a plan's runs take: about, and where everything lasts as long as it may.

    ``known_count`` is the number of points of which runs are stored; the plan can be carried out.
    """

    expected_s: float
    longest_s: float
    known_count: int


def estimate(
    session: Session,
    device_id: str,
    capabilities: Capabilities,
    plan: SweepPlan,
    done: frozenset[tuple[str, int]] = frozenset(),
) -> Estimate:
    """Return how long a plan that the device can carry out takes; ``done`` are its (point id, repeat) that are over."""
    inference_s = _inference_s(session, device_id, plan)
    order, margin = visits(plan, done), margin_s(_rails(capabilities), plan.sample_period_s)
    return Estimate(
        expected_s=expected_s(plan, order, margin, inference_s),
        longest_s=longest_s(plan.held_to(capabilities.temperature_limits), order, margin, inference_s),
        known_count=len(inference_s),
    )


def _rails(capabilities: Capabilities) -> list[Rail]:
    """Return the rails of the board's total."""
    keys = () if capabilities.total is None else capabilities.total.rails
    offered = (probe for probe in capabilities.sources if probe.availability is Availability.AVAILABLE)
    return [rail for probe in offered for rail in probe.rails if rail.key in keys]


def _inference_s(session: Session, device_id: str, plan: SweepPlan) -> dict[str, float]:
    """Return by point id how long a query took, in s, in the runs of these points in the device's newest sweeps."""
    newest = (
        select(SweepRow.id)
        .where(SweepRow.device_id == device_id)
        .order_by(SweepRow.created_at.desc(), SweepRow.id.desc())
        .limit(_NEWEST_SWEEPS)
    )
    rows = session.execute(
        select(PointRow.key, func.avg(RunMetricRow.value))
        .join(RunRow, RunRow.id == RunMetricRow.run_id)
        .join(PointRow, PointRow.id == RunRow.point_id)
        .join(WorkloadRow, WorkloadRow.id == PointRow.workload_id)
        .where(
            RunMetricRow.name == "latency_p50_ms",
            PointRow.sweep_id.in_(newest),
            WorkloadRow.model.in_(plan.models),
        )
        .group_by(PointRow.key)
    )
    wanted = {point.id for point in plan.points()}
    return {key: latency_ms / 1000 for key, latency_ms in rows if key in wanted}
