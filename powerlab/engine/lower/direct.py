"""The kernel ``conv_direct`` and what it asks for; convolutions and fully connected layers are views on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from powerlab.engine.graph import Node
from powerlab.engine.layout import divide_up
from powerlab.engine.lower.builder import Builder
from powerlab.engine.lower.partition import Work, partition
from powerlab.engine.pack import fill_channels, pack_direct
from powerlab.engine.program import Floats, Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Direct:
    """A convolution on its way to ``conv_direct``; ``fields`` are those of the native step that stay as they are."""

    x: Tensor
    out: Tensor
    residual: Tensor | None
    weights: Floats
    bias: Floats | None
    groups: int
    lanes: int
    fields: Mapping[str, Any]


def _bytes_read(conv: Direct) -> int:
    """Return how much of the input is read: strides wider than the kernel leave some out."""
    x, out, fields = conv.x.layout, conv.out.layout, conv.fields
    rows: int = min(x.h, out.h * fields["kernel_h"] * fields["dilation_h"])
    columns: int = min(x.w, out.w * fields["kernel_w"] * fields["dilation_w"])
    return 4 * x.n * x.c * rows * columns


def emit_direct(builder: Builder, node: Node, conv: Direct) -> None:
    """Append the step that computes ``conv``: packed weights, and the work cut for threads and caches."""
    tier, layout = builder.tier, conv.out.layout
    inputs, kernel_h, kernel_w = conv.weights.shape[1:]
    work = Work(
        groups=conv.groups,
        in_blocks=divide_up(inputs, conv.lanes),
        lanes=conv.lanes,
        taps=kernel_h * kernel_w,
        out_blocks=layout.blocks // conv.groups,
        rows=layout.n * layout.h,
        columns=layout.w,
        x_bytes=_bytes_read(conv),
    )
    builder.emit(
        "conv_direct",
        node,
        conv.out,
        conv.x,
        conv.residual,
        weights=pack_direct(conv.weights, conv.groups, tier.vector_width, tier.tile_blocks, conv.lanes),
        bias=fill_channels(conv.bias, conv.weights.shape[0], layout.blocks, tier.vector_width),
        groups=conv.groups,
        lanes=conv.lanes,
        last_lanes=inputs - (work.in_blocks - 1) * conv.lanes,
        **asdict(partition(work, tier, builder.threads)),
        **conv.fields,
    )
