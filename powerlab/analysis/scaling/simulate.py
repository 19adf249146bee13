"""Steps of data-parallel training on many nodes, one event after the other.

Every node draws its steps from those that one node was recorded with, independently of the others, so that all wait for
the slowest as they would. Gradients go in buckets, each by one ring all-reduce after the other
(:mod:`powerlab.analysis.scaling.ring`), and a node's next step begins when it has moved its weights. Left out: what
sending costs the cores, other traffic, switches that are shared, and nodes that differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerlab.analysis.scaling.links import Link
from powerlab.analysis.scaling.ring import reduced_s
from powerlab.domain.statistics import mean_half_width

FEWEST_STEPS, NODE_STEPS = 40, 1000
"""So many steps are simulated at least, and so many of all nodes together."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedSteps:
    """Steps of one node in s, shape (n,) each: what is neither forward nor backward pass counts with the update."""

    forward_s: Floats
    backward_s: Floats
    update_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Gradients that are sent together.

    Attributes:
        size: bytes.
        ready_share: the share of the backward pass after which they are there.
    """

    size: float
    ready_share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedStep:
    """A step on many nodes.

    Attributes:
        nodes: how many.
        step_s: from one step to the next, the mean over nodes and steps.
        half_width_s: of its 95 % interval, from the scatter of the steps alone; None for fewer than two.
        wait_s: of it, what a node waits for gradients after its own backward pass.
    """

    nodes: int
    step_s: float
    half_width_s: float | None
    wait_s: float


def simulate(
    recorded: RecordedSteps, buckets: Sequence[Bucket], nodes: int, link: Link, *, seed: int, steps: int = 0
) -> SimulatedStep:
    """Return what a step takes on so many nodes.

    Args:
        recorded: steps of one node.
        buckets: its gradients, in the order in which they are there.
        nodes: how many, 1 or more.
        link: between them.
        seed: draws the nodes' steps.
        steps: how many are simulated; 0 for enough of them.
    """
    random, steps = np.random.default_rng((abs(seed), nodes)), steps or max(FEWEST_STEPS, NODE_STEPS // nodes)
    at_s, wait_s, lasted_s = np.zeros(nodes), 0.0, []
    for _ in range(steps):
        drawn = random.integers(0, recorded.forward_s.size, nodes)
        begin_s = at_s + recorded.forward_s[drawn]
        backward_s = recorded.backward_s[drawn]
        done_s = begin_s + backward_s
        sent_s = begin_s
        for bucket in buckets if nodes > 1 else ():
            sent_s = reduced_s(np.maximum(sent_s, begin_s + bucket.ready_share * backward_s), bucket.size, link)
        wait_s += float((np.maximum(done_s, sent_s) - done_s).mean())
        moved_s = np.maximum(done_s, sent_s) + recorded.update_s[drawn]
        lasted_s.append(float((moved_s - at_s).mean()))
        at_s = moved_s
    return SimulatedStep(
        nodes=nodes,
        step_s=float(np.mean(lasted_s)),
        half_width_s=mean_half_width(lasted_s),
        wait_s=wait_s / steps,
    )
