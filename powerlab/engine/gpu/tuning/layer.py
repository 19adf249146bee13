"""One layer of a network as a network of its own, to be timed alone."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from powerlab.engine.codegen.attributes import number_or
from powerlab.engine.gpu.recorder import label_of
from powerlab.engine.ir.constants import Constants
from powerlab.engine.ir.graph import Graph, Node, TensorInfo

_STEP = 1 / 32
"""Of numbers that become bytes; any will do for a timing."""


class Layer(Struct, frozen=True):
    """A layer's graph, and the label of the dispatches that are its own."""

    graph: Graph
    label: str


def alone(graph: Graph, node: Node) -> Layer:
    """Return one node of a graph, what it takes from others being inputs of floats, and its result an output of them.

    Bytes are made of inputs, and numbers of bytes, by nodes before and after it.
    """
    constants = {name: graph.kept_constants[name] for name in node.inputs if name in graph.kept_constants}
    taken = [graph.tensors[name] for name in dict.fromkeys(node.inputs) if name and name not in constants]
    made = graph.tensors[node.outputs[0]]
    inputs, outputs, before, after = [], [], [], []
    for info in taken:
        inputs.append(_floats(info))
        if inputs[-1] is not info:
            zero = number_or(node, "x_zero" if info.name == node.inputs[0] else "y_zero", 0)
            before.append(_between("Quantize", inputs[-1], info, zero))
    outputs.append(_floats(made))
    if outputs[-1] is not made:
        after.append(_between("Dequantize", made, outputs[-1], number_or(node, "zero", 0)))
    tensors = {one.name: one for one in (*taken, *inputs, made, *outputs)}
    return Layer(
        replace(
            graph,
            nodes=(*before, node, *after),
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            constants=Constants(constants),
            tensors={name: graph.tensors[name] for name in constants} | tensors,
            outside={},
        ),
        label_of(node),
    )


def _floats(info: TensorInfo) -> TensorInfo:
    """Return a tensor itself, or if it is of bytes, one of floats that stands for it outside."""
    if info.dtype.kind == "f":
        return info
    return TensorInfo(f"{info.name} as floats", info.shape, np.dtype(np.float32))


def _between(op_type: str, source: TensorInfo, made: TensorInfo, zero: float) -> Node:
    return Node(op_type, f"{made.name} made", (source.name,), (made.name,), {"step": _STEP, "zero": float(zero)})
