"""Two products with a softmax between them become one node, Attention, as other engines have it."""

from __future__ import annotations

from msgspec.structs import replace

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.ir.graph import Graph, Node


def join_attentions(graph: Graph) -> Graph:
    """Return the graph with an Attention for every attention without a mask whose scores nobody else reads.

    Its inputs are queries, keys and values. Its attributes of these names are the orders of axes, () for their own, in
    which each is (…, rows, features), and ``alpha`` is the factor of the scores.
    """
    consumers, producers, outputs = graph.consumers(), graph.producers(), graph.output_names()

    def alone(name: str) -> bool:
        return len(consumers[name]) == 1 and name not in outputs

    joined, left_out = {}, set()
    for softmax in graph.nodes:
        if softmax.op_type != "Softmax" or not (alone(softmax.inputs[0]) and alone(softmax.outputs[0])):
            continue
        first, second = producers.get(softmax.inputs[0]), consumers[softmax.outputs[0]][0]
        rank = len(graph.shape(softmax.outputs[0]))
        last = int(number(softmax, "axis")) % rank == rank - 1 and not softmax.attributes.get("masked")
        if last and first is not None and first.op_type == "Product" and _takes(second, softmax.outputs[0]):
            keys = integers(first, "right") or tuple(range(rank))
            attributes = {
                "alpha": number(first, "alpha"),
                "queries": integers(first, "left"),
                "keys": (*keys[:-2], keys[-1], keys[-2]),
                "values": integers(second, "right"),
            }
            inputs = (*first.inputs, second.inputs[1])
            joined[second.outputs[0]] = Node("Attention", second.name, inputs, second.outputs, attributes)
            left_out |= {first.outputs[0], softmax.outputs[0]}
    nodes = (joined.get(node.outputs[0], node) for node in graph.nodes if node.outputs[0] not in left_out)
    return replace(graph, nodes=tuple(nodes))


def _takes(node: Node, scores: str) -> bool:
    """Tell whether a node multiplies scores, as they are, by something else."""
    product = node.op_type == "Product" and node.inputs[0] == scores != node.inputs[1]
    return product and not node.attributes["left"] and number(node, "alpha") == 1
