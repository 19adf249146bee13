"""Nodes in the form of a newer opset: what older ones say in attributes is an input, and what has no meaning goes.

Source: https://github.com/onnx/onnx/blob/main/docs/Changelog.md.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Array, Graph, Node, fresh_name

OLDEST = 13
"""From here on QuantizeLinear and DequantizeLinear take a scale an index of an axis."""

OF_BLOCKS = 21
"""From here on they take one a block of an axis."""

_ALIKE = frozenset(
    (
        *("Abs", "Add", "AveragePool", "Concat", "Conv", "ConvTranspose", "DequantizeLinear", "Div", "Elu", "Erf"),
        *("Exp", "Flatten", "Gemm", "GlobalAveragePool", "GlobalMaxPool", "HardSigmoid", "Identity", "LRN", "LSTM"),
        *("LeakyRelu", "MatMul", "MaxPool", "Mul", "PRelu", "Pow", "QuantizeLinear", "Relu", "Reshape", "Sigmoid"),
        *("Sqrt", "Sub", "Sum", "Tanh", "Transpose"),
    )
)
"""Operators whose nodes mean the same in any opset from 7 on."""

_AXES = {"ReduceSum": "axes", "Split": "split", "Squeeze": "axes", "Unsqueeze": "axes"}
"""Operators of which an attribute became the second input."""

_SOFTMAX = {"Hardmax", "LogSoftmax", "Softmax"}


def in_newer_form(graph: Graph) -> Graph:
    """Return a graph whose nodes all have the form of one opset, which it states.

    Raises:
        PowerlabError: a node of an opset before ``OLDEST`` has a form that later ones lack.
    """
    blocks = any("block_size" in node.attributes for node in graph.nodes)
    wanted = max(graph.opset, OF_BLOCKS if blocks else OLDEST)
    if graph.opset >= OLDEST:
        return replace(graph, opset=wanted)
    constants: dict[str, Array] = {}
    nodes = [_newer(graph, node, constants) for node in graph.nodes]
    return replace(graph.rewritten(nodes, constants=constants), opset=wanted)


def _newer(graph: Graph, node: Node, constants: dict[str, Array]) -> Node:
    attributes = dict(node.attributes)

    def constant(value: Array) -> str:
        name = fresh_name(graph, f"{node.outputs[0]}.given", constants)
        constants[name] = value
        return name

    inputs = list(node.inputs)
    if node.op_type in _AXES and _AXES[node.op_type] in attributes:
        inputs.append(constant(np.asarray(attributes.pop(_AXES[node.op_type]), np.int64)))
    elif node.op_type == "Clip":
        for name in ("min", "max"):
            bound = attributes.pop(name, None)
            if bound is not None:
                inputs += [""] * (2 - len(inputs) if name == "max" else 0)
                inputs.append(constant(np.asarray(bound, np.float32)))
    elif node.op_type == "BatchNormalization":
        attributes.pop("spatial", None)
    elif node.op_type in _SOFTMAX:
        rank, axis = len(graph.shape(node.inputs[0])), int(str(attributes.get("axis", 1)))
        if attributes.pop("flattens", 0) and axis % rank != rank - 1:
            raise _unwritten(graph, node)
    elif node.op_type not in (_ALIKE | _AXES.keys()):
        raise _unwritten(graph, node)
    return Node(node.op_type, node.name, tuple(inputs), node.outputs, attributes)


def _unwritten(graph: Graph, node: Node) -> PowerlabError:
    return PowerlabError(
        f"{node} is of opset {graph.opset} and cannot be written in a newer one; export the model with opset {OLDEST} "
        "or newer."
    )
