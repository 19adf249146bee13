"""Add, Sub, Mul, Div and Sum, with numpy's broadcasting (ONNX's is the same)."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from powerlab.engine.graph import Array
from powerlab.engine.operators.base import Operator
from powerlab.engine.operators.view import NodeView, Spec


def broadcast_shape(view: NodeView) -> tuple[int, ...]:
    """Return the shape to which all inputs broadcast."""
    shapes = [view.shape(index) for index in range(len(view.infos))]
    rank = max(map(len, shapes), default=0)
    sizes = []
    for axis in range(rank):
        found = {shape[axis - rank + len(shape)] for shape in shapes if axis - rank + len(shape) >= 0} - {1}
        if len(found) > 1:
            view.fail(f"combines the shapes {' and '.join(map(str, shapes[:8]))}, which do not fit")
        sizes.append(found.pop() if found else 1)
    return tuple(sizes)


def _inputs(view: NodeView) -> list[Array]:
    return [view.value(index) for index in range(len(view.infos))]


def _infer(view: NodeView, least: int, most: int | None) -> Spec:
    count = len(view.infos)
    if count < least or (most is not None and count > most):
        view.fail(f"has {count} inputs")
    dtypes = {view.dtype(index) for index in range(count)}
    if len(dtypes) > 1:
        view.fail(f"combines the types {' and '.join(sorted(map(str, dtypes)))}")
    if dtypes == {np.dtype(np.bool_)}:
        view.fail("combines bool tensors, which the engine does not")
    return broadcast_shape(view), view.dtype(0)


def _binary(function: Callable[[Array, Array], Array]) -> Operator:
    return Operator(lambda view: _infer(view, 2, 2), lambda view: function(*_inputs(view)))


def _divide(dividend: Array, divisor: Array) -> Array:
    """Divide as C does: whole numbers are cut towards zero."""
    if dividend.dtype.kind == "f":
        return np.asarray(dividend / divisor)
    if not np.all(divisor):
        raise ValueError("division by zero")
    return np.asarray(np.sign(dividend) * np.sign(divisor) * (np.abs(dividend) // np.abs(divisor)))


ADD = _binary(np.add)
SUB = _binary(np.subtract)
MUL = _binary(np.multiply)
DIV = _binary(_divide)
SUM = Operator(lambda view: _infer(view, 1, None), lambda view: reduce(np.add, _inputs(view)))
