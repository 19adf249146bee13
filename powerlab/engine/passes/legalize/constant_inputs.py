"""Copies constants to where a kernel takes computed tensors only, such as the mask of ones that a detector resizes."""

from __future__ import annotations

from dataclasses import replace

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.view import FLOAT32
from powerlab.engine.passes.legalize.check import takes_computed
from powerlab.engine.passes.rewriting import Rewriter


def copy_constants(graph: Graph) -> Graph:
    """Return the graph with every constant that stands for a computed tensor copied into one as the network runs."""
    rewriter = Rewriter(graph)
    copies: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        inputs = list(node.inputs)
        for index, name in enumerate(node.inputs):
            if name not in graph.kept_constants or not takes_computed(node, index):
                continue
            if graph.tensors[name].dtype != FLOAT32:
                continue
            if name not in copies:
                copies[name] = rewriter.tensor(f"{name}.copied", graph.shape(name))
                nodes.append(Node("Expand", copies[name], (name,), (copies[name],)))
            inputs[index] = copies[name]
        nodes.append(replace(node, inputs=tuple(inputs)))
    return rewriter.finish(nodes)
