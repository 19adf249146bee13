"""Regions of interest: as many bins of each, whatever its size."""

from __future__ import annotations

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops import NodeView
from powerlab.engine.ops.sampling import ROI_COORDINATES, ROI_MODES, one_of
from powerlab.engine.program.operand import Element, Operand
from powerlab.engine.program.program import Tensor


def lower_roi_align(builder: Builder, node: Node) -> None:
    """Lower a RoiAlign: see ``kernels/strided/roi_align.hpp``."""
    view = NodeView(node, tuple(builder.graph.tensors[name] for name in node.inputs), (None,) * len(node.inputs))
    numbers = (
        view.integer("sampling_ratio", 0),
        one_of(view, "mode", "avg", ROI_MODES),
        one_of(view, "coordinate_transformation_mode", "half_pixel", ROI_COORDINATES),
    )
    image, regions = _blocks(builder.blocked(node.inputs[0])), [builder.general(name) for name in node.inputs[1:]]
    operands = [builder.new_general(node.outputs[0]), image, *regions]
    builder.emit_general("roi_align_f32", node, operands, numbers, alpha=view.number("spatial_scale", 1.0))


def _blocks(tensor: Tensor) -> Operand:
    """Return a tensor in blocks as a general one: images, blocks, rows, columns, and channels of a block."""
    layout = tensor.layout
    sizes = (layout.n, layout.blocks, layout.h, layout.w, layout.pixel)
    strides = (layout.image, layout.plane, layout.row, layout.pixel, 1)
    return Operand(tensor.storage, Element.FLOAT, sizes, strides, tensor.offset + layout.start)
