"""Fully connected layers: few rows are a matter of reading the weights, many a convolution of images of one pixel."""

from __future__ import annotations

from functools import partial

import numpy as np
from msgspec import Struct

from powerlab.engine.gpu.activations import Finish, finish_of
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.lowering.convolved import Convolution, Places, Window
from powerlab.engine.gpu.lowering.methods import emit_conv
from powerlab.engine.gpu.lowering.packing import per_output
from powerlab.engine.gpu.lowering.weights import Floats, KnownWeights
from powerlab.engine.gpu.target import Target
from powerlab.engine.ir.constants import Value, derived
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.storage import Storage

FEW_ROWS = 8
_TILE_ROWS = 4

_GPU_LANES, _MOST_BLOCKS = 256, 32
"""Of a work group on a GPU, and blocks of outputs that neighbouring ones of them compute, at most."""


class Dense(Struct, frozen=True):
    """What is computed: rows of inputs become rows of outputs.

    Attributes:
        rows: how many.
        inputs: numbers of a row.
        outputs: numbers of a row of the result.
        weights: shape (outputs, inputs).
        bias: one number an output.
    """

    rows: int
    inputs: int
    outputs: int
    weights: Value
    bias: Floats


def lower_gemm(builder: Builder, node: Node) -> None:
    """Lower a FusedGemm."""
    x, made = builder.image(node.inputs[0]), builder.image(node.outputs[0])
    source, out = builder.blocks(node.inputs[0]), builder.new_blocks(node.outputs[0])
    if x.images <= FEW_ROWS:
        emit_dense(builder, node, (out, source), Dense(x.images, x.channels, made.channels, *_weights(builder, node)))
        return
    emit_rows(builder, node, (out, source, None), finish_of(node))


def _weights(builder: Builder, node: Node) -> tuple[Value, Floats]:
    """Return the weights of a FusedGemm, and its biases."""
    weights = builder.graph.kept_constants[node.inputs[1]]
    bias = builder.graph.constants[node.inputs[2]] if node.inputs[2] else np.zeros(weights.shape[0], np.float32)
    return weights, bias


def emit_rows(builder: Builder, node: Node, places: Places, finish: Finish) -> None:
    """Append a FusedGemm of many rows, which are images of one pixel."""
    weights, bias = _weights(builder, node)
    kernels = (*weights.shape, 1, 1)
    conv = Convolution(
        x=builder.image(node.inputs[0]),
        made=builder.image(node.outputs[0]),
        window=Window(kernel=(1, 1)),
        weights=KnownWeights(derived(weights, kernels, partial(np.reshape, shape=kernels)), bias),
        finish=finish,
    )
    emit_conv(builder, node, places, conv)


def emit_dense(builder: Builder, node: Node, places: tuple[Storage, Storage], dense: Dense) -> None:
    """Append a layer of few rows, in blocks; in several dispatches where the weights are more than one may see."""
    in_blocks, out_blocks = -(-dense.inputs // 4), -(-dense.outputs // 4)
    shifts = builder.constant(per_output(dense.bias, 1, out_blocks), floats=True)
    most = builder.target.largest_bytes // (in_blocks * 16 * builder.dtype.itemsize)
    function, numbers = finish_of(node)
    together = min(dense.rows, _TILE_ROWS)
    each = -(-out_blocks // -(-out_blocks // max(most, 1)))
    lanes, slices = _lanes(builder.target, min(each, out_blocks))
    across = lanes // slices
    for first in range(0, out_blocks, each):
        made = min(each, out_blocks - first)
        packed = derived(dense.weights, (in_blocks * made * 16,), partial(pack, first=first, blocks=made))
        builder.emit(
            "dense",
            node,
            (*places, builder.constant(packed), shifts),
            constants=(lanes, function, together, slices),
            push=(*numbers, dense.rows, in_blocks, out_blocks, first, made),
            groups=(-(-made // across), -(-dense.rows // together), 1),
        )


def _lanes(target: Target, blocks: int) -> tuple[int, int]:
    """Return the lanes of a work group, and the slices of the inputs that they share among them.

    A processor that stands in for a GPU walks all inputs by each lane. On a GPU a few blocks of outputs are a work
    group's, so that all cores read weights, and many lanes wait for them at the same time.
    """
    lanes, across = target.lanes(_GPU_LANES), 1
    if target.broadcasts:
        return lanes, 1
    while across < _MOST_BLOCKS and blocks >= 2 * across * target.cores:
        across *= 2
    return lanes, lanes // across


def pack(weights: Floats, first: int, blocks: int) -> Floats:
    """Return weights (outputs, inputs) of some blocks of outputs as [in block][out block][4 inputs][4 outputs]."""
    own = weights[4 * first : 4 * (first + blocks)]
    filled = np.zeros((4 * blocks, -(-weights.shape[1] // 4) * 4), np.float32)
    filled[: own.shape[0], : own.shape[1]] = own
    axes = filled.reshape(blocks, 4, -1, 4)
    packed: Floats = np.ascontiguousarray(axes.transpose(2, 0, 3, 1)).reshape(-1)
    return packed
