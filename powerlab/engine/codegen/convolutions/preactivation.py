"""Which batch norms and activations a convolution does itself, to what it reads.

Where they stand before a 1 x 1 convolution, and nobody else reads what they make, they are no step of their own.
"""

from __future__ import annotations

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.ir.graph import Graph, Node


def find_preactivations(graph: Graph) -> dict[str, Node]:
    """Return the ScaleShift nodes that become part of the convolution that reads them, by the convolution's result."""
    readers, outputs = graph.consumers(), graph.output_names()
    found: dict[str, Node] = {}
    for node in graph.nodes:
        made = node.outputs[0]
        if node.op_type != "ScaleShift" or made in outputs or len(readers[made]) != 1:
            continue
        (reader,) = readers[made]
        if _is_pointwise(graph, reader) and reader.inputs[0] == made:
            found[reader.outputs[0]] = node
    return found


def _is_pointwise(graph: Graph, node: Node) -> bool:
    """Tell whether a node is a convolution of single pixels, all channels with all."""
    if node.op_type != "FusedConv" or number(node, "group") != 1:
        return False
    one_by_one = graph.shape(node.inputs[1])[2:] == integers(node, "strides") == (1, 1)
    return one_by_one and not any(integers(node, "pads"))
