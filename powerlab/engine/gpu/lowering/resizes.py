"""Resizing images."""

from __future__ import annotations

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.ir.graph import Node


def lower_resize(builder: Builder, node: Node) -> None:
    """Lower a Resize by whole factors."""
    x, made = builder.image(node.inputs[0]), builder.image(node.outputs[0])
    source = builder.blocks(node.inputs[0])
    sizes = (x.images * x.blocks, x.height, x.width, *integers(node, "factors"))
    builder.emit_flat("resize", node, (builder.new_blocks(node.outputs[0]), source), made.vectors, push=sizes)


def lower_interpolate(builder: Builder, node: Node) -> None:
    """Lower an Interpolate: sums over taps."""
    x, made = builder.image(node.inputs[0]), builder.image(node.outputs[0])
    rows, columns = (builder.graph.constants[name] for name in node.inputs[1:])
    source = builder.blocks(node.inputs[0])
    taps = [builder.constant(one.reshape(-1), floats=True) for one in (rows, columns)]
    sizes = (x.images * x.blocks, x.height, x.width, made.height, made.width, rows.shape[1], columns.shape[1])
    builder.emit_flat(
        "interpolate",
        node,
        (builder.new_blocks(node.outputs[0]), source, *taps),
        made.vectors,
        push=(*sizes, number(node, "extrapolation")),
    )
