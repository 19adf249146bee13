"""Gradients of reductions: what was summed gets the sum's gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence

from powerlab.engine.ops.gradients.base import Gradient, Tape
from powerlab.engine.ops.reducing import reduced_axes
from powerlab.engine.ops.view import NodeView


def _kept(view: NodeView, tape: Tape, tensor: str) -> str:
    """Return a tensor of the output's shape with the axes that were reduced, of size 1."""
    gone = reduced_axes(view)
    return tape.reshape(tensor, [1 if axis in gone else size for axis, size in enumerate(view.shape(0))])


def _spread(view: NodeView, tape: Tape, gradient: str, factor: float) -> str:
    """Return a gradient repeated along the axes that were reduced, times a factor."""
    kept = _kept(view, tape, gradient)
    if factor != 1.0:
        kept = tape("Mul", kept, tape.floats(factor))
    return tape("Expand", kept, tape.ints(view.shape(0)))


def _sum(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    return [_spread(view, tape, gradients[0], 1.0)]


def _mean(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    taken = math.prod(view.shape(0)) // max(1, math.prod(tape.shape(gradients[0])))
    return [_spread(view, tape, gradients[0], 1 / taken)]


def _squares(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    doubled = tape("Mul", _kept(view, tape, gradients[0]), tape.floats(2.0))
    return [tape("Mul", view.node.inputs[0], doubled)]


def _magnitudes(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    return [tape("Mul", tape("Sign", view.node.inputs[0]), _kept(view, tape, gradients[0]))]


def _norm(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    ratio = tape("Div", _kept(view, tape, gradients[0]), _kept(view, tape, view.node.outputs[0]))
    return [tape("Mul", view.node.inputs[0], ratio)]


def _extreme(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Share the gradient between all that are equal to the extreme."""
    is_one = tape("Equal", view.node.inputs[0], _kept(view, tape, view.node.outputs[0]))
    ones = tape("Where", is_one, tape.floats(1.0), tape.floats(0.0))
    count = tape("ReduceSum", ones, tape.ints(reduced_axes(view)), keepdims=1)
    return [tape("Mul", ones, tape("Div", _kept(view, tape, gradients[0]), count))]


GRADIENTS: dict[str, Gradient] = {
    "ReduceL1": _magnitudes,
    "ReduceL2": _norm,
    "ReduceMax": _extreme,
    "ReduceMean": _mean,
    "ReduceMin": _extreme,
    "ReduceSum": _sum,
    "ReduceSumSquare": _squares,
}
"""Operator → rule."""
