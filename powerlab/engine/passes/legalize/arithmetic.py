"""Sums of tensors become Add, products Multiply; arithmetic with one number a channel becomes ScaleShift.

What is none of these, as of several shapes or of integers, becomes Elementwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powerlab.engine.ir.graph import Array, Graph, Node
from powerlab.engine.ops.activation import NO_CLAMP
from powerlab.engine.ops.broadcasting import broadcast_shape
from powerlab.engine.ops.view import FLOAT32, NodeView
from powerlab.engine.passes.legalize.elementwise import elementwise
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _scale_shift(view: NodeView, rewriter: Rewriter, source: str, scale: Array, shift: Array) -> Sequence[Node]:
    node, output = view.node, view.node.outputs[0]
    inputs = (
        source,
        rewriter.constant(f"{output}.scale", scale.astype(np.float32)),
        rewriter.constant(f"{output}.shift", shift.astype(np.float32)),
    )
    return [Node("ScaleShift", node.name, inputs, (output,), {"clamp": NO_CLAMP})]


def _per_channel(view: NodeView, constant: Array, shape: tuple[int, ...]) -> Array | None:
    """Return a constant that is broadcast over ``shape`` as one number a channel (axis 1), in float64; None: it is not.

    Sequences, of three axes, have no channels.
    """
    sizes = (1,) * (len(shape) - constant.ndim) + constant.shape
    varies = [axis for axis, size in enumerate(sizes) if size != 1]
    if len(shape) not in (2, 4) or broadcast_shape(view) != shape or varies not in ([], [1]):
        return None
    return np.broadcast_to(constant.reshape(-1), (shape[1],)).astype(np.float64)


def _binary(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    node = view.node
    if "clamp" in node.attributes:
        return None
    if view.dtype(0) != FLOAT32:
        return elementwise(view, rewriter)
    left, right = view.constant(0), view.constant(1)
    index, constant = (1, left) if left is not None else (0, right)
    if constant is None:
        return _of_two_tensors(view) or elementwise(view, rewriter)
    value = _per_channel(view, constant, view.shape(index))
    if value is None or (node.op_type == "Div" and index == 1):
        return elementwise(view, rewriter)
    ones, zeros = np.ones_like(value), np.zeros_like(value)
    with np.errstate(all="ignore"):
        if node.op_type == "Add":
            scale, shift = ones, value
        elif node.op_type == "Mul":
            scale, shift = value, zeros
        elif node.op_type == "Sub":
            scale, shift = (ones, -value) if index == 0 else (-ones, value)
        else:
            scale, shift = ones / value, zeros
            if np.any(
                np.isinf(scale.astype(np.float32)) & (value != 0)
            ):  # numbers so small that only dividing by them is what it says
                return elementwise(view, rewriter)
        return _scale_shift(view, rewriter, node.inputs[index], scale, shift)


def _of_two_tensors(view: NodeView) -> Sequence[Node]:
    """Return the sum of two computed tensors of one shape, or their product, also with one number a channel, if any."""
    node, left, right = view.node, view.shape(0), view.shape(1)
    if node.op_type == "Add" and left == right:
        return [Node("Add", node.name, node.inputs, node.outputs, {"clamp": NO_CLAMP})]
    inputs = node.inputs if _factors(left, right) else node.inputs[::-1]
    if node.op_type != "Mul" or not (_factors(left, right) or _factors(right, left)):
        return []
    return [Node("Multiply", node.name, inputs, node.outputs, {"clamp": NO_CLAMP})]


def _factors(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Say whether the other shape holds factors of the first: as many, or one a channel of each image."""
    return shape == other or (len(shape) == 4 and other == (*shape[:2], 1, 1))


def _sum(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    """Add the inputs one after the other."""
    node = view.node
    if len(node.inputs) == 1:
        return [view_node(node.name, node.inputs[0], node.outputs[0])]
    shape = view.shape(0)
    if view.dtype(0) != FLOAT32 or any(
        view.shape(index) != shape or view.constant(index) is not None for index in range(len(node.inputs))
    ):
        return elementwise(view, rewriter)
    nodes: list[Node] = []
    left = node.inputs[0]
    for number, right in enumerate(node.inputs[1:], start=1):
        last = number == len(node.inputs) - 1
        output = node.outputs[0] if last else rewriter.tensor(f"{node.outputs[0]}.part", shape)
        name = node.name if last else f"{node.name}.part{number}"
        nodes.append(Node("Add", name, (left, right), (output,), {"clamp": NO_CLAMP}))
        left = output
    return nodes


def _batch_norm(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    gamma, beta, mean, variance = (view.value(index).astype(np.float64) for index in range(1, 5))
    with np.errstate(all="ignore"):
        scale = gamma / np.sqrt(variance + view.number("epsilon", 1e-5))
        return _scale_shift(view, rewriter, view.node.inputs[0], scale, beta - mean * scale)


_RULES = {
    "Add": _binary,
    "BatchNormalization": _batch_norm,
    "Div": _binary,
    "Mul": _binary,
    "Sub": _binary,
    "Sum": _sum,
}


def lower_arithmetic(graph: Graph) -> Graph:
    """Return the graph with Add, Multiply, ScaleShift and Elementwise as its only arithmetic."""
    return rewrite_nodes(graph, _RULES)
