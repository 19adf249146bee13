"""How long a sweep will take, about."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.domain.sweep import SweepPlan
from powerlab.sweep.order import ModeVisit

LOAD_S = 2.0
"""Starting a worker and loading a model of ResNet-50's size."""


def expected_s(plan: SweepPlan, order: Sequence[ModeVisit], margin_s: float) -> float:
    """Return the seconds a plan needs; slow models need longer, as every run holds ``min_inferences`` at least."""
    runs = sum(len(visit.points) for visit in order)
    idle_s = plan.idle_s + 2 * margin_s if plan.idle_s > 0 else 0.0
    per_run_s = LOAD_S + plan.warm_up_s + plan.duration_s + 3 * margin_s + idle_s
    per_visit_s = idle_s
    return runs * per_run_s + len(order) * per_visit_s
