"""Estimated duration of a sweep: lower and upper bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from powerlab.domain.order import ModeVisit
from powerlab.domain.rigour import least_inferences
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import Scenario
from powerlab.measure.scenarios.server_search import USUAL_LOAD, expected_search_s

LOAD_S = 2.0
"""Starting a worker and loading a model of ResNet-50's size."""


def expected_s(
    plan: SweepPlan, order: Sequence[ModeVisit], margin_s: float, inference_s: Mapping[str, float] | None = None
) -> float:
    """Return the seconds that runs need where every device is steady and cool at once.

    Args:
        plan: times and counts.
        order: the runs.
        margin_s: how long power is recorded before and after each window.
        inference_s: by point id, how long a query takes; slow models need longer than the plan's duration, as every
            run holds some queries at least. Points that are not in it are taken to be fast.
    """
    idle_s = _idle_s(plan, margin_s)
    per_run_s = LOAD_S + plan.warm_up_s + 3 * margin_s + idle_s
    query_s = inference_s or {}
    windows_s = sum(window_s(plan, point, query_s.get(point.id, 0.0)) for visit in order for point in visit.points)
    return _run_count(order) * per_run_s + windows_s + len(order) * idle_s


def longest_s(
    plan: SweepPlan, order: Sequence[ModeVisit], margin_s: float, inference_s: Mapping[str, float] | None = None
) -> float:
    """Return the same where every warm-up, every cool-down and every wait for a hot device lasts as long as it may.

    A run that is not the first one in its mode records an idle baseline of its own after a cool-down.
    """
    longer_s = max(0.0, plan.longest_warm_up_s - plan.warm_up_s) if plan.warm_up_s > 0 else 0.0
    again = _run_count(order) - len(order)
    idle_s = _idle_s(plan, margin_s) if plan.cool_down_s > 0 else 0.0
    waits_s = _run_count(order) * (longer_s + plan.cool_down_s) + again * idle_s
    if plan.temperature_limits:  # before every run, and before every mode is set
        waits_s += (_run_count(order) + len(order)) * plan.longest_cooling_s
    return expected_s(plan, order, margin_s, inference_s) + waits_s


def _run_count(order: Sequence[ModeVisit]) -> int:
    return sum(len(visit.points) for visit in order)


def _idle_s(plan: SweepPlan, margin_s: float) -> float:
    return plan.idle_s + 2 * margin_s if plan.idle_s > 0 else 0.0


def window_s(plan: SweepPlan, point: Point, query_s: float) -> float:
    """Return how long the timed part of a run takes, in s, where a query takes ``query_s``."""
    count = least_inferences(plan.rigour, plan.min_inferences, point.workload)
    if point.workload.scenario is Scenario.SERVER:
        return expected_search_s(plan.duration_s, query_s) + max(plan.duration_s, count * query_s / USUAL_LOAD)
    return max(plan.duration_s, count * query_s)
