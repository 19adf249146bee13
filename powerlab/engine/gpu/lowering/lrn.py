"""Local response normalisation."""

from __future__ import annotations

from powerlab.engine.codegen.attributes import number
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.images import Image
from powerlab.engine.ir.graph import Node


def lower_lrn(builder: Builder, node: Node) -> None:
    """Lower an LRN."""
    x, source = builder.image(node.inputs[0]), builder.blocks(node.inputs[0])
    out = builder.new_blocks(node.outputs[0])
    builder.emit_flat("lrn", node, (out, source), x.vectors, push=lrn_numbers(x, node))


def lrn_numbers(x: Image, node: Node) -> tuple[float, ...]:
    """Return the push constants of an LRN of images, or of its gradient."""
    sizes = (x.images, x.channels, x.pixels, int(number(node, "size")))
    return (*sizes, number(node, "alpha"), number(node, "beta"), number(node, "bias"))
