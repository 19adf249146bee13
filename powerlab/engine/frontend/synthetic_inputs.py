"""Made inputs for a model nobody gave inputs for: to profile, tune and compare engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def synthetic_inputs(
    shapes: Mapping[str, tuple[int, ...]], seed: int, dtypes: Mapping[str, np.dtype[Any]] | None = None
) -> dict[str, NDArray[Any]]:
    """Return an array for each input in turn, the same for the same seed.

    Floats are normal numbers: the values do not change the work, but zeros could. Whole numbers are 0 or 1, which are
    rows of any table they may pick from; those of an input with ``mask`` in its name, and bools, are 1: nothing is left
    out.

    Args:
        shapes: input name -> shape.
        seed: of the random numbers.
        dtypes: input name -> numpy type; None: all are float32.
    """
    generator = np.random.default_rng(seed)
    return {
        name: _made(generator, name, shape, np.dtype(np.float32) if dtypes is None else dtypes[name])
        for name, shape in shapes.items()
    }


def _made(generator: np.random.Generator, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "f":
        return generator.standard_normal(shape, dtype=np.float32).astype(dtype, copy=False)
    if dtype.kind == "b" or "mask" in name.lower():
        return np.ones(shape, dtype)
    return generator.integers(0, 2, shape).astype(dtype)
