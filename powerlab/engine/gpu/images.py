"""Shapes as kernels over images see them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct


class Image(Struct, frozen=True):
    """A shape as images in blocks see it; as volumes, which have ``planes``, one after another."""

    images: int
    channels: int
    height: int
    width: int
    planes: int = 1

    @property
    def blocks(self) -> int:
        """Return the blocks of 4 channels."""
        return -(-self.channels // 4)

    @property
    def pixels(self) -> int:
        """Return the pixels of an image."""
        return self.planes * self.height * self.width

    @property
    def vectors(self) -> int:
        """Return the vectors of all images."""
        return self.images * self.blocks * self.pixels

    @property
    def is_rows(self) -> bool:
        """Tell whether blocks lie as rows do."""
        return self.pixels == 1 and self.channels % 4 == 0


def image_of(shape: Sequence[int]) -> Image:
    """Return a shape as images; a vector is one image, and axes between channels and columns become rows."""
    if len(shape) < 2:
        return Image(1, math.prod(shape), 1, 1)
    images, channels, *rest = shape
    return Image(images, channels, math.prod(rest[:-1]), rest[-1] if rest else 1)


def volume_of(shape: Sequence[int]) -> Image:
    """Return the shape (N, C, planes, rows, columns) as volumes: in memory they lie as :func:`image_of` says."""
    images, channels, planes, height, width = shape
    return Image(images, channels, height, width, planes)
