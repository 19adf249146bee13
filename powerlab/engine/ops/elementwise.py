"""Operators that compute each element from one element of each input, broadcast by numpy's rules (ONNX's are the same).

An operator whose inputs have one type is a line in :data:`ELEMENTWISE`: the kernel, what it computes in numpy, which
types it takes. Integers wrap at the ends of their type, as numpy's do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from msgspec import Struct

from powerlab.engine.ir.graph import Array
from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.broadcasting import broadcast_shape
from powerlab.engine.ops.casting import cast_value
from powerlab.engine.ops.view import BOOL, FLOAT32, NodeView, Spec

Evaluate = Callable[[NodeView], Array]

NUMBERS, WHOLE, LOGICAL, ANY = "fiu", "iu", "b", "fiub"
"""Kinds of types, as numpy's ``dtype.kind`` calls them."""


class Function(Struct, frozen=True):
    """How an operator is computed.

    Attributes:
        kernel: begins the names of its kernels; or gives that of a node.
        evaluate: the value of a node whose inputs are known.
        kinds: the kinds of types it takes.
        makes: the type it makes; None: that of its inputs.
        most: inputs at most, and at least unless None: then any number from 1 on, taken one after the other.
        swapped: whether the kernel takes the second input first.
        numbers: number[2] and number[3] of the kernel.
    """

    kernel: str | Callable[[NodeView], str]
    evaluate: Evaluate
    kinds: str
    makes: np.dtype[Any] | None = None
    most: int | None = 2
    swapped: bool = False
    numbers: Callable[[NodeView], tuple[int, int]] = lambda _view: (0, 0)

    def infer(self, view: NodeView) -> Spec:
        """Return the shape and type of the result."""
        count = len(view.infos)
        if count < 1 or (self.most is not None and count != self.most):
            view.fail(f"has {count} inputs")
        dtypes = {view.dtype(index) for index in range(count)}
        if len(dtypes) > 1:
            view.fail(f"combines the types {' and '.join(sorted(map(str, dtypes)))}")
        if view.dtype(0).kind not in self.kinds:
            view.fail(f"does not take {view.dtype(0)} tensors")
        return broadcast_shape(view), self.makes or view.dtype(0)


def _values(view: NodeView) -> list[Array]:
    return [view.value(index) for index in range(len(view.infos))]


def _by(function: Callable[..., Any]) -> Evaluate:
    return lambda view: np.asarray(function(*_values(view)))


def _chained(function: Callable[[Array, Array], Array]) -> Evaluate:
    return lambda view: np.asarray(reduce(function, _values(view)))


def divided(dividend: Array, divisor: Array) -> Array:
    """Divide as C does: integers are cut towards zero."""
    if dividend.dtype.kind == "f":
        return np.asarray(dividend / divisor)
    if not np.all(divisor):
        raise ValueError("division by zero")
    quotient = dividend // divisor
    return np.asarray(quotient + ((dividend % divisor != 0) & (quotient < 0)).astype(dividend.dtype))


def _remainder(view: NodeView) -> Array:
    dividend, divisor = _values(view)
    if dividend.dtype.kind in WHOLE and not np.all(divisor):
        raise ValueError("division by zero")
    return np.asarray(np.fmod(dividend, divisor) if view.integer("fmod", 0) else np.mod(dividend, divisor))


def _shift_direction(view: NodeView) -> str:
    direction = view.text("direction", "")
    if direction not in ("LEFT", "RIGHT"):
        view.fail(f"shifts to {direction!r}, which is neither LEFT nor RIGHT")
    return f"shift_{direction.lower()}"


def _shifted(view: NodeView) -> Array:
    """Shift; by too many bits, or by fewer than none, the sign alone is left to the right, nothing to the left."""
    left = _shift_direction(view) == "shift_left"
    value, given = np.broadcast_arrays(*_values(view))
    width = 8 * value.dtype.itemsize
    past = (given < 0) | (given >= width)
    bits = np.where(past, value.dtype.type(width - 1), given)
    if left:
        return np.asarray(np.where(past, value.dtype.type(0), np.left_shift(value, bits)))
    return np.asarray(np.where(past & (value >= 0), value.dtype.type(0), np.right_shift(value, bits)))


