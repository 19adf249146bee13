"""Networks of convolutions in training: they learn as PyTorch's do; batch norms and Dropout train."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch_reference
from engine_models import load_bytes
from general_models import model_bytes
from onnx import helper

from powerlab.backends.training.batch import target_of
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.onnx_writer import onnx_bytes
from powerlab.engine.frontend.zoo import ZOO
from powerlab.engine.passes import optimise
from powerlab.engine.training import Adam, Sgd, TrainingSession
from powerlab.engine.training.step import training_step

OPTIMIZERS = {
    "sgd": Sgd(rate=0.1),
    "momentum": Sgd(rate=0.05, momentum=0.9, decay=0.01),
    "nesterov": Sgd(rate=0.05, momentum=0.9, nesterov=True),
    "adam": Adam(rate=0.01, decay=0.02),
    "adamw": Adam(rate=0.01, beta1=0.8, beta2=0.99, decay=0.1, decoupled=True),
}
"""Those of torch_reference.py."""


def node(operator, inputs, output, **attributes):
    return helper.make_node(operator, inputs.split(), [output], output, **attributes)


def small_network():
    """Return a convolution, a batch norm and a linear layer, as in torch_reference.py."""
    nodes = [
        node("Conv", "x conv", "c", strides=[2, 2]),
        node("BatchNormalization", "c scale shift mean variance", "n", epsilon=1e-5, momentum=0.8),
        node("Relu", "n", "r"),
        node("Flatten", "r", "f"),
        node("Gemm", "f linear bias", "y", transB=1),
    ]
    statistics = {"mean": np.zeros(4, np.float32), "variance": np.ones(4, np.float32)}
    constants = {**torch_reference.start(), **statistics}
    return load_bytes(model_bytes(nodes, {"x": np.zeros((6, 2, 5, 5), np.float32)}, constants=constants))


def trained(name, threads=1):
    session = TrainingSession(small_network(), optimizer=OPTIMIZERS[name], threads=threads)
    losses = [session.step(*torch_reference.batch(step)) for step in range(torch_reference.STEPS)]
    return losses, session.weights()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_five_steps_are_those_of_pytorch(name):
    expected = json.loads(torch_reference.FILE.read_text())[name]
    losses, weights = trained(name)
    np.testing.assert_allclose(losses, expected["losses"], rtol=1e-5)
    for key, values in expected["weights"].items():
        np.testing.assert_allclose(weights[key].reshape(-1), values, rtol=1e-4, atol=2e-5, err_msg=key)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("shape", [(5, 1, 1, 1), (5, 1, 1), (5, 3, 1, 1), (5, 2, 3, 3)])
def test_weights_of_any_shape_move_by_their_gradients(name, shape):
    """Also those of one element a channel, as of a convolution of a single channel, and of scales."""
    kernel = shape[2:]
    data = model_bytes(
        [node("Conv", "x w", "y", pads=[one // 2 for one in kernel] * 2)],
        {"x": np.zeros((2, shape[1], *(4,) * len(kernel)), np.float32)},
        constants={"w": np.random.default_rng(3).standard_normal(shape).astype(np.float32)},
    )
    session = TrainingSession(load_bytes(data), "mse", OPTIMIZERS[name], threads=2)
    generator = np.random.default_rng(4)
    x, y = (generator.standard_normal(one).astype(np.float32) for one in (session.inputs["x"], session.labels_shape))
    before, moments = session.weights()["w"].astype(np.float64), (0.0, 0.0)
    for step in range(1, 4):
        session.step(x, y)
        before, moments = moved(OPTIMIZERS[name], step, before, session.gradients()["w"].astype(np.float64), moments)
        np.testing.assert_allclose(session.weights()["w"], before, rtol=2e-5, atol=2e-6)


def moved(optimizer, step, weight, gradient, moments):
    """Return what an optimizer makes of a weight, and of its moments; the definitions are PyTorch's."""
    if isinstance(optimizer, Sgd):
        way = gradient + optimizer.decay * weight
        velocity = optimizer.momentum * moments[0] + way
        taken = way + optimizer.momentum * velocity if optimizer.nesterov else velocity
        return weight - optimizer.rate * taken, (velocity, 0.0)
    if optimizer.decoupled:
        weight = weight * (1 - optimizer.rate * optimizer.decay)
    else:
        gradient = gradient + optimizer.decay * weight
    first = optimizer.beta1 * moments[0] + (1 - optimizer.beta1) * gradient
    second = optimizer.beta2 * moments[1] + (1 - optimizer.beta2) * gradient**2
    mean, root = first / (1 - optimizer.beta1**step), np.sqrt(second / (1 - optimizer.beta2**step))
    return weight - optimizer.rate * mean / (root + optimizer.epsilon), (first, second)


