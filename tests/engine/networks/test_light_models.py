"""The onnx package's light networks with random weights: read, optimised and run as ONNX Runtime does."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import LIGHT, TOLERANCE, light_model, load_bytes, random_inputs, relative_error, run_ort
from engine_reference import run_graph

from powerlab.engine import Session
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.passes import optimise

LIGHT_NETWORKS = sorted(path.stem.removeprefix("light_") for path in LIGHT.glob("light_*.onnx"))
LARGE = ("bvlc_alexnet", "inception_v1", "inception_v2", "resnet50", "vgg19", "zfnet512")
"""VGG-19 alone has 575 MB of weights: one network at a time."""


def test_there_are_nine():
    assert len(LIGHT_NETWORKS) == 9


@pytest.mark.campaign(minutes=1)
@pytest.mark.parametrize("name", ["resnet50", "bvlc_alexnet"])
def test_numpy_runs_the_optimised_network_as_onnx_runtime_runs_the_file(name):
    data = light_model(name)
    graph = load_bytes(data)
    inputs = random_inputs(graph)
    assert relative_error(run_graph(optimise(graph), inputs), run_ort(data, inputs)) < TOLERANCE


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.campaign(minutes=1)] * (name in LARGE)) for name in LIGHT_NETWORKS]
)
def test_session_runs_the_network_as_onnx_runtime_does(name):
    data = light_model(name)
    graph = load_bytes(data)
    inputs = random_inputs(graph)
    expected = run_ort(data, inputs)
    assert all(len(np.unique(value)) > 300 for value in expected.values()), "a saturated softmax would hide errors"
    assert all(np.abs(value).max() != 1 for value in expected.values())
    assert relative_error(Session(optimise(graph), threads=2).run(inputs), expected) < TOLERANCE


@pytest.mark.parametrize("path", sorted(LIGHT.glob("light_*.onnx")), ids=lambda path: path.stem)
def test_every_light_file_loads_as_it_is(path):
    graph = load_graph(path)
    assert [info.shape[0] for info in graph.outputs] == [1]
