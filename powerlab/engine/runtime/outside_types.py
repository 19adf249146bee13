"""Arrays of a model's own types to what a plan reads, and back: float16 by the processor's own instructions.

numpy converts float16 number by number, which takes a detector's images longer than their first layer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.program.program import Floats
from powerlab.engine.target.tiers import native_engine

_HALF = np.dtype(np.float16)


def to_engine(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return values in the type in which the engine has them."""
    if values.dtype != _HALF or dtype != np.float32:
        return values.astype(dtype, copy=False)
    floats: Floats = np.empty(values.shape, np.float32)
    native_engine().to_floats(
        halves=np.ascontiguousarray(values).view(np.uint16).reshape(-1), floats=floats.reshape(-1)
    )
    return floats


def to_model(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return what the engine made in the type in which the model has it."""
    if dtype != _HALF or values.dtype != np.float32:
        return values.astype(dtype, copy=False)
    halves = np.empty(values.shape, _HALF)
    native_engine().to_halves(
        floats=np.ascontiguousarray(values).reshape(-1), halves=halves.view(np.uint16).reshape(-1)
    )
    return halves