def test_what_exporters_compute_of_constants_and_casts_to_the_same_type_are_trained_through():
    """Pads that are joined of constants, a cast to float32 of float32, and channels moved to pixels."""
    nodes = [
        node("Conv", "x w", "c"),
        node("Cast", "c", "same", to=1),
        node("Concat", "zeros one_pixel", "sizes", axis=0),
        node("Pad", "same sizes", "p"),
        node("DepthToSpace", "p", "y", blocksize=2),
    ]
    constants = {
        "w": np.random.default_rng(3).standard_normal((8, 3, 3, 3)).astype(np.float32),
        "zeros": np.zeros(6, np.int64),
        "one_pixel": np.ones(2, np.int64),
    }
    data = model_bytes(nodes, {"x": np.zeros((2, 3, 6, 6), np.float32)}, constants=constants)
    session = TrainingSession(load_bytes(data), "mse", Sgd(rate=0.05), threads=1)
    generator = np.random.default_rng(4)
    x, y = (generator.standard_normal(one).astype(np.float32) for one in (session.inputs["x"], session.labels_shape))
    losses = [session.step(x, y) for _ in range(20)]
    assert losses[-1] < 0.9 * losses[0]
    assert session.gradients().keys() == {"w"}


def test_any_number_of_threads_makes_the_same_bits():
    losses, weights = trained("adamw")
    for threads in (2, 3, 4):
        others, moved = trained("adamw", threads)
        assert others == losses
        for name, value in weights.items():
            np.testing.assert_array_equal(moved[name], value, err_msg=name)


