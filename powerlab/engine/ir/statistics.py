"""Counts of a loaded graph: parameters and multiply-accumulates, as the papers count them."""

from __future__ import annotations

import math
from collections import Counter
from typing import cast

from powerlab.engine.ir.graph import Graph, Node, convolutions_of

_WEIGHTED = {
    "Conv": (1, 2),
    "FusedConv": (1, 2),
    "ConvTranspose": (1, 2),
    "FusedConvTranspose": (1, 2),
    "FusedVolumeConv": (1, 2),
    "Gemm": (1, 2),
    "FusedGemm": (1, 2),
    "MatMul": (0, 1),
    "LSTM": (1, 2, 3),
    "FusedLstm": (1, 2, 3),
    "GRU": (1, 2, 3),
    "RNN": (1, 2, 3),
    "Recurrence": (1, 2, 3, 4),
    "BatchNormalization": (1, 2),
    "LayerNormalization": (1, 2),
    "ScaleShift": (1, 2),
    "Add": (0, 1),
    "Concat": (0, 1),
    "Expand": (0,),
}
"""Operator → inputs that are parameters when they are constants: what is added to activations or joined with them is a
bias or an embedding. A batch norm's mean and variance are not learned and not counted in papers; axes, bounds, shapes
and single numbers of no axis are no parameters either."""


_CONVOLUTIONS = (
    "ComputedConv",
    "Conv",
    "ConvWeightGradient",
    "FusedConv",
    "FusedVolumeConv",
    "QuantConv",
    "QuantVolumeConv",
)
_RECURRENT = ("FusedLstm", "GRU", "LSTM", "RNN", "Recurrence")


def parameter_count(graph: Graph) -> int:
    """Return the number of learned numbers: weights, biases, scales and shifts, each tensor once."""
    names = {node.input(index) for node in graph.nodes for index in _WEIGHTED.get(node.op_type, ())}
    learned = (graph.tensors[name] for name in names if name in graph.constants)
    return sum(info.elements for info in learned if info.shape and info.dtype.kind == "f")


def mac_count(graph: Graph) -> int:
    """Return the multiply-accumulates of all convolutions, matrix products and LSTMs for the graph's batch size.

    Additions of biases, normalisation, activations and pools are left out, as in the published figures.
    """
    return sum(macs(graph, node) for node in graph.nodes)


def macs(graph: Graph, node: Node) -> int:
    """Return the multiply-accumulates of one node; 0 where it is no convolution, matrix product or LSTM."""
    if node.op_type in _CONVOLUTIONS:
        names = (node.inputs[1], node.outputs[0])
        kernels, made = names[::-1] if node.op_type == "ConvWeightGradient" else names
        return graph.tensors[made].elements * math.prod(graph.shape(kernels)[1:])
    if node.op_type in ("ComputedConvTranspose", "ConvTranspose", "FusedConvTranspose"):
        weights = graph.tensors[node.inputs[1]].elements
        return graph.tensors[node.inputs[0]].elements * weights // graph.shape(node.inputs[0])[1]
    if node.op_type == "Chain":
        return sum(macs(graph, conv) for conv in convolutions_of(node))
    if node.op_type in ("Gemm", "FusedGemm", "MatMul", "Product"):
        return graph.tensors[node.outputs[0]].elements * _inner(graph, node)
    if node.op_type in _RECURRENT:
        steps, batch, _ = graph.shape(node.inputs[0])
        return steps * batch * sum(graph.tensors[name].elements for name in node.inputs[1:3])
    return 0


def _inner(graph: Graph, node: Node) -> int:
    """Return how many products each element of a matrix product sums."""
    shape = graph.shape(node.inputs[0])
    if node.attributes.get("transA"):
        return shape[0]
    order = cast("tuple[int, ...]", node.attributes.get("left")) or range(len(shape))
    return shape[order[-1]]


def operator_counts(graph: Graph) -> dict[str, int]:
    """Return how many nodes of each operator the graph has, the most frequent first."""
    return dict(Counter(node.op_type for node in graph.nodes).most_common())
