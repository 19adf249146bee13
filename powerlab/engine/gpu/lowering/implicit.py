"""Convolutions as implicit matrix products: pixels by output channels, over taps and input channels."""

from __future__ import annotations

from typing import cast

from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.choice.method import CACHED, MATRICES, MATRICES_DIRECT, Method
from powerlab.engine.gpu.lowering.convolved import Convolution, Places
from powerlab.engine.gpu.lowering.weights import KnownWeights
from powerlab.engine.gpu.recorder import MOST_GROUPS
from powerlab.engine.gpu.target import Target
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.storage import Storage


def emit_product(builder: Builder, node: Node, places: Places, conv: Convolution, method: Method) -> None:
    """Append one implicit matrix product, and what adds its parts where there are several; groups fill whole blocks."""
    x, made, groups = conv.x, conv.made, conv.groups
    in_blocks, out_blocks = -(-(x.channels // groups) // 4), -(-(made.channels // groups) // 4)
    tile = method.tile_blocks
    tiles = -(-out_blocks // tile)
    weights = _weights(builder, node, conv, method)
    biases = conv.weights.biases(builder, node, groups, tiles * tile)
    (function, numbers), (out, source, residual) = conv.finish, places
    pixel_tiles = -(-made.images * made.pixels // method.tile_pixels(builder.target.subgroup_lanes))
    across = min(pixel_tiles, MOST_GROUPS)
    vectors = groups * out_blocks * made.images * made.pixels
    cut = method.parts > 1
    sums = builder.room(4 * vectors * method.parts, 4) if cut else out
    builder.emit(
        conv.window.kernel_of(method.kernel),
        node,
        (
            *(sums, source, weights, biases),
            source if cut else residual or source,
        ),
        constants=_constants(method, builder.target, (function, int(residual is not None)), conv, in_blocks),
        push=(*numbers, *conv.geometry(), groups, in_blocks, out_blocks, *_parts(method, conv, in_blocks)),
        groups=(across, groups * tiles * method.parts, -(-pixel_tiles // across)),
    )
    if cut:
        shifts = conv.weights.biases(builder, node, groups, out_blocks)
        builder.emit_flat(
            "sum_parts",
            node,
            (out, sums, shifts, residual or sums),
            vectors,
            constants=(function, int(residual is not None)),
            push=(*numbers, vectors, method.parts, made.pixels, groups * out_blocks),
        )


def _weights(builder: Builder, node: Node, conv: Convolution, method: Method) -> Storage:
    """Return weights in the order in which a kernel reads them."""
    if method.kernel == MATRICES_DIRECT:  # of 16-bit numbers; weights that training moves have 32
        return cast("KnownWeights", conv.weights).in_matrices(builder, conv.groups, method)
    return conv.weights.in_tiles(builder, node, conv.groups, method.tile_blocks)


def _parts(method: Method, conv: Convolution, in_blocks: int) -> tuple[int, ...]:
    """Return the push constants of kernels that may take a part of a window: how many parts, and the blocks of one."""
    if method.kernel == CACHED:
        return ()
    steps = -(-conv.window.taps * in_blocks // method.depth_blocks)
    return method.parts, -(-steps // method.parts) * method.depth_blocks


def _constants(
    method: Method, target: Target, end: tuple[int, int], conv: Convolution, in_blocks: int
) -> tuple[int, ...]:
    """Return a kernel's specialization constants; ``end``: the function, and whether a residual is added."""
    lanes, (function, residual) = method.lanes * method.down, end
    if method.kernel in (MATRICES, MATRICES_DIRECT):
        run = next(blocks for blocks in (method.depth_blocks, 2, 1) if in_blocks % blocks == 0)
        own = method.matrix_constants(target.subgroup_lanes)
        return lanes, function, residual, *own, int(_is_inside(conv)), run, method.ahead
    usual = (lanes, function, method.blocks, method.pixels, residual)
    if method.kernel == CACHED:
        return *usual, int(target.broadcasts)
    whole = int(in_blocks % method.depth == 0)
    return *usual, method.lanes, method.down, method.depth, whole, method.ahead


def _is_inside(conv: Convolution) -> bool:
    """Tell whether each pixel of the result is of one pixel of the image, which is there.

    A phase of a transposed convolution may make more pixels than the image has.
    """
    x, made, window = conv.x, conv.made, conv.window
    down, across = window.strides
    fits = (made.height - 1) * down < x.height and (made.width - 1) * across < x.width
    inside = window.across is None or window.across.pad == 0
    return window.taps == 1 and window.pads == (0, 0) and fits and inside
