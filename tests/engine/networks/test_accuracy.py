"""How far results are from float64 throughout, layer by layer and network by network, and that threads change no bit.

An error is the largest difference over the largest magnitude of the reference.
"""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import random_inputs, relative_error
from engine_reference import run_node

from engine_native.graphs import GraphMaker
from powerlab.engine import Session
from powerlab.engine.codegen import lower
from powerlab.engine.codegen.convolutions.choosing import applicable, cheapest
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.passes import optimise
from powerlab.engine.runtime.plan import build_plan, thread_pool
from powerlab.engine.target.machine import this_machine
from powerlab.engine.target.tiers import choose_tier

DIRECT, WINOGRAD = 1e-5, 1e-3
"""The largest errors allowed."""

NETWORKS = {
    "alexnet": (1, 3, 224, 224),
    "densenet121": (1, 3, 64, 64),
    "efficientnet-b0": (1, 3, 64, 64),
    "lstm2": (2, 9, 256),
    "mobilenetv2": (2, 3, 64, 64),
    "mobilenetv3": (1, 3, 64, 64),
    "resnet50": (1, 3, 64, 72),
    "squeezenet": (1, 3, 64, 64),
    "yolov3": (1, 3, 32, 64),
}
SLOW = {"alexnet", "densenet121", "yolov3"}
"""Those whose layers in float64 take seconds, and which have kinds of layers that others have, too."""

LAYERS = {
    "3x3 of 64 channels": ((1, 64, 28, 28), (64, 64, 3, 3)),
    "3x3 of 512 channels": ((1, 512, 7, 7), (128, 512, 3, 3)),
    "3x3 of 256 channels, large": ((1, 256, 26, 26), (64, 256, 3, 3)),
    "1x1 of 2048 channels": ((1, 2048, 7, 7), (64, 2048, 1, 1)),
    "7x7 of 3 channels": ((1, 3, 40, 40), (64, 3, 7, 7)),
}


def in_float64(graph, inputs):
    """Return the outputs of a graph computed in float64, nothing rounded between nodes."""
    values = {name: value.astype(np.float64) for name, value in (*graph.constants.items(), *inputs.items())}
    for node in graph.nodes:
        results = run_node(graph, node, values)
        results = results if isinstance(results, tuple) else (results,)
        values.update(zip(node.outputs, results, strict=False))
    return {info.name: values[info.name] for info in graph.outputs}


def without_winograd(shape):
    machine = this_machine(choose_tier(), 1)
    exact = next(one for one in applicable(shape, machine) if "winograd" not in one.name)
    return cheapest(exact, shape, machine)


def run_direct(graph, inputs):
    """Run a graph with no convolution through Winograd's algorithms."""
    tier = choose_tier()
    program = lower(graph, tier, 1, without_winograd)
    assert not any("winograd" in step.family for step in program.steps)
    plan = build_plan(program, tier, thread_pool(1, 0))
    outputs = {info.name: np.empty(info.shape, np.float32) for info in graph.outputs}
    plan.run([*(inputs[info.name] for info in graph.inputs), *program.hidden_inputs], list(outputs.values()))
    return outputs


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.campaign] * (one in SLOW)) for one in NETWORKS])
def test_a_network_is_as_near_to_float64_as_its_algorithms_allow_with_any_threads(name):
    graph = optimise(load_graph(name, {"x": NETWORKS[name]}))
    inputs = random_inputs(graph, seed=4)
    expected = in_float64(graph, inputs)
    found = Session(graph, threads=1).run(inputs)
    assert relative_error(found, expected) <= WINOGRAD
    assert relative_error(run_direct(graph, inputs), expected) <= DIRECT
    for threads in (2, 3, 4):
        again = Session(graph, threads=threads).run(inputs)
        assert all(again[key].tobytes() == found[key].tobytes() for key in found), threads


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_is_as_near_to_float64_as_its_algorithm_allows(layer):
    shape, kernel = LAYERS[layer]
    generator = np.random.default_rng(8)
    weights = generator.standard_normal(kernel, dtype=np.float32) / np.float32(np.sqrt(np.prod(kernel[1:])))
    maker = GraphMaker()
    graph = maker.graph(maker.conv(maker.input("x", *shape), weights, pads=(kernel[2] // 2,) * 4))
    inputs = {"x": generator.standard_normal(shape, dtype=np.float32)}
    expected = in_float64(graph, inputs)
    assert relative_error(run_direct(graph, inputs), expected) <= DIRECT
    session = Session(graph, threads=2)
    exact = not any("winograd" in kernel for kernel, _ in session.steps())
    assert relative_error(session.run(inputs), expected) <= (DIRECT if exact else WINOGRAD)


def test_the_judge_sees_an_error():
    expected = {"y": np.array([1.0, -2.0])}
    assert relative_error({"y": np.array([1.0, -2.0 - 4e-5])}, expected) == pytest.approx(2e-5)
