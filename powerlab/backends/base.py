"""The interface every engine under test fulfils."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Backend(Protocol):
    """A model loaded into an engine, ready to run inside the worker process.

    A backend module offers ``load(model, batch_size, threads) -> Backend``, and its name stands in
    :data:`powerlab.domain.preflight.ENGINES`.
    """

    def inputs(self, seed: int) -> dict[str, NDArray[np.float32]]:
        """Return seeded random inputs of the shapes the model takes at this batch size."""
        ...

    def run(self, inputs: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
        """Run one inference and return when its outputs are there."""
        ...
