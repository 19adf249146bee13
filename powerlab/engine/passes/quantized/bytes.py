"""Operators between DequantizeLinear and QuantizeLinear become operators on bytes.

What a rule of :mod:`.rules` knows how to compute from bytes gives a node such as QuantConv, whose tensors are bytes.
Where bytes meet floats, and where floats are only rounded, ``Quantize`` and ``Dequantize`` stand. What nothing matches
stays on floats: correct, slower.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from powerlab.engine.ir.graph import Graph, Node, TensorInfo
from powerlab.engine.ops.quantization import UINT8
from powerlab.engine.passes.quantized.network import Network
from powerlab.engine.passes.quantized.rules import made_of_bytes
from powerlab.engine.passes.rewriting import Rewriter
from powerlab.engine.passes.simplify.dead_nodes import drop_dead


def compute_in_bytes(graph: Graph) -> Graph:
    """Return the graph with quantized operators where there are kernels for them."""
    if "QuantizeLinear" not in graph.operators:
        return graph
    rewriter = Rewriter(graph)
    network = Network(graph, rewriter)
    made = _matched(network)
    if not made:
        return graph
    return _with_bytes(network, made)


def _matched(network: Network) -> Mapping[str, Node]:
    """Return the nodes that compute with bytes, by the tensor of the old graph they make."""
    made: dict[str, Node] = {}
    for node in network.graph.nodes:
        found = made_of_bytes(network, node)
        if found is not None:
            made[found.outputs[0]] = found
    return made


def _with_bytes(network: Network, made: Mapping[str, Node]) -> Graph:
    graph = network.graph
    nodes: list[Node] = []
    tensors: list[TensorInfo] = []

    def become_bytes(name: str) -> None:
        tensors.append(replace(graph.tensors[name], dtype=UINT8))

    for node in graph.nodes:
        output = node.outputs[0]
        found = made.get(output)
        if found is not None:
            nodes += (network.added[name] for name in found.inputs if name in network.added)
            nodes.append(found)
            if output in network.bytes:
                become_bytes(output)
        elif node.op_type == "QuantizeLinear" and output in network.bytes:
            scale = network.bytes[output]
            attributes = {"step": scale.step, "zero": scale.zero}
            nodes.append(Node("Quantize", node.name, node.inputs[:1], node.outputs, attributes))
            become_bytes(output)
        elif node.op_type == "DequantizeLinear" and node.inputs[0] in network.bytes:
            scale = network.bytes[node.inputs[0]]
            attributes = {"step": scale.step, "zero": scale.zero}
            nodes.append(Node("Dequantize", node.name, node.inputs[:1], node.outputs, attributes))
        else:
            nodes.append(node)
    return drop_dead(network.rewriter.finish(nodes).rewritten(nodes, tensors=tensors))
