"""Pools get explicit windows over images of two axes; whole images are pooled as one window. LRN gets all its numbers.

A window over more axes is one after another: maxima, sums and averages over an axis may be taken by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from powerlab.engine.ir.graph import IMAGE_AXES, VOLUME_AXES, Graph, Node
from powerlab.engine.ops.convolution import image_shape
from powerlab.engine.ops.pooling import lp_power, pool_windows
from powerlab.engine.ops.reducing import reduced_axes
from powerlab.engine.ops.view import FLOAT32, NodeView
from powerlab.engine.ops.windows import Windows
from powerlab.engine.passes.legalize.general_nodes import as_volume, from_volume, general, numbers
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes

_KINDS = {"AveragePool": "average", "GlobalLpPool": "lp", "GlobalMaxPool": "max", "LpPool": "lp", "MaxPool": "max"}


class _Stage(Struct, frozen=True, kw_only=True):
    """Windows along one or two axes of an image, ``axes`` counted from its first one."""

    axes: tuple[int, ...]
    windows: Windows


def _pool(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    if "kernel" in view.node.attributes:
        return None
    windows = pool_windows(view)
    places = _places(view, rewriter, windows) if len(view.node.outputs) > 1 and view.node.outputs[1] else ()
    return [*places, *_staged(view, rewriter, windows)]


def _places(view: NodeView, rewriter: Rewriter, windows: Windows) -> Sequence[Node]:
    """Return what makes the second output of a MaxPool: where the maxima stand."""
    node, axes = view.node, len(windows.kernel)
    before: list[Node] = []
    if axes > VOLUME_AXES - 2:
        view.fail(f"says where maxima stand in images of {axes} axes; the engine takes up to three")
    fill = VOLUME_AXES - 2 - axes
    described = numbers(
        rewriter,
        node,
        view.integer("storage_order", 0),
        *((1,) * fill + windows.strides),
        *((0,) * fill + windows.pads[:axes]),
        *((1,) * fill + windows.dilations),
        *((1,) * fill + windows.kernel),
    )
    image = as_volume(rewriter, node.inputs[0], before)
    made, after = from_volume(rewriter, node.outputs[1])
    return [*before, general(f"{node.name}.places", "pool_places_strided_f32", (image, described), made), *after]


def _global_pool(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    size = image_shape(view)[2:]
    ones, zeros = (1,) * len(size), (0,) * (2 * len(size))
    return _staged(view, rewriter, Windows(size, ones, zeros, ones, ones, zeros))


def _staged(view: NodeView, rewriter: Rewriter, windows: Windows) -> Sequence[Node]:
    """Return pools over the last two axes, then over each axis before them, with views between."""
    node, shape = view.node, list(view.shape(0))
    count = len(windows.kernel)
    stages = [_Stage(axes=tuple(range(max(0, count - 2), count)), windows=windows)]
    stages += [_Stage(axes=(axis,), windows=windows) for axis in reversed(range(count - 2)) if _moves(windows, axis)]
    nodes: list[Node] = []
    source = node.inputs[0]
    for number, stage in enumerate(stages):
        own = stage.windows.along(stage.axes)
        first, last = stage.axes[0] + 2, stage.axes[-1] + 3
        behind = math.prod(shape[last:])
        before, after = _image(shape, first, last, behind), list(shape)
        after[first:last] = own.size
        if behind != 1:
            own = _with_columns(own, behind)
        elif len(own.kernel) == 1:
            own = own.with_rows()
        ends = number == len(stages) - 1
        base_name = node.outputs[0] if ends else f"{node.outputs[0]}.axis{stage.axes[0]}"
        output = node.outputs[0] if ends else rewriter.tensor(base_name, tuple(after))
        image, made = source, output
        if before != tuple(shape):
            image = rewriter.tensor(f"{base_name}.image", before)
            nodes.append(view_node(f"{base_name}.image", source, image))
            made = rewriter.tensor(f"{base_name}.pooled", (*before[:2], *own.size))
        name = node.name if ends else f"{node.name}.axis{stage.axes[0]}"
        operator, attributes = _windowed(view, own, before[2:])
        nodes.append(Node(operator, name, (image,), (made,), attributes))
        if made != output:
            nodes.append(view_node(f"{base_name}.shape", made, output))
        source, shape = output, after
    return nodes


def _moves(windows: Windows, axis: int) -> bool:
    """Tell whether the windows along an axis do anything."""
    along = windows.along((axis,))
    return (along.kernel, along.strides, along.pads) != ((1,), (1,), (0, 0))


def _image(shape: Sequence[int], first: int, last: int, behind: int) -> tuple[int, ...]:
    """Return the shape of the same numbers as an image whose rows and columns are the axes from ``first`` on."""
    channels = math.prod(shape[1:first])
    if behind != 1:
        return shape[0], channels, shape[first], behind
    return (shape[0], channels, *((1,) if last - first == 1 else ()), *shape[first:last])


def _with_columns(windows: Windows, columns: int) -> Windows:
    """Return windows down the rows as windows over an image, each column by itself."""
    rows = windows.with_rows()
    before, after = windows.pads
    given_before, given_after = windows.pads_given
    return Windows(
        rows.kernel[::-1],
        rows.strides[::-1],
        (before, 0, after, 0),
        rows.dilations[::-1],
        (rows.size[1], columns),
        (given_before, 0, given_after, 0),
    )


def _windowed(view: NodeView, windows: Windows, image: tuple[int, ...]) -> tuple[str, dict[str, object]]:
    """Return operator and attributes of the pool of an image: of that which has a faster kernel where it does."""
    kind = _KINDS[view.node.op_type]
    attributes: dict[str, object] = {"kernel": windows.kernel, "strides": windows.strides, "pads": windows.pads}
    counts = kind == "average" and bool(view.integer("count_include_pad", 0)) and any(windows.pads_given)
    usual = windows.dilations == (1, 1) and not (counts and windows.pads != windows.pads_given)
    if usual and kind == "average":
        if windows.kernel == image and not any(windows.pads):
            return "GlobalAveragePool", {}
        return "AveragePool", {**attributes, "count_include_pad": counts}
    if usual and kind == "max":
        return "MaxPool", attributes
    attributes |= {"kind": kind, "dilations": windows.dilations}
    if kind == "average":
        attributes["counted_pads"] = windows.pads_given if counts else (0, 0, 0, 0)
    if kind == "lp":
        attributes["p"] = lp_power(view)
    return "Pool", attributes


def _global_average(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    shape = image_shape(view)
    return None if len(shape) == 4 else _average_of(view, rewriter, shape)


def _reduce_mean(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    """Average the pixels of images; the axes of sequences, and all others, are left to Reduce."""
    shape = view.shape(0)
    if len(shape) < IMAGE_AXES or view.dtype(0) != FLOAT32 or reduced_axes(view) != tuple(range(2, len(shape))):
        return None
    return _average_of(view, rewriter, shape)


def _average_of(view: NodeView, rewriter: Rewriter, shape: tuple[int, ...]) -> Sequence[Node]:
    """Return the average over all pixels of an image, however many axes they and the result have."""
    node, output = view.node, view.node.outputs[0]
    nodes, source = [], node.inputs[0]
    if len(shape) != 4:
        source = rewriter.tensor(f"{output}.image", (*shape[:2], 1, math.prod(shape[2:])))
        nodes.append(view_node(f"{node.name}.image", node.inputs[0], source))
    one = (*shape[:2], 1, 1)
    mean = output if rewriter.graph.shape(output) == one else rewriter.tensor(f"{output}.mean", one)
    nodes.append(Node("GlobalAveragePool", node.name, (source,), (mean,)))
    if mean != output:
        nodes.append(view_node(f"{node.name}.squeeze", mean, output))
    return nodes


def _lrn(view: NodeView, _rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    attributes = {
        "size": view.integer("size", 1),
        "alpha": view.number("alpha", 1e-4),
        "beta": view.number("beta", 0.75),
        "bias": view.number("bias", 1.0),
    }
    return [Node("LRN", node.name, node.inputs, node.outputs, attributes)]


_RULES = {
    "AveragePool": _pool,
    "GlobalAveragePool": _global_average,
    "GlobalLpPool": _global_pool,
    "GlobalMaxPool": _global_pool,
    "LRN": _lrn,
    "LpPool": _pool,
    "MaxPool": _pool,
    "ReduceMean": _reduce_mean,
}


def lower_pools(graph: Graph) -> Graph:
    """Return the graph with pools and LRN in the form the native core takes."""
    return rewrite_nodes(graph, _RULES)
