"""How a convolution's work is cut: among threads, and into pieces that stay in the caches.

The model is that of T. M. Low et al., "Analytical modeling is enough for high-performance BLIS", ACM TOMS 43(2), 2016.
The pixels of one register tile pass through the first-level cache; the weights of one piece stay in half of the second
while all pixels pass over them: a register tile multiplies each weight with so many pixels that the second-level cache
feeds it. The other half is for pixels, while all output channels pass over them.

An image has as many planes as blocks of channels, and its pixels lie in as many places: a piece has no more of them
than the processor sees go on.
"""

from __future__ import annotations

import itertools

from msgspec import Struct

from powerlab.engine.codegen.pack import unit_bounds
from powerlab.engine.program.layout import divide_up
from powerlab.engine.target.caches import Caches
from powerlab.engine.target.tiers import Tier

_BYTES_PER_CYCLE = 8
"""Memory traffic a core is assumed to move a cycle, against one tile row of multiplications."""

_MOST_PLANES = {"avx2": 16, "avx512": 8}
"""Blocks of the input that a piece has at most, by tier: with more, pixels are not in the nearest cache in time.

With fewer the sums are written and read too often. AVX2: AMD EPYC, Zen 3. AVX-512: Intel Xeon, model 167, where 13
networks took 0.97 of the time that they took without a limit, and as long with 6 as with 10.
"""

_MEMORY_COST = {"avx2": 2.5}
"""Of a weight that comes from memory again, against a pixel from the last cache, where it is not one; by tier."""


class Work(Struct, frozen=True, gc=False):
    """What a convolution has to do, for one tier.

    Attributes:
        groups: groups after merging.
        in_blocks: input blocks of one group.
        lanes: channels of an input block.
        taps: kernel rows times kernel columns.
        out_blocks: output blocks of one group.
        rows: output rows of all images together.
        columns: output columns.
        x_bytes: what is read of the input, all images.
        kernel_rows: of the kernel.
    """

    groups: int
    in_blocks: int
    lanes: int
    taps: int
    out_blocks: int
    rows: int
    columns: int
    x_bytes: int
    kernel_rows: int = 1


class Partition(Struct, frozen=True, gc=False):
    """The native step's fields of the same names."""

    channel_split: int
    chunk_blocks: int
    chunk_tiles: int


def tiles_of(work: Work, tier: Tier) -> int:
    """Return how many register tiles of pixels there are."""
    long = tier.long_pixels if work.out_blocks == 1 else 0
    return work.rows * divide_up(work.columns, long or tier.tile_pixels)


def partition(work: Work, tier: Tier, threads: int, caches: Caches, channel_split: int | None = None) -> Partition:
    """Choose how ``threads`` threads of ``tier`` go through ``work``, the output channels going in so many parts.

    Without a number of parts, it is what moves the fewest bytes and leaves no thread with less to do.
    """
    tiles = tiles_of(work, tier)
    bounds = unit_bounds(work.out_blocks, tier.tile_blocks)
    units = work.groups * (len(bounds) - 1)
    if channel_split is None:
        channel_split = _channel_split(work, tier, threads, units, tiles)

    unit_blocks = max(end - begin for begin, end in itertools.pairwise(bounds))
    block_bytes = work.lanes * work.taps * unit_blocks * tier.vector_width * 4
    fitting = min(caches.l2_bytes // 2 // block_bytes, _most_planes(work, tier, caches))
    chunks = divide_up(work.in_blocks, max(1, fitting))

    own_tiles = divide_up(tiles, threads // channel_split)
    passes = _passes(
        work.x_bytes * own_tiles // tiles,
        _weight_bytes(work, tier) // channel_split * _MEMORY_COST.get(tier.name, 1.0),
        units // channel_split,
        caches.l2_bytes // 2,
    )
    return Partition(channel_split, divide_up(work.in_blocks, chunks), max(1, divide_up(own_tiles, passes)))


def _most_planes(work: Work, tier: Tier, caches: Caches) -> int:
    """Return how many blocks of the input a piece has at most.

    Where the rows under a kernel do not stay in the second-level cache until the next row is computed, as those of a
    video's frames seen as rows, each of them is another place where pixels go on.
    """
    most = _MOST_PLANES.get(tier.name, work.in_blocks)
    row_bytes = work.columns * tier.vector_width * 4
    held = work.kernel_rows * row_bytes * min(most, work.in_blocks)
    return most if held <= caches.l2_bytes // 2 else max(1, most // work.kernel_rows)


def _weight_bytes(work: Work, tier: Tier) -> int:
    return 4 * work.groups * work.out_blocks * tier.vector_width * work.in_blocks * work.lanes * work.taps


def _passes(own_x: int, own_weights: float, own_units: int, room: int) -> int:
    """Return into how many parts the pixels of one thread go, all output channels being computed for one part first.

    In one part, x comes again from beyond the second-level cache for every unit of channels; in parts that fit into its
    ``room``, the weights come again for every part.
    """
    parts = max(1, divide_up(own_x, max(1, room)))
    return parts if own_x + parts * own_weights < own_units * own_x + own_weights else 1


def _channel_split(work: Work, tier: Tier, threads: int, units: int, tiles: int) -> int:
    """Return into how many parts the output channels go; ``threads`` divided by it is the parts of the pixels."""
    steps = work.in_blocks * work.lanes * work.taps
    weight_bytes = _weight_bytes(work, tier)
    tile_cycles = steps * tier.tile_blocks * tier.tile_pixels // 2

    def cost(channel_split: int) -> float:
        row_split = threads // channel_split
        cycles = divide_up(units, channel_split) * divide_up(tiles, row_split) * tile_cycles
        moved = weight_bytes / channel_split + work.x_bytes / row_split
        return cycles + moved / _BYTES_PER_CYCLE

    return min((split for split in range(1, threads + 1) if threads % split == 0), key=cost)
