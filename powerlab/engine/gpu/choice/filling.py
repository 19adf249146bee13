"""How the cores of a GPU are kept busy: work groups enough, and where there are not, windows cut into parts."""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.target import Target

_GROUPS_A_CORE = 2
"""Work groups that a core wants at least: while one waits, the other computes."""

_LEAST_STEPS = 4
"""Of a part: below, what a work group needs to begin and to end is most of its time."""

_MOST_PARTS = 32

_SIDE = 16
"""Pixels, or outputs, whose products take as long as bringing one more of the other kind into shared memory."""

_PART, _ADDING = 300, 2e8
"""Products that take as long as writing and reading a sum of a part, and as the dispatch that adds them."""


@dataclass(frozen=True, slots=True)
class Filling:
    """How a product that is cut into tiles fills a GPU.

    Attributes:
        groups: work groups, of one part.
        steps: of a whole window, one after the other.
        parts: that the window is cut into so that all cores have work.
        cost: an estimate of its time, in products.
    """

    groups: int
    steps: int
    parts: int
    cost: float


def filling(shape: ConvShape, tile: tuple[int, int, int], target: Target) -> Filling:
    """Return how a convolution fills a GPU by tiles of so many pixels, outputs, and inputs at a time."""
    pixels, outputs, inputs = tile
    groups = -(-shape.pixels // pixels) * -(-(shape.outputs // shape.groups) // outputs) * shape.groups
    steps = -(-shape.taps * -(-shape.inputs // shape.groups // 4) * 4 // inputs)
    wanted = _GROUPS_A_CORE * target.cores
    parts = max(1, min(wanted // groups, steps // _LEAST_STEPS, _MOST_PARTS))
    sums, busy = groups * pixels * outputs, min(1.0, groups * parts / wanted)
    products = sums * steps * inputs * (1 + _SIDE / pixels + _SIDE / outputs) / busy
    cost = products + (_ADDING + _PART * sums * parts if parts > 1 else 0)
    return Filling(groups, steps, parts, cost)
