"""Where a loss that is no number came from: the forward pass once more, keeping what every layer makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph, quoted
from powerlab.engine.passes.expand.training import expand_training
from powerlab.engine.program.program import Floats
from powerlab.engine.program.storage import FLOAT_BYTES
from powerlab.engine.runtime.memory import check_memory
from powerlab.engine.target.tiers import Tier
from powerlab.engine.training.plans import StepPlan

FINITE = "what every layer makes is finite"


def origin(forward: Graph, given: Mapping[str, Floats], tier: Tier, pool: Any) -> str:
    """Return a clause that says what is not finite first: an input, a parameter, or what a layer makes.

    Args:
        forward: a forward pass that gives every tensor of floats that it makes.
        given: its inputs by name.
        tier: the kernels to use.
        pool: threads.
    """
    for info in forward.inputs:
        if info.dtype == np.float32 and not np.isfinite(given[info.name]).all():
            return f"the numbers of {quoted(info.name)} were not all finite before the step"
    needed = FLOAT_BYTES * sum(info.elements for info in forward.outputs)
    try:
        check_memory(needed, f"looking for the layer in {forward.name!r}", "what every layer makes")
        plan = StepPlan(expand_training(forward), tier, pool.threads)
        plan.build(pool)
    except PowerlabError as error:
        return f"which layer it comes from is unknown, because {str(error).removesuffix('.')}"
    made = {info.name: np.empty(info.elements, np.float32) for info in forward.outputs}
    plan.run({**given, **made})
    for node in forward.nodes:
        if any(name in made and not np.isfinite(made[name]).all() for name in node.outputs):
            return f"the first layer whose output is not finite is the {node}"
    return FINITE


def not_finite(number: int, loss: float, origin_clause: str) -> PowerlabError:
    """Return the error of a step whose loss is no finite number, and that moved nothing."""
    return PowerlabError(
        f"the loss of step {number} is {loss:g}: {origin_clause}; "
        "weights are as before this step: train with a lower learning rate, or look at the data."
    )
