"""GridSample, AffineGrid and MaxUnpool become nodes of general kernels, images being of three axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from powerlab.engine.ir.graph import Array, Graph, Node
from powerlab.engine.ops.pooling import unpooled_size
from powerlab.engine.ops.sampling import PADDINGS, SAMPLINGS, one_of
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.legalize.general_nodes import as_volume, from_volume, general, numbers
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _grid_sample(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    before: list[Node] = []
    described = numbers(
        rewriter,
        node,
        SAMPLINGS[view.text("mode", "linear")],
        one_of(view, "padding_mode", "zeros", PADDINGS),
        view.integer("align_corners", 0),
    )
    image = as_volume(rewriter, node.inputs[0], before)
    grid, shape = node.inputs[1], view.shape(1)
    if len(shape) == 4:
        grid = rewriter.tensor(f"{grid}.volume", (shape[0], 1, *shape[1:]))
        before.append(view_node(grid, node.inputs[1], grid))
    made, after = from_volume(rewriter, node.outputs[0])
    return [*before, general(node.name, "grid_sample_strided_f32", (image, grid, described), made), *after]


def _affine_grid(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, output = view.node, view.node.outputs[0]
    images, _, *size = view.int_values(1)
    points = rewriter.constant(f"{output}.points", _middles(size, corners=bool(view.integer("align_corners", 0))))
    flat = rewriter.tensor(f"{output}.flat", (images, math.prod(size), len(size)))
    made = general(node.name, "affine_grid_strided_f32", (node.inputs[0], points), flat)
    return [made, view_node(f"{node.name}.shape", flat, output)]


def _middles(size: Sequence[int], *, corners: bool) -> Array:
    """Return the pixels of an image, shape (pixels, axes + 1): columns first, then rows, then 1."""
    along = [np.linspace(-1, 1, length) if corners else (2 * np.arange(length) + 1) / length - 1 for length in size]
    axes = np.meshgrid(*along, indexing="ij")
    return np.stack([*reversed(axes), np.ones(tuple(size))], axis=-1).reshape(-1, len(size) + 1).astype(np.float32)


def _max_unpool(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    before: list[Node] = []
    ones = (1,) * (5 - len(view.shape(0)))
    images, channels, *size = (*view.shape(0)[:2], *unpooled_size(view))
    described = numbers(rewriter, node, images, channels, *ones, *size)
    inputs = (as_volume(rewriter, node.inputs[0], before), as_volume(rewriter, node.inputs[1], before), described)
    made, after = from_volume(rewriter, node.outputs[0])
    return [*before, general(node.name, "max_unpool_strided_f32", inputs, made), *after]


_RULES = {
    "AffineGrid": _affine_grid,
    "GridSample": _grid_sample,
    "MaxUnpool": _max_unpool,
}


def lower_sampling(graph: Graph) -> Graph:
    """Return the graph with General in place of the operators that take pixels from anywhere."""
    return rewrite_nodes(graph, _RULES)
