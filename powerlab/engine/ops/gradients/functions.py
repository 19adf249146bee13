"""Gradients of functions of one number, and of softmax and its logarithm."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from powerlab.engine.ops.activation import NO_CLAMP, NO_SLOPE, Clamp, clip_bounds, leak, softmax_axis
from powerlab.engine.ops.functions import FUNCTIONS, approximates_by_tanh
from powerlab.engine.ops.gradients.base import Gradient, Tape
from powerlab.engine.ops.view import NodeView

Slope = Callable[[NodeView, Tape, str, str], str]
"""Given what a function takes and makes, gives its derivative."""


def _by(slope: Slope) -> Gradient:
    def rule(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
        derivative = slope(view, tape, view.node.inputs[0], view.node.outputs[0])
        return [tape("Mul", gradients[0], derivative)]

    return rule


def _neg(_view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    return [tape("Neg", gradients[0])]


def _activation(bounds: Callable[[NodeView], Clamp], slope: Callable[[NodeView], float]) -> Gradient:
    """Return the gradient of an activation that passes what lies inside its bounds, by what it made."""

    def rule(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
        made = view.node.outputs[0]
        return [tape("ClampGradient", made, gradients[0], clamp=bounds(view), slope=slope(view))]

    return rule


def _leaky_relu(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Return the gradient by what was made, whose sign is that of what was given unless the slope turns it round."""
    slope = leak(view)
    if slope > 0:
        return _activation(lambda _view: NO_CLAMP, lambda _view: slope)(view, tape, gradients)
    above = tape("Greater", view.node.inputs[0], tape.floats(0.0))
    return [tape("Where", above, gradients[0], tape("Mul", gradients[0], tape.floats(slope)))]


def _minus_square(tape: Tape, one: float, y: str) -> str:
    return tape("Sub", tape.floats(one), tape("Mul", y, y))


def _sigmoid(_view: NodeView, tape: Tape, _x: str, y: str) -> str:
    return tape("Sub", y, tape("Mul", y, y))


def _swish(view: NodeView, tape: Tape, x: str, y: str) -> str:
    """Return s + alpha * y * (1 - s), s being the sigmoid of alpha * x."""
    alpha = tape.floats(view.number("alpha", 1.0))
    gate = tape("Sigmoid", tape("Mul", x, alpha))
    return tape("Add", gate, tape("Mul", tape("Mul", y, alpha), tape("Sub", tape.floats(1.0), gate)))


def _inside(tape: Tape, x: str, low: float, high: float, slope: str) -> str:
    """Return ``slope`` where x is between the bounds, 0 below and 1 or 0 above as the caller adds."""
    between = tape("And", tape("Greater", x, tape.floats(low)), tape("Less", x, tape.floats(high)))
    return tape("Where", between, slope, tape.floats(0.0))


def _hard_sigmoid(view: NodeView, tape: Tape, x: str, _y: str) -> str:
    alpha, beta = view.number("alpha", 0.2), view.number("beta", 0.5)
    return _inside(tape, x, -beta / alpha, (1 - beta) / alpha, tape.floats(alpha))


def _hard_swish(_view: NodeView, tape: Tape, x: str, _y: str) -> str:
    middle = _inside(tape, x, -3.0, 3.0, tape("Add", tape("Mul", x, tape.floats(1 / 3)), tape.floats(0.5)))
    return tape("Where", tape("Less", x, tape.floats(3.0)), middle, tape.floats(1.0))


def _gelu(view: NodeView, tape: Tape, x: str, _y: str) -> str:
    """Return the normal distribution's function plus x times its density; or what the approximation by tanh gives."""
    if approximates_by_tanh(view):
        root, cubic = math.sqrt(2 / math.pi), 0.044715
        square = tape("Mul", x, x)
        inner = tape("Mul", x, tape("Add", tape("Mul", square, tape.floats(root * cubic)), tape.floats(root)))
        bent = tape("Tanh", inner)
        steep = tape("Add", tape("Mul", square, tape.floats(3 * root * cubic)), tape.floats(root))
        half = tape("Mul", tape("Add", bent, tape.floats(1.0)), tape.floats(0.5))
        more = tape("Mul", tape("Mul", tape("Mul", x, steep), _minus_square(tape, 1.0, bent)), tape.floats(0.5))
        return tape("Add", half, more)
    share = tape("Erf", tape("Mul", x, tape.floats(math.sqrt(0.5))))
    below = tape("Add", tape("Mul", share, tape.floats(0.5)), tape.floats(0.5))
    density = tape("Exp", tape("Mul", tape("Mul", x, x), tape.floats(-0.5)))
    return tape("Add", below, tape("Mul", tape("Mul", x, density), tape.floats(1 / math.sqrt(2 * math.pi))))


