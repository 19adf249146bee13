"""BatchNormalization, LRN, and normalisation of a tensor by its own mean, variance or norm."""

from __future__ import annotations

import numpy as np

from powerlab.engine.ir.graph import Array
from powerlab.engine.ops.base import Operator, same_as_input
from powerlab.engine.ops.convolution import image_shape
from powerlab.engine.ops.view import FLOAT32, NodeView, Spec


def _batch_norm(view: NodeView) -> Spec:
    shape = view.floats(0)
    if len(shape) < 2:
        view.fail(f"needs an input with channels on its second axis, but it has the shape {shape}")
    if not view.integer("spatial", 1):
        view.fail("normalises every pixel by itself (spatial is 0), which no opset after 8 knows; export it again")
    for index in range(1, 5):
        if view.floats(index) != (shape[1],):
            view.fail(f"needs {shape[1]} values in input {index + 1}, but it has the shape {view.shape(index)}")
    return same_as_input(view)


def _moved_statistics(view: NodeView) -> tuple[Spec, ...]:
    """Return the running mean and variance, which a BatchNormalization that trains moves towards the batch's."""
    moved = ((view.shape(0)[1],), FLOAT32)
    return (moved, moved) if view.integer("training_mode", 0) else ()


def _lrn(view: NodeView) -> Spec:
    view.floats(0, 4)
    size = view.integer("size", 0)
    if not 1 <= size <= 65536:
        view.fail(f"has size {size}; it must be 1 or more")
    for name in ("alpha", "beta", "bias"):
        view.number(name, 0.0)
    return same_as_input(view)


def of_channels(values: Array, channels: int) -> Array:
    """Return numbers, each of neighbouring channels, of as many channels."""
    return values if len(values) == channels else np.repeat(values, channels // len(values))


def normalised_groups(view: NodeView) -> int:
    """Return in how many groups an InstanceNormalization or GroupNormalization normalises the channels."""
    channels = image_shape(view)[1]
    groups = view.integer("num_groups", 0) if view.node.op_type == "GroupNormalization" else channels
    if groups < 1 or channels % groups:
        view.fail(f"normalises {channels} channels in {groups} groups")
    for index in (1, 2):
        if view.floats(index) not in ((channels,), (groups,)):
            view.fail(f"needs {channels} values in input {index + 1}, but it has the shape {view.shape(index)}")
    return groups


def _group_norm(view: NodeView) -> Spec:
    normalised_groups(view)
    view.number("epsilon", 1e-5)
    return same_as_input(view)


def normalised_axes(view: NodeView) -> tuple[int, ...]:
    """Return the axes over which a MeanVarianceNormalization or LpNormalization takes its norm."""
    rank = len(view.floats(0))
    if view.node.op_type == "LpNormalization":
        if view.integer("p", 2) not in (1, 2):
            view.fail(f"has p {view.integer('p', 2)}; ONNX knows 1 and 2")
        return view.axes((view.integer("axis", -1),), rank)
    return view.axes(view.integers("axes", (0, 2, 3)), rank)


def _over_axes(view: NodeView) -> Spec:
    normalised_axes(view)
    return same_as_input(view)


GROUP_NORMALISATION = Operator(_group_norm)
OVER_AXES = Operator(_over_axes)
BATCH_NORMALISATION = Operator(_batch_norm, infer_more=_moved_statistics)
LRN = Operator(_lrn)
