"""Numbers that lie on a scale's steps already are not rounded to them again.

Exporters and quantizers round behind every operator, also behind those that only move numbers or keep the largest:
what comes out of these lies on the steps of what went in.
"""

from __future__ import annotations

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.passes.quantized.scales import byte_steps, tensor_scale
from powerlab.engine.passes.simplify.dead_nodes import drop_dead

_KEEP_NUMBERS = frozenset(
    {
        "DepthToSpace",
        "Expand",
        "Flatten",
        "Gather",
        "Identity",
        "MaxPool",
        "Relu",
        "Reshape",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    }
)
"""Operators that give numbers of their first input, or 0, which lies on the steps of every scale."""

_Steps = tuple[float, int]
"""Size of a step, and the unsigned byte that stands for 0."""


def drop_repeated_rounding(graph: Graph) -> Graph:
    """Return the graph without pairs of quantization and its reverse that change no number."""
    if not any(quantizes(node) for node in graph.nodes):
        return graph
    producers = graph.producers()
    outputs = graph.output_names()
    on_steps: dict[str, _Steps] = {}
    same: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        steps = steps_of(graph, node) if dequantizes(node) else _steps_kept(node, on_steps)
        if steps is not None:
            on_steps.update(dict.fromkeys(filter(None, node.outputs), steps))
        before = producers.get(node.inputs[0]) if dequantizes(node) else None
        if before is not None and steps is not None and quantizes(before) and node.outputs[0] not in outputs:
            floats = before.inputs[0]
            if on_steps.get(floats) == steps == steps_of(graph, before):
                same[node.outputs[0]] = same.get(floats, floats)
                continue
        nodes.append(node.renamed(same, node.name) if same else node)
    return drop_dead(graph.rewritten(nodes)) if same else graph


def quantizes(node: Node) -> bool:
    """Tell whether a node makes integers of floats."""
    return node.op_type in ("QuantizeLinear", "Quantize")


def dequantizes(node: Node) -> bool:
    """Tell whether a node makes floats of integers."""
    return node.op_type in ("DequantizeLinear", "Dequantize")


def steps_of(graph: Graph, node: Node) -> _Steps | None:
    """Return the steps of a node that quantizes or dequantizes; None where they are not the same for all numbers."""
    if "step" in node.attributes:
        return byte_steps(node)
    scale = tensor_scale(graph, node)
    return None if scale is None else (scale.step, scale.zero)


def _steps_kept(node: Node, on_steps: dict[str, _Steps]) -> _Steps | None:
    """Return the steps that all numbers lie on which an operator gives; None where it is not known to keep them."""
    if node.op_type == "Concat":
        found = {on_steps.get(name) for name in node.inputs}
        return found.pop() if len(found) == 1 else None
    return on_steps.get(node.inputs[0]) if node.op_type in _KEEP_NUMBERS and node.inputs else None
