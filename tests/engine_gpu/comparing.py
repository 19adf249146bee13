"""A graph, or a network of the zoo, on the GPU against the same on the processor."""

from __future__ import annotations

import numpy as np
from engine_models import random_inputs, relative_error

from powerlab.engine import Session
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.gpu.model import GpuModel
from powerlab.engine.passes import optimise

TOLERANCE = 2e-5
SMALL = {
    "densenet121": 32,
    "efficientnet-b0": 32,
    "lstm2": 0,
    "mobilenetv2": 32,
    "mobilenetv3": 32,
    "resnet18": 32,
    "resnet50": 32,
    "squeezenet": 32,
    "vit-tiny": 0,
    "yolov3-tiny": 32,
}
"""Network → pixels of a side; 0: as it is."""
LARGE = {"alexnet": 0, "densenet201": 32, "fcn5": 0, "resnet101": 32, "resnet152": 32, "vgg16": 0, "yolov3": 64}
"""Those that take seconds: a campaign."""


def compared(graph, *, tolerance=TOLERANCE, **choices):
    """Compare a graph on the GPU with the processor, and its bits with those of an arena full of NaN."""
    inputs = random_inputs(graph)
    model = GpuModel(optimise(graph, for_cores=False), **choices)
    found = model.run(inputs)
    model.poison()
    again = model.run(inputs)
    expected = Session(optimise(graph), 1).run(inputs)
    assert all(np.array_equal(found[name], again[name]) for name in found)
    assert relative_error(found, expected) < tolerance
    return model


def agrees(name, *, tolerance, precision="fp32", reference=None):
    """Compare a network of the zoo with the processor's, and its bits with those of an arena full of NaN.

    Return the session on the GPU and what it was given; ``reference`` is the processor's precision, fp32 unless told.
    """
    pixels = (SMALL | LARGE)[name]
    shapes = {"x": (1, 3, pixels, pixels)} if pixels else None
    on_gpu = Session(name, device="gpu", shapes=shapes, precision=precision)
    inputs = synthetic_inputs(on_gpu.inputs, 1, on_gpu.dtypes)
    found = on_gpu.run(inputs)
    expected = Session(name, 1, shapes=shapes, precision=reference or "fp32").run(inputs)
    for key, value in expected.items():
        assert np.abs(found[key] - value).max() <= tolerance * np.abs(value).max()
    on_gpu.poison()
    again = on_gpu.run(inputs)
    assert all(np.array_equal(found[key], again[key]) for key in found)
    return on_gpu, inputs
