"""Shapes as kernels over images see them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct


class Image(Struct, frozen=True):
    """A shape as images in blocks see it."""

    images: int
    channels: int
    height: int
    width: int

    @property
    def blocks(self) -> int:
        """Return the blocks of 4 channels."""
        return -(-self.channels // 4)

    @property
    def pixels(self) -> int:
        """Return the pixels of an image."""
        return self.height * self.width

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
