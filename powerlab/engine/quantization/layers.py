"""Which operators of a network compute with integers, and which tensors that makes quantized."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from msgspec import Struct

from powerlab.engine.ir.graph import IMAGE_AXES, VOLUME_AXES, Graph, Node
from powerlab.engine.ops.view import FLOAT32
from powerlab.engine.passes.rewriting import sole_readers

WEIGHTED = {"Conv", "Gemm", "MatMul"}
"""Operators that may have weights, as their second input."""

_OTHERS = {"AveragePool", "Concat", "GlobalAveragePool"}
_FOLLOWERS = {"Clip", "Relu"}
_MOVES = {"Flatten", "Identity", "MaxPool", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}

_MATRIX_AXES = 2

_LEAST_PRODUCTS = 8
"""Of a matrix, for each number that it reads or makes: with fewer, rounding takes longer than multiplying."""


class Layer(Struct, frozen=True):
    """An operator that computes with integers.

    Attributes:
        node: the operator.
        inputs: its computed inputs.
        output: what is quantized behind it: its result, or that of an activation or a bias behind it.
    """

    node: Node
    inputs: tuple[str, ...]
    output: str

    @property
    def name(self) -> str:
        """Return what the layer is called: its operator's result."""
        return self.node.outputs[0]

    def weight(self, graph: Graph) -> str:
        """Return the name of its weights; empty where it has none."""
        weighted = self.node.op_type in WEIGHTED and self.node.input(1) in graph.kept_constants
        return self.node.inputs[1] if weighted else ""


def layers_of(graph: Graph, *, attention: bool = False) -> tuple[Layer, ...]:
    """Return the layers of a network, in order; constants are folded.

    Args:
        graph: the network.
        attention: whether products of two computed matrices are layers, too.
    """
    sole_reader = sole_readers(graph)
    found = []
    for node in graph.nodes:
        inputs = tuple(name for name in node.inputs if name and name not in graph.kept_constants)
        if not (_computes(graph, node, inputs) or (attention and is_attention(graph, node))):
            continue
        output = node.outputs[0]
        reader = sole_reader(output)
        if reader is not None and node.op_type == "MatMul" and _adds_constant(graph, reader):
            output, reader = reader.outputs[0], sole_reader(reader.outputs[0])
        if reader is not None and _follows(reader, node):
            output = reader.outputs[0]
        found.append(Layer(node, inputs, output))
    return tuple(found)


def has_channels(node: Node) -> bool:
    """Tell whether axis 1 of what a layer reads counts what its weights tell apart; a MatMul's may have any axes."""
    return node.op_type in {"Conv", "Gemm"}


def is_attention(graph: Graph, node: Node) -> bool:
    """Tell whether a node is a product of two computed matrices."""
    if node.op_type != "MatMul" or any(name in graph.kept_constants for name in node.inputs):
        return False
    return all(
        graph.tensors[name].dtype == FLOAT32 and _MATRIX_AXES <= len(graph.shape(name)) <= IMAGE_AXES
        for name in node.inputs
    )


def _computes(graph: Graph, node: Node, inputs: tuple[str, ...]) -> bool:
    if any(graph.tensors[name].dtype != FLOAT32 for name in inputs) or not inputs:
        return False
    one, images = inputs == node.inputs[:1], len(graph.shape(node.outputs[0])) == IMAGE_AXES
    match node.op_type:
        case "Conv":
            found = one
        case "Gemm":
            alike = all(node.attributes.get(name, 1.0) == 1.0 for name in ("alpha", "beta"))
            found = one and alike and not node.attributes.get("transA", 0)
        case "MatMul":
            found = one and _is_worth_rounding(graph.shape(node.inputs[1]))
        case "Add":
            volumes = len(graph.shape(node.outputs[0])) == VOLUME_AXES
            found = (images or volumes) and len(inputs) == 2 and graph.shape(inputs[0]) == graph.shape(inputs[1])
        case "BatchNormalization":
            found = images and one and not node.attributes.get("training_mode", 0)
        case _:
            found = node.op_type in _OTHERS and len(inputs) == len(node.inputs)
    return found


def _is_worth_rounding(weights: tuple[int, ...]) -> bool:
    """Tell whether weights are a matrix of enough products; that of attention's heads to heads, say, is not."""
    return len(weights) == _MATRIX_AXES and math.prod(weights) >= _LEAST_PRODUCTS * sum(weights)


def _follows(node: Node, layer: Node) -> bool:
    """Tell whether a node is the activation at the end of a layer."""
    if node.op_type == "LeakyRelu":
        return layer.op_type == "Conv"
    return node.op_type in _FOLLOWERS and layer.op_type != "GlobalAveragePool"


def _adds_constant(graph: Graph, node: Node) -> bool:
    return node.op_type == "Add" and any(name in graph.kept_constants for name in node.inputs)


def quantized_tensors(graph: Graph, layers: Collection[Layer]) -> Mapping[str, tuple[str, ...]]:
    """Return each tensor that is quantized, and the tensors whose ranges, taken together, it has.

    That is its own range, or that of what it moves. What is concatenated has one range with all that it is concatenated
    with: then a concatenation moves integers, and none is rounded again.
    """
    wanted = {name for layer in layers for name in layer.inputs}
    wanted |= {layer.output for layer in layers if layer.node.op_type != "MatMul"}
    producers = graph.producers()
    sources: dict[str, str] = {}
    for info in (*graph.inputs, *(graph.tensors[name] for node in graph.nodes for name in node.outputs if name)):
        if info.name not in wanted:
            continue
        maker = producers.get(info.name)
        moved = maker.inputs[0] if maker is not None and moves(maker) else ""
        sources[info.name] = sources.get(moved, info.name)
    alike = {source: {source} for source in sources.values()}
    for layer in layers:
        if layer.node.op_type == "Concat":
            joined = set().union(*(alike[sources[name]] for name in (*layer.inputs, layer.output)))
            alike |= dict.fromkeys(joined, joined)
    return {name: tuple(sorted(alike[source])) for name, source in sources.items()}


def moves(node: Node) -> bool:
    """Tell whether a node's result has the numbers of its input, so its scale too."""
    if node.op_type in ("Resize", "Upsample"):
        crops = node.attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
        return node.attributes.get("mode", "nearest") == "nearest" and not crops
    return node.op_type in _MOVES
