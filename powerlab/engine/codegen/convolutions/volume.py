"""Convolutions over volumes: planes follow on each other in blocks, so a kernel's planes are more channels of an image.

In blocks, the channels of a plane end where those of the next one begin. So an image that has the channels of as many
planes as the kernel is deep needs no copy: it is a view that begins at the first of them, and images overlap. Where
channels are so few that blocks would be filled up with zeros, those of all planes are copied side by side instead.
"""

from __future__ import annotations

from functools import cached_property, lru_cache, partial

import numpy as np
from msgspec.structs import asdict, replace

from powerlab.engine.codegen.attributes import integers
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.algorithm import Algorithm
from powerlab.engine.codegen.convolutions.algorithms.direct import DirectConvolution
from powerlab.engine.codegen.convolutions.algorithms.fields import window_fields
from powerlab.engine.codegen.convolutions.algorithms.table import ALGORITHMS
from powerlab.engine.codegen.convolutions.algorithms.winograd import WinogradConvolution
from powerlab.engine.codegen.convolutions.choosing import cheapest, expected_cycles
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape, halo_of
from powerlab.engine.codegen.convolutions.direct_kernel import Direct, emit_direct
from powerlab.engine.codegen.convolutions.partition import Work, partition
from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import Halo, Layout, blocked, divide_up, planar
from powerlab.engine.program.operand import Element, Operand
from powerlab.engine.program.program import Floats, Tensor
from powerlab.engine.target.machine import Machine


def lower_conv_volume(builder: Builder, node: Node) -> None:
    """Lower a FusedVolumeConv, one image of the batch after the other."""
    volume = _Volume(builder, node)
    bias = builder.optional_constant(node.input(2))
    winograd = _winograd(volume.shape, builder.machine)
    halo = volume.halo if winograd is None else volume.halo.union(winograd[0].halo(volume.shape))
    out, width = builder.new_planar(node.outputs[0]), builder.tier.vector_width
    outputs, made = volume.shape.outputs, volume.made
    for image in range(builder.graph.shape(node.inputs[0])[0]):
        x = volume.joined(image, halo) if volume.has_few_channels else volume.overlapping(image, halo)
        result = builder.in_arena(blocked((made[0], outputs, made[1], made[2]), width))
        conv = Direct(x, result, None, volume.weights, bias, 1, width, volume.fields)
        if winograd is None:
            emit_direct(builder, node, conv, _choice(builder, conv))
        else:
            algorithm, choice = winograd
            algorithm.emit_between(builder, node, volume.shape, choice, conv=conv)
        rows = out.seen_as(_planes(outputs, made), image * out.layout.image)
        builder.emit("reorder_to_planes", f"{node.outputs[0]} to planes", rows, result)


class _Volume:
    """A convolution over volumes as one over images, as many as it makes planes.

    Attributes:
        made: planes, rows and columns of the result.
        has_few_channels: whether those of all planes that a window sees fill fewer blocks together than apart.
        weights: (O, channels of all planes, kernel rows, columns).
        shape: of the convolution over images.
        fields: of its native step.
        halo: the zeros that a direct convolution reads around each image.
    """

    def __init__(self, builder: Builder, node: Node) -> None:
        self._builder, self._node, width = builder, node, builder.tier.vector_width
        _, self._channels, *self._size = builder.graph.shape(node.inputs[0])
        _, outputs, *self.made = builder.graph.shape(node.outputs[0])
        (self._stride, *strides), (self._dilation, *dilations), (self._before, *pads) = (
            integers(node, name)[:3] for name in ("strides", "dilations", "pads")
        )
        weights = builder.kept(node.inputs[1])
        taps, *kernel = weights.shape[2:]
        self._taps: int = taps
        depth, apart = (self._taps - 1) * self._dilation + 1, divide_up(self._channels, width)
        self.has_few_channels = divide_up(self._taps * self._channels, width) < depth * apart
        joined = self._taps * self._channels if self.has_few_channels else depth * apart * width
        ordered = (
            _planes_first if self.has_few_channels else partial(_as_channels, dilation=self._dilation, width=width)
        )
        self.weights = derived(weights, (outputs, joined, *kernel), ordered)
        self.shape = ConvShape(
            images=self.made[0],
            inputs=self.weights.shape[1],
            outputs=outputs,
            kernel=(self.weights.shape[2], self.weights.shape[3]),
            strides=(strides[0], strides[1]),
            dilations=(dilations[0], dilations[1]),
            pads=(pads[0], pads[1]),
            in_size=(self._size[1], self._size[2]),
            size=(self.made[1], self.made[2]),
        )
        self.fields = window_fields(self.shape, node)
        self.halo = halo_of(self.shape, self.shape.size)
        self._x = builder.planar(node.inputs[0])

    def overlapping(self, image: int, halo: Halo) -> Tensor:
        """Return a volume in blocks, written by the next steps, as images of all planes that a window sees."""
        width = self._builder.tier.vector_width
        blocks = divide_up(self._channels, width)
        depth = self.weights.shape[1] // (blocks * width)
        planes = max((self.made[0] - 1) * self._stride + depth, self._before + self._size[0])
        layout = blocked((planes, self._channels, self._size[1], self._size[2]), width, halo)
        volume = self._builder.in_arena(layout)
        rows = self._x.seen_as(_planes(self._channels, self._size), image * self._x.layout.image)
        _fill(self._builder, self._node, volume, rows, self._before)
        channels, blocks = self.weights.shape[1], depth * blocks
        return volume.seen_as(
            replace(layout, n=self.made[0], c=channels, blocks=blocks, image=self._stride * layout.image)
        )

    def joined(self, image: int, halo: Halo) -> Tensor:
        """Return images in blocks, written by the next steps, with the channels of all planes that a window sees."""
        builder, count, pixels = self._builder, self.made[0], self._size[1] * self._size[2]
        inputs = self._taps * self._channels
        images = builder.in_arena(planar((count, inputs, self._size[1], self._size[2]), compact=True))
        for tap in range(self._taps):
            # Of its planes, those that lie in the volume: all else is zeros.
            shift = tap * self._dilation - self._before
            first = min(count, max(0, divide_up(-shift, self._stride)))
            last = max(first, min(count, divide_up(self._size[0] - shift, self._stride)))
            parts = ((0, first, None), (first, last, first * self._stride + shift), (last, count, None))
            for begin, end, plane in parts:
                if begin == end:
                    continue
                sizes = (end - begin, self._channels, pixels)
                offset = (begin * inputs + tap * self._channels) * pixels
                out = Operand(images.storage, Element.FLOAT, sizes, (inputs * pixels, pixels, 1), offset)
                builder.copy(self._node, out, self._zero if plane is None else self._seen(image, plane, sizes))
        result = builder.in_arena(
            blocked((count, inputs, self._size[1], self._size[2]), builder.tier.vector_width, halo)
        )
        builder.emit("reorder_to_blocks", f"{self._node.inputs[0]} to blocks", result, images)
        return result

    @cached_property
    def _zero(self) -> Operand:
        return self._builder.number(0.0)

    def _seen(self, image: int, plane: int, sizes: tuple[int, int, int]) -> Operand:
        """Return planes of the volume, from one on, as far apart as windows are."""
        pixels, x = sizes[2], self._x
        strides = (self._stride * pixels, self._size[0] * pixels, 1)
        return Operand(x.storage, Element.FLOAT, sizes, strides, x.offset + image * x.layout.image + plane * pixels)


