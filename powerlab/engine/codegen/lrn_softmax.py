"""Local response normalisation and softmax."""

from __future__ import annotations

import math
from typing import Any

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.layout import Layout


def lower_lrn(builder: Builder, node: Node) -> None:
    """Lower an LRN.

    Raises:
        PowerlabError: the window is wider than the kernel reaches.
    """
    size = int(number(node, "size"))
    widest = 2 * builder.tier.vector_width + 1
    if size > widest:
        raise PowerlabError(f"{node} normalises over {size} channels, and the built-in engine goes up to {widest}.")
    x = builder.blocked(node.inputs[0])
    builder.emit("lrn", node, builder.new_blocked(node.outputs[0]), x, **lrn_fields(node))


def lrn_fields(node: Node) -> dict[str, Any]:
    """Return the window and the numbers of an LRN as fields of the native step."""
    numbers = {field: number(node, name) for field, name in (("alpha", "alpha"), ("beta", "beta"), ("offset", "bias"))}
    return {"size": int(number(node, "size")), **numbers}


def lower_softmax(builder: Builder, node: Node) -> None:
    """Lower a Softmax over any axis."""
    x = builder.planar(node.inputs[0])
    out = builder.new_planar(node.outputs[0])
    shape = builder.graph.shape(node.outputs[0])
    axis = int(number(node, "axis")) % len(shape)
    builder.emit(
        "softmax", node, out.seen_as(_around(shape, axis, out.layout)), x.seen_as(_around(shape, axis, x.layout))
    )


def _around(shape: tuple[int, ...], axis: int, layout: Layout) -> Layout:
    """Return a planar layout as images, outer dimensions, the axis as rows, inner dimensions as columns."""
    inner = math.prod(shape[axis + 1 :])
    if axis == 0 and len(shape) > 1:
        return Layout(1, 1, shape[0], inner, 1, 1, layout.image, layout.image, shape[0] * layout.image)
    outer = math.prod(shape[1:axis])
    return Layout(layout.n, outer, shape[axis], inner, outer, 1, inner, shape[axis] * inner, layout.image)
