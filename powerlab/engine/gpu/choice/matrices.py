"""Tiles for units that compute products of matrices (``VK_KHR_cooperative_matrix``)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.choice.filling import Pace, filling
from powerlab.engine.gpu.choice.method import BYTES_MATRICES, MATRICES, Method, Numbers
from powerlab.engine.gpu.target import MatrixSize, Target

_SUM_BYTES, _CORNER_BYTES, _PADDING_BYTES = 4, 16, 16
_UNIT_BYTES = 32
"""Of the inputs of a pixel, a unit."""

Share = tuple[int, int, int, int, int]
"""Subgroups across and down, matrices of each along pixels and outputs, and units of inputs that are there at once."""

_TILES: tuple[Share, ...] = (
    *((2, 2, 2, 2, 2), (2, 4, 4, 2, 2), (4, 2, 2, 2, 2), (2, 2, 4, 2, 2), (2, 2, 2, 4, 2), (2, 2, 1, 2, 2)),
    *((2, 2, 2, 1, 2), (2, 2, 1, 1, 2), (4, 1, 2, 2, 2), (2, 1, 1, 1, 2), (4, 2, 4, 2, 1)),
    *((2, 2, 2, 2, 4), (2, 2, 1, 2, 4), (2, 2, 2, 1, 4), (2, 2, 1, 1, 4)),
)
"""First what suits most products."""

_AHEAD = (1, 2)
"""Steps whose numbers are on their way at a time."""

_PACE = Pace(
    step=0.0693,
    step_sum=2.98e-5,
    end=1.44e-4,
    wait=0.187,
    wait_sum=1.96e-5,
    once=4.18,
    adding=2.82,
    adding_part=0.182,
    adding_sum=1.84e-4,
)
"""Of steps of one unit. Fitted to 330 timings of 14 convolutions of ResNet-50, VGG-16, MobileNetV2 and ViT-Tiny on an
NVIDIA H200 at 1980 MHz; the tiles that it chooses take 1.06 times as long as the best ones timed (geometric mean)."""

_WAIT_UNIT = 0.0263
"""Microseconds longer that a step waits for each unit."""

_WAITS_AHEAD, _STEPS_AHEAD = 0.463, 0.961
"""What waiting and computing take where two steps are on their way, as parts of what they take with one."""


def _pace(units: int, ahead: int) -> Pace:
    """Return the pace of steps of so many units, with so many steps on their way at a time."""
    waits, steps = (_WAITS_AHEAD, _STEPS_AHEAD) if ahead > 1 else (1.0, 1.0)
    return replace(
        _PACE,
        step=_PACE.step * units * steps,
        step_sum=_PACE.step_sum * units * steps,
        wait=(_PACE.wait + _WAIT_UNIT * units) * waits,
        wait_sum=_PACE.wait_sum * units,
    )


class MatrixTiles(Struct, frozen=True, kw_only=True):
    """How a work group shares a product of matrices.

    Attributes:
        size: pixels, output channels and input channels of one matrix product.
        across: subgroups along pixels.
        down: subgroups along output channels.
        pixels: matrices of a subgroup along pixels.
        blocks: matrices of a subgroup along output channels.
        depth: matrices along input channels that lie in shared memory at once.
    """

    size: MatrixSize
    across: int
    down: int
    pixels: int
    blocks: int
    depth: int

    @property
    def rows(self) -> int:
        """Return the pixels of a work group."""
        return self.across * self.pixels * self.size[0]

    @property
    def outputs(self) -> int:
        """Return the output channels of a work group."""
        return self.down * self.blocks * self.size[1]

    @property
    def constants(self) -> tuple[int, ...]:
        """Return the specialization constants of ``shaders/matrices.glsl``."""
        return self.blocks, self.pixels, self.across, self.down, self.depth, *self.size

    def fits(self, target: Target, element_bytes: int, *, direct: bool = False) -> bool:
        """Tell whether a device has the lanes and the shared memory for elements of so many bytes.

        Two halves of each: values lie pixel by pixel, 16-bit weights input by input and weights of one byte output by
        output, unless they are taken directly from where they lie, in whole 16 bytes of a matrix's inputs. Of 16-bit
        numbers there are whole 16 bytes along inputs and outputs, and results take the place of one half at least.
        """
        m, n, k = self.size
        inputs, subgroups = self.depth * k, self.across * self.down
        wide = element_bytes > 1
        lines, length = (inputs, self.outputs) if wide else (self.outputs, inputs)
        values = self.rows * (inputs * element_bytes + _PADDING_BYTES)
        half = values + (0 if direct else lines * (length * element_bytes + _PADDING_BYTES))
        results = subgroups * self.blocks * m * n * _SUM_BYTES
        needed = self.rows * _CORNER_BYTES + half + (max(half, results) if wide else half + results)
        whole = not wide or (inputs % 8 == self.outputs % 8 == 0 and not (direct and k % 8))
        whole = whole and self.blocks * m * n // 4 % target.subgroup_lanes == 0
        return whole and 0 < subgroups * target.subgroup_lanes <= target.group_size and needed <= target.shared_bytes


def matrix_tiles(
    sizes: Sequence[MatrixSize],
    pixels: int,
    outputs: int,
    target: Target,
    element_bytes: int,
    *,
    shares: Sequence[Share] = _TILES,
    direct: bool = False,
) -> Iterator[MatrixTiles]:
    """Yield tiles for a product of so many pixels by so many output channels, of the largest matrices first.

    Args:
        sizes: of the matrices that the device's units take.
        pixels: of all images.
        outputs: output channels of a group.
        target: the device.
        element_bytes: of what is multiplied.
        shares: how work groups may share a product.
        direct: whether weights skip shared memory.
    """
    for size in sorted(sizes, key=math.prod, reverse=True):
        for across, down, rows, columns, depth in shares:
            tiles = MatrixTiles(
                size=size,
                across=across,
                down=down,
                pixels=rows,
                blocks=columns,
                depth=max(1, depth * _UNIT_BYTES // size[2] // element_bytes),
            )
            wasted = tiles.outputs >= 2 * outputs or tiles.rows >= 2 * pixels
            if tiles.fits(target, element_bytes, direct=direct) and (not wasted or (rows, columns) == (1, 1)):
                yield tiles


def matrix_methods(shape: ConvShape, target: Target, numbers: Numbers) -> list[Method]:
    """Return the ways to compute a convolution by matrices, the rule's first; none without such units."""
    kernel, sizes, element_bytes = {
        Numbers.FP32: (MATRICES, (), 4),
        Numbers.FP16: (MATRICES, target.matrices, 2),
        Numbers.INT8: (BYTES_MATRICES, target.byte_matrices, 1),
    }[numbers]
    tiles = matrix_tiles(sizes, shape.pixels, shape.outputs // shape.groups, target, element_bytes)
    return by_estimate(shape, target, kernel, tiles, element_bytes)


def by_estimate(
    shape: ConvShape, target: Target, kernel: str, tiles: Iterable[MatrixTiles], element_bytes: int
) -> list[Method]:
    """Return the methods of tiles: the largest matrices first, and of these the fastest by the estimate.

    Args:
        shape: of the convolution.
        target: the device.
        kernel: that takes the tiles.
        tiles: which the device has room for.
        element_bytes: of what is multiplied.
    """
    found: list[tuple[int, float, int, Method]] = []
    for one in tiles:
        units = one.depth * one.size[2] * element_bytes // _UNIT_BYTES
        for ahead in _AHEAD:
            pace = _pace(units, ahead)
            filled = filling(shape, (one.rows, one.outputs, one.depth * one.size[2]), pace, target)
            method = Method(
                kernel=kernel,
                lanes=one.across * target.subgroup_lanes,
                pixels=one.pixels,
                blocks=one.blocks,
                down=one.down,
                depth=one.depth,
                matrix=one.size,
                ahead=ahead,
                parts=1 if kernel == BYTES_MATRICES else filled.parts,
            )
            found.append((-math.prod(one.size), filled.microseconds, len(found), method))
    return [method for *_, method in sorted(found)]
