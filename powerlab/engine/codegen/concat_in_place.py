"""Concatenation in place: what is joined along channels is written where it belongs in the whole, and never copied.

In blocks, the channels of an operand that fills whole ones are planes of the whole. Operands that are concatenations
themselves lie in the outermost one, so that a dense block (G. Huang et al., https://arxiv.org/abs/1608.06993) is one
piece of memory, and each of its layers reads the planes from the beginning.
"""

from __future__ import annotations

from msgspec import Struct

from powerlab.engine.codegen.attributes import number
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.program.layout import BYTE_BLOCK, NO_HALO, Halo
from powerlab.engine.program.operand import Element, element_of


class Place(Struct, frozen=True):
    """Where a tensor lies: in the planes of ``whole``, from channel ``first_channel`` on."""

    whole: str
    first_channel: int


def joins_blocks(graph: Graph, node: Node, width: int) -> bool:
    """Tell whether a Concat joins channels of images and every operand begins with a new block of ``width``.

    Blocks of bytes are the same in every tier.
    """
    if node.op_type == "QuantConcat":
        return all(graph.shape(name)[1] % BYTE_BLOCK == 0 for name in node.inputs[:-1])
    axis, rank = int(number(node, "axis")), len(graph.shape(node.outputs[0]))
    floats = element_of(graph.tensors[node.outputs[0]].dtype) is Element.FLOAT
    return (
        floats
        and rank == 4
        and axis % rank == 1
        and all(graph.shape(name)[1] % width == 0 for name in node.inputs[:-1])
    )


def find_places(graph: Graph, width: int) -> dict[str, Place]:
    """Return the place of every computed tensor that can lie inside a concatenation, by its name.

    A tensor that several Concat nodes read, or one several times, lies in one place; for the others it is copied.
    """
    computed = graph.producers()
    places: dict[str, Place] = {}
    for node in reversed(graph.nodes):
        if node.op_type not in ("Concat", "QuantConcat") or not joins_blocks(graph, node, width):
            continue
        output = node.outputs[0]
        channel = places[output].first_channel if output in places else 0
        whole = places[output].whole if output in places else output
        for name in node.inputs:
            if name in computed and name not in places:
                places[name] = Place(whole, channel)
            channel += graph.shape(name)[1]
    return places


def with_common_halos(halos: dict[str, Halo], places: dict[str, Place]) -> dict[str, Halo]:
    """Return the halos each tensor needs, those that share memory having the smallest that does for all."""
    common = dict(halos)
    for name, place in places.items():
        common[place.whole] = common.get(place.whole, NO_HALO).union(halos.get(name, NO_HALO))
    return common | {name: common[place.whole] for name, place in places.items()}
