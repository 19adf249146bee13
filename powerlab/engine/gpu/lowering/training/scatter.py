"""Sums at places along an axis: gradients of what was picked there."""

from __future__ import annotations

import math

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import number
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops.gathering import UPDATES


def lower_scatter_add(builder: Builder, node: Node) -> None:
    """Lower a ScatterElements that adds at places that the model knows.

    Raises:
        PowerlabError: it does something else than add, at places that a run gives, or at some of an axis.
    """
    shape, picked = (builder.graph.shape(name) for name in node.inputs[:2])
    axis = int(number(node, "axis"))
    whole = all(one == other for at, (one, other) in enumerate(zip(shape, picked, strict=True)) if at != axis)
    known = node.inputs[1] in builder.graph.constants
    if node.attributes["update"] != UPDATES["add"] or not known or not whole:
        raise PowerlabError(
            f"{node} does not add whole slices at places that the model knows, as the engine does on a GPU; use the "
            "device cpu."
        )
    x, given = builder.rows(node.inputs[0]), builder.rows(node.inputs[2])
    places = builder.places(node.inputs[1], shape[axis])
    push = (math.prod(shape[:axis]), shape[axis], picked[axis], math.prod(shape[axis + 1 :]))
    out = builder.new_rows(node.outputs[0])
    builder.emit_flat("scatter_add", node, (out, x, places, given), math.prod(shape), push=push)
