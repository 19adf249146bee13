"""Quantized convolutions of a row of pixels, such as sound, become convolutions of images of one row.

Bytes that convolutions read and write lie in blocks of an image's channels. So tensors (N, C, L) around them get a
twin (N, C, 1, L): from the floats before QuantizeLinear on, and through activations, sums and pools behind a
convolution. What else reads such a tensor sees it as it was, by a view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import replace

from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.convolution import conv_windows
from powerlab.engine.ops.moving import concat_axis, padding
from powerlab.engine.ops.pooling import pool_windows
from powerlab.engine.ops.view import NodeView
from powerlab.engine.ops.windows import Windows
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.quantized.scales import quantized_weights, tensor_scale
from powerlab.engine.passes.rewriting import Rewriter
from powerlab.engine.passes.simplify.dead_nodes import drop_dead

_ROW_AXES = 3


class _Images:
    """The twins that are there so far, by the tensor of a row that each stands for, and the nodes of the new graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.rewriter = Rewriter(graph)
        self.producers = graph.producers()
        self.nodes: list[Node] = []
        self.twins: dict[str, str] = {}

    def twin(self, row: str) -> str:
        """Add the tensor of a row's image, which the node that is added next makes."""
        info = self.graph.tensors[row]
        self.twins[row] = self.rewriter.tensor(f"{row}.image", _as_image(info.shape), info.dtype)
        return self.twins[row]

    def quantized(self, row: str) -> str | None:
        """Return the image of a dequantized row, quantized as such if it is not yet; None where no one scale does."""
        if row in self.twins:
            return self.twins[row]
        back = self.producers.get(row)
        source = self.producers.get(back.inputs[0]) if back is not None else None
        if back is None or source is None or source.op_type != "QuantizeLinear":
            return None
        if any(tensor_scale(self.graph, node) is None for node in (source, back)):
            return None
        floats = source.inputs[0]
        self.nodes.append(view_node(f"{floats}.image", floats, self.twin(floats)))
        for node in (source, back):
            inputs = (self.twins[node.inputs[0]], *node.inputs[1:])
            self.nodes.append(
                replace(node, name=f"{node.name}.image", inputs=inputs, outputs=(self.twin(node.outputs[0]),))
            )
        return self.twins[row]


_Rule = Callable[[_Images, Node], Node | None]
"""Gives the node over images, but for its output; None: it stays one over rows."""


def see_rows_as_images(graph: Graph) -> Graph:
    """Return the graph with quantized convolutions of rows of pixels, and what lies between them, over images."""
    if "QuantizeLinear" not in graph.operators:
        return graph
    images = _Images(graph)
    for node in graph.nodes:
        rule = _RULES.get(node.op_type)
        found = None if rule is None or len(node.outputs) > 1 else rule(images, node)
        if found is None:
            images.nodes.append(node)
            continue
        row = node.outputs[0]
        images.nodes += [replace(found, outputs=(images.twin(row),)), view_node(row, images.twins[row], row)]
    return drop_dead(images.rewriter.finish(images.nodes)) if images.twins else graph


def _as_image(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:2], 1, *shape[2:])


def _conv(images: _Images, node: Node) -> Node | None:
    graph, rewriter, back = images.graph, images.rewriter, images.producers.get(node.inputs[1])
    weights = quantized_weights(graph, back)
    if back is None or weights is None or len(weights.values.shape) != _ROW_AXES:
        return None
    if weights.steps.size > 1 and weights.axis:
        return None
    x = images.quantized(node.inputs[0])
    if x is None:
        return None
    wide = _as_image(tuple(weights.values.shape))
    values = derived(weights.values, wide, partial(np.reshape, shape=wide))
    floats = rewriter.tensor(f"{node.inputs[1]}.image", wide)
    kernels = rewriter.constant(f"{back.inputs[0]}.image", values)
    images.nodes.append(replace(back, inputs=(kernels, *back.inputs[1:]), outputs=(floats,)))
    view = NodeView.of(graph, node)
    attributes = {**_steps(conv_windows(view)), "group": view.integer("group", 1)}
    return replace(node, inputs=(x, floats, *node.inputs[2:]), attributes=attributes)


def _steps(windows: Windows) -> dict[str, Any]:
    """Return the attributes of windows over an image of one row."""
    wide = windows.with_rows()
    return {"strides": wide.strides, "pads": wide.pads_given, "dilations": wide.dilations}


def _pool(images: _Images, node: Node) -> Node | None:
    view, x = NodeView.of(images.graph, node), images.twins.get(node.inputs[0])
    if x is None or view.integer("ceil_mode", 0):
        return None
    windows = pool_windows(view)
    kept = {name: value for name, value in node.attributes.items() if name == "count_include_pad"}
    return replace(node, inputs=(x,), attributes={"kernel_shape": (1, *windows.kernel), **_steps(windows), **kept})


def _concat(images: _Images, node: Node) -> Node | None:
    return _of_all(images, node) if concat_axis(NodeView.of(images.graph, node)) == 1 else None


def _pad(images: _Images, node: Node) -> Node | None:
    """Pad an image of one row as its row is padded, by numbers that are known."""
    view, x = NodeView.of(images.graph, node), images.twins.get(node.inputs[0])
    if x is None or (view.has(1) and not view.is_known(1)):
        return None
    pads = [(*side[:2], 0, *side[2:]) for side in zip(*padding(view), strict=True)]
    constant = images.rewriter.constant(f"{node.outputs[0]}.pads", np.array(pads, np.int64).reshape(-1))
    return Node("Pad", node.name, (x, constant, *node.inputs[2:3]), node.outputs, node.attributes)


def _of_first(images: _Images, node: Node) -> Node | None:
    """See the first operand as an image; all others have no axes, or one of channels."""
    x = images.twins.get(node.inputs[0])
    return None if x is None else replace(node, inputs=(x, *node.inputs[1:]))


def _rounding(images: _Images, node: Node) -> Node | None:
    return _of_first(images, node) if tensor_scale(images.graph, node) is not None else None


def _of_all(images: _Images, node: Node) -> Node | None:
    """See all operands as images, where all of them are."""
    found = [images.twins.get(name) for name in node.inputs]
    return replace(node, inputs=tuple(name for name in found if name)) if all(found) else None


_RULES: Mapping[str, _Rule] = {
    "Add": _of_all,
    "AveragePool": _pool,
    "BatchNormalization": _of_first,
    "Clip": _of_first,
    "Concat": _concat,
    "Conv": _conv,
    "DequantizeLinear": _rounding,
    "GlobalAveragePool": _of_first,
    "LeakyRelu": _of_first,
    "MaxPool": _pool,
    "Pad": _pad,
    "QuantizeLinear": _rounding,
    "Relu": _of_first,
}
"""Operator → what it is over images."""
