"""Cross-layer equalisation: a channel that one layer makes large, and the next weighs little, is scaled to fit in.

Of two convolutions with at most a Relu between, what the first makes of a channel may be divided by any number above 0
if the second multiplies by it: the network computes the same, and one scale fits all channels of the tensor between.

Source: M. Nagel et al., https://arxiv.org/abs/1906.04721, section 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from powerlab.engine.ir.constants import value_of
from powerlab.engine.ir.graph import Array, Graph, Node, fresh_name
from powerlab.engine.passes.rewriting import sole_readers

_ROUNDS = 20
_SETTLED = 1e-3
"""Where no factor is further from 1, another round changes nothing."""


def _pairs(graph: Graph) -> Iterator[tuple[Node, Node]]:
    """Yield convolutions that follow on each other, with at most a Relu between."""
    sole_reader = sole_readers(graph)
    for node in graph.nodes:
        if not _has_own_weights(graph, node):
            continue
        reader = sole_reader(node.outputs[0])
        if reader is not None and reader.op_type == "Relu":
            reader = sole_reader(reader.outputs[0])
        if reader is not None and _has_own_weights(graph, reader):
            yield node, reader


def _has_own_weights(graph: Graph, node: Node) -> bool:
    known = all(name in graph.kept_constants for name in node.inputs[1:] if name)
    return node.op_type == "Conv" and known


def equalized(graph: Graph) -> Graph:
    """Return a graph, its batch norms folded, that computes the same with more even channels."""
    pairs = list(_pairs(graph))
    if not pairs:
        return graph
    nodes = {node.outputs[0]: node for pair in pairs for node in pair}
    weights = {name: value_of(graph.kept_constants[node.inputs[1]]).copy() for name, node in nodes.items()}
    biases = {name: graph.constants[node.inputs[2]].copy() for name, node in nodes.items() if node.input(2)}
    for _ in range(_ROUNDS):
        furthest = 0.0
        for first, second in pairs:
            left, right = first.outputs[0], second.outputs[0]
            factors = _factors(weights[left], weights[right], _groups(second))
            weights[left] /= factors.reshape(-1, *(1,) * (weights[left].ndim - 1))
            if left in biases:
                biases[left] /= factors
            weights[right] *= _by_output(factors, weights[right], _groups(second))
            furthest = max(furthest, float(np.abs(np.log(factors)).max()))
        if furthest < _SETTLED:
            break
    return _with(graph, nodes, weights, biases)


def _groups(node: Node) -> int:
    return int(str(node.attributes.get("group", 1)))


def _factors(left: Array, right: Array, groups: int) -> Array:
    """Return what each channel between two layers is divided by: then both have the same range of weights there."""
    made = np.abs(left).reshape(left.shape[0], -1).max(axis=1)
    by_group = np.abs(right).reshape(groups, right.shape[0] // groups, right.shape[1], -1)
    read = by_group.max(axis=(1, 3)).reshape(-1)
    usable = (made > 0) & (read > 0)
    ratio = np.divide(made, read, out=np.ones_like(made), where=usable)
    return np.asarray(np.clip(np.sqrt(ratio), 1e-4, 1e4), np.float32)


def _by_output(factors: Array, right: Array, groups: int) -> Array:
    """Return the factors in the shape in which they multiply the second layer's weights."""
    a_group = np.repeat(factors.reshape(groups, -1), right.shape[0] // groups, axis=0)
    return np.asarray(a_group.reshape(*a_group.shape, *(1,) * (right.ndim - 2)))


def _with(graph: Graph, nodes: dict[str, Node], weights: dict[str, Array], biases: dict[str, Array]) -> Graph:
    constants: dict[str, Array] = {}
    changed: dict[str, Node] = {}
    for name, node in nodes.items():
        inputs = list(node.inputs)
        for index, values in ((1, weights), (2, biases)):
            if name in values:
                inputs[index] = fresh_name(graph, f"{name}.equalized{index}", constants)
                constants[inputs[index]] = values[name]
        changed[name] = replace(node, inputs=tuple(inputs))
    return graph.rewritten([changed.get(node.outputs[0], node) for node in graph.nodes], constants=constants)
