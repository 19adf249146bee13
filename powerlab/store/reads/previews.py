"""Preview of a sweep before it is created."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.domain.preflight import complaints
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import SweepRequest
from powerlab.protocol.records import CandidatePreview, DeviceRecord, SweepPreview
from powerlab.store.reads.duration_estimates import Estimate, estimate
from powerlab.store.reads.eligible_devices import Candidate, along, chosen
from powerlab.store.reads.models import check_models
from powerlab.store.writes.clusters import check_together
from powerlab.store.writes.sweeps import clustered, priority_complaint

MOST_POINTS = 500
"""Points that a preview shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What a request asks of one device; there is an estimate where nothing speaks against it."""

    known: DeviceRecord
    complaints: tuple[str, ...]
    estimate: Estimate | None


def preview(session: Session, request: SweepRequest, now: datetime) -> SweepPreview:
    """Say what a request would ask of its device, or of those it may go to.

    Raises:
        NotFoundError: there is no such device or group.
        PowerlabError: the request names no device at all, or chooses none.
    """
    request = clustered(request)
    plan, always = request.plan, _of_any_device(session, request, now)
    candidates = [*chosen(session, request), *along(session, request)]
    if request.with_ids:
        always += _apart(candidates, now)
    devices = [_seen(session, candidate.record, plan, always) for candidate in candidates]
    against = tuple(dict.fromkeys(_complaints(devices, several=request.any_of is not None or bool(request.with_ids))))
    slowest = max(devices, key=lambda one: 0.0 if one.estimate is None else one.estimate.expected_s)
    found = None if against else slowest.estimate
    return SweepPreview(
        device_id=slowest.known.id,
        device_name=slowest.known.device.name,
        simulated=slowest.known.device.simulated,
        point_count=plan.point_count,
        points=() if against else plan.points()[:MOST_POINTS],
        run_count=plan.point_count * plan.repeats,
        expected_s=None if found is None else found.expected_s,
        longest_s=None if found is None else found.longest_s,
        basis="" if found is None else _basis(plan, found.known_count, plan.point_count),
        complaints=against,
        candidates=() if request.any_of is None else tuple(map(_candidate, devices)),
    )


def _apart(candidates: Sequence[Candidate], now: datetime) -> tuple[str, ...]:
    """Return what keeps devices from training together."""
    try:
        check_together(candidates, now)
    except PowerlabError as error:
        return (str(error),)
    return ()


def _seen(session: Session, known: DeviceRecord, plan: SweepPlan, always: tuple[str, ...]) -> _Seen:
    against = (*complaints(plan, known.device, known.capabilities, invented_pass=True), *always)
    found = None if against else estimate(session, known.id, known.capabilities, plan)
    return _Seen(known=known, complaints=tuple(dict.fromkeys(against)), estimate=found)


def _candidate(seen: _Seen) -> CandidatePreview:
    return CandidatePreview(
        device_id=seen.known.id,
        device_name=seen.known.device.name,
        simulated=seen.known.device.simulated,
        expected_s=None if seen.estimate is None else seen.estimate.expected_s,
        longest_s=None if seen.estimate is None else seen.estimate.longest_s,
        complaints=seen.complaints,
    )


def _complaints(devices: list[_Seen], *, several: bool) -> tuple[str, ...]:
    if not several:
        return devices[0].complaints
    named = (f"{one.known.device.name}: {sentence}" for one in devices for sentence in one.complaints)
    return tuple(named)


def _of_any_device(session: Session, request: SweepRequest, now: datetime) -> tuple[str, ...]:
    """Return what speaks against a request wherever it would go."""
    found = []
    for model in request.plan.models:
        try:
            check_models(session, (model,), now)
        except PowerlabError as error:
            found.append(str(error))
    return (*found, *filter(None, [priority_complaint(request.priority)]))


def _basis(plan: SweepPlan, known: int, count: int) -> str:
    most = "at most, since a search leaves out what cannot be best: " if plan.search_percent else ""
    runs = (
        f"{most}the plan's own times for every run ({plan.warm_up_s:g} s of warm-up, {plan.duration_s:g} s timed, idle "
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
