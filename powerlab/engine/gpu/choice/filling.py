"""How long a product takes that is cut into tiles: whether all cores have work, and how much of it is waiting.

Where there are more work groups than cores, cores take one after the other; where there are fewer, each waits for its
own loads, step by step, and a window that is cut into parts makes more of them.
"""

from __future__ import annotations

from msgspec import Struct

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.target import Target

_GROUPS_A_CORE = (1, 2, 4)
"""Work groups that a core may want: while one waits, the others compute."""

_LEAST_STEPS = 2
"""Of a part: below, what a work group needs to begin and to end is most of its time."""

_MOST_PARTS = 32


class Pace(Struct, frozen=True, kw_only=True):
    """Microseconds of a kind of kernel, of a work group of so many sums.

    Attributes:
        step: of a step, where work groups wait for a core.
        step_sum: of a step and a sum.
        end: of beginning and ending, a sum.
        wait: of a step, where a work group waits for its loads.
        wait_sum: of such a step and a sum.
        once: until the first step, and behind the last.
        adding: of the dispatch that adds parts.
        adding_part: of each of them.
        adding_sum: of a sum of one.
    """

    step: float
    step_sum: float
    end: float
    wait: float
    wait_sum: float
    once: float
    adding: float
    adding_part: float
    adding_sum: float


class Filling(Struct, frozen=True):
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
    wanted = {each * target.cores // groups for each in _GROUPS_A_CORE}
    tried = {1} | {max(1, min(each, steps // _LEAST_STEPS, _MOST_PARTS)) for each in wanted}
    found = ((_microseconds(groups, steps, pixels * outputs, pace, target, parts=each), each) for each in tried)
    microseconds, parts = min(found)
    return Filling(parts, microseconds)


def _microseconds(groups: int, steps: int, sums: int, pace: Pace, target: Target, *, parts: int) -> float:
    own = -(-steps // parts)
    waiting = pace.once + own * (pace.wait + pace.wait_sum * sums)
    busy = groups * parts / target.cores * (pace.end * sums + own * (pace.step + pace.step_sum * sums))
    adding = pace.adding + parts * (pace.adding_part + pace.adding_sum * groups * sums / target.cores)
    return max(waiting, busy) + (adding if parts > 1 else 0.0)
