"""Tiles in shared memory, for lanes that multiply."""

from __future__ import annotations

from msgspec.structs import replace

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.choice.filling import Pace, filling
from powerlab.engine.gpu.choice.method import Method, blocks_of
from powerlab.engine.gpu.target import Target

_VECTOR_BYTES = 16
_TILES = (
    *((8, 4, 2, 8, 4), (8, 4, 2, 4, 4), (16, 4, 2, 8, 4), (8, 2, 2, 4, 4), (16, 8, 2, 8, 2), (16, 4, 2, 16, 2)),
    *((8, 4, 2, 8, 2), (8, 4, 2, 4, 2)),
)
"""Lanes, pixels, blocks, lanes down, depth."""

_PACE_OF_4 = Pace(
    step=0.1,
    step_sum=1.55e-4,
    end=1.46e-3,
    wait=1.0,
    wait_sum=1e-4,
    once=10.0,
    adding=8.0,
    adding_part=0.7,
    adding_sum=1e-5,
)
"""Of steps of 4 inputs. Fitted to timings of ResNet-50's convolutions on an NVIDIA H100 at its lowest clock."""


def shared_methods(shape: ConvShape, target: Target, kernel: str) -> list[Method]:
    """Return the tiles of one kernel that a device has the lanes and the memory for, the rule's first."""
    found: list[tuple[float, int, Method]] = []
    blocks = blocks_of(shape)
    for lanes, pixels, each, down, depth in _TILES:
        method = Method(kernel=kernel, lanes=lanes, pixels=pixels, blocks=each, down=down, depth=depth)
        if fits(method, target) and (blocks >= each * down // 2 or not found):
            filled = filling(shape, (lanes * pixels, 4 * each * down, 4 * depth), _pace(depth), target)
            found.append((filled.microseconds, len(found), replace(method, parts=filled.parts)))
    return [method for *_, method in sorted(found)]


def _pace(depth: int) -> Pace:
    """Return the pace of steps of so many blocks: what a lane computes grows with them, what it waits for does not."""
    one = _PACE_OF_4
    return replace(one, step=one.step * depth, step_sum=one.step_sum * depth, wait=one.wait + 0.3 * depth)


def fits(method: Method, target: Target) -> bool:
    """Tell whether a device has the lanes and the shared memory of tiles: ``shaders/convolution/tiled.glsl``."""
    pixels = method.lanes * method.pixels
    vectors = 2 * method.depth * (pixels + 4 * method.tile_blocks) + pixels
    return method.lanes * method.down <= target.group_size and vectors * _VECTOR_BYTES <= target.shared_bytes
