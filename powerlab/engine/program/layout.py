"""How a tensor lies in memory. The three layouts and their halo are described in native/engine/kernels/step.hpp."""

from __future__ import annotations

import math

from msgspec import Struct
from msgspec.structs import replace

PLANAR_ALIGNMENT = 16
"""Floats to which a planar image is filled up: the widest vector, so that every tier may load whole vectors."""

BYTE_BLOCK = 16
"""Channels of a block of bytes, in every tier."""

PAIR_IMAGE = 4
"""Channels of a pixel of bfloat16, of which two share the place of a float, where an image has no more."""

WORD_BYTES = 4
"""Channels that share the place of a float in a tensor of bytes."""

_PAGE_FLOATS = 1024
"""Planes that lie a multiple of 4 KB apart compete for the same cache sets."""


def divide_up(value: int, divisor: int) -> int:
    """Return ``value / divisor``, rounded up."""
    return -(-value // divisor)


class Halo(Struct, frozen=True, gc=False):
    """Zeros around each plane, in pixels."""

    top: int = 0
    left: int = 0
    bottom: int = 0
    right: int = 0

    def union(self, other: Halo) -> Halo:
        """Return the smallest halo that covers both."""
        return Halo(
            max(self.top, other.top),
            max(self.left, other.left),
            max(self.bottom, other.bottom),
            max(self.right, other.right),
        )


NO_HALO = Halo()

Shape4 = tuple[int, int, int, int]


def shape4(shape: tuple[int, ...]) -> Shape4:
    """Return a shape of any rank as images, channels, rows, columns, without moving an element.

    A vector is one image; dimensions between channels and columns become rows.
    """
    match shape:
        case ():
            return (1, 1, 1, 1)
        case (c,):
            return (1, c, 1, 1)
        case (n, c):
            return (n, c, 1, 1)
        case (n, c, *rows, w):
            return (n, c, math.prod(rows), w)
    raise AssertionError(shape)


def frames4(shape: tuple[int, ...]) -> Shape4:
    """Return the shape of a tensor of bytes as images: of a volume (N, C, D, H, W), each plane is one."""
    match shape:
        case (n, c, d, h, w):
            return (n * d, c, h, w)
    return shape4(shape)


class Layout(Struct, frozen=True, gc=False):
    """Sizes and strides of a tensor, in floats: what the native ``View`` takes, in its order.

    Attributes:
        n: images.
        c: channels.
        h: rows.
        w: columns.
        blocks: planes an image has: channel blocks, or channels in the planar layout.
        pixel: stride of one column.
        row: stride of one row.
        plane: stride of one plane.
        image: stride of one image.
        halo: zeros around each plane.
    """

    n: int
    c: int
    h: int
    w: int
    blocks: int
    pixel: int
    row: int
    plane: int
    image: int
    halo: Halo = NO_HALO

    @property
    def start(self) -> int:
        """Floats from the start of the storage to the first pixel inside the halo."""
        return self.halo.top * self.row + self.halo.left * self.pixel

    @property
    def size(self) -> int:
        """Floats the storage needs."""
        return self.n * self.image

    def flat(self) -> Layout | None:
        """Return the same memory as one row of all pixels, or None where rows do not follow on each other."""
        if self.halo != NO_HALO or self.row != self.w * self.pixel:
            return None
        return replace(self, h=1, w=self.h * self.w, row=self.h * self.row)


def blocked(shape: Shape4, lanes: int, halo: Halo = NO_HALO) -> Layout:
    """Return the layout [n][ceil(c / lanes)][h][w][lanes]; with ``lanes`` = c it is the interleaved one."""
    n, c, h, w = shape
    blocks = divide_up(c, lanes)
    row = (halo.left + w + halo.right) * lanes
    plane = (halo.top + h + halo.bottom) * row
    if plane % _PAGE_FLOATS == 0 and blocks > 1:
        plane += lanes
    return Layout(n, c, h, w, blocks, lanes, row, plane, blocks * plane, halo)


def byte_blocks(shape: Shape4, halo: Halo = NO_HALO) -> Layout:
    """Return the layout [n][ceil(c / 16)][h][w][16] of bytes; its strides count words of four, as floats."""
    n, c, h, w = shape
    return replace(blocked((n, divide_up(c, WORD_BYTES), h, w), BYTE_BLOCK // WORD_BYTES, halo), c=c)


def byte_words(shape: Shape4, halo: Halo = NO_HALO) -> Layout:
    """Return the layout [n][h][w][4] of bytes, for images of up to four channels."""
    n, c, h, w = shape
    return replace(blocked((n, 1, h, w), 1, halo), c=c)


def pair_blocks(shape: Shape4, block: int, halo: Halo = NO_HALO) -> Layout:
    """Return the layout [n][ceil(c / block)][h][w][block] of 16-bit floats; strides count words of two, as floats."""
    n, c, h, w = shape
    return replace(blocked((n, pair_words(c, block), h, w), block // 2, halo), c=c)


def pair_words(channels: int, block: int) -> int:
    """Return the words that so many channels of 16-bit floats take, filled up to whole blocks of so many."""
    return divide_up(channels, block) * block // 2


def planar(shape: Shape4, *, compact: bool = False) -> Layout:
    """Return the layout [n][c][h][w], each image filled up to whole vectors unless ``compact``."""
    n, c, h, w = shape
    image = c * h * w
    if not compact:
        image = divide_up(image, PLANAR_ALIGNMENT) * PLANAR_ALIGNMENT
    return Layout(n, c, h, w, c, 1, w, h * w, image)
