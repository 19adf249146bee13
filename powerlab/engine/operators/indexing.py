"""Operators of shape arithmetic: Constant, ConstantOfShape, Shape, Gather, Slice, Concat, and Pad."""

from __future__ import annotations

import numpy as np

from powerlab.engine.graph import Array
from powerlab.engine.operators.base import Operator
from powerlab.engine.operators.view import FLOAT32, INT64, NodeView, Spec


def _constant_value(view: NodeView) -> Array:
    attributes = view.node.attributes
    for name, dtype in (
        ("value_float", FLOAT32),
        ("value_floats", FLOAT32),
        ("value_int", INT64),
        ("value_ints", INT64),
    ):
        if name in attributes:
            return np.asarray(attributes[name], dtype)
    value = attributes.get("value")
    if not isinstance(value, np.ndarray):
        view.fail("has no value the engine can read; it takes tensors and numbers")
    return value


def _constant(view: NodeView) -> Spec:
    value = _constant_value(view)
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


def _gather(view: NodeView) -> Spec:
    shape, indices = view.shape(0), view.shape(1)
    if view.dtype(1).kind != "i":
        view.fail("needs whole numbers as indices")
    axis = view.axis(view.integer("axis", 0), len(shape))
    return (*shape[:axis], *indices, *shape[axis + 1 :]), view.dtype(0)


def _gathered(view: NodeView) -> Array:
    return np.take(view.value(0), view.value(1), axis=view.integer("axis", 0))


def slices(view: NodeView) -> tuple[slice, ...]:
    """Return one slice an axis for a Slice node: attributes before opset 10, inputs since."""
    shape = view.shape(0)
    if view.has(1):
        starts, ends = view.int_values(1), view.int_values(2)
        axes = view.int_values(3) if view.has(3) else tuple(range(len(starts)))
        steps = view.int_values(4) if view.has(4) else (1,) * len(starts)
    else:
        starts, ends = view.integers("starts", ()), view.integers("ends", ())
        axes, steps = view.integers("axes", tuple(range(len(starts)))), (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        view.fail("has starts, ends, axes and steps that do not fit together")
    view.axes(axes, len(shape))
    chosen = [slice(None)] * len(shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = shape[axis]
        # Going backwards, an end before the first element must not count from the back.
        stop = None if step < 0 and end < -size else end
        chosen[axis] = slice(start, stop, step)
    return tuple(chosen)


def _slice(view: NodeView) -> Spec:
    shape = view.shape(0)
    return tuple(len(range(*part.indices(size))) for part, size in zip(slices(view), shape, strict=True)), view.dtype(0)


def concat_axis(view: NodeView) -> int:
    """Return the axis along which a Concat node joins its inputs, counted from the front."""
    if not view.infos or not view.has_attribute("axis"):
        view.fail("lacks inputs or the attribute axis")
    return view.axis(view.integer("axis", 0), len(view.shape(0)))


def _concat(view: NodeView) -> Spec:
    axis = concat_axis(view)
    first = view.shape(0)
    total = 0
    for index in range(len(view.infos)):
        shape = view.shape(index)
        fits = len(shape) == len(first) and all(
            a == b for i, (a, b) in enumerate(zip(shape, first, strict=True)) if i != axis
        )
        if not fits or view.dtype(index) != view.dtype(0):
            view.fail(f"joins the shapes {first} and {shape} along axis {axis}, which do not fit")
        total += shape[axis]
    return (*first[:axis], total, *first[axis + 1 :]), view.dtype(0)


def _concatenated(view: NodeView) -> Array:
    return np.concatenate([view.value(index) for index in range(len(view.infos))], axis=concat_axis(view))


def padding(view: NodeView) -> tuple[tuple[int, int], ...]:
    """Return (before, after) an axis of a Pad node that pads with zeros."""
    shape = view.floats(0)
    pads = view.int_values(1) if view.has(1) else view.integers("pads", ())
    value = float(view.value(2).reshape(-1)[0]) if view.has(2) and view.value(2).size else view.number("value", 0.0)
    if view.text("mode", "constant") != "constant" or value != 0.0 or view.has(3):
        view.fail("pads with something else than zeros, or some axes only; the engine takes plain zeros")
    if len(pads) != 2 * len(shape) or not all(0 <= pad <= 65536 for pad in pads):
        view.fail(f"has pads {pads[:8]} for an input of {len(shape)} axes; the engine takes two from 0 an axis")
    return tuple(zip(pads[: len(shape)], pads[len(shape) :], strict=True))


def _pad(view: NodeView) -> Spec:
    return tuple(size + sum(pads) for size, pads in zip(view.shape(0), padding(view), strict=True)), view.dtype(0)


CONSTANT = Operator(_constant, _constant_value)
CONSTANT_OF_SHAPE = Operator(_constant_of_shape, lambda view: np.full(view.int_values(0), _fill(view)))
SHAPE = Operator(_shape, _shape_value, of_shape=True)
GATHER = Operator(_gather, _gathered)
SLICE = Operator(_slice, lambda view: view.value(0)[slices(view)])
CONCAT = Operator(_concat, _concatenated)
PAD = Operator(_pad)
