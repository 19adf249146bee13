"""The steps of a run that trained, from what was recorded with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from powerlab.analysis.scaling.simulate import RecordedSteps
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import RailQuantity, Trace
from powerlab.domain.run import Run

_WHOLE = "latency"
_PARTS = ("forward", "backward")


def recorded_steps(run: Run, traces: Sequence[Trace]) -> RecordedSteps:
    """Return every step of a run.

    Raises:
        PowerlabError: it infers, it failed, or its parts are not recorded.
    """
    if not run.point.workload.trains:
        raise PowerlabError(f"run {run.id} infers; scaling is simulated from a run that trains (--workload train).")
    found = {trace.rail.name: trace for trace in traces if trace.rail.quantity is RailQuantity.LATENCY}
    missing = [name for name in (_WHOLE, *_PARTS) if name not in found or not len(found[name].value)]
    if missing:
        raise PowerlabError(
            f"run {run.id} has no recorded {', '.join(missing)} of its steps; choose a run that ended, of an engine "
            "that says what the parts of a step take: builtin or torch."
        )
    whole_s, forward_s, backward_s = (np.asarray(found[name].value, float) for name in (_WHOLE, *_PARTS))
    return RecordedSteps(forward_s=forward_s, backward_s=backward_s, update_s=_rest_s(whole_s, forward_s, backward_s))


def _rest_s(whole_s: NDArray[np.float64], *parts_s: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(0.0, whole_s - sum(parts_s))
