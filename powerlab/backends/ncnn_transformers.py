"""What transformers are made of, as ncnn's layers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from powerlab.backends.ncnn_writer import Writer, axis_of, moves_batch, sizes
from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.ir.graph import Node

_OPERATIONS = {"add": 0, "sub": 1, "mul": 2, "div": 3, "max": 4, "min": 5, "pow": 6}
"""Stem of an Elementwise node's kernel → BinaryOp's number of it."""

_ORDERS = {2: ("wh", "hw"), 3: ("whc", "hwc", "wch", "cwh", "hcw", "chw")}
"""Permute's orders: which axes become width, height and channels."""

_AXES = {2: "hw", 3: "chw"}
"""Axes of an image without its batch."""

_HEADS_RANK = 4
"""Axes of what an attention takes: batch, heads, rows and features."""


def _attention(writer: Writer, node: Node) -> None:
    """Add SDPA, which takes queries, keys and values as (heads, rows, features)."""
    rank = len(writer.graph.shape(node.outputs[0]))
    if rank != _HEADS_RANK:
        raise PowerlabError(
            f"{node} has {rank} axes, and ncnn's attention takes heads of one image; use another engine."
        )
    sides = zip(node.inputs, ("queries", "keys", "values"), strict=True)
    moved = [_permuted(writer, node, name, side) for name, side in sides]
    writer.layer("SDPA", moved, node.outputs[0], {6: f"{number(node, 'alpha'):.9g}"})


def _permuted(writer: Writer, node: Node, name: str, side: str) -> str:
    """Return a side of an attention with its axes in order."""
    order, made = integers(node, side), writer.part(node, side)
    if order in ((), tuple(range(_HEADS_RANK))):
        return name
    writer.layer("Permute", (name,), made, {0: _order(node, order)})
    return made


def _order(node: Node, order: tuple[int, ...]) -> int:
    """Return Permute's number of an order of axes, the batch included."""
    if order[0] != 0:
        raise moves_batch(node)
    axes = _AXES[len(order) - 1]
    return _ORDERS[len(axes)].index("".join(axes[axis - 1] for axis in reversed(order[1:])))


def _transpose(writer: Writer, node: Node) -> None:
    order = integers(node, "perm")
    writer.layer("Permute", node.inputs, node.outputs[0], {0: _order(node, order)})


def _row_norm(writer: Writer, node: Node) -> None:
    shape, kind = writer.graph.shape(node.outputs[0]), str(node.attributes["kernel"])
    size, given = shape[-1], [node.input(1), node.input(2)]
    if int(number(node, "axis")) != len(shape) - 1 or any(one and one not in writer.graph.constants for one in given):
        raise PowerlabError(f"{node} has other rows or factors than ncnn's norms; use another engine for this model.")
    scale = writer.constant(given[0]) if given[0] else np.ones(size, np.float32)
    shift = writer.constant(given[1]) if given[1] else np.zeros(size, np.float32)
    layer = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm"}[kind]
    weights = [scale.tobytes(), *([shift.tobytes()] if kind == "layer_norm" else [])]
    parameters = {0: size, 1: f"{number(node, 'epsilon'):.9g}", 2: 1}
    writer.layer(layer, node.inputs[:1], node.outputs[0], parameters, weights)


def _elementwise(writer: Writer, node: Node) -> None:
    stem, _, kinds = str(node.attributes["kernel"]).partition("_strided_")
    rank = len(writer.graph.shape(node.outputs[0]))
    if stem not in _OPERATIONS or kinds != "f32":
        raise PowerlabError(f"{node} computes {stem!r} of {kinds}, which is not translated for ncnn yet.")
    read = [_of_rank(writer, node, name, rank) for name in node.inputs]
    writer.layer("BinaryOp", read, node.outputs[0], {0: _OPERATIONS[stem]})


def _of_rank(writer: Writer, node: Node, name: str, rank: int) -> str:
    """Return an operand with so many axes: to broadcast, ncnn wants all of them, and a constant may be given more."""
    axes = len(writer.graph.shape(name))
    if name in writer.graph.constants:
        values = writer.constant(name)
        return writer.memory(values.reshape((1,) * (rank - axes) + values.shape))
    if axes != rank:
        raise PowerlabError(f"{node} combines tensors of {axes} and {rank} axes; ncnn takes as many of each.")
    return name


def _gather(writer: Writer, node: Node) -> None:
    """Cut one place out of an axis; Crop keeps the axis, and a Reshape leaves it out."""
    shape, places = writer.graph.shape(node.inputs[0]), writer.graph.constants.get(node.inputs[1])
    if places is None or places.size != 1:
        raise PowerlabError(f"{node} takes other places than one that the model knows, as ncnn's Crop does.")
    axis = int(number(node, "axis")) % len(shape)
    place = int(places.reshape(-1)[0]) % shape[axis]
    cut = writer.part(node, "cut")
    numbers = {9: place, 10: place + 1, 11: axis_of(node, axis, len(shape))}
    writer.layer("Crop", node.inputs[:1], cut, {-23300 - key: f"1,{value}" for key, value in numbers.items()})
    writer.layer("Reshape", (cut,), node.outputs[0], sizes(writer.graph.shape(node.outputs[0])))


TRANSFORMERS: dict[str, Callable[[Writer, Node], None]] = {
    "Attention": _attention,
    "Elementwise": _elementwise,
    "Gather": _gather,
    "RowNorm": _row_norm,
    "Transpose": _transpose,
}
"""Operator → what adds its layers."""
