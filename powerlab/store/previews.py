"""What a sweep would be, before anybody asks for it."""

from __future__ import annotations

import math
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from powerlab.domain.device import Capabilities
from powerlab.domain.errors import PowerlabError
from powerlab.domain.order import visits
from powerlab.domain.power import Availability, Rail
from powerlab.domain.preflight import complaints
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.measure.expected import expected_s, longest_s
from powerlab.measure.margins import margin_s
from powerlab.protocol.messages import SweepRequest
from powerlab.protocol.records import DeviceRecord, SweepPreview
from powerlab.store import queries
from powerlab.store.model_queries import check_models
from powerlab.store.models import PointRow, RunMetricRow, RunRow, SweepRow, WorkloadRow
from powerlab.store.writes.sweeps import priority_complaint

MOST_POINTS = 500
"""Points that a preview shows."""


def preview(session: Session, request: SweepRequest, now: datetime) -> SweepPreview:
    """Say what a request would ask of its device.

    Raises:
        NotFoundError: there is no such device.
    """
    known = queries.device(session, request.device_id)
    plan = request.plan
    against = _complaints(session, request, known, now)
    points = () if against else plan.points()
    inference_s = _inference_s(session, request, points)
    order, margin = () if against else visits(plan), margin_s(_rails(known.capabilities), plan.sample_period_s)
    return SweepPreview(
        device_id=known.id,
        device_name=known.device.name,
        simulated=known.device.simulated,
        point_count=_point_count(plan),
        points=points[:MOST_POINTS],
        run_count=_point_count(plan) * plan.repeats,
        expected_s=None if against else expected_s(plan, order, margin, inference_s),
        longest_s=None if against else longest_s(plan, order, margin, inference_s),
        basis="" if against else _basis(plan, len(inference_s), len(points)),
        complaints=against,
    )


def _complaints(session: Session, request: SweepRequest, known: DeviceRecord, now: datetime) -> tuple[str, ...]:
    found = [*complaints(request.plan, known.device, known.capabilities, invented_pass=True)]
    for model in request.plan.models:
        try:
            check_models(session, (model,), now)
        except PowerlabError as error:
            found.append(str(error))
    found += filter(None, [priority_complaint(request.priority)])
    return tuple(dict.fromkeys(found))


def _point_count(plan: SweepPlan) -> int:
    """Return the number of combinations without making them: a plan that is refused may have far too many."""
    lists = (plan.models, plan.engines, plan.precisions, plan.scenarios, plan.modes, plan.batch_sizes, plan.slices)
    return math.prod(map(len, (*lists, plan.threads, plan.spin_us, plan.cores)))


def _rails(capabilities: Capabilities) -> list[Rail]:
    """Return the rails of the board's total."""
    keys = () if capabilities.total is None else capabilities.total.rails
    offered = (probe for probe in capabilities.sources if probe.availability is Availability.AVAILABLE)
    return [rail for probe in offered for rail in probe.rails if rail.key in keys]


def _inference_s(session: Session, request: SweepRequest, points: tuple[Point, ...]) -> dict[str, float]:
    """Return by point id how long a query took, in s, in the stored runs of these points on that device."""
    rows = session.execute(
        select(PointRow.key, func.avg(RunMetricRow.value))
        .join(RunRow, RunRow.id == RunMetricRow.run_id)
        .join(PointRow, PointRow.id == RunRow.point_id)
        .join(SweepRow, SweepRow.id == RunRow.sweep_id)
        .join(WorkloadRow, WorkloadRow.id == PointRow.workload_id)
        .where(
            RunMetricRow.name == "latency_p50_ms",
            SweepRow.device_id == request.device_id,
            WorkloadRow.model.in_(request.plan.models if points else ()),
        )
        .group_by(PointRow.key)
    )
    wanted = {point.id for point in points}
    return {key: latency_ms / 1000 for key, latency_ms in rows if key in wanted}


def _basis(plan: SweepPlan, known: int, count: int) -> str:
    runs = (
        f"the plan's own times for every run ({plan.warm_up_s:g} s of warm-up, {plan.duration_s:g} s timed, idle "
        f"baselines of {plan.idle_s:g} s)"
    )
    if known == count:
        return f"{runs}, and the median latency of stored runs of every point on this device"
    least = f"points of which {plan.min_inferences} inferences last longer than the timed part take longer"
    if not known:
        return f"{runs}; no run of these points on this device is stored, so that {least}"
    return (
        f"{runs}, and the median latency of stored runs of {known} of the {count} points on this device; other {least}"
    )
