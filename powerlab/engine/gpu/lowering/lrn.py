"""Local response normalisation."""

from __future__ import annotations

from powerlab.engine.codegen.attributes import number
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.ir.graph import Node


def lower_lrn(builder: Builder, node: Node) -> None:
    """Lower an LRN."""
    x, source = builder.image(node.inputs[0]), builder.blocks(node.inputs[0])
    sizes = (x.images, x.channels, x.pixels, int(number(node, "size")))
    numbers = (number(node, "alpha"), number(node, "beta"), number(node, "bias"))
    builder.emit_flat("lrn", node, (builder.new_blocks(node.outputs[0]), source), x.vectors, push=(*sizes, *numbers))