def _erf(_view: NodeView, tape: Tape, x: str, _y: str) -> str:
    bell = tape("Exp", tape("Neg", tape("Mul", x, x)))
    return tape("Mul", bell, tape.floats(2 / math.sqrt(math.pi)))


def _elu(view: NodeView, tape: Tape, x: str, y: str) -> str:
    below = tape("Add", y, tape.floats(view.number("alpha", 1.0)))
    return tape("Where", tape("Less", x, tape.floats(0.0)), below, tape.floats(1.0))


def _selu(view: NodeView, tape: Tape, x: str, y: str) -> str:
    given = FUNCTIONS["Selu"].given(view)
    alpha, gamma = given["alpha"], given["beta"]
    below = tape("Add", y, tape.floats(alpha * gamma))
    return tape("Where", tape("Greater", x, tape.floats(0.0)), tape.floats(gamma), below)


def _mish(_view: NodeView, tape: Tape, x: str, _y: str) -> str:
    """Return t + x * (1 - t^2) * sigmoid(x), t being tanh(softplus(x))."""
    bent = tape("Tanh", tape("Softplus", x))
    more = tape("Mul", tape("Mul", x, _minus_square(tape, 1.0, bent)), tape("Sigmoid", x))
    return tape("Add", bent, more)


def _softsign(_view: NodeView, tape: Tape, x: str, _y: str) -> str:
    wide = tape("Add", tape("Abs", x), tape.floats(1.0))
    return tape("Reciprocal", tape("Mul", wide, wide))


def _soft_axes(view: NodeView, tape: Tape) -> str:
    """Return the axes that a softmax goes over: one, until opset 13 all from it on."""
    axis = softmax_axis(view)
    return tape.ints(range(axis, len(view.shape(0))) if view.integer("flattens", 0) else [axis])


def _softmax(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Return y * (dy - the sum of dy * y along the axis)."""
    y = view.node.outputs[0]
    common = tape("ReduceSum", tape("Mul", gradients[0], y), _soft_axes(view, tape), keepdims=1)
    return [tape("Mul", y, tape("Sub", gradients[0], common))]


def _log_softmax(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Return dy - softmax * the sum of dy along the axis."""
    common = tape("ReduceSum", gradients[0], _soft_axes(view, tape), keepdims=1)
    return [tape("Sub", gradients[0], tape("Mul", tape("Exp", view.node.outputs[0]), common))]


GRADIENTS: dict[str, Gradient] = {
    "Abs": _by(lambda _view, tape, x, _y: tape("Sign", x)),
    "Clip": _activation(clip_bounds, lambda _view: NO_SLOPE),
    "Cos": _by(lambda _view, tape, x, _y: tape("Neg", tape("Sin", x))),
    "Elu": _by(_elu),
    "Erf": _by(_erf),
    "Exp": _by(lambda _view, _tape, _x, y: y),
    "Gelu": _by(_gelu),
    "HardSigmoid": _by(_hard_sigmoid),
    "HardSwish": _by(_hard_swish),
    "LeakyRelu": _leaky_relu,
    "Log": _by(lambda _view, tape, x, _y: tape("Reciprocal", x)),
    "LogSoftmax": _log_softmax,
    "Mish": _by(_mish),
    "Neg": _neg,
    "Reciprocal": _by(lambda _view, tape, _x, y: tape("Neg", tape("Mul", y, y))),
    "Relu": _activation(lambda _view: (0.0, math.inf), lambda _view: NO_SLOPE),
    "Selu": _by(_selu),
    "Sigmoid": _by(_sigmoid),
    "Sin": _by(lambda _view, tape, x, _y: tape("Cos", x)),
    "Softmax": _softmax,
    "Softplus": _by(lambda _view, tape, x, _y: tape("Sigmoid", x)),
    "Softsign": _by(_softsign),
    "Sqrt": _by(lambda _view, tape, _x, y: tape("Div", tape.floats(0.5), y)),
    "Swish": _by(_swish),
    "Tanh": _by(lambda _view, tape, _x, y: _minus_square(tape, 1.0, y)),
}
"""Operator → rule."""
