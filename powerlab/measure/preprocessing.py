"""Preprocess an image file into a model's input, as usual for networks trained on ImageNet.

A picture is 256 x 256 pixels of 8-bit red, green and blue; decoding it is left out. It is brought to 8/7 of the model's
longer side (256 for 224) by bilinear interpolation, the centre is cut out, and every channel is normalised by
ImageNet's mean and standard deviation, as torchvision's reference code does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError

PICTURE_SIDE = 256
_MEAN = (0.485, 0.456, 0.406)
_STD = (0.229, 0.224, 0.225)
_SIDE_TO_CROP = 256 / 224


class Pictures:
    """Seeded pictures that are turned into a model's input anew each time.

    Args:
        shape: of the input: pictures, 3, height, width.
        seed: makes the pictures repeatable.
    """

    def __init__(self, shape: tuple[int, int, int, int], seed: int) -> None:
        count, _, height, width = shape
        side = round(max(height, width) * _SIDE_TO_CROP)
        self._rows, self._columns = _sampled(height, side), _sampled(width, side)
        self._pixels = np.random.default_rng(seed).integers(
            0, 256, size=(count, PICTURE_SIDE, PICTURE_SIDE, 3), dtype=np.uint8
        )
        self._shape = shape

    def prepared(self) -> NDArray[np.float32]:
        """Return the input, NCHW."""
        wanted = _between(_between(self._pixels, self._rows, axis=1), self._columns, axis=2)
        out = np.empty(self._shape, np.float32)
        for channel, (mean, std) in enumerate(zip(_MEAN, _STD, strict=True)):
            np.multiply(wanted[..., channel], np.float32(1 / (255 * std)), out=out[:, channel])
            out[:, channel] -= np.float32(mean / std)
        return out


def picture_input(model: str, inputs: Mapping[str, NDArray[Any]]) -> str:
    """Return the name of the one input that takes pictures.

    Args:
        model: for the sentence of a refusal.
        inputs: the model's inputs, as they would be made without pictures.

    Raises:
        PowerlabError: the model takes something else.
    """
    if len(inputs) == 1:
        ((name, value),) = inputs.items()
        if value.dtype == np.float32 and value.ndim == 4 and value.shape[1] == 3:
            return name
    found = ", ".join(f"{name!r} {value.dtype} {list(value.shape)}" for name, value in inputs.items())
    raise PowerlabError(
        "preparation inside the timed part makes pictures into one float32 input [n, 3, height, width], but "
        f"{model} takes {found}; leave the preparation outside."
    )


def _sampled(wanted: int, side: int) -> NDArray[np.float64]:
    """Return where on a picture's side the cut-out's pixels lie, in pixels, with pixel centres at integers."""
    first = (side - wanted) // 2
    place = (np.arange(first, first + wanted) + 0.5) * PICTURE_SIDE / side - 0.5
    return np.clip(place, 0, PICTURE_SIDE - 1)


def _between(pixels: NDArray[Any], place: NDArray[np.float64], axis: int) -> NDArray[Any]:
    """Return the pixels at the places along one axis, interpolated where a place lies between two of them."""
    below = place.astype(np.intp)
    share = (place - below).astype(np.float32)
    if not share.any():
        cut = [slice(None)] * pixels.ndim
        cut[axis] = slice(int(below[0]), int(below[-1]) + 1)
        return pixels[tuple(cut)]
    share = share.reshape([-1 if one == axis else 1 for one in range(pixels.ndim)])
    above = np.minimum(below + 1, pixels.shape[axis] - 1)
    mixed: NDArray[Any] = pixels.take(below, axis) * (1 - share) + pixels.take(above, axis) * share
    return mixed
