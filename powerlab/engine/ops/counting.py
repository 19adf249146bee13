"""Tensors that shapes and constants alone decide: Constant, ConstantOfShape, EyeLike, Range, Shape, Size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from powerlab.engine.ir.graph import Array
from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.casting import stated_dtype
from powerlab.engine.ops.view import FLOAT32, INT64, NodeView, Spec

_MOST_NUMBERS = 2**31 - 1

_TYPES = {"value_float": FLOAT32, "value_floats": FLOAT32, "value_int": INT64, "value_ints": INT64}
"""Attributes of a Constant that are numbers, and the type of its tensor."""


def constant_value(view: NodeView) -> Array:
    """Return what a Constant holds."""
    attributes = view.node.attributes
    value = attributes.get("value")
    if isinstance(value, np.ndarray):
        return value
    name = next((name for name in _TYPES if name in attributes), None)
    if name is None:
        view.fail("has no value the engine can read; it takes tensors and numbers")
    return np.asarray(attributes[name], _TYPES[name])


def _constant(view: NodeView) -> Spec:
    value = constant_value(view)
    return value.shape, value.dtype


def _fill(view: NodeView) -> Array:
    value = view.node.attributes.get("value", np.zeros(1, np.float32))
    if not isinstance(value, np.ndarray) or value.size != 1:
        view.fail("needs one number as its value")
    return value.reshape(())


def _constant_of_shape(view: NodeView) -> Spec:
    return view.int_values(0), _fill(view).dtype


def _shape_value(view: NodeView) -> Array:
    shape = view.shape(0)
    start, end = view.integer("start", 0), view.integer("end", len(shape))
    return np.asarray(shape[slice(start, end)], np.int64)


def _shape(view: NodeView) -> Spec:
    return _shape_value(view).shape, INT64


def _size(view: NodeView) -> Array:
    return np.asarray(math.prod(view.shape(0)), np.int64)


def _ladder(view: NodeView) -> Array:
    """Return the numbers of a Range node."""
    start, limit, step = (view.value(index).reshape(-1) for index in range(3))
    if not start.size == limit.size == step.size == 1 or not step[0]:
        view.fail("needs one start, one limit and a step that is not 0")
    count = max(0, math.ceil((float(limit[0]) - float(start[0])) / float(step[0])))
    if count > _MOST_NUMBERS:
        view.fail(f"counts up to {count} numbers")
    return np.asarray(start[0] + np.arange(count) * step[0], view.dtype(0))


def _range(view: NodeView) -> Spec:
    ladder = _ladder(view)
    return ladder.shape, ladder.dtype


def _eye_dtype(view: NodeView) -> np.dtype[Any]:
    return stated_dtype(view, "dtype", 0) if view.has_attribute("dtype") else view.dtype(0)


def _eye(view: NodeView) -> Spec:
    if len(view.shape(0)) != 2:
        view.fail(f"needs a matrix, but its input has the shape {view.shape(0)}")
    return view.shape(0), _eye_dtype(view)


def _ones_on_diagonal(view: NodeView) -> Array:
    rows, columns = view.shape(0)
    return np.eye(rows, columns, view.integer("k", 0))


def _filled(view: NodeView) -> Array:
    """Return a number everywhere, which is in memory once."""
    return np.broadcast_to(_fill(view), view.int_values(0))


OPERATORS: dict[str, Operator] = {
    "Constant": Operator(_constant, constant_value),
    "ConstantOfShape": Operator(_constant_of_shape, _filled),
    "EyeLike": Operator(_eye, _ones_on_diagonal, of_shape=True),
    "Range": Operator(_range, _ladder),
    "Shape": Operator(_shape, _shape_value, of_shape=True),
    "Size": Operator(lambda _view: ((), INT64), _size, of_shape=True),
}
"""Operator → rule."""
