"""Sums at places along an axis: gradients of what was picked there."""

from __future__ import annotations

import math

import numpy as np

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import number
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops.gathering import UPDATES
from powerlab.engine.program.storage import Storage


def lower_scatter_add(builder: Builder, node: Node) -> None:
    """Lower a ScatterElements that adds slices of an axis, at places of the model's or of an input.

    Raises:
        PowerlabError: it does something else than add, or what it adds are no whole slices.
    """
    shape, picked = (builder.graph.shape(node.inputs[index]) for index in (0, 2))
    axis = int(number(node, "axis"))
    others = [(one, other) for at, (one, other) in enumerate(zip(shape, picked, strict=True)) if at != axis]
    places = _places(builder, node, axis)
    if node.attributes["update"] != UPDATES["add"] or places is None or any(one != other for one, other in others):
        raise PowerlabError(f"{node} does not add whole slices, as the engine does on a GPU; use the device cpu.")
    x, given = builder.rows(node.inputs[0]), builder.rows(node.inputs[2])
    push = (math.prod(shape[:axis]), shape[axis], picked[axis], math.prod(shape[axis + 1 :]))
    out = builder.new_rows(node.outputs[0])
    builder.emit_flat("scatter_add", node, (out, x, places, given), math.prod(shape), push=push)


def _places(builder: Builder, node: Node, axis: int) -> Storage | None:
    """Return the places along an axis, where they are the same ones along all others; None where they are not."""
    graph, name = builder.graph, node.inputs[1]
    count = graph.shape(name)[axis]
    if name in graph.constants:
        values = np.moveaxis(graph.constants[name], axis, -1).reshape(-1, count)
        alike = bool((values == values[0]).all())
        return builder.constant(values[0].astype(np.int32), integers=True) if alike else None
    size = graph.shape(node.inputs[0])[axis]
    return builder.places(name, size) if builder.place_count(name) == count else None