def _infinities(view: NodeView) -> tuple[int, int]:
    return view.integer("detect_negative", 1), view.integer("detect_positive", 1)


def _is_infinite(view: NodeView) -> Array:
    value = view.value(0)
    below, above = _infinities(view)
    return np.asarray((np.isneginf(value) & bool(below)) | (np.isposinf(value) & bool(above)))


def _parametric_relu(value: Array, slope: Array) -> Array:
    return np.where(value < 0, value * slope, value)


ELEMENTWISE: dict[str, Function] = {
    "Add": Function("add", _by(np.add), NUMBERS),
    "And": Function("bit_and", _by(np.logical_and), LOGICAL),
    "BitShift": Function(_shift_direction, _shifted, WHOLE),
    "BitwiseAnd": Function("bit_and", _by(np.bitwise_and), WHOLE),
    "BitwiseNot": Function("bit_not", _by(np.bitwise_not), WHOLE, most=1),
    "BitwiseOr": Function("bit_or", _by(np.bitwise_or), WHOLE),
    "BitwiseXor": Function("bit_xor", _by(np.bitwise_xor), WHOLE),
    "Div": Function("div", _by(divided), NUMBERS),
    "Equal": Function("equal", _by(np.equal), ANY, BOOL),
    "Greater": Function("less", _by(np.greater), NUMBERS, BOOL, swapped=True),
    "GreaterOrEqual": Function("less_or_equal", _by(np.greater_equal), NUMBERS, BOOL, swapped=True),
    "IsInf": Function("is_inf", _is_infinite, "f", BOOL, most=1, numbers=_infinities),
    "IsNaN": Function("is_nan", _by(np.isnan), "f", BOOL, most=1),
    "Less": Function("less", _by(np.less), NUMBERS, BOOL),
    "LessOrEqual": Function("less_or_equal", _by(np.less_equal), NUMBERS, BOOL),
    "Max": Function("max", _chained(np.maximum), NUMBERS, most=None),
    "Min": Function("min", _chained(np.minimum), NUMBERS, most=None),
    "Mod": Function("mod", _remainder, NUMBERS, numbers=lambda view: (view.integer("fmod", 0), 0)),
    "Mul": Function("mul", _by(np.multiply), NUMBERS),
    "Not": Function("is_zero", _by(np.logical_not), LOGICAL, most=1),
    "Or": Function("bit_or", _by(np.logical_or), LOGICAL),
    "PRelu": Function("prelu", _by(_parametric_relu), NUMBERS),
    "Sub": Function("sub", _by(np.subtract), NUMBERS),
    "Sum": Function("add", _chained(np.add), NUMBERS, most=None),
    "Xor": Function("bit_xor", _by(np.logical_xor), LOGICAL),
}
"""Operator → how it is computed."""


def _mean(view: NodeView) -> Spec:
    if not all(view.has(index) for index in range(max(1, len(view.infos)))):
        view.fail("lacks an input")
    if any(view.dtype(index) != FLOAT32 for index in range(len(view.infos))):
        view.fail("averages integers")
    return broadcast_shape(view), FLOAT32


def _where(view: NodeView) -> Spec:
    if view.dtype(0) != BOOL or view.dtype(1) != view.dtype(2):
        view.fail("chooses by something else than bools, or between two types")
    return broadcast_shape(view), view.dtype(1)


def _power(view: NodeView) -> Spec:
    if len(view.infos) != 2 or any(view.dtype(index).kind not in NUMBERS for index in (0, 1)):
        view.fail("needs two tensors of numbers")
    return broadcast_shape(view), view.dtype(0)


def _raised(view: NodeView) -> Array:
    base, exponent = _values(view)
    if base.dtype.kind in WHOLE and exponent.dtype.kind in WHOLE and np.any(exponent < 0):
        raise ValueError("an integer to a negative power")
    return cast_value(np.asarray(np.power(base, exponent)), base.dtype)


OPERATORS: dict[str, Operator] = {
    **{name: Operator(function.infer, function.evaluate) for name, function in ELEMENTWISE.items()},
    "Mean": Operator(_mean, lambda view: np.asarray(reduce(np.add, _values(view)) / np.float32(len(view.infos)))),
    "Pow": Operator(_power, _raised),
    "Where": Operator(_where, _by(np.where)),
}
"""Operator → rule."""
