"""Weights that change from run to run: a step of the plan packs them, in front of the one that reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.pack import fill_channels, packed_direct_floats, packed_winograd_floats
from powerlab.engine.codegen.pairs.pack import packed_pairs_floats
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.computed_weights import ComputedWeights
from powerlab.engine.program.layout import divide_up
from powerlab.engine.program.operand import Operand
from powerlab.engine.program.program import Tensor


class MovingKernels(ComputedWeights, frozen=True, eq=False):
    """Computed weights with what packing by a core wants to know of them."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape (O, I / groups, kh, kw) that the merged weights have."""
        groups, outputs, inputs, *kernel = self.values.sizes
        return (groups * outputs, inputs * self.merged, *kernel)

    def part(self, first: int, groups: int, merged: int) -> MovingKernels:
        """Return some groups that follow on each other, of which so many become one."""
        outputs = self.values.sizes[1]
        bias = None if self.bias is None else self.bias.sliced(0, first * outputs, groups * outputs)
        return MovingKernels(self.values.sliced(0, first, groups), bias, merged)


class Moving(Struct, frozen=True, eq=False):
    """A convolution from ``x`` to ``out``; ``fields`` are its window and activation as fields of the native step."""

    x: Tensor
    out: Tensor
    kernels: MovingKernels
    fields: Mapping[str, Any]


def pack_kernels(builder: Builder, node: Node, kernels: MovingKernels, unit_blocks: int, lanes: int) -> Operand:
    """Append the step that packs weights for ``conv_direct``, and return what it makes."""
    groups = kernels.values.sizes[0] // kernels.merged
    packed = builder.room((packed_direct_floats(kernels.shape, groups, builder.tier.vector_width),))
    numbers = (unit_blocks, lanes, kernels.merged)
    builder.emit_general("pack_kernels_f32", _label(node), (packed, kernels.values), numbers)
    return packed


def pack_pair_kernels(builder: Builder, node: Node, kernels: MovingKernels, unit_blocks: int) -> Operand:
    """Append the step that packs weights for ``conv_direct_bf16``, and return what it makes."""
    groups = kernels.values.sizes[0] // kernels.merged
    packed = builder.room((packed_pairs_floats(kernels.shape, groups, builder.tier, builder.tier.narrow_block),))
    numbers = (unit_blocks, kernels.merged)
    builder.emit_general("pack_kernels_bf16", _label(node), (packed, kernels.values), numbers)
    return packed


def pack_winograd_kernels(builder: Builder, node: Node, kernels: MovingKernels, tile: int, unit_blocks: int) -> Operand:
    """Append the step that transforms and packs weights for ``conv_winograd``, and return what it makes."""
    floats = packed_winograd_floats(kernels.shape, tile, builder.tier.vector_width, kernels.values.sizes[0])
    packed = builder.room((floats,))
    builder.emit_general(f"pack_winograd{tile}_kernels_f32", _label(node), (packed, kernels.values), (unit_blocks,))
    return packed


def pack_depthwise_kernels(builder: Builder, node: Node, weights: Operand) -> Operand:
    """Append the step that packs weights (channels, 1, 1, kh, kw) for ``conv_depthwise``, and return what it makes."""
    channels, _, _, rows, columns = weights.sizes
    width = builder.tier.vector_width
    packed = builder.room((divide_up(channels, width) * width * rows * columns,))
    builder.emit_general("pack_depthwise_kernels_f32", _label(node), (packed, weights))
    return packed


def packed_bias(builder: Builder, node: Node, bias: Operand | None, channels: int) -> dict[str, Any]:
    """Return the bias as a field of a step: packed by a step in front of it, or zeros where there is none."""
    blocks, width = divide_up(channels, builder.tier.vector_width), builder.tier.vector_width
    if bias is None:
        return {"bias": fill_channels(None, channels, blocks, width)}
    packed = builder.room((blocks * width,))
    builder.emit_general("pack_channels_f32", _label(node), (packed, bias))
    return {"packed_bias": packed}


def _label(node: Node) -> str:
    return f"{node.name or node.outputs[0]} packed"
