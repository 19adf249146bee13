"""Vulkan's validation layers, synchronisation included, are silent; without barriers they are not."""

from __future__ import annotations

import pytest
from validating import said

PROGRAM = """
import sys
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.gpu.model import GpuModel
from powerlab.engine.passes import optimise
from powerlab.engine.quantization.precisions import in_precision
barriers, half, *networks = sys.argv[1:]
for network in networks:
    shapes = None if network == "lstm2" else {"x": (1, 3, 32, 32)}
    graph = load_graph(network, shapes, None)
    graph = optimise(in_precision(graph, network, "int8") if half == "bytes" else graph, chained=False)
    model = GpuModel(graph, half=half == "half", synchronised=barriers == "barriers", host_constants=False)
    inputs = synthetic_inputs(model.inputs, 1, model.dtypes)
    model.run(inputs), model.poison(), model.timed(inputs), model.repeat(inputs, 0, 3, 2)
    print("ran", network)
"""


@pytest.mark.parametrize(
    ("half", "networks"),
    [
        ("single", ["squeezenet", "mobilenetv3", "lstm2", "densenet121"]),
        ("half", ["squeezenet", "resnet18"]),
        ("bytes", ["squeezenet"]),
    ],
)
def test_the_layers_are_silent(half, networks):
    assert said(PROGRAM, "barriers", half, *networks).split("\n") == [*(f"ran {name}" for name in networks), ""]


def test_without_barriers_the_layers_see_hazards():
    found = said(PROGRAM, "none", "single", "squeezenet")
    assert "SYNC-HAZARD-READ-AFTER-WRITE" in found
    assert "SYNC-HAZARD-WRITE-AFTER" in found
