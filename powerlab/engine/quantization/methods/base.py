"""What a method of choosing ranges is given, and what it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

BINS = 2048
"""Of a histogram: what TensorRT and ONNX Runtime use."""


class Seen(Struct, frozen=True):
    """What calibration saw of a tensor.

    Attributes:
        low: the smallest number.
        high: the largest.
        counts: how many numbers lie in each of ``BINS`` parts of low .. high; None where nobody asked.
    """

    low: float
    high: float
    counts: NDArray[Any] | None = None

    def edges(self) -> NDArray[Any]:
        """Return the borders of the parts."""
        return np.linspace(self.low, self.high, BINS + 1)


class Method(Struct, frozen=True):
    """A way to choose a range: ``choose`` returns its ends; ``counts`` says whether it needs a histogram."""

    choose: Callable[[Seen], tuple[float, float]]
    counts: bool
