"""Tiers: the instruction sets the native core was compiled for, and which of them this processor runs."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from powerlab.domain.errors import PowerlabError

TIER_VARIABLE = "POWERLAB_TIER"
"""Environment variable that names the tier to use instead of the best one, for tests and comparisons."""


@dataclass(frozen=True, slots=True)
class Tier:
    """One compiled set of kernels.

    Attributes:
        name: ``sse4``, ``avx2``, ``avx512``, ``neon`` or ``generic``.
        vector_width: float32 lanes of a vector, and channels of a block.
        tile_blocks: channel blocks the convolution's register tile holds at most.
        tile_pixels: pixels it holds at most.
    """

    name: str
    vector_width: int
    tile_blocks: int
    tile_pixels: int


def native_engine() -> Any:
    """Return the native submodule that holds plans and kernels."""
    return importlib.import_module("powerlab.native._native").engine


def native_engine_file() -> Path:
    """Return the file that holds the compiled kernels."""
    return Path(str(importlib.import_module("powerlab.native._native").__file__))


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
