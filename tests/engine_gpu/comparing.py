"""A graph on the GPU against the same on the processor."""

from __future__ import annotations

import numpy as np
from engine_models import random_inputs, relative_error

from powerlab.engine import Session
from powerlab.engine.gpu.model import GpuModel
from powerlab.engine.passes import optimise

TOLERANCE = 2e-5


def compared(graph, *, tolerance=TOLERANCE, **choices):
    """Compare a graph on the GPU with the processor, and its bits with those of an arena full of NaN."""
    inputs = random_inputs(graph)
    model = GpuModel(optimise(graph, chained=False), **choices)
    found = model.run(inputs)
    model.poison()
    again = model.run(inputs)
    expected = Session(optimise(graph), 1).run(inputs)
    assert all(np.array_equal(found[name], again[name]) for name in found)
    assert relative_error(found, expected) < tolerance
    return model
