"""What a convolution is asked to do, weights included."""

from __future__ import annotations

from msgspec import Struct

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.activations import Finish
from powerlab.engine.gpu.images import Image
from powerlab.engine.gpu.lowering.weights import Weights
from powerlab.engine.program.storage import Storage

Places = tuple[Storage, Storage, Storage | None]
"""Result, image, and what is added to the result or None, all in blocks."""


class AcrossPlanes(Struct, frozen=True, kw_only=True):
    """How a convolution moves over the planes of a volume."""

    kernel: int
    stride: int = 1
    pad: int = 0
    dilation: int = 1


class Window(Struct, frozen=True, kw_only=True):
    """How a convolution moves over its image: rows, then columns; over a volume also across planes."""

    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int] = (0, 0)
    dilations: tuple[int, int] = (1, 1)
    across: AcrossPlanes | None = None

    @property
    def planes(self) -> int:
        """Return the planes of a window."""
        return 1 if self.across is None else self.across.kernel

    def kernel_of(self, name: str) -> str:
        """Return the name of a kernel over images, or of its variant over volumes."""
        return name if self.across is None else f"volume_{name}"

    @property
    def taps(self) -> int:
        """Return the pixels of a window."""
        return self.planes * self.kernel[0] * self.kernel[1]

    @property
    def is_point(self) -> bool:
        """Tell whether each pixel of the result is of one pixel, that at the same place."""
        return self.across is None and self.kernel == self.strides == (1, 1) and self.pads == (0, 0)


class Convolution(Struct, frozen=True, kw_only=True):
    """See the module.

    Attributes:
        x: the image.
        made: the result.
        window: how it moves.
        weights: and biases.
        groups: of channels.
        finish: how the kernel ends.
    """

    x: Image
    made: Image
    window: Window
    weights: Weights
    groups: int = 1
    finish: Finish

    def shape(self, *, residual: bool) -> ConvShape:
        """Return all that a choice may depend on."""
        return shape_of(self.x, self.made, self.window, groups=self.groups, residual=residual)

    def geometry(self) -> tuple[int, ...]:
        """Return the push constants of a kernel that moves over an image."""
        return geometry(self.x, self.made, self.window)


def shape_of(x: Image, made: Image, window: Window, *, groups: int, residual: bool) -> ConvShape:
    """Return all that a choice may depend on: over volumes that of the convolution over images with the same sums.

    Of those there is one a plane that is made, with the channels of all planes that a window sees.
    """
    return ConvShape(
        images=x.images * made.planes,
        inputs=x.channels * window.planes,
        outputs=made.channels,
        groups=groups,
        kernel=window.kernel,
        strides=window.strides,
        dilations=window.dilations,
        pads=window.pads,
        in_size=(x.height, x.width),
        size=(made.height, made.width),
        residual=residual,
    )


def geometry(x: Image, made: Image, window: Window) -> tuple[int, ...]:
    """Return sizes and window in the order of ``shaders/window.glsl``, without groups and blocks."""
    sizes = (made.images, x.height, x.width, made.height, made.width)
    moves = (*sizes, *window.kernel, *window.strides, *window.pads, *window.dilations)
    across = window.across
    if across is None:
        return moves
    return (*moves, x.planes, made.planes, across.kernel, across.stride, across.pad, across.dilation)
