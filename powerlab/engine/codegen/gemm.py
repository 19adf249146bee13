"""Fully connected layers: few images are a matter of reading the weights, many a convolution of one row."""

from __future__ import annotations

from dataclasses import asdict

from powerlab.engine.codegen.attributes import clamp_fields
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.direct_kernel import Direct, emit_direct
from powerlab.engine.codegen.convolutions.partition import Work, partition
from powerlab.engine.codegen.pack import fill_channels, pack_direct, packed_direct_floats
from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import Layout, divide_up
from powerlab.engine.program.program import Floats
from powerlab.engine.runtime.memory import value_bytes
from powerlab.engine.target.tiers import Tier

_GEMM_LANES = 128
"""Features that count as one input block."""

GEMV_IMAGES = 8
"""Images that the kernel ``gemv`` takes at most, as its header says."""

_GEMV_BLOCKS = 4
"""Output blocks that it takes together at most."""


def lower_gemm(builder: Builder, node: Node) -> None:
    """Lower a FusedGemm."""
    if builder.graph.shape(node.outputs[0])[0] <= GEMV_IMAGES:
        _emit_gemv(builder, node)
    else:
        _emit_convolution(builder, node)


def unit_blocks(images: int, tier: Tier) -> int:
    """Return how many output blocks ``gemv`` takes together: their sums for all images fit into a register tile."""
    return max(1, min(_GEMV_BLOCKS, tier.tile_blocks * tier.tile_pixels // images))


def _emit_gemv(builder: Builder, node: Node) -> None:
    tier, weights, bias = builder.tier, builder.kept(node.inputs[1]), builder.optional_constant(node.input(2))
    outputs, features = weights.shape
    x, out = builder.planar(node.inputs[0]), builder.new_planar(node.outputs[0])
    out_layout = _images_as_pixels(out.layout, outputs, tier.vector_width)
    together = unit_blocks(out_layout.w, tier)
    builder.emit(
        "gemv",
        node,
        out.seen_as(out_layout),
        x.seen_as(_images_as_pixels(x.layout, features, features)),
        weights=derived(
            weights,
            (packed_direct_floats(weights.shape, 1, tier.vector_width),),
            lambda rows: pack_direct(_kernels(rows), 1, tier.vector_width, together, features),
        ),
        bias=fill_channels(bias, outputs, out_layout.blocks, tier.vector_width),
        unit_blocks=together,
        **clamp_fields(node),
    )


def _emit_convolution(builder: Builder, node: Node) -> None:
    """Images are the pixels of one row, features its channels."""
    weights = builder.kept(node.inputs[1])
    outputs, features = weights.shape
    x, out = builder.planar(node.inputs[0]), builder.new_planar(node.outputs[0])
    lanes = min(_GEMM_LANES, features)
    fields = {"kernel_h": 1, "kernel_w": 1, "stride_h": 1, "stride_w": 1, "dilation_h": 1, "dilation_w": 1}
    conv = Direct(
        x=x.seen_as(_images_as_pixels(x.layout, features, lanes)),
        out=out.seen_as(_images_as_pixels(out.layout, outputs, builder.tier.vector_width)),
        residual=None,
        weights=derived(weights, (outputs, features, 1, 1), _kernels),
        bias=builder.optional_constant(node.input(2)),
        groups=1,
        lanes=lanes,
        fields={**fields, **clamp_fields(node)},
    )
    work = Work(
        groups=1,
        in_blocks=divide_up(features, lanes),
        lanes=lanes,
        taps=1,
        out_blocks=conv.out.layout.blocks,
        rows=1,
        columns=conv.out.layout.w,
        x_bytes=4 * features * conv.out.layout.w,
    )
    caches = builder.machine.caches
    # Where every thread may keep all weights, threads share rows, as those that read the result do.
    split = 1 if 2 * value_bytes(weights) <= caches.l2_bytes else None
    cut = partition(work, builder.tier, builder.threads, caches, split)
    emit_direct(builder, node, conv, Choice(algorithm="direct", **asdict(cut)))


def _kernels(weights: Floats) -> Floats:
    """Return the weights of outputs by features as kernels of one tap."""
    return weights.reshape(*weights.shape, 1, 1)


def _images_as_pixels(layout: Layout, channels: int, lanes: int) -> Layout:
    return Layout(
        n=1,
        c=channels,
        h=1,
        w=layout.n,
        blocks=divide_up(channels, lanes),
        pixel=layout.image,
        row=layout.size,
        plane=lanes,
        image=layout.size,
    )
