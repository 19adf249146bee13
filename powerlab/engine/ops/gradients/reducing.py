"""Gradients of sums and means over axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from powerlab.engine.ops.gradients.base import Gradient, Tape
from powerlab.engine.ops.view import NodeView


def _spread(view: NodeView, tape: Tape, gradient: str, factor: float) -> str:
    """Return a gradient repeated along the axes that were reduced, times a factor."""
    shape = view.shape(0)
    axes = view.int_values(1) if view.has(1) else view.integers("axes", ())
    if not axes:
        axes = () if view.integer("noop_with_empty_axes", 0) else tuple(range(len(shape)))
    gone = view.axes(tuple(axes), len(shape))
    kept = tape.reshape(gradient, [1 if axis in gone else size for axis, size in enumerate(shape)])
    if factor != 1.0:
        kept = tape("Mul", kept, tape.floats(factor))
    return tape("Expand", kept, tape.ints(shape))


def _sum(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    return [_spread(view, tape, gradients[0], 1.0)]


def _mean(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    taken = math.prod(view.shape(0)) // max(1, math.prod(tape.shape(gradients[0])))
    return [_spread(view, tape, gradients[0], 1 / taken)]


def _global_average(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    shape = view.shape(0)
    part = tape("Mul", gradients[0], tape.floats(1 / math.prod(shape[2:])))
    return [tape("Expand", part, tape.ints(shape))]


GRADIENTS: dict[str, Gradient] = {"GlobalAveragePool": _global_average, "ReduceMean": _mean, "ReduceSum": _sum}
"""Operator → rule."""
