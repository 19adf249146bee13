"""How long a product takes that is cut into tiles: whether all cores have work, and how much of it is waiting.

Where there are more work groups than cores, cores take one after the other; where there are fewer, each waits for its
own loads, step by step, and a window that is cut into parts makes more of them. The constants were fitted to timings of
the convolutions of ResNet-50 on an NVIDIA H100; only their ratios matter.
"""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.target import Target

_GROUPS_A_CORE = 2
"""Work groups that a core wants at least: while one waits, the other computes."""

_LEAST_STEPS = 4
"""Of a part: below, what a work group needs to begin and to end is most of its time."""

_MOST_PARTS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Microseconds of a kind of kernel, of a work group of so many sums.

    Attributes:
        step: of a step, where work groups wait for a core.
        step_sum: of a step and a sum.
        end: of beginning and ending, a sum.
        wait: of a step, where a work group waits for its loads.
        wait_sum: of such a step and a sum.
    """

    step: float
    step_sum: float
    end: float
    wait: float
    wait_sum: float


_WAITS_ONCE = 10.0
"""Microseconds until the first step, and behind the last."""

_ADDING, _ADDING_PART, _ADDING_SUM = 8.0, 0.7, 1e-5
"""Microseconds of the dispatch that adds parts, of each, and of a sum of one."""


@dataclass(frozen=True, slots=True)
class Filling:
    """How a product that is cut into tiles fills a GPU.

    Attributes:
        parts: that the window is cut into so that all cores have work.
        microseconds: an estimate, to compare tiles by.
    """

    parts: int
    microseconds: float


def filling(shape: ConvShape, tile: tuple[int, int, int], pace: Pace, target: Target) -> Filling:
    """Return how a convolution fills a GPU by tiles of so many pixels, outputs, and inputs at a time."""
    pixels, outputs, inputs = tile
    groups = -(-shape.pixels // pixels) * -(-(shape.outputs // shape.groups) // outputs) * shape.groups
    steps = -(-shape.taps * -(-shape.inputs // shape.groups // 4) * 4 // inputs)
    parts = max(1, min(_GROUPS_A_CORE * target.cores // groups, steps // _LEAST_STEPS, _MOST_PARTS))
    whole, cut = (_microseconds(groups, steps, pixels * outputs, pace, target, parts=each) for each in (1, parts))
    return Filling(1, whole) if whole <= cut else Filling(parts, cut)


def _microseconds(groups: int, steps: int, sums: int, pace: Pace, target: Target, *, parts: int) -> float:
    own = -(-steps // parts)
    waiting = _WAITS_ONCE + own * (pace.wait + pace.wait_sum * sums)
    busy = groups * parts / target.cores * (pace.end * sums + own * (pace.step + pace.step_sum * sums))
    adding = 0.0 if parts == 1 else _ADDING + parts * (_ADDING_PART + _ADDING_SUM * groups * sums / target.cores)
    return max(waiting, busy) + adding
