"""A network in training: it learns, its results are the same on any number of threads, and mistakes are told."""

from __future__ import annotations

import numpy as np
import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.ir.graph import Graph, Node, TensorInfo
from powerlab.engine.ir.shapes import infer
from powerlab.engine.passes import optimise
from powerlab.engine.training import OPTIMIZERS, Adam, Sgd, TrainingSession
from small_network import write_small_network
from training.numeric import cross_entropy, evaluated, slopes

BATCH, FEATURES, HIDDEN, CLASSES = 32, 16, 32, 5


def mlp(seed: int = 0, *, softmax: bool = True, count: int = BATCH) -> Graph:
    """Return a network of two linear layers."""
    random = np.random.default_rng(seed)
    constants = {
        "w1": random.standard_normal((HIDDEN, FEATURES)).astype("f4") * np.float32(0.2),
        "b1": np.full(HIDDEN, 0.1, np.float32),
        "w2": random.standard_normal((HIDDEN, CLASSES)).astype("f4") * np.float32(0.2),
        "b2": np.zeros(CLASSES, np.float32),
    }
    nodes = [
        Node("Gemm", "first", ("x", "w1", "b1"), ("h",), {"transB": 1}),
        Node("Relu", "relu", ("h",), ("a",)),
        Node("MatMul", "second", ("a", "w2"), ("m",)),
        Node("Add", "bias", ("m", "b2"), ("logits",)),
    ]
    if softmax:
        nodes.append(Node("Softmax", "softmax", ("logits",), ("y",), {"axis": -1}))
    return infer("mlp", nodes, [TensorInfo("x", (count, FEATURES))], ["y" if softmax else "logits"], constants)


