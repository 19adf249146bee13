"""Gradients of normalisations: by a batch, by layers, by groups of channels, by neighbouring channels (LRN).

The first three are dx = (scale g - mean(scale g) - x' mean(scale g x')) / deviation, x' being the normalised input;
their means run over what was normalised together (S. Ioffe and C. Szegedy, https://arxiv.org/abs/1502.03167, 3).
"""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.ops.activation import NO_CLAMP
from powerlab.engine.ops.gradients.base import Gradient, Tape
from powerlab.engine.ops.normalisation import normalised_groups
from powerlab.engine.ops.row_norms import first_axis
from powerlab.engine.ops.view import NodeView


def _normalised(view: NodeView, tape: Tape, axes: str, source: str) -> tuple[str, str]:
    """Return the normalised input and the deviation, as the forward half computes them."""
    apart = tape("Sub", source, tape("ReduceMean", source, axes, keepdims=1))
    variance = tape("ReduceMean", tape("Mul", apart, apart), axes, keepdims=1)
    deviation = tape("Sqrt", tape("Add", variance, tape.floats(view.number("epsilon", 1e-5))))
    return tape("Div", apart, deviation), deviation


def _through(tape: Tape, scaled: str, normalised: str, deviation: str, axes: str) -> str:
    """Return the gradient of the input from that of the normalised input."""
    mean = tape("ReduceMean", scaled, axes, keepdims=1)
    along = tape("ReduceMean", tape("Mul", scaled, normalised), axes, keepdims=1)
    return tape("Div", tape("Sub", tape("Sub", scaled, mean), tape("Mul", normalised, along)), deviation)


def batch_norm_gradient(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Take the batch's statistics as functions of the input; the running ones have no gradient."""
    source, *a_channel = view.node.inputs[:3]
    own = (*a_channel, *view.node.outputs[3:])
    return tape.several("BatchNormGradient", source, gradients[0], *own, made=3, clamp=NO_CLAMP)


def _layer_norm(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    upstream = gradients[0]
    shape, first = view.shape(0), first_axis(view)
    axes = tape.ints(range(first, len(shape)))
    normalised, deviation = _normalised(view, tape, axes, view.node.inputs[0])
    scaled = tape("Mul", upstream, view.node.inputs[1])
    of_scale = tape.sum_to(tape("Mul", upstream, normalised), view.shape(1))
    of_bias = tape.sum_to(upstream, view.shape(2)) if view.has(2) else ""
    return _through(tape, scaled, normalised, deviation, axes), of_scale, of_bias


def _rms_norm(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Return what a layer norm has, without means."""
    source, shape = view.node.inputs[0], view.shape(0)
    axes = tape.ints(range(first_axis(view), len(shape)))
    squares = tape("ReduceMean", tape("Mul", source, source), axes, keepdims=1)
    root = tape("Sqrt", tape("Add", squares, tape.floats(view.number("epsilon", 1e-5))))
    normalised, scaled = tape("Div", source, root), tape("Mul", gradients[0], view.node.inputs[1])
    along = tape("ReduceMean", tape("Mul", scaled, normalised), axes, keepdims=1)
    of_input = tape("Div", tape("Sub", scaled, tape("Mul", normalised, along)), root)
    return of_input, tape.sum_to(tape("Mul", gradients[0], normalised), view.shape(1))


def _group_norm(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Normalise groups of channels as rows; scale and shift have one number a channel, or one a group."""
    shape, groups = view.shape(0), normalised_groups(view)
    images, channels, *pixels = shape
    rows, wide = (images * groups, channels // groups, *pixels), (images, channels, *pixels)
    axes = tape.ints(range(1, len(rows)))
    normalised, deviation = _normalised(view, tape, axes, tape.reshape(view.node.inputs[0], rows))
    apart = tape.reshape(normalised, wide)
    each = view.shape(1)[0]
    scale = tape("Expand", tape.reshape(view.node.inputs[1], (each, 1)), tape.ints((each, channels // each)))
    scaled = tape("Mul", gradients[0], tape.reshape(scale, (1, channels, *(1,) * len(pixels))))
    of_input = _through(tape, tape.reshape(scaled, rows), normalised, deviation, axes)
    summed = [
        tape.sum_to(
            tape.reshape(whole, (images, each, channels // each, *pixels)), (1, each, *(1,) * (1 + len(pixels)))
        )
        for whole in (tape("Mul", gradients[0], apart), gradients[0])
    ]
    return tape.reshape(of_input, shape), *(tape.reshape(one, (each,)) for one in summed)


def _lrn(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    numbers = {"alpha": view.number("alpha", 1e-4), "beta": view.number("beta", 0.75), "bias": view.number("bias", 1.0)}
    return [tape("LRNGradient", view.node.inputs[0], gradients[0], size=view.integer("size", 1), **numbers)]


GRADIENTS: dict[str, Gradient] = {
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _group_norm,
    "LRN": _lrn,
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
}
"""Operator → rule."""
