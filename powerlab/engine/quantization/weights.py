"""Weights in fewer bits, arithmetic in float32: for layers that wait for memory.

int8w rounds weights to integers of 8 bits with one scale an output, int4w to integers of 4 bits with one scale for 32
weights of an output in a row, fp16w to float16. Of the first two, layers are linear and recurrent ones.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from powerlab.engine.codegen.narrow.formats import block_scale
from powerlab.engine.ir.constants import derived, value_of
from powerlab.engine.ir.graph import Array, Graph, Node
from powerlab.engine.passes.rewriting import Rewriter
from powerlab.engine.passes.simplify.dead_nodes import drop_dead
from powerlab.engine.quantization.quantize import channel_axis, quantized_weights

BLOCK = 32
_LARGEST_OF_4_BITS = 7
_RECURRENT = {"GRU", "LSTM", "RNN"}


def with_rounded_weights(graph: Graph, precision: str) -> Graph:
    """Return a graph whose weights are rounded to ``int8w``, ``int4w`` or ``fp16w``; constants are folded."""
    rewriter = Rewriter(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        inputs = list(node.inputs)
        for index in _weights(graph, node, precision):
            if precision == "fp16w":
                kept = graph.kept_constants[inputs[index]]
                inputs[index] = rewriter.constant(f"{inputs[index]}.half", derived(kept, kept.shape, _halved))
            else:
                inputs[index] = _dequantized(graph, rewriter, nodes, (node, index), precision)
        nodes.append(replace(node, inputs=tuple(inputs)))
    return drop_dead(rewriter.finish(nodes))


def _weights(graph: Graph, node: Node, precision: str) -> tuple[int, ...]:
    """Return which inputs of a node are weights that are rounded."""
    if node.op_type in _RECURRENT:
        places: tuple[int, ...] = (1, 2)
    elif node.op_type in ("Gemm", "MatMul") or (precision == "fp16w" and node.op_type in ("Conv", "ConvTranspose")):
        places = (1,)
    else:
        places = ()
    known = [place for place in places if node.input(place) in graph.kept_constants]
    return tuple(place for place in known if len(graph.shape(node.inputs[place])) > 1 and _fits(graph, node, place))


def _fits(graph: Graph, node: Node, place: int) -> bool:
    return node.op_type != "MatMul" or len(graph.shape(node.inputs[place])) == 2


def _halved(weights: Array) -> Array:
    with np.errstate(over="ignore"):
        return weights.astype(np.float16).astype(np.float32)


def _dequantized(graph: Graph, rewriter: Rewriter, nodes: list[Node], where: tuple[Node, int], precision: str) -> str:
    """Return the floats of rounded weights; the node that makes them from integers is added."""
    node, index = where
    weights = value_of(graph.kept_constants[node.inputs[index]])
    axis = 1 if node.op_type in _RECURRENT else channel_axis(node)
    name = f"{node.outputs[0] or node.name}.weight{index}"
    if precision == "int8w" and node.op_type in _RECURRENT:  # a scale for each output of each direction
        directions, rows, inputs = weights.shape
        whole, scale = quantized_weights(weights.reshape(-1, inputs), 0)
        whole, scale = whole.reshape(weights.shape), scale.reshape(directions, rows, 1)
        attributes = {"axis": 2, "block_size": inputs}
    elif precision == "int8w":
        whole, scale = quantized_weights(weights, axis)
        attributes = {"axis": axis}
    else:
        inner = weights.ndim - 1 if axis == weights.ndim - 2 else weights.ndim - 2
        whole, scale = quantized_blocks(weights, inner)
        attributes = {"axis": inner, "block_size": BLOCK}
    parameters = (rewriter.constant(f"{name}.quantized", whole), rewriter.constant(f"{name}.scale", scale))
    made = rewriter.tensor(name, weights.shape)
    nodes.append(Node("DequantizeLinear", name, parameters, (made,), attributes))
    return made


def quantized_blocks(weights: Array, axis: int) -> tuple[Array, Array]:
    """Return weights as integers from -7 to 7, in int8, and their scales, one a block of an axis."""
    size = weights.shape[axis]
    starts = np.arange(0, size, BLOCK)
    largest = np.maximum.reduceat(np.abs(weights), starts, axis=axis)
    scale = block_scale(largest)
    each = np.repeat(scale, BLOCK, axis=axis).take(np.arange(size), axis=axis)
    return np.clip(np.rint(weights / each), -_LARGEST_OF_4_BITS, _LARGEST_OF_4_BITS).astype(np.int8), scale
