"""powerlab's own engine, as one of the engines under test."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powerlab.engine import Session
from powerlab.engine.load import load_graph
from powerlab.engine.passes import optimise


class BuiltinBackend:
    """A model in the built-in engine; fulfils :class:`powerlab.backends.base.Backend`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def inputs(self, seed: int) -> dict[str, NDArray[np.float32]]:
        """Return seeded normal inputs; the values do not change the work, but zeros could."""
        generator = np.random.default_rng(seed)
        return {
            name: generator.standard_normal(shape, dtype=np.float32) for name, shape in self._session.inputs.items()
        }

    def run(self, inputs: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
        """Run one inference."""
        return self._session.run(inputs)


def load(model: str, batch_size: int, threads: int) -> BuiltinBackend:
    """Load a model with every input's first dimension set to the batch size.

    Raises:
        PowerlabError: the model cannot be read, holds an unsupported operator, or has no batch dimension to set.
    """
    return BuiltinBackend(Session(optimise(load_graph(model, batch_size=batch_size)), threads=threads))
