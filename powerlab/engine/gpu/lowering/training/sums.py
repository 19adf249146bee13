"""Sums over all pixels of each channel."""

from __future__ import annotations

import numpy as np

from powerlab.engine.gpu.activations import PLAIN
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.images import Image
from powerlab.engine.gpu.target import Target
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.storage import Storage

OF_CHANNEL, OF_SQUARES, OF_PRODUCTS = range(3)
"""KIND of ``shaders/training/channel_sums.comp``."""

_LANES = 64
_GROUPS_A_CORE = 4
"""Work groups that a core wants: while one waits for what it reads, others compute."""

_LEAST_PIXELS, _MOST_PIXELS = 256, 1 << 14
"""Of a part: fewer are not worth a work group, and the sum of more in one row is less exact."""


def parts_of(target: Target, groups: int, pixels: int) -> int:
    """Return the parts that a sum over pixels is cut into, of which so many work groups have one each."""
    wanted = -(-_GROUPS_A_CORE * target.cores // groups)
    return max(min(wanted, pixels // _LEAST_PIXELS), -(-pixels // _MOST_PIXELS), 1)


def emit_channel_sums(
    builder: Builder, node: Node, kind: int, image: Image, sources: tuple[Storage, Storage, Storage]
) -> tuple[Storage, int]:
    """Append the sums of the parts of each channel; return where they are, [part][block][sum], and how many parts.

    Args:
        builder: gets them.
        node: what they are for.
        kind: one of those above.
        image: the images.
        sources: images, gradients, and the mean of each channel.
    """
    count = image.images * image.pixels
    parts = parts_of(builder.target, image.blocks, count)
    sums = builder.room(4 * image.blocks * parts * (1 if kind == OF_CHANNEL else 2))
    builder.emit(
        "channel_sums",
        node,
        (sums, *sources),
        constants=(_LANES, kind),
        push=(image.images, image.channels, image.pixels, parts),
        groups=(image.blocks, parts, 1),
    )
    return sums, parts


def lower_channel_sums(builder: Builder, node: Node) -> None:
    """Lower a ChannelSums."""
    x, source = builder.image(node.inputs[0]), builder.blocks(node.inputs[0])
    sums, parts = emit_channel_sums(builder, node, OF_CHANNEL, x, (source, source, source))
    function, numbers = PLAIN
    nothing = builder.constant(np.zeros(4 * x.blocks, np.float32))
    builder.emit_flat(
        "sum_parts",
        node,
        (builder.new_rows(node.outputs[0]), sums, nothing, sums),
        x.blocks,
        constants=(function, 0),
        push=(*numbers, x.blocks, parts, 1, x.blocks),
    )