def clusters(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return points around one centre a class, and their classes."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((CLASSES, FEATURES))
    labels = random.integers(0, CLASSES, count)
    return (centres[labels] + 0.8 * random.standard_normal((count, FEATURES))).astype("f4"), labels


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    return clusters(BATCH)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_learns_to_tell_clusters_apart(optimizer):
    session = TrainingSession(mlp(), optimizer=optimizer, threads=1)
    points, labels = clusters(BATCH * 60)
    losses = [
        session.step(points[at : at + BATCH], labels[at : at + BATCH])
        for at in (start * BATCH % len(points) for start in range(240))
    ]
    fresh, wanted = clusters(BATCH, seed=9)
    scores = evaluated(mlp(), {**session.weights(), "x": fresh})["logits"]
    assert np.mean(losses[-20:]) < 0.5 * losses[0]
    assert np.mean(scores.argmax(axis=1) == wanted) > 0.9


def test_loss_and_gradients_are_those_of_double_precision(data):
    graph, (points, labels) = mlp(), data
    session = TrainingSession(graph, threads=1)
    loss = session.step(points, labels)
    logits = evaluated(graph, {"x": points})["logits"]
    assert loss == pytest.approx(cross_entropy(logits, labels), rel=1e-5)
    ways = {
        name: np.random.default_rng(2).standard_normal(gradient.shape) for name, gradient in session.gradients().items()
    }
    plain = mlp(softmax=False)
    wanted = slopes(plain, {"x": points}, lambda output: cross_entropy(output, labels), ways)
    for name, gradient in session.gradients().items():
        assert float(np.sum(gradient * ways[name])) == pytest.approx(wanted[name], rel=1e-4, abs=1e-6), name


def by_hand(optimizer, weight: np.ndarray, gradients: list[np.ndarray]) -> np.ndarray:
    """Return a weight after PyTorch's updates, in double precision."""
    weight = weight.astype(np.float64)
    velocity = first = second = np.zeros_like(weight)
    for number, gradient in enumerate(gradients, start=1):
        if isinstance(optimizer, Sgd):
            given = gradient + optimizer.decay * weight
            velocity = optimizer.momentum * velocity + given
            ahead = given + optimizer.momentum * velocity
            weight = weight - optimizer.rate * (ahead if optimizer.nesterov else velocity)
            continue
        given = gradient + (0 if optimizer.decoupled else optimizer.decay * weight)
        weight = weight * (1 - optimizer.rate * optimizer.decay) if optimizer.decoupled else weight
        first = optimizer.beta1 * first + (1 - optimizer.beta1) * given
        second = optimizer.beta2 * second + (1 - optimizer.beta2) * given**2
        root = np.sqrt(second / (1 - optimizer.beta2**number)) + optimizer.epsilon
        weight = weight - optimizer.rate * first / (1 - optimizer.beta1**number) / root
    return weight


@pytest.mark.parametrize(
    "optimizer",
    [*OPTIMIZERS.values(), Sgd(rate=0.1, momentum=0.8, decay=0.05), Adam(rate=0.01, decay=0.1)],
    ids=[*OPTIMIZERS, "momentum and decay", "adam and decay"],
)
def test_updates_are_pytorchs(optimizer, data):
    session = TrainingSession(mlp(), optimizer=optimizer, threads=1)
    before, gradients = session.weights(), []
    for _ in range(4):
        session.step(*data)
        gradients.append(session.gradients())
    for name, weight in session.weights().items():
        wanted = by_hand(optimizer, before[name], [one[name].astype(np.float64) for one in gradients])
        np.testing.assert_allclose(weight, wanted, rtol=2e-5, atol=2e-6)


def test_threads_change_no_bit(data):
    results = []
    for threads in range(1, 5):
        session = TrainingSession(mlp(), optimizer="adam", threads=threads)
        losses = [session.step(*data) for _ in range(5)]
        results.append((losses, session.weights()))
    for losses, weights in results[1:]:
        assert losses == results[0][0]
        assert all(np.array_equal(weights[name], results[0][1][name]) for name in weights)


@pytest.mark.parametrize("slices", [1, 2])
def test_answers_are_those_of_the_model_as_it_is_now(tmp_path, slices):
    path = write_small_network(tmp_path / "small.onnx")  # with a batch norm
    session, random = TrainingSession(path, batch_size=4, threads=1, slices=slices), np.random.default_rng(0)
    for _ in range(2):
        images = random.standard_normal((4, 3, 32, 32)).astype(np.float32)
        session.step(images, random.integers(0, 2, 4))
        now = Session(optimise(session.graph()), threads=1)
        size = 4 // slices
        wanted = np.concatenate([now.run({"x": images[at : at + size]})["y"] for at in range(0, 4, size)])
        np.testing.assert_allclose(session.answers(images)["y"], wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(PowerlabError, match="the input 'x' has shape"):
        session.answers(images[:3])


def test_labels_out_of_range_are_told_and_change_nothing(data):
    session = TrainingSession(mlp(), threads=1)
    before = session.weights()
    for label in (-1, CLASSES):
        with pytest.raises(PowerlabError, match=rf"the label {label} is out of range: .* from 0 to {CLASSES - 1}\."):
            session.step(data[0], np.where(np.arange(BATCH) == 3, label, data[1]))
    assert session.steps_done == 0
    assert all(np.array_equal(before[name], weight) for name, weight in session.weights().items())


@pytest.mark.parametrize("slices", [1, 2])
def test_a_loss_that_is_not_finite_tells_step_and_layer_and_moves_no_weight(data, slices):
    session = TrainingSession(mlp(), threads=1, slices=slices)
    points, labels = (np.concatenate([one] * slices) for one in data)
    session.step(points, labels)
    before = session.weights()
    with pytest.raises(PowerlabError, match="the loss of step 2 is nan: the numbers of 'x' were not all finite"):
        session.step(np.where(np.arange(len(points))[:, None] == len(points) - 1, np.float32(np.nan), points), labels)
    huge = np.full_like(points, 3e38)
    with pytest.raises(PowerlabError, match=r"of step 2 is .*: the first layer .* not finite is the Gemm node 'first'"):
        session.step(huge, labels)
    assert session.steps_done == 1
    assert all(np.array_equal(before[name], weight) for name, weight in session.weights().items())
    session.step(points, labels)


def test_slices_learn_what_the_whole_batch_does(data):
    points, labels = (np.concatenate([one, one[::-1]]) for one in data)
    whole = TrainingSession(mlp(count=2 * BATCH), optimizer="adam", threads=1)
    sliced = TrainingSession(mlp(), optimizer="adam", threads=2, slices=2)
    assert sliced.inputs == whole.inputs
    assert sliced.labels_shape == whole.labels_shape
    for _ in range(5):
        assert sliced.step(points, labels) == pytest.approx(whole.step(points, labels), rel=1e-5)
        for name, gradient in whole.gradients().items():
            np.testing.assert_allclose(sliced.gradients()[name], gradient, rtol=1e-4, atol=1e-5, err_msg=name)


def test_slices_run_side_by_side_and_are_the_same_bits_on_any_number_of_threads(tmp_path):
    path, random = write_small_network(tmp_path / "small.onnx"), np.random.default_rng(0)  # with a batch norm
    batches = [(random.standard_normal((8, 3, 32, 32)).astype(np.float32), random.integers(0, 2, 8)) for _ in range(3)]
    found, alone = [], TrainingSession(path, batch_size=8, threads=1, slices=4)
    for threads, lanes in ((1, 1), (2, 2), (3, 1), (4, 4)):
        session = TrainingSession(path, batch_size=8, threads=threads, slices=4)
        assert session.lanes == lanes
        found.append(([session.step(*one) for one in batches], session.weights()))
        assert all(session.part_ns.values())
    assert session.planned_bytes > alone.planned_bytes, "each lane has activations and gradients of its own"
    for losses, weights in found[1:]:
        assert losses == found[0][0]
        assert all(np.array_equal(weights[name], found[0][1][name]) for name in weights)


def test_running_statistics_move_to_the_mean_of_what_slices_make_of_them(tmp_path):
    path, random = write_small_network(tmp_path / "small.onnx"), np.random.default_rng(0)
    images, labels = random.standard_normal((4, 3, 32, 32)).astype(np.float32), random.integers(0, 2, 4)
    optimizer = Sgd(rate=0.0)
    sliced = TrainingSession(path, optimizer=optimizer, batch_size=4, threads=2, slices=2)
    halves = [TrainingSession(path, optimizer=optimizer, batch_size=2, threads=1) for _ in range(2)]
    sliced.step(images, labels)
    for half, part in zip(halves, (slice(0, 2), slice(2, 4)), strict=True):
        half.step(images[part], labels[part])
    for name, weight in sliced.weights().items():
        wanted = np.mean([half.weights()[name] for half in halves], axis=0)
        np.testing.assert_allclose(weight, wanted, rtol=1e-6, atol=1e-7, err_msg=name)


def test_batches_that_cannot_be_cut_are_told():
    with pytest.raises(PowerlabError, match="cannot be cut evenly into 3 slices"):
        TrainingSession("squeezenet@64", batch_size=4, slices=3)
    with pytest.raises(PowerlabError, match="slices must be an integer from 1 on, not 0"):
        TrainingSession("squeezenet@64", batch_size=4, slices=0)


def test_too_little_memory_is_told_before_training(monkeypatch):
    monkeypatch.setattr("powerlab.engine.runtime.memory.available_bytes", lambda: 3000)
    monkeypatch.setattr("powerlab.engine.runtime.memory.ALWAYS_THERE_BYTES", 0)
    with pytest.raises(PowerlabError, match=r"training 'mlp' needs .* GiB for its activations, gradients and weights"):
        TrainingSession(mlp(), threads=1)


def test_data_that_does_not_fit_is_told(data):
    session = TrainingSession(mlp(), threads=1)
    with pytest.raises(PowerlabError, match="'labels' has shape"):
        session.step(data[0], data[1][:-1])
    with pytest.raises(PowerlabError, match="'x' must be a float32 array"):
        session.step(data[0].astype(np.float64), data[1])


def test_what_cannot_be_trained_is_told():
    bare = infer("bare", [Node("Relu", "relu", ("x",), ("y",))], [TensorInfo("x", (2, 3))], ["y"], {})
    with pytest.raises(PowerlabError, match="the model 'bare' has no parameters"):
        TrainingSession(bare)
    with pytest.raises(PowerlabError, match="there is no loss 'mse2'"):
        TrainingSession(mlp(), "mse2")
    with pytest.raises(PowerlabError, match="there is no optimizer 'sdg'"):
        TrainingSession(mlp(), optimizer="sdg")
