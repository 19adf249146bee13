"""A first layer of few channels in bfloat16: pixels keep them side by side, and a kernel row is one run of words.

AMX has another way: it takes pixels of two words as rows of a tile (:mod:`.direct_pairs`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.direct import direct_cycles
from powerlab.engine.codegen.convolutions.algorithms.direct_pairs import pair_candidates, pair_result
from powerlab.engine.codegen.convolutions.algorithms.fields import window_fields
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape, halo_of
from powerlab.engine.codegen.convolutions.partition import Work
from powerlab.engine.codegen.pack import fold_row
from powerlab.engine.codegen.pairs.kernel import Pairs, emit_pairs, pair_tier
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import PAIR_IMAGE, Halo, divide_up, pair_blocks, shape4
from powerlab.engine.program.program import Floats, Tensor
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import BF16, Tier

_WORD = 2
"""Channels of a word."""


class InterleavedPairConvolution(Struct, frozen=True):
    """Convolutions over images from outside that have up to four channels."""

    name: str = "interleaved_bf16"

    def applies(self, shape: ConvShape, tier: Tier) -> bool:
        """Tell whether it can compute ``shape``."""
        few_channels = shape.groups == 1 and shape.inputs <= PAIR_IMAGE and shape.from_outside
        in_registers = tier.computes_in(BF16) and not tier.multiplies_matrices
        return few_channels and in_registers and shape.dilations[1] == 1 and not shape.preactivated

    def candidates(self, shape: ConvShape, machine: Machine) -> Sequence[Choice]:
        """Return the cuts worth a try."""
        return pair_candidates(self.name, _work(shape, machine.tier), machine)

    def cycles(self, shape: ConvShape, choice: Choice, machine: Machine) -> float:
        """Return how many cycles of a core the convolution is expected to take."""
        work = _work(shape, machine.tier)
        return direct_cycles(work, work.lanes, choice, replace(machine, tier=pair_tier(machine.tier)))

    def halo(self, shape: ConvShape) -> Halo:
        """Return the zeros it needs around the planes of the input."""
        return halo_of(shape, shape.size)

    def emit(self, builder: Builder, node: Node, shape: ConvShape, choice: Choice) -> None:
        """Append the steps that interleave the image and compute a FusedConv."""
        made = pair_result(builder, node, shape)
        conv = Pairs(
            x=_interleaved(builder, node.inputs[0], shape),
            out=made.out,
            floats=made.floats,
            residual=made.residual,
            narrow_residual=made.narrow_residual,
            weights=_folded(builder.constant(node.inputs[1]), _channels(shape)),
            bias=builder.optional_constant(node.input(2)),
            groups=1,
            words=_row_words(shape),
            fields={**window_fields(shape, node), "kernel_w": 1, "stride_w": 1, "pad_left": 0},
        )
        emit_pairs(builder, node, conv, choice)


def _interleaved(builder: Builder, name: str, shape: ConvShape) -> Tensor:
    """Append the step that interleaves an image; return it with windows, which lie a stride apart, as pixels."""
    images, _, rows, columns = shape4(builder.graph.shape(name))
    channels, words, halo = _channels(shape), _row_words(shape), halo_of(shape, shape.size)
    before, stride = channels * shape.pads[1], channels * shape.strides[1] // _WORD
    length = max(divide_up(before + channels * columns, _WORD), (shape.size[1] - 1) * stride + words)
    x = builder.in_arena(pair_blocks((images, _WORD, rows, length), _WORD, Halo(top=halo.top, bottom=halo.bottom)))
    source = builder.external(name)
    builder.emit(f"narrow_image_{BF16}", f"{name} interleaved", x, source, numbers=[channels, before])
    return x.seen_as(replace(x.layout, c=_WORD * words, w=shape.size[1], pixel=stride))


def _channels(shape: ConvShape) -> int:
    """Return the channels that a pixel has in the image: one more where windows would begin within a word."""
    return shape.inputs + shape.inputs * shape.strides[1] % _WORD


def _row_words(shape: ConvShape) -> int:
    return divide_up(_channels(shape) * shape.kernel[1], _WORD)


def _folded(weights: Floats, channels: int) -> Floats:
    """Return the weights with a kernel row as channels, (O, I, kh, kw) -> (O, kw * channels, kh, 1)."""
    filling = channels - weights.shape[1]
    return fold_row(np.pad(weights, ((0, 0), (0, filling), (0, 0), (0, 0))) if filling else weights)


def _work(shape: ConvShape, tier: Tier) -> Work:
    """Return what there is to do; a word counts as a channel of floats."""
    return Work(
        groups=1,
        in_blocks=1,
        lanes=_row_words(shape),
        taps=shape.kernel[0],
        out_blocks=divide_up(shape.outputs, tier.vector_width),
        rows=shape.images * shape.size[0],
        columns=shape.size[1],
        x_bytes=shape.bytes_read // _WORD,
    )
