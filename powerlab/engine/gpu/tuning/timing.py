"""A layer by each of several methods on the GPU, timed in turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.gpu.choice.method import Method
from powerlab.engine.gpu.model import GpuModel
from powerlab.engine.gpu.tuning.layer import Layer

_ROUNDS = 8
_TURN_NS = 3e6
"""How long a turn takes, at least about."""


class TimedLayer(Struct, frozen=True):
    """A layer's dispatches, ready to be repeated."""

    model: GpuModel
    inputs: dict[str, NDArray[np.float32]]
    first: int
    last: int

    def ns(self, times: int) -> float:
        """Return the nanoseconds of one repetition."""
        return self.model.repeat(self.inputs, self.first, self.last, times) / times


def that_run(layer: Layer, methods: Sequence[Method], *, half: bool) -> dict[Method, TimedLayer]:
    """Return the layer by each method, without those that need more memory than the GPU has or shows at once.

    Args:
        layer: alone.
        methods: that are candidates for it.
        half: whether numbers that are no bytes are stored in 16 bits.

    Raises:
        PowerlabError: the GPU cannot compute it by the first.
    """
    found: dict[Method, TimedLayer] = {}
    for method in methods:
        try:
            model = GpuModel(layer.graph, half=half, choose=lambda *_, method=method: method)
        except PowerlabError:
            if not found:
                raise
            continue
        inputs = synthetic_inputs(model.inputs, 1, model.dtypes)
        model.run(inputs)
        own = [index for index, (_, name) in enumerate(model.steps()) if name == layer.label]
        found[method] = TimedLayer(model, inputs, own[0], own[-1] + 1)
    return found


def turn_ns(layer: TimedLayer) -> float:
    """Return the nanoseconds of one repetition, by a turn of some milliseconds."""
    return layer.ns(_repetitions(layer))


def rounds(layers: Sequence[TimedLayer]) -> NDArray[np.float64]:
    """Return nanoseconds, shape (rounds, layers): in each round every one had its turn."""
    times = [_repetitions(layer) for layer in layers]
    return np.array([[layer.ns(count) for layer, count in zip(layers, times, strict=True)] for _ in range(_ROUNDS)])


def _repetitions(layer: TimedLayer) -> int:
    """Return how often a layer is repeated in a turn, by how long it takes once."""
    return max(1, round(_TURN_NS / max(layer.ns(1), 1)))
