"""What is quantized only to be read as floats again is rounded as floats: a FakeQuantize, in whatever layout it lies.

That is left where no kernel of bytes computes what follows, such as convolutions of volumes.
"""

from __future__ import annotations

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.view import FLOAT32
from powerlab.engine.passes.quantized.repeated_rounding import dequantizes, quantizes, steps_of
from powerlab.engine.passes.simplify.dead_nodes import drop_dead


def round_as_floats(graph: Graph) -> Graph:
    """Return the graph with a FakeQuantize for each pair of quantization and its reverse that has no other reader."""
    if not any(quantizes(node) for node in graph.nodes):
        return graph
    producers, readers, outputs = graph.producers(), graph.consumers(), graph.output_names()

    def rounded(node: Node) -> Node:
        """Return the FakeQuantize in place of a node that reverses a quantization; any other node as it is."""
        before = producers.get(node.inputs[0]) if dequantizes(node) else None
        if before is None or not quantizes(before):
            return node
        whole, floats, steps = node.inputs[0], before.inputs[0], steps_of(graph, node)
        is_whole_read = whole in outputs or not all(map(dequantizes, readers[whole]))
        are_floats = {graph.tensors[name].dtype for name in (floats, node.outputs[0])} == {FLOAT32}
        if steps is None or steps != steps_of(graph, before) or is_whole_read or not are_floats:
            return node
        numbers = {"alpha": steps[0], "beta": float(steps[1])}
        return Node("FakeQuantize", node.name, (floats,), node.outputs, numbers)

    nodes = [rounded(node) for node in graph.nodes]
    return drop_dead(graph.rewritten(nodes)) if nodes != list(graph.nodes) else graph
