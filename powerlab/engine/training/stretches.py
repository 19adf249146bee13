"""A step's forward and backward pass in stretches, behind which gradients are there that processes can begin to add up.

Other processes' gradients come while earlier layers' are computed: as S. Li et al., PyTorch Distributed, VLDB 2020,
https://arxiv.org/abs/2006.15704, section 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from powerlab.engine.training.parts import BACKWARD, FORWARD, backward_from
from powerlab.engine.training.plans import StepPlan

_BUCKET_FLOATS = 1 << 20
"""Gradients are sent together, up to 4 MB; larger ones by themselves."""

_LOOKS = 64
"""How often, in a backward pass, MPI gets a chance to go on with what was begun: it has no thread of its own."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps of a plan that follow on each other.

    Attributes:
        part: of a step of training: forward or backward.
        first: the first step.
        last: behind the last one.
        gradients: outputs that are complete behind them, and were not before.
    """

    part: str
    first: int
    last: int
    gradients: tuple[str, ...] = ()


def stretches(plan: StepPlan, gradients: Mapping[str, int], processes: int) -> tuple[Stretch, ...]:
    """Return a plan's steps in stretches.

    Args:
        plan: of forward and backward pass.
        gradients: output -> elements.
        processes: one alone has the forward and the backward pass, in one stretch each.
    """
    total = len(plan.labels)
    turn = max(plan.looped, backward_from(plan.labels))
    ends: dict[int, tuple[str, ...]] = {total: ()}
    if processes == 1:
        ends[total] = tuple(gradients)
    else:
        ends |= dict.fromkeys(range(turn, total, max(1, (total - turn) // _LOOKS)), ())
        complete_at = {name: max(turn, plan.complete_at(name)) for name in gradients}
        for bucket in _buckets(gradients, sorted(gradients, key=complete_at.__getitem__)):
            at = complete_at[bucket[-1]]
            ends[at] = (*ends.get(at, ()), *bucket)
    made = [Stretch(FORWARD, 0, turn)]
    for end in sorted(ends):
        made.append(Stretch(BACKWARD, made[-1].last, end, ends[end]))
    return tuple(one for one in made if one.first < one.last or one.gradients)


def _buckets(gradients: Mapping[str, int], order: Sequence[str]) -> list[tuple[str, ...]]:
    """Return gradients, in order, in groups that have up to the size of a bucket or are one alone."""
    found: list[tuple[str, ...]] = []
    room = 0
    for name in order:
        if gradients[name] > room:
            found.append(())
            room = _BUCKET_FLOATS
        found[-1] = (*found[-1], name)
        room -= gradients[name]
    return found
