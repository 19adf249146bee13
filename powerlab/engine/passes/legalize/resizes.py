"""Resize and Upsample: by whole factors of the nearest pixel it stays Resize, any other way it becomes Interpolate.

Axes are resized one after another, but height and width of images, which are one Interpolate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.resizing import AxisResize, Resizing, resizing, whole_factors
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.legalize.interpolation import axis_taps, identity_taps
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _resize(view: NodeView, rewriter: Rewriter) -> Sequence[Node] | None:
    node = view.node
    if "factors" in node.attributes:
        return None
    resize = resizing(view)
    if not resize.axes:
        return [view_node(node.name, node.inputs[0], node.outputs[0])]
    factors = whole_factors(resize)
    if factors is not None:
        return [Node("Resize", node.name, node.inputs[:1], node.outputs, {"factors": factors})]
    return _interpolated(view, resize, rewriter)


def _interpolated(view: NodeView, resize: Resizing, rewriter: Rewriter) -> Sequence[Node]:
    node, shape, nodes = view.node, list(view.shape(0)), []
    source, stages = node.inputs[0], _stages(resize)
    for number, (rows, columns) in enumerate(stages):
        image, size = _image(shape, rows, columns)
        taps = [
            identity_taps(length) if one is None else axis_taps(resize, one)
            for one, length in ((rows, image[2]), (columns, image[3]))
        ]
        for one in filter(None, (rows, columns)):
            shape[one.axis] = one.new
        ends = number == len(stages) - 1
        base_name = node.outputs[0] if ends else f"{node.outputs[0]}.stage{number}"
        output = base_name if ends else rewriter.tensor(base_name, tuple(shape))
        seen, made = source, output
        if image != rewriter.shape(source):
            seen = rewriter.tensor(f"{base_name}.image", image)
            nodes.append(view_node(f"{base_name}.image", source, seen))
        if size != tuple(shape):
            made = rewriter.tensor(f"{base_name}.resized", size)
        constants = [
            rewriter.constant(f"{base_name}.{name}", value)
            for name, value in zip(("rows", "columns"), taps, strict=True)
        ]
        attributes = {"extrapolation": resize.extrapolation}
        name = node.name if ends else f"{node.name}.stage{number}"
        nodes.append(Node("Interpolate", name, (seen, *constants), (made,), attributes))
        if made != output:
            nodes.append(view_node(f"{base_name}.shape", made, output))
        source = output
    return nodes


def _stages(resize: Resizing) -> list[tuple[AxisResize | None, AxisResize | None]]:
    """Return the axes that are rows and columns of one image after another."""
    axes, rank = list(resize.axes), len(resize.shape)
    stages: list[tuple[AxisResize | None, AxisResize | None]] = []
    if rank >= 3 and len(axes) >= 2 and (axes[-2].axis, axes[-1].axis) == (rank - 2, rank - 1):
        stages.append((axes[-2], axes[-1]))
        del axes[-2:]
    return stages + [(None, one) if one.axis == rank - 1 else (one, None) for one in axes]


def _image(
    shape: Sequence[int], rows: AxisResize | None, columns: AxisResize | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the old shape as that of an image whose rows and columns are the axes, and the new one of that image."""
    first = rows.axis if rows else len(shape) - 1
    images = shape[0] if first > 0 else 1
    channels = math.prod(shape[1:first])
    height = rows.old if rows else 1
    width = columns.old if columns else math.prod(shape[first + 1 :])
    size = (rows.new if rows else height, columns.new if columns else width)
    return (images, channels, height, width), (images, channels, *size)


def lower_resizes(graph: Graph) -> Graph:
    """Return the graph with Resize and Interpolate alone, and only the image as computed input."""
    return rewrite_nodes(graph, {"Resize": _resize, "Upsample": _resize})