@lru_cache(maxsize=64)  # layers of one network resemble each other
def _winograd(shape: ConvShape, machine: Machine) -> tuple[WinogradConvolution, Choice] | None:
    """Return the Winograd convolution that is expected to be faster than the direct one, if any, and its cut."""
    tiles = [one for one in ALGORITHMS.values() if isinstance(one, WinogradConvolution)]
    found: list[Algorithm] = [DirectConvolution(), *(one for one in tiles if one.applies(shape, machine.tier))]
    alone = replace(machine, threads=1)
    best = min(found, key=lambda algorithm: expected_cycles(algorithm, shape, alone))
    return (best, cheapest(best, shape, machine)) if isinstance(best, WinogradConvolution) else None


def _as_channels(weights: Floats, *, dilation: int, width: int) -> Floats:
    """Return weights (O, C, planes, rows, columns) with a plane's channels, filled up, as channels of one image.

    Where planes are dilated, those between get zeros.
    """
    outputs, channels, planes, *kernel = weights.shape
    depth, filled = (planes - 1) * dilation + 1, divide_up(channels, width) * width
    wide = np.zeros((outputs, depth, filled, *kernel), np.float32)
    wide[:, ::dilation, :channels] = weights.transpose(0, 2, 1, 3, 4)
    return wide.reshape(outputs, depth * filled, *kernel)


def _planes_first(weights: Floats) -> Floats:
    """Return weights (O, C, planes, rows, columns) with the channels of all planes as those of one image."""
    outputs, _, _, *kernel = weights.shape
    return np.ascontiguousarray(weights.swapaxes(1, 2)).reshape(outputs, -1, *kernel)


def _planes(channels: int, size: list[int]) -> Layout:
    """Return one image of a volume, as it lies outside the blocks, with planes for images."""
    planes, rows, columns = size
    plane = rows * columns
    return Layout(planes, channels, rows, columns, channels, 1, columns, planes * plane, plane)


def _fill(builder: Builder, node: Node, volume: Tensor, rows: Tensor, before: int) -> None:
    """Write an image's planes into a volume, and zeros into the planes around them: there no channel is read."""
    layout, inside = volume.layout, rows.layout.n
    nothing = rows.seen_as(replace(rows.layout, n=1, c=0))
    parts = ((0, before, nothing), (before, inside, rows), (before + inside, layout.n - before - inside, nothing))
    for first, count, source in parts:
        if count > 0:
            planes = volume.seen_as(replace(layout, n=count), first * layout.image)
            builder.emit("reorder_to_blocks", f"{node.inputs[0]} to blocks", planes, source)


def _choice(builder: Builder, conv: Direct) -> Choice:
    layout, source = conv.out.layout, conv.x.layout
    work = Work(
        groups=1,
        in_blocks=source.blocks,
        lanes=conv.lanes,
        taps=conv.weights.shape[2] * conv.weights.shape[3],
        out_blocks=layout.blocks,
        rows=layout.n * layout.h,
        columns=layout.w,
        x_bytes=4 * source.n * source.c * source.h * source.w,
    )
    return Choice(algorithm="direct", **asdict(partition(work, builder.tier, builder.threads, builder.machine.caches)))
