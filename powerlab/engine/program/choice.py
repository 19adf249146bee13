"""What was chosen for one operator: the algorithm, its register tile, and how the work is cut."""

from __future__ import annotations

from msgspec import Struct


class Choice(Struct, frozen=True, kw_only=True, gc=False):
    """How one convolution is computed. Plain numbers and names: it can be kept as JSON.

    Attributes:
        algorithm: a name in ``powerlab.engine.codegen.convolutions.ALGORITHMS``.
        tile_blocks: channel blocks the register tile holds at most; 0 where the algorithm has none to choose.
        tile_pixels: pixels it holds at most; 0 likewise.
        channel_split: parts the output channels are divided into among threads.
        chunk_blocks: input blocks reduced before the next tile is taken up; 0: all of them.
        chunk_tiles: tiles taken up before the next output channels; 0: all of them.
    """

    algorithm: str
    tile_blocks: int = 0
    tile_pixels: int = 0
    channel_split: int = 1
    chunk_blocks: int = 0
    chunk_tiles: int = 0
