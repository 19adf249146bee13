"""A step's forward and backward pass in stretches, behind which gradients are there that processes can begin to add up.

Other processes' gradients come while earlier layers' are computed: as S. Li et al., PyTorch Distributed, VLDB 2020,
https://arxiv.org/abs/2006.15704, section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from msgspec import Struct

from powerlab.engine.training.parts import BACKWARD, FORWARD, backward_from
from powerlab.engine.training.plans import StepPlan

BUCKET_FLOATS = 1 << 20
"""Gradients are sent together, up to 4 MB; larger ones by themselves."""

_LOOKS = 64
"""How often, in a backward pass, MPI gets a chance to go on with what was begun: it has no thread of its own."""

_Gradient = TypeVar("_Gradient")


class Stretch(Struct, frozen=True):
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
        for bucket in in_buckets(sorted(gradients, key=complete_at.__getitem__), gradients.__getitem__):
            at = complete_at[bucket[-1]]
            ends[at] = (*ends.get(at, ()), *bucket)
    made = [Stretch(FORWARD, 0, turn)]
    for end in sorted(ends):
        made.append(Stretch(BACKWARD, made[-1].last, end, ends[end]))
    return tuple(one for one in made if one.first < one.last or one.gradients)


def in_buckets(gradients: Iterable[_Gradient], floats: Callable[[_Gradient], int]) -> list[list[_Gradient]]:
    """Return gradients, in order, in groups that have up to the size of a bucket or are one alone.

    Args:
        gradients: in the order in which they are there.
        floats: how many numbers one has.
    """
    found: list[list[_Gradient]] = []
    room = 0
    for gradient in gradients:
        if floats(gradient) > room:
            found.append([])
            room = BUCKET_FLOATS
        found[-1].append(gradient)
        room -= floats(gradient)
    return found
