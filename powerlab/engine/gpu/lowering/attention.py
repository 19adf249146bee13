"""Attention, computed by one kernel."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from powerlab.engine.codegen.attention import Attention
from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.choice.attention import AT_A_TIME, Kernel, Size, by_matrices
from powerlab.engine.gpu.lowering.product import batch_axes, side
from powerlab.engine.gpu.target import Target
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.program.operand import Operand, compact_strides

_GPU_LANES, _ROWS, _LEAST_ROWS = 64, 8, 2
_INNER, _MOST_INNER, _MOST_WIDTH = 64, 256, 128


def fits(graph: Graph, attention: Attention) -> bool:
    """Tell whether the kernel takes the sizes of an attention, whose scores have one mask at most."""
    first, second = attention.products
    shape = graph.shape(first.outputs[0])
    plain = len(attention.masks) <= 1 and all(mask.shape == shape for mask in attention.masks)
    if not plain or any(node.op_type == "Reshape" for node in attention.between):
        return False
    return graph.shape(second.outputs[0])[-1] <= _MOST_WIDTH and _inner(graph, first) <= _MOST_INNER


def _inner(graph: Graph, product: Node) -> int:
    shape, order = graph.shape(product.inputs[0]), product.attributes["left"]
    return shape[order[-1]] if order else shape[-1]  # type: ignore[index]


def lower_attention(builder: Builder, attention: Attention) -> bool:
    """Append the kernel; return False, having appended nothing, where the batch has more axes than it takes."""
    first, second = attention.products
    q, k, v = side(builder, first, 0), side(builder, first, 1), side(builder, second, 1)
    (rows, inner), keys, width = q.sizes[-2:], k.sizes[-1], v.sizes[-1]
    shape, made = builder.graph.shape(second.outputs[0]), attention.after or second
    order = np.argsort(integers(made, "perm")) if attention.after else range(len(shape))

    def ordered(result: Operand) -> Operand:
        return result.permuted(tuple(map(int, order)))

    masks = [builder.operand(mask.name).broadcast((*shape[:-2], rows, keys)) for mask in attention.masks]
    mask = masks[0] if masks else None
    parts = [q, k, v, *masks]
    batch = batch_axes([*parts, ordered(_like(builder.graph.shape(made.outputs[0]), q))], shape[:-2])
    if batch is None:
        return False
    sizes, strides = batch
    out = ordered(builder.new_operand(made.outputs[0]))
    q_batch, k_batch, v_batch, *mask_batch, out_batch = strides
    size = Size(rows=rows, inner=inner, width=width, batch=sizes[0] * sizes[1])
    ends = (int(mask is not None), int(attention.zeros))
    steps = (*q_batch, q.strides[-2], *k_batch, k.strides[-1], *v_batch, v.strides[-2])
    side_by_side = q.strides[-1] == k.strides[-2] == v.strides[-1] == 1
    wide = side_by_side and not any(one % AT_A_TIME for one in (*steps, inner, width))
    tile = by_matrices(size, builder.target) if builder.half and not builder.target.broadcasts else None
    kernel = tile.kernel(ends, wide=wide) if tile else _by_lanes(size, builder.target, ends)
    builder.emit(
        kernel.name,
        second,
        [one.storage for one in (out, q, k, v, mask or q)],
        constants=kernel.constants,
        push=(
            *(number(first, "alpha"), number(second, "alpha")),
            *(rows, keys, inner, width, sizes[-1]),
            *(*q_batch, *q.strides[-2:], *k_batch, *k.strides[-2:], *v_batch, *v.strides[-2:]),
            *((*mask_batch[0], *mask.strides[-2:]) if mask else (0,) * 4),
            *(*out_batch, *out.strides[-2:]),
        ),
        groups=(-(-rows // kernel.rows), size.batch, 1),
        covered=attention.covered,
    )
    return True


def _by_lanes(size: Size, target: Target, ends: tuple[int, int]) -> Kernel:
    """Return the kernel whose lanes multiply: on a GPU with fewer queries a work group where they would not fill it."""
    each = _ROWS
    while not target.broadcasts and each > _LEAST_ROWS and -(-size.rows // each) * size.batch < 2 * target.cores:
        each //= 2
    lanes = target.lanes(_GPU_LANES)
    sizes = (each, -(-size.inner // _INNER) * _INNER, -(-size.width // lanes))
    return Kernel("attention", each, (lanes, *sizes, *ends, lanes, int(target.broadcasts)))


def _like(shape: tuple[int, ...], operand: Operand) -> Operand:
    """Return a compact tensor of a shape, wherever it may lie."""
    return replace(operand, sizes=shape, strides=compact_strides(shape), offset=0)
