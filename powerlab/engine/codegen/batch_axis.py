"""Whether the images of a batch stay by themselves in a network, so that the batch may be cut into slices.

Two optimised graphs of one network are compared, one for a batch and one for twice as many images: the axis along which
a tensor has twice as many numbers is the one its images lie along. Every operator must then treat them as images that
have nothing to do with each other. What is not known to do so counts as mixing them: no result is better than a wrong
one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import cast

import numpy as np

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.ir.graph import Graph, Node, quoted
from powerlab.engine.ops.functions import KERNELS
from powerlab.engine.ops.quantization import QUANTIZED

Axes = Mapping[str, int | None]
"""Tensor → the axis its images lie along; None where it has none."""

_MIXED = -1

Rule = Callable[[Graph, Node, Axes], bool]
"""Tells whether a node keeps images apart, given that its result has some and one of its operands does."""


def check_images_apart(once: Graph, twice: Graph) -> None:
    """Refuse a network whose results for a batch are not those of its images, one after the other.

    Args:
        once: the optimised graph for the batch.
        twice: the same for a batch of twice as many images.

    Raises:
        PowerlabError: what mixes images, and that the network runs without slices.
    """
    if [_made(node) for node in once.nodes] != [_made(node) for node in twice.nodes]:
        raise PowerlabError(f"the network {once.name!r} has other layers for another batch; run it without slices.")
    axes = {info.name: _axis(info.shape, twice.shape(info.name)) for info in once.tensors.values()}
    for kind, infos in (("input", once.inputs), ("output", once.outputs)):
        for info in infos:
            if axes[info.name] != 0:
                raise PowerlabError(
                    f"the {kind} {quoted(info.name)} has no images along its first axis, so a batch of this network "
                    "cannot be cut into slices; run it without."
                )
    for node in once.nodes:
        if not _keeps_apart(once, twice, node, axes):
            raise PowerlabError(f"{node} may mix the images of a batch, which cannot be cut then; run without slices.")


def _made(node: Node) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    return node.op_type, node.inputs, node.outputs


def _axis(once: tuple[int, ...], twice: tuple[int, ...]) -> int | None:
    """Return the axis a tensor's images lie along, None where it has no images; :data:`_MIXED` for anything else."""
    if once == twice:
        return None
    candidates = (axis for axis, size in enumerate(once) if (*once[:axis], 2 * size, *once[axis + 1 :]) == twice)
    return next(candidates, _MIXED)


def _keeps_apart(once: Graph, twice: Graph, node: Node, axes: Axes) -> bool:
    names = [name for name in (*node.inputs, *node.outputs) if name]
    if any(axes[name] == _MIXED for name in names):
        return False
    if not all(_is_repeated(twice, name, axes[name]) for name in node.inputs if name in once.constants):
        return False
    reads = any(axes[name] is not None for name in node.inputs if name)
    makes = [axes[name] is not None for name in node.outputs if name]
    if not reads or not all(makes):
        return reads == any(makes)
    rule = _RULES.get(node.op_type)
    return rule is not None and rule(once, node, axes)


def _is_repeated(twice: Graph, constant: str, axis: int | None) -> bool:
    """Tell whether a constant that has images has the same one for each."""
    if axis is None:
        return True
    value = twice.constants[constant]
    return bool((value == np.take(value, [0], axis)).all())


def _first_axis(graph: Graph, node: Node, axes: Axes) -> bool:
    """Operators on images, or on rows: whatever lies along the first axis is by itself, and as much comes of it."""
    images = [name for name in (*node.inputs, *node.outputs) if name and axes[name] is not None]
    return all(axes[name] == 0 for name in images) and len({graph.shape(name)[0] for name in images}) == 1


def _each(graph: Graph, node: Node, axes: Axes) -> bool:
    """Operators on single numbers, broadcast from the last axis on."""
    found = [(name, axis) for name in (*node.inputs, *node.outputs) if name and (axis := axes[name]) is not None]
    return len({(axis - len(graph.shape(name)), graph.shape(name)[axis]) for name, axis in found}) == 1


def _along(attribute: str) -> Rule:
    """Operators that go along one axis, which must not be the images'."""

    def rule(graph: Graph, node: Node, axes: Axes) -> bool:
        rank = len(graph.shape(node.outputs[0]))
        return _each(graph, node, axes) and axes[node.outputs[0]] != int(number(node, attribute)) % rank

    return rule


def _row_norm(graph: Graph, node: Node, axes: Axes) -> bool:
    """All axes from one on are normalised together."""
    return _each(graph, node, axes) and cast("int", axes[node.outputs[0]]) < number(node, "axis")


def _reduce(_graph: Graph, node: Node, axes: Axes) -> bool:
    return axes[node.inputs[0]] not in integers(node, "axes")


def _arg_most(_graph: Graph, node: Node, axes: Axes) -> bool:
    return axes[node.inputs[0]] != number(node, "axis")


def _slice(graph: Graph, node: Node, axes: Axes) -> bool:
    axis = cast("int", axes[node.outputs[0]])
    return _each(graph, node, axes) and integers(node, "starts")[axis] == 0 and integers(node, "steps")[axis] == 1


def _gather(_graph: Graph, node: Node, axes: Axes) -> bool:
    """What is picked, by the same indices for every image; or rows of a table, by indices that every image has."""
    data, indices = (axes[name] for name in node.inputs)
    return data is None or (indices is None and data != number(node, "axis"))


def _product(graph: Graph, node: Node, axes: Axes) -> bool:
    """Matrices in the last two axes, after each side's own are reordered; the inner axis is summed over."""
    result = cast("int", axes[node.outputs[0]]) - len(graph.shape(node.outputs[0]))
    for name, side, inner in zip(node.inputs, ("left", "right"), (-1, -2), strict=True):
        axis = axes[name]
        if axis is None:
            continue
        order = integers(node, side)
        place = (order.index(axis) if order else axis) - len(graph.shape(name))
        if place == inner or place != result:
            return False
    return True


def _reshape(graph: Graph, node: Node, axes: Axes) -> bool:
    """As many numbers come before the images as did, so that they are cut at the same places."""
    before = [math.prod(graph.shape(name)[: cast("int", axes[name])]) for name in (node.inputs[0], node.outputs[0])]
    return before[0] == before[1]


def _transpose(_graph: Graph, node: Node, axes: Axes) -> bool:
    return integers(node, "perm")[cast("int", axes[node.outputs[0]])] == axes[node.inputs[0]]


def _recurrence(_graph: Graph, node: Node, axes: Axes) -> bool:
    """Operands are [step or direction][sequence][number]."""
    return all(axes[name] in (1, None) for name in node.inputs if name)


_IMAGES = ("AveragePool", "Chain", "FusedConv", "FusedConvTranspose", "FusedGemm", "GlobalAveragePool", "Interpolate")

_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(
        (*_IMAGES, *QUANTIZED, "ChannelNorm", "ImagePad", "LRN", "MaxPool", "Pool", "Resize", "ScaleShift"), _first_axis
    ),
    **dict.fromkeys((*KERNELS, "Add", "Clamp", "Elementwise", "Expand", "Multiply", "Pad"), _each),
    **dict.fromkeys(("Concat", "CumSum", "Hardmax", "LogSoftmax", "Softmax", "TopK"), _along("axis")),
    **dict.fromkeys(("FusedLstm", "Recurrence"), _recurrence),
    "ArgMost": _arg_most,
    "Gather": _gather,
    "Product": _product,
    "Reduce": _reduce,
    "Reshape": _reshape,
    "RowNorm": _row_norm,
    "Slice": _slice,
    "Transpose": _transpose,
}
