"""The inputs every engine gets: the same numbers for the same seed, so that their outputs can be compared."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


def seeded_inputs(shapes: Mapping[str, tuple[int, ...]], seed: int) -> dict[str, NDArray[np.float32]]:
    """Return normal numbers for each input in turn; the values do not change the work, but zeros could."""
    generator = np.random.default_rng(seed)
    return {name: generator.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
