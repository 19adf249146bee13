"""Which tensors lie in 16-bit floats: those that nobody but convolutions in such floats reads, or maxima for these."""

from __future__ import annotations

from collections.abc import Mapping

from powerlab.engine.codegen.concat_in_place import Place
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.target.tiers import IN_16_BITS

_DEPTHWISE = "depthwise"
"""The algorithm that computes in floats, but may read and write 16-bit floats."""


def tensors_read_in_pairs(
    graph: Graph, chosen: Mapping[str, tuple[ConvShape, Choice]], places: Mapping[str, Place]
) -> dict[str, bool]:
    """Return of each tensor that a node reads whether all that read it take 16-bit floats.

    What a depthwise convolution or a maximum of windows reads depends on who reads its result, so nodes are gone
    through backwards.

    Args:
        graph: to be lowered.
        chosen: what was chosen for each convolution, by the name of its result.
        places: the tensors that lie inside others, which are in floats as these are.
    """
    floats = {*graph.output_names(), *places, *(place.whole for place in places.values())}
    found: dict[str, bool] = {}
    for node in reversed(graph.nodes):
        reads_pairs = _reads_pairs(node, chosen, found)
        for name in node.inputs:
            found[name] = reads_pairs and found.get(name, name not in floats)
    return found


def ends_in_pairs(node: Node, read_in_pairs: Mapping[str, bool]) -> bool:
    """Tell whether a depthwise convolution ends in 16-bit floats; it reads them, too, where they are there."""
    return not node.input(3) and read_in_pairs.get(node.outputs[0], False)


def _reads_pairs(node: Node, chosen: Mapping[str, tuple[ConvShape, Choice]], read_in_pairs: Mapping[str, bool]) -> bool:
    if node.op_type == "MaxPool":
        return read_in_pairs.get(node.outputs[0], False)
    if node.op_type != "FusedConv":
        return False
    algorithm = chosen[node.outputs[0]][1].algorithm
    return algorithm in IN_16_BITS or (algorithm == _DEPTHWISE and ends_in_pairs(node, read_in_pairs))
