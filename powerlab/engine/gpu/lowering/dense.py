"""Fully connected layers: few rows are a matter of reading the weights, many a convolution of images of one pixel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.gpu.activations import finish_of
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.ir.constants import Value, derived
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.storage import Storage

Floats = NDArray[np.float32]

FEW_ROWS = 8
_LANES = 32
_TILE_ROWS = 4


def lower_gemm(builder: Builder, node: Node) -> None:
    """Lower a FusedGemm."""
    from powerlab.engine.gpu.lowering.convolution import Window, emit_conv

    x, made = builder.image(node.inputs[0]), builder.image(node.outputs[0])
    weights = builder.graph.kept_constants[node.inputs[1]]
    bias = builder.graph.constants[node.inputs[2]] if node.inputs[2] else np.zeros(made.channels, np.float32)
    source, out = builder.blocks(node.inputs[0]), builder.new_blocks(node.outputs[0])
    if x.images <= FEW_ROWS:
        emit_dense(builder, node, (out, source), (x.images, x.channels, made.channels), weights, bias)
        return
    window = Window(kernel=(1, 1))
    four = derived(weights, (*weights.shape, 1, 1), lambda w: w[:, :, None, None])
    emit_conv(builder, node, (out, source, None), (x, made), window, four, bias, 1, finish_of(node))


def emit_dense(
    builder: Builder,
    node: Node,
    places: tuple[Storage, Storage],
    sizes: tuple[int, int, int],
    weights: Value,
    bias: Floats,
) -> None:
    """Append a fully connected layer of few rows; in several dispatches where the weights are more than one may see.

    Args:
        builder: gets the dispatches.
        node: what they compute.
        places: result and rows, both in blocks.
        sizes: rows, inputs and outputs.
        weights: shape (outputs, inputs).
        bias: one number an output.
    """
    rows, inputs, outputs = sizes
    in_blocks, out_blocks = -(-inputs // 4), -(-outputs // 4)
    filled = np.zeros(4 * out_blocks, np.float32)
    filled[:outputs] = bias
    shifts = builder.constant(filled, floats=True)
    most = builder.largest_bytes // (in_blocks * 16 * builder.dtype.itemsize)
    function, numbers = finish_of(node)
    together = min(rows, _TILE_ROWS)
    parts = -(-out_blocks // max(most, 1))
    each = -(-out_blocks // parts)
    for first in range(0, out_blocks, each):
        made = min(each, out_blocks - first)
        packed = derived(weights, (in_blocks * made * 16,), lambda w, first=first, made=made: pack(w, first, made))
        builder.emit(
            "dense",
            node,
            (*places, builder.constant(packed), shifts),
            constants=(_LANES, function, together),
            push=(*numbers, rows, in_blocks, out_blocks, first, made),
            groups=(-(-made // _LANES), -(-rows // together), 1),
        )


def pack(weights: Floats, first: int, blocks: int) -> Floats:
    """Return weights (outputs, inputs) of some blocks of outputs as [in block][out block][4 inputs][4 outputs]."""
    own = weights[4 * first : 4 * (first + blocks)]
    filled = np.zeros((4 * blocks, -(-weights.shape[1] // 4) * 4), np.float32)
    filled[: own.shape[0], : own.shape[1]] = own
    axes = filled.reshape(blocks, 4, -1, 4)
    packed: Floats = np.ascontiguousarray(axes.transpose(2, 0, 3, 1)).reshape(-1)
    return packed
