"""Copies constants to where a kernel takes computed tensors only, such as the mask of ones that a detector resizes."""

from __future__ import annotations

from msgspec.structs import replace

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.view import FLOAT32
from powerlab.engine.passes.legalize.check import takes_computed
from powerlab.engine.passes.rewriting import Rewriter


def copy_constants(graph: Graph) -> Graph:
    """Return the graph with every constant that stands for a computed tensor copied into one as the network runs."""
    rewriter, kept = Rewriter(graph), graph.kept_constants
    copies: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        inputs = list(node.inputs)
        for index, name in enumerate(node.inputs):
            if name not in kept or not takes_computed(node, index):
                continue
            if graph.tensors[name].dtype != FLOAT32:
                continue
            if name not in copies:
                copies[name] = rewriter.tensor(f"{name}.copied", graph.shape(name))
                nodes.append(Node("Expand", copies[name], (name,), (copies[name],)))
            inputs[index] = copies[name]
        nodes.append(node if tuple(inputs) == node.inputs else replace(node, inputs=tuple(inputs)))
    return rewriter.finish(nodes) if copies else graph
