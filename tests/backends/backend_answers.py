"""How far the answers of an engine are from the built-in one's, and which engines are installed here."""

from __future__ import annotations

import importlib

import numpy as np

from powerlab.backends.base import LoadOptions
from powerlab.backends.packages import installed_version
from powerlab.backends.registry import backend_module
from powerlab.domain.preflight import engines_on
from powerlab.domain.workload import Processor
from powerlab.measure.output_check import largest_difference

PEERS = ("onnxruntime", "openvino", "litert", "ncnn")
"""What the extra ``peers`` brings along."""
HERE = [
    engine
    for engine in engines_on([Processor.CPU])
    if engine not in {"builtin", "torch-compile"} and installed_version(engine) is not None
]
"""Engines to compare on the cores; what is compiled for each network takes a minute every time."""
TOLERANCE = 1e-5


def loaded(engine, path, batch_size=1, **more):
    options = LoadOptions(model=str(path), batch_size=batch_size, threads=2, **more)
    return importlib.import_module(backend_module(engine)).load(options)


def difference(engine, path, batch_size=1, **more):
    backend, reference = loaded(engine, path, batch_size, **more), loaded("builtin", path, batch_size)
    inputs = backend.inputs(7)
    expected = reference.inputs(7)
    assert list(inputs) == list(expected)
    assert all(np.array_equal(inputs[name], expected[name]) for name in expected)
    before = {name: value.copy() for name, value in inputs.items()}
    first, _, again = backend.run(inputs), backend.run(backend.inputs(8)), backend.run(inputs)
    assert all(np.array_equal(inputs[name], before[name]) for name in before), (
        "an engine must not write into its inputs"
    )
    assert all(value.dtype == np.float32 for value in first.values())
    wanted = reference.run(expected)
    others = largest_difference(backend.run(backend.inputs(8)), reference.run(reference.inputs(8)))
    return max(largest_difference(first, wanted), largest_difference(again, wanted), others)
