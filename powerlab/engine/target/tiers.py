"""Tiers: the instruction sets the native core was compiled for, and which of them this processor runs."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError

FP32, BF16, FP16 = "fp32", "bf16", "fp16"

IN_16_BITS = (BF16, FP16)
"""Precisions whose numbers are 16-bit floats, two channels a word: native/engine/kernels/pairs/."""

TIER_VARIABLE = "POWERLAB_TIER"
"""Environment variable that names the tier to use instead of the best one, for tests and comparisons."""


class Tier(Struct, frozen=True):
    """One compiled set of kernels.

    Attributes:
        name: ``sse4``, ``avx2``, ``avx512``, ``neon`` or ``generic``.
        vector_width: float32 lanes of a vector, and channels of a block.
        tile_blocks: channel blocks the convolution's register tile holds at most.
        tile_pixels: pixels it holds at most.
        tall_blocks: channel blocks of its other register tile, for rows that the first cuts badly; 0: there is none.
        tall_pixels: pixels of that one.
        long_pixels: pixels of a tile of one block, where groups have no more; 0: the usual ones.
        bytes: the instruction set of its kernels on bytes, such as ``avx512vnni``; empty: there are none.
        byte_form: how their weights lie, as native/engine/kernels/bytes/words.hpp calls it.
        byte_tile_blocks: vectors of sums that their register tile holds at most, a pixel.
        byte_tile_pixels: pixels that it holds at most.
        narrow_tile_blocks: the same of narrow weights.
        narrow_tile_pixels: likewise.
        depthwise_neighbours: pixels of a row that a dot product of its depthwise kernels adds up; 0: none does.
        pairs: the instruction set of its kernels on bfloat16, such as ``avx512bf16``; empty: there are none.
        pair_tile_blocks: vectors of sums that their register tile holds at most, a pixel.
        pair_tile_pixels: pixels that it holds at most.
        pair_block: channels of a block of bfloat16.
        halves: the instruction set of its kernels on float16, such as ``neon_fp16``; empty: there are none.
        half_tile_blocks: vectors of float32 sums that their register tile stands for at most, a pixel.
        half_tile_pixels: pixels that it holds at most.
        half_block: channels of a block of float16.
        precision: what layers are computed in, or their weights kept in, where that is faster than ``fp32``.
    """

    name: str
    vector_width: int
    tile_blocks: int
    tile_pixels: int
    tall_blocks: int = 0
    tall_pixels: int = 0
    long_pixels: int = 0
    bytes: str = ""
    byte_form: str = ""
    byte_tile_blocks: int = 0
    byte_tile_pixels: int = 0
    narrow_tile_blocks: int = 0
    narrow_tile_pixels: int = 0
    depthwise_neighbours: int = 0
    pairs: str = ""
    pair_tile_blocks: int = 0
    pair_tile_pixels: int = 0
    pair_block: int = 0
    halves: str = ""
    half_tile_blocks: int = 0
    half_tile_pixels: int = 0
    half_block: int = 0
    precision: str = FP32

    def computes_in(self, precision: str) -> bool:
        """Tell whether layers are to be computed in a precision."""
        return self.precision == precision

    def computes_in_16_bits(self) -> bool:
        """Tell whether layers are to be computed in bfloat16 or float16."""
        return self.precision in IN_16_BITS

    @property
    def multiplies_matrices(self) -> bool:
        """Tell whether layers in its precision go through AMX's tiles."""
        return self.computes_in(BF16) and self.pairs == "avx512amxbf16"

    @property
    def widens_bytes(self) -> bool:
        """Tell whether bytes are widened to be multiplied, unless weights are narrow: there are no dot products."""
        return self.byte_form == "pairs"

    @property
    def narrow_block(self) -> int:
        """Return the channels of a block of 16-bit floats in its precision."""
        return self.half_block if self.computes_in(FP16) else self.pair_block

    def tiles(self) -> tuple[Tier, ...]:
        """Return this tier with each of its register tiles as the one that is used."""
        if not self.tall_blocks:
            return (self,)
        return self, replace(self, tile_blocks=self.tall_blocks, tile_pixels=self.tall_pixels)

    def with_tile(self, blocks: int) -> Tier:
        """Return this tier with its register tile of so many blocks; any other number means the usual one."""
        return next((tier for tier in self.tiles() if tier.tile_blocks == blocks), self)


def native_engine() -> Any:
    """Return the native submodule that holds plans and kernels."""
    return importlib.import_module("powerlab.native._native").engine


def native_engine_file() -> Path:
    """Return the file that holds the compiled kernels."""
    return Path(str(importlib.import_module("powerlab.native._native").__file__))


def tier_for(precision: str) -> Tier:
    """Return the tier to use for a model in a precision.

    Raises:
        PowerlabError: ``POWERLAB_TIER`` names no tier of this processor, or it cannot multiply such numbers.
    """
    tier = choose_tier()
    if numbers := missing_numbers(tier, precision):
        raise PowerlabError(
            f"the engine tier {tier.name} has no instructions for {numbers} on this processor; use fp32 or int8."
        )
    return tier if tier.precision == precision else replace(tier, precision=precision)


def missing_numbers(tier: Tier, precision: str) -> str:
    """Return the numbers of a precision that a tier cannot multiply, in words; empty where it can."""
    needed = {BF16: (tier.pairs, "bfloat16"), FP16: (tier.halves, "arithmetic in float16")}
    kernels, numbers = needed.get(precision, ("any", ""))
    return "" if kernels else numbers


def available_tiers() -> tuple[Tier, ...]:
    """Return the tiers this processor runs, best first."""
    return tuple(Tier(**tier) for tier in native_engine().tiers())


def choose_tier(name: str | None = None) -> Tier:
    """Return the tier named ``name``, else by ``POWERLAB_TIER``, else the best.

    Raises:
        PowerlabError: there is no such tier, or this processor cannot run it.
    """
    wanted = os.environ.get(TIER_VARIABLE, "") if name is None else name
    try:
        return Tier(**native_engine().find_tier(wanted))
    except ValueError as error:
        raise PowerlabError(str(error)) from error
