"""Clamps, their gradients and sums that batch norms of training take in."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from engine_models import load_bytes, onnx_bytes
from onnx import helper

from powerlab.engine.passes import optimise
from powerlab.engine.training import TrainingSession, plans
from powerlab.engine.training.norms import fuse_norms
from powerlab.engine.training.optimizers import optimizer_named
from powerlab.engine.training.step import training_step

CHANNELS = 16
IMAGES = (3, 5, 6, 7)


def normal(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def dense(activation, channels=CHANNELS):
    """Two layers that read all before them, as a dense block has them, then the classes."""
    constants, nodes, read, joined = {"first": normal(channels, IMAGES[1], 1, 1)}, [], channels, "c0"

    def node(operator, inputs, output, **attributes):
        nodes.append(helper.make_node(operator, inputs.split(), [output], output, **attributes))

    node("Conv", "x first", "c0")
    for layer in (1, 2):
        for name, values in {
            "scale": 1 + np.abs(normal(read)),
            "shift": normal(read),
            "mean": np.zeros(read, np.float32),
            "variance": np.ones(read, np.float32),
        }.items():
            constants[f"{name}{layer}"] = values
        constants[f"w{layer}"] = normal(channels, read, 3, 3) / 20
        norm = f"{joined} scale{layer} shift{layer} mean{layer} variance{layer}"
        node("BatchNormalization", norm, f"n{layer}")
        if activation == "Clip":
            constants |= {"low": np.float32(-0.5), "high": np.float32(0.75)}
            node("Clip", f"n{layer} low high", f"r{layer}")
        else:
            node(activation, f"n{layer}", f"r{layer}", **({"alpha": 0.2} if activation == "LeakyRelu" else {}))
        node("Conv", f"r{layer} w{layer}", f"c{layer}", pads=[1, 1, 1, 1])
        node("Concat", f"{joined} c{layer}", f"j{layer}", axis=1)
        joined, read = f"j{layer}", read + channels
    constants["classes"] = normal(4, read)
    node("GlobalAveragePool", joined, "pooled")
    node("Flatten", "pooled", "flat")
    node("Gemm", "flat classes", "y", transB=1)
    return load_bytes(onnx_bytes(nodes, {"x": IMAGES}, constants=constants))


def operators(graph):
    return Counter(node.op_type for node in graph.nodes)


def step_graph(network):
    return optimise(training_step(network, "softmax_cross_entropy", optimizer_named("sgd")).graph, for_cores=False)


@pytest.mark.parametrize("activation", ["Relu", "LeakyRelu", "Clip"])
def test_a_norm_takes_in_its_activation_forwards_and_backwards_and_the_sum_of_gradients(activation):
    before = step_graph(dense(activation))
    after = fuse_norms(before)
    assert operators(before)["Clamp"] == operators(before)["ClampGradient"] == 2
    assert operators(after)["Clamp"] == operators(after)["ClampGradient"] == 0
    assert (
        operators(before)["Add"] - operators(after)["Add"] == 2
    )  # of what is joined, and of what the first layer made
    assert after.outputs == before.outputs
    assert fuse_norms(after).nodes == after.nodes


@pytest.mark.parametrize("channels", [CHANNELS, 5])
@pytest.mark.parametrize("activation", ["Relu", "LeakyRelu", "Clip"])
def test_gradients_are_those_of_layers_by_themselves(activation, channels, monkeypatch):
    network, labels = dense(activation, channels), np.arange(IMAGES[0])
    fused = TrainingSession(network, threads=1)
    monkeypatch.setattr(plans, "fuse_norms", lambda graph: graph)
    apart = TrainingSession(network, threads=1)
    losses = [session.step({"x": normal(*IMAGES)}, labels) for session in (fused, apart)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    found, expected = fused.gradients(), apart.gradients()
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[name], gradient, rtol=0, atol=1e-5 * np.abs(gradient).max(), err_msg=name)


def test_an_activation_that_others_read_stays():
    nodes = [
        helper.make_node("BatchNormalization", ["x", "scale", "shift", "mean", "variance"], ["n"], "n"),
        helper.make_node("Relu", ["n"], ["r"], "r"),
        helper.make_node("Add", ["n", "r"], ["y"], "y"),
    ]
    numbers = {name: np.ones(5, np.float32) for name in ("scale", "shift", "mean", "variance")}
    network = load_bytes(onnx_bytes(nodes, {"x": IMAGES}, constants=numbers))
    graph = optimise(training_step(network, "mse", optimizer_named("sgd")).graph, for_cores=False)
    assert operators(fuse_norms(graph))["Clamp"] == operators(graph)["Clamp"] == 1


def test_a_sum_stays_behind_what_reads_the_gradient_of_a_computed_scale(monkeypatch):
    """The scale is computed after what is normalised, so its gradient goes on before that of the images is whole."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "c"),
        helper.make_node("Mul", ["factors", "shift"], ["scale"], "scale"),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"], "n"),
        helper.make_node("Add", ["n", "c"], ["y"], "y"),
    ]
    constants = {name: np.ones(5, np.float32) for name in ("shift", "mean", "variance")}
    constants |= {"w": normal(5, IMAGES[1], 1, 1), "factors": 1 + np.abs(normal(5))}
    network, labels = load_bytes(onnx_bytes(nodes, {"x": IMAGES}, constants=constants)), normal(3, 5, 6, 7)
    fused = TrainingSession(network, "mse", threads=1)
    monkeypatch.setattr(plans, "fuse_norms", lambda graph: graph)
    apart = TrainingSession(network, "mse", threads=1)
    for session in (fused, apart):
        session.step({"x": normal(*IMAGES)}, labels)
    for name, gradient in apart.gradients().items():
        np.testing.assert_allclose(fused.gradients()[name], gradient, rtol=1e-5, atol=1e-7, err_msg=name)


def test_parts_of_a_joined_gradient_are_read_where_they_lie():
    kernels = [
        session.kernels()
        for session, _ in TrainingSession(dense("Relu"), threads=1).runs({"x": normal(*IMAGES)}, np.arange(IMAGES[0]))
    ]
    moved = sum(kernel.startswith("move_channels") for kernel in kernels[0])
    assert moved == 2  # what the layers made, of which convolutions read pixels around the image
