"""Fully connected layers."""

from __future__ import annotations

from dataclasses import asdict

from powerlab.engine.choice import Choice
from powerlab.engine.graph import Node
from powerlab.engine.layout import Layout, divide_up
from powerlab.engine.lower.attributes import clamp_fields
from powerlab.engine.lower.builder import Builder
from powerlab.engine.lower.direct import Direct, emit_direct
from powerlab.engine.lower.partition import Work, partition

_GEMM_LANES = 128
"""Features that count as one input block."""


def lower_gemm(builder: Builder, node: Node) -> None:
    """Lower a FusedGemm: images are the pixels of one row, features its channels."""
    weights = builder.constant(node.inputs[1])
    outputs, features = weights.shape
    x, out = builder.planar(node.inputs[0]), builder.new_planar(node.outputs[0])
    lanes = min(_GEMM_LANES, features)
    fields = {"kernel_h": 1, "kernel_w": 1, "stride_h": 1, "stride_w": 1, "dilation_h": 1, "dilation_w": 1}
    conv = Direct(
        x=x.seen_as(_images_as_pixels(x.layout, features, lanes)),
        out=out.seen_as(_images_as_pixels(out.layout, outputs, builder.tier.vector_width)),
        residual=None,
        weights=weights.reshape(outputs, features, 1, 1),
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
    cut = partition(work, builder.tier, builder.threads)
    emit_direct(builder, node, conv, Choice(algorithm="direct", **asdict(cut)))


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
