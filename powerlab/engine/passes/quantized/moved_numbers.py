"""Moves of bytes between two quantized layers become moves of the floats they stand for, which layers in bytes take.

A converter from TensorFlow Lite writes them behind a QuantizeLinear instead of before it: a Concat, or a Transpose to
another order of axes. Floats that lie on a scale's steps are those bytes again when they are quantized.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.passes.quantized.scales import Scale, tensor_scale
from powerlab.engine.passes.rewriting import Rewriter

_MOVES = frozenset(
    {
        *("Concat", "DepthToSpace", "Expand", "Flatten", "Identity", "Pad", "Reshape", "Slice"),
        *("SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    }
)
_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))

_Named = tuple[Scale, tuple[str, ...]]
"""A scale, and the names of its step and, where it has one, its zero point."""


def see_moves_of_floats(graph: Graph) -> Graph:
    """Return the graph in which bytes that stand for floats are moved as these."""
    if graph.operators.isdisjoint(_MOVES) or "DequantizeLinear" not in graph.operators:
        return graph
    rewriter = Rewriter(graph)
    readers = graph.consumers()
    scales: dict[str, _Named] = {}
    nodes: list[Node] = []
    changed = False
    for node in graph.nodes:
        scale = _scale_of(graph, node, scales, readers)
        if scale is None:
            nodes.append(node)
            continue
        scales.update(dict.fromkeys(node.outputs, scale))
        if node.op_type == "QuantizeLinear":
            nodes.append(node)
        else:
            nodes.extend(_as_floats(rewriter, node, *scale))
            changed = True
    return rewriter.finish(nodes) if changed else graph


def _moved(node: Node) -> tuple[str, ...]:
    return node.inputs if node.op_type == "Concat" else node.inputs[:1]


def _scale_of(
    graph: Graph, node: Node, scales: Mapping[str, _Named], readers: Mapping[str, Sequence[Node]]
) -> _Named | None:
    """Return the scale of the bytes that a node quantizes to, or moves; None where it does neither, or has several."""
    if node.op_type == "QuantizeLinear":
        return _named(graph, node)
    if node.op_type not in _MOVES or any(
        graph.tensors[name].dtype not in _BYTES for name in filter(None, node.outputs)
    ):
        return None
    if node.op_type == "Pad" and node.input(2) and node.input(2) not in graph.constants:
        return None
    read = [one for name in node.outputs for one in readers.get(name, ()) if one.op_type == "DequantizeLinear"]
    after = _named(graph, read[0]) if read else None
    found = [scales.get(name, after) for name in _moved(node)]
    first = found[0]
    return first if first and all(one is not None and one[0] == first[0] for one in found) else None


def _named(graph: Graph, node: Node) -> _Named | None:
    scale = tensor_scale(graph, node)
    return None if scale is None else (scale, tuple(filter(None, node.inputs[1:3])))


def _as_floats(rewriter: Rewriter, node: Node, scale: Scale, names: tuple[str, ...]) -> list[Node]:
    """Return the nodes that make floats of what is moved, move them, and make bytes of them again."""
    nodes = []
    inputs = list(node.inputs)
    for index, name in enumerate(_moved(node)):
        inputs[index] = rewriter.tensor(f"{name}.floats", rewriter.shape(name))
        nodes.append(Node("DequantizeLinear", inputs[index], (name, *names), (inputs[index],)))
    if node.op_type == "Pad":
        inputs[2:3] = [_padded(rewriter, node, scale)]
    floats = tuple(name and rewriter.tensor(f"{name}.floats", rewriter.shape(name)) for name in node.outputs)
    nodes.append(Node(node.op_type, node.name, tuple(inputs), floats, node.attributes))
    nodes += [
        Node("QuantizeLinear", name, (made, *names), (name,))
        for name, made in zip(node.outputs, floats, strict=True)
        if name
    ]
    return nodes


def _padded(rewriter: Rewriter, node: Node, scale: Scale) -> str:
    """Return the constant with the float that the byte of a Pad stands for."""
    byte = int(rewriter.value(node.input(2)).reshape(())) if node.input(2) else 0
    stands_for = np.float32(scale.step) * np.float32(byte + scale.offset - scale.zero)
    return rewriter.constant(f"{node.outputs[0]}.padding", np.asarray(stands_for, np.float32))
