"""Gradients of BatchNormalization in training mode and of LayerNormalization.

Both are dx = (scale g - mean(scale g) - x' mean(scale g x')) / deviation, x' being the normalised input; their sums run
over what was normalised together (S. Ioffe and C. Szegedy, https://arxiv.org/abs/1502.03167, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.ops.gradients.base import Gradient, Tape
from powerlab.engine.ops.row_norms import first_axis
from powerlab.engine.ops.view import NodeView


def _normalised(view: NodeView, tape: Tape, axes: str) -> tuple[str, str]:
    """Return the normalised input and the deviation, as the forward half computes them."""
    source = view.node.inputs[0]
    apart = tape("Sub", source, tape("ReduceMean", source, axes, keepdims=1))
    variance = tape("ReduceMean", tape("Mul", apart, apart), axes, keepdims=1)
    deviation = tape("Sqrt", tape("Add", variance, tape.floats(view.number("epsilon", 1e-5))))
    return tape("Div", apart, deviation), deviation


def _through(tape: Tape, scaled: str, normalised: str, deviation: str, axes: str) -> str:
    """Return the gradient of the input from that of the normalised input."""
    mean = tape("ReduceMean", scaled, axes, keepdims=1)
    along = tape("ReduceMean", tape("Mul", scaled, normalised), axes, keepdims=1)
    return tape("Div", tape("Sub", tape("Sub", scaled, mean), tape("Mul", normalised, along)), deviation)


def _batch_norm(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Take the batch's statistics as functions of the input; the running ones have no gradient."""
    upstream = gradients[0]
    if not view.integer("training_mode", 0):
        view.fail("normalises by running statistics, which has no gradient in the engine")
    rank = len(view.shape(0))
    axes = tape.ints(axis for axis in range(rank) if axis != 1)
    normalised, deviation = _normalised(view, tape, axes)
    scaled = tape("Mul", upstream, tape.reshape(view.node.inputs[1], (1, -1, *(1,) * (rank - 2))))
    of_scale = tape("ReduceSum", tape("Mul", upstream, normalised), axes, keepdims=0)
    of_bias = tape("ReduceSum", upstream, axes, keepdims=0)
    return _through(tape, scaled, normalised, deviation, axes), of_scale, of_bias, "", ""


def _layer_norm(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    upstream = gradients[0]
    shape, first = view.shape(0), first_axis(view)
    axes = tape.ints(range(first, len(shape)))
    normalised, deviation = _normalised(view, tape, axes)
    scaled = tape("Mul", upstream, view.node.inputs[1])
    of_scale = tape.sum_to(tape("Mul", upstream, normalised), view.shape(1))
    of_bias = tape.sum_to(upstream, view.shape(2)) if view.has(2) else ""
    return _through(tape, scaled, normalised, deviation, axes), of_scale, of_bias


GRADIENTS: dict[str, Gradient] = {"BatchNormalization": _batch_norm, "LayerNormalization": _layer_norm}
"""Operator → rule."""
