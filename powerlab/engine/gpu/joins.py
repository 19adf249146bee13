"""Where concatenated images lie: each part is computed in its place of the whole, so that nobody need copy it there."""

from __future__ import annotations

from msgspec import Struct

from powerlab.engine.codegen.attributes import number
from powerlab.engine.gpu.images import image_of
from powerlab.engine.ir.graph import IMAGE_AXES, Graph


class Join(Struct, frozen=True):
    """A tensor's place in one that it is joined to: from which channel on."""

    whole: str
    first: int


def find_joins(graph: Graph, element_bytes: int, alignment_bytes: int) -> dict[str, Join]:
    """Return the place of every tensor that can be computed there, by its name.

    Channels of one image are one piece of memory, those of several are not; and a place is whole blocks of channels
    from an address on that kernels take.
    """
    joins: dict[str, Join] = {}
    for node in graph.nodes:
        shape = graph.shape(node.outputs[0])
        axis = number(node, "axis") % len(shape) if node.op_type == "Concat" else 0
        if axis != 1 or len(shape) < IMAGE_AXES or shape[0] != 1:
            continue
        first = 0
        for name in node.inputs:
            part = image_of(graph.shape(name))
            last = first + part.channels == shape[1]
            whole = first % 4 == 0 and (part.channels % 4 == 0 or last)
            if whole and first * part.pixels * element_bytes % alignment_bytes == 0:
                joins.setdefault(name, Join(node.outputs[0], first))
            first += part.channels
    return joins
