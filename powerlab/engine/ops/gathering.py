"""Operators that pick and put elements by their places: Gather, GatherElements, GatherND, their Scatters, OneHot."""

from __future__ import annotations

import numpy as np

from powerlab.engine.ir.graph import Array
from powerlab.engine.ops.base import Operator, same_as_input
from powerlab.engine.ops.casting import cast_value
from powerlab.engine.ops.view import INT64, NodeView, Spec

UPDATES = {"none": 0, "add": 1, "mul": 2, "min": 3, "max": 4}
"""What a Scatter does with what is there → number in kernels/strided/indexed.hpp."""

_FUNCTIONS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def _indices(view: NodeView) -> tuple[int, ...]:
    """Return the shape of the indices."""
    if view.dtype(1).kind not in "iu":
        view.fail("needs integers as indices")
    return view.shape(1)


def picked_axis(view: NodeView) -> int:
    """Return the axis that indices name."""
    return view.axis(view.integer("axis", 0), len(view.shape(0)))


def _gather(view: NodeView) -> Spec:
    shape, indices, axis = view.shape(0), _indices(view), picked_axis(view)
    return (*shape[:axis], *indices, *shape[axis + 1 :]), view.dtype(0)


def _gather_elements(view: NodeView) -> Spec:
    shape, indices, axis = view.shape(0), _indices(view), picked_axis(view)
    _check_inside(view, shape, indices, axis)
    return indices, view.dtype(0)


def _check_inside(view: NodeView, shape: tuple[int, ...], indices: tuple[int, ...], axis: int) -> None:
    fits = len(shape) == len(indices)
    if not fits or any(i > s for at, (i, s) in enumerate(zip(indices, shape, strict=True)) if at != axis):
        view.fail(f"has indices of shape {indices} for data of shape {shape}, which do not fit")


def _element_places(view: NodeView) -> tuple[Array, ...]:
    """Return as numpy's index the elements that a GatherElements or ScatterElements node names."""
    indices, axis = view.value(1), picked_axis(view)
    places: list[Array] = list(np.indices(indices.shape, sparse=True))
    places[axis] = indices
    return tuple(places)


def batch_axes(view: NodeView) -> int:
    """Return how many first axes GatherND's data and indices share."""
    batch = view.integer("batch_dims", 0)
    shape, indices = view.shape(0), _indices(view)
    if not indices or not 0 <= batch < len(indices) or shape[:batch] != indices[:batch]:
        view.fail(f"shares {batch} axes between data of shape {shape} and indices of shape {indices}")
    if not 1 <= indices[-1] <= len(shape) - batch:
        view.fail(f"has indices of {indices[-1]} axes for data of shape {shape}")
    return batch


def _gather_nd(view: NodeView) -> Spec:
    batch, shape, indices = batch_axes(view), view.shape(0), _indices(view)
    return (*indices[:-1], *shape[batch + indices[-1] :]), view.dtype(0)


def _gathered_nd(view: NodeView) -> Array:
    batch, value, indices = batch_axes(view), view.value(0), view.value(1)
    outer = value.shape[:batch]
    flat, wanted = value.reshape(-1, *value.shape[batch:]), indices.reshape(-1, *indices.shape[batch:])
    picked = [one[tuple(np.moveaxis(at, -1, 0))] for one, at in zip(flat, wanted, strict=True)]
    return np.stack(picked).reshape((*outer, *picked[0].shape))


def update_kind(view: NodeView) -> str:
    """Return what a Scatter node does with what is there already."""
    kind = view.text("reduction", "none")
    if kind not in UPDATES:
        view.fail(f"updates by {kind!r}, which is none of {', '.join(UPDATES)}")
    return kind


def _scatter_elements(view: NodeView) -> Spec:
    indices = _indices(view)
    _check_inside(view, view.shape(0), indices, picked_axis(view))
    update_kind(view)
    if view.shape(2) != indices or view.dtype(2) != view.dtype(0):
        view.fail(f"has updates of shape {view.shape(2)} for indices of shape {indices}, which do not fit")
    return same_as_input(view)


def _scatter_nd(view: NodeView) -> Spec:
    shape, indices = view.shape(0), _indices(view)
    update_kind(view)
    if not indices or not 1 <= indices[-1] <= len(shape):
        view.fail(f"has indices of shape {indices} for data of shape {shape}, which do not fit")
    if view.shape(2) != (*indices[:-1], *shape[indices[-1] :]) or view.dtype(2) != view.dtype(0):
        view.fail(f"has updates of shape {view.shape(2)} for indices of shape {indices}, which do not fit")
    return same_as_input(view)


def _scattered(view: NodeView) -> Array:
    value, updates, kind = view.value(0).copy(), view.value(2), update_kind(view)
    places = tuple(np.moveaxis(view.value(1), -1, 0)) if view.node.op_type == "ScatterND" else _element_places(view)
    if kind == "none":
        value[places] = updates
    else:
        _FUNCTIONS[kind].at(value, places, updates)
    return value


def hot_axis(view: NodeView) -> int:
    """Return the axis that a OneHot node adds."""
    return view.axis(view.integer("axis", -1), len(view.shape(0)) + 1)


def hot_depth(view: NodeView) -> int:
    """Return how many classes a OneHot node has."""
    depth = view.value(1)
    if depth.size != 1 or not 1 <= int(depth.reshape(-1)[0]) < 2**31:
        view.fail("needs one number of classes, from 1 on")
    return int(depth.reshape(-1)[0])


def _one_hot(view: NodeView) -> Spec:
    axis, shape = hot_axis(view), view.shape(0)
    if view.shape(2) != (2,):
        view.fail(f"needs two values, off and on, but has the shape {view.shape(2)}")
    return (*shape[:axis], hot_depth(view), *shape[axis:]), view.dtype(2)


def _hot(view: NodeView) -> Array:
    axis, depth, (off, on) = hot_axis(view), hot_depth(view), view.value(2)
    classes = np.expand_dims(cast_value(view.value(0), INT64), axis)  # floats name their whole part
    classes = np.where(classes < 0, classes + depth, classes)
    ladder = np.arange(depth).reshape(-1, *(1,) * (classes.ndim - 1 - axis))
    return np.asarray(np.where(classes == ladder, on, off))


OPERATORS: dict[str, Operator] = {
    "Gather": Operator(_gather, lambda view: np.take(view.value(0), view.value(1), axis=picked_axis(view))),
    "GatherElements": Operator(_gather_elements, lambda view: view.value(0)[_element_places(view)]),
    "GatherND": Operator(_gather_nd, _gathered_nd),
    "OneHot": Operator(_one_hot, _hot),
    "Scatter": Operator(_scatter_elements, _scattered),
    "ScatterElements": Operator(_scatter_elements, _scattered),
    "ScatterND": Operator(_scatter_nd, _scattered),
}
"""Operator → rule."""