def test_running_statistics_move_towards_the_batchs_by_the_models_momentum():
    session = TrainingSession(small_network(), optimizer=Sgd(rate=0.0), threads=1)
    x, labels = torch_reference.batch(0)
    convolution = model_bytes(
        [node("Conv", "x conv", "y", strides=[2, 2])], {"x": x}, constants={"conv": torch_reference.start()["conv"]}
    )
    convolved = Session(optimise(load_bytes(convolution)), threads=1).run({"x": x})["y"]
    session.step(x, labels)
    np.testing.assert_allclose(session.weights()["mean"], 0.2 * convolved.mean((0, 2, 3)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(session.weights()["variance"], 0.8 + 0.2 * convolved.var((0, 2, 3)), rtol=1e-4)


def test_a_convolution_learns_which_way_stripes_run_and_infers_so_afterwards():
    generator = np.random.default_rng(2)

    def batch(count=16):
        labels = generator.integers(0, 2, count)
        stripes = np.sin(np.arange(8) * 2 + generator.uniform(0, 6, (count, 1, 1))) * np.ones((1, 8, 1))
        images = np.where(labels[:, None, None], stripes, stripes.swapaxes(1, 2))
        noise = generator.normal(0, 0.3, images.shape)
        return (images + noise)[:, None].astype(np.float32), labels

    nodes = [
        node("Conv", "x w1", "c", pads=[1, 1, 1, 1]),
        node("BatchNormalization", "c scale shift mean variance", "n", momentum=0.8),
        node("Relu", "n", "r"),
        node("MaxPool", "r", "m", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", "m", "g"),
        node("Flatten", "g", "f"),
        node("Gemm", "f w2 b2", "s"),
        node("Softmax", "s", "y", axis=1),
    ]
    constants = {
        "w1": generator.normal(0, 0.3, (8, 1, 3, 3)).astype(np.float32),
        "w2": generator.normal(0, 0.3, (8, 2)).astype(np.float32),
        "b2": np.zeros(2, np.float32),
        "scale": np.ones(8, np.float32),
        "shift": np.zeros(8, np.float32),
        "mean": np.zeros(8, np.float32),
        "variance": np.ones(8, np.float32),
    }
    graph = load_bytes(model_bytes(nodes, {"x": np.zeros((16, 1, 8, 8), np.float32)}, constants=constants))
    session = TrainingSession(graph, optimizer=Adam(rate=0.02), threads=2)
    losses = [session.step(*batch()) for _ in range(80)]
    assert losses[0] > 0.5
    assert losses[-1] < 0.1
    images, labels = batch()
    for network in (session.graph(), load_bytes(onnx_bytes(session.graph()))):
        found = Session(optimise(network), threads=1).run({"x": images})["y"]
        assert np.mean(found.argmax(1) == labels) > 0.9


def dropping(seed):
    """Return the gradient of zero weights behind a Dropout of ones: what it kept, halved."""
    nodes = [node("Dropout", "x ratio", "d"), node("MatMul", "d w", "y")]
    constants = {"ratio": np.float32(0.25), "w": np.zeros((1000, 2), np.float32)}
    graph = load_bytes(model_bytes(nodes, {"x": np.zeros((1, 1000), np.float32)}, constants=constants))
    session = TrainingSession(graph, threads=1, seed=seed)
    session.step(np.ones((1, 1000), np.float32), np.zeros(1, np.int64))
    return session.gradients()["w"][:, 1] * 2


def test_dropout_drops_by_the_seed_and_scales_what_it_keeps():
    first = dropping(1)
    np.testing.assert_allclose(np.unique(first), [0, 4 / 3], rtol=1e-6)
    assert 0.2 < np.mean(first == 0) < 0.3
    np.testing.assert_array_equal(first, dropping(1))
    assert np.any(first != dropping(2))


def test_pixels_have_labels_of_their_own():
    x, labels = torch_reference.batch(0)[0], np.random.default_rng(6).integers(0, 4, (6, 2, 2))
    conv = torch_reference.start()["conv"]
    data = model_bytes([node("Conv", "x conv", "y", strides=[2, 2])], {"x": x}, constants={"conv": conv})
    logits = Session(optimise(load_bytes(data)), threads=1).run({"x": x})["y"].astype(np.float64)
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    expected = -np.take_along_axis(logs, labels[:, None], 1).mean()
    session = TrainingSession(load_bytes(data), threads=1)
    assert session.labels_shape == (6, 2, 2)
    assert session.step(x, labels) == pytest.approx(expected, rel=1e-5)
    assert session.step(x, labels) < expected


def test_a_batch_norm_that_shares_its_statistics_is_refused():
    nodes = [
        node("BatchNormalization", "x s b m v", "n1"),
        node("BatchNormalization", "n1 s b m v", "y"),
    ]
    constants = {name: np.ones(3, np.float32) for name in "sbmv"}
    graph = load_bytes(model_bytes(nodes, {"x": np.zeros((2, 3), np.float32)}, constants=constants))
    with pytest.raises(PowerlabError, match=r"cannot be trained: its running statistics are no constants of its own"):
        TrainingSession(graph, threads=1)


@pytest.mark.parametrize("network", ["mobilenetv3@32", "squeezenet@32"])
def test_networks_of_the_zoo_learn_one_batch_by_heart(network):
    session = TrainingSession(network, optimizer="adam", batch_size=2, threads=2)
    x = np.random.default_rng(3).standard_normal(session.inputs["x"], dtype=np.float32)
    losses = [session.step(x, np.asarray([5, 7])) for _ in range(6)]
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("name", ZOO)
def test_every_network_of_the_zoo_has_a_step_with_a_gradient_of_each_parameter(name):
    graph = load_graph(name, batch_size=2)
    step = training_step(graph, target_of(graph).loss, Sgd(), whole_cells=True)
    assert step.parameters
    assert set(step.gradients) == set(step.parameters)
    for parameter, gradient in step.gradients.items():
        assert step.graph.shape(gradient) == graph.shape(parameter), parameter
