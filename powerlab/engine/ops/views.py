"""Operators that rename or reorder elements: Identity, Dropout, Flatten, Reshape, Squeeze, Unsqueeze, Transpose."""

from __future__ import annotations

import math

import numpy as np

from powerlab.engine.ir.graph import MAX_AXES, Array
from powerlab.engine.ops.base import Operator, same_as_input
from powerlab.engine.ops.view import BOOL, NodeView, Spec


def _first(view: NodeView) -> Array:
    return view.value(0)


def _reshaped(view: NodeView) -> Array:
    return view.value(0).reshape(OPERATOR_SHAPES[view.node.op_type](view)[0])


def drops(view: NodeView) -> bool:
    """Say whether a Dropout node is in training mode."""
    return view.has(2) and bool(np.any(view.value(2)))


def _dropout(view: NodeView) -> Spec:
    if drops(view):
        if not view.has_attribute("seed"):
            view.fail("draws other numbers in every run; export the model for inference (model.eval()), or give a seed")
        if not 0 <= drop_ratio(view) < 1:
            view.fail(f"drops {drop_ratio(view)} of its input, which must be 0 or more and less than 1")
    return same_as_input(view)


def drop_ratio(view: NodeView) -> float:
    """Return which part of its input a Dropout node drops while it trains."""
    ratio = view.value(1) if view.has(1) else np.asarray(0.5)
    if ratio.size != 1:
        view.fail(f"needs one ratio, but it has {ratio.size}")
    return float(ratio.reshape(-1)[0])


def kept_elements(view: NodeView) -> Array:
    """Return what a Dropout node keeps: everything, or what the standard's reference does for the same seed."""
    if not drops(view):
        return np.ones(view.shape(0), np.bool_)
    seed = view.integer("seed", 0) % 2**32
    return np.asarray(np.random.RandomState(seed).uniform(0, 1, view.shape(0)) >= drop_ratio(view))


def _dropped(view: NodeView) -> tuple[Array, ...]:
    kept, value = kept_elements(view), view.value(0)
    return (value * kept / (1 - drop_ratio(view)) if drops(view) else value), kept


def _flatten(view: NodeView) -> Spec:
    shape = view.shape(0)
    axis = view.integer("axis", 1)
    if not -len(shape) <= axis <= len(shape):
        view.fail(f"names the axis {axis}, but its input has {len(shape)} axes")
    axis = axis + len(shape) if axis < 0 else axis
    return (math.prod(shape[:axis]), math.prod(shape[axis:])), view.dtype(0)


def _reshape(view: NodeView) -> Spec:
    shape, wanted = view.shape(0), list(view.int_values(1))
    if not view.integer("allowzero", 0):
        for axis, size in enumerate(wanted):
            if size == 0:
                if axis >= len(shape):
                    view.fail(f"copies axis {axis} of its input, which has {len(shape)} axes")
                wanted[axis] = shape[axis]
    count = math.prod(shape)
    if wanted.count(-1) == 1:
        rest = math.prod(size for size in wanted if size != -1)
        wanted[wanted.index(-1)] = count // rest if rest > 0 else 0
    if any(size < 0 for size in wanted) or math.prod(wanted) != count:
        view.fail(f"gives {shape} the shape {view.int_values(1)[:8]}, which has another number of elements")
    return tuple(wanted), view.dtype(0)


def _axes(view: NodeView) -> tuple[int, ...]:
    """Return the axes of Squeeze and Unsqueeze: an attribute before opset 13, an input since."""
    return view.int_values(1) if view.has(1) else view.integers("axes", ())


def _squeeze(view: NodeView) -> Spec:
    shape = view.shape(0)
    axes = view.axes(_axes(view), len(shape)) or tuple(axis for axis, size in enumerate(shape) if size == 1)
    if any(shape[axis] != 1 for axis in axes):
        view.fail(f"drops axes {axes} of {shape}, not all of which are 1")
    return tuple(size for axis, size in enumerate(shape) if axis not in axes), view.dtype(0)


def _unsqueeze(view: NodeView) -> Spec:
    added = _axes(view)
    rank = len(view.shape(0)) + len(added)
    if rank > MAX_AXES:
        view.fail(f"makes a tensor of {rank} axes")
    sizes = list(view.shape(0))
    for axis in view.axes(added, rank):
        sizes.insert(axis, 1)
    return tuple(sizes), view.dtype(0)


def permutation(view: NodeView) -> tuple[int, ...]:
    """Return the order in which a Transpose node takes its input's axes."""
    rank = len(view.shape(0))
    order = view.integers("perm", tuple(reversed(range(rank))))
    if sorted(order) != list(range(rank)):
        view.fail(f"has perm {order[:8]}, which is no order of {rank} axes")
    return order


def _transpose(view: NodeView) -> Spec:
    return tuple(view.shape(0)[axis] for axis in permutation(view)), view.dtype(0)


OPERATOR_SHAPES = {"Flatten": _flatten, "Reshape": _reshape, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze}

IDENTITY = Operator(same_as_input, _first)
DROPOUT = Operator(_dropout, _dropped, infer_more=lambda view: ((view.shape(0), BOOL),))
FLATTEN = Operator(_flatten, _reshaped)
RESHAPE = Operator(_reshape, _reshaped)
SQUEEZE = Operator(_squeeze, _reshaped)
UNSQUEEZE = Operator(_unsqueeze, _reshaped)
TRANSPOSE = Operator(_transpose, lambda view: view.value(0).transpose(permutation(view)))
