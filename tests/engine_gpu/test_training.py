"""Whole steps on the GPU: the judge is the same session on the processor."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import model_bytes
from msgspec.structs import replace
from onnx import helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine.gpu import device
from powerlab.engine.gpu.training import trainer
from powerlab.engine.training import Adam, Sgd, TrainingSession
from powerlab.engine.training.together import Alone
from small_network import write_small_network

TOLERANCE = 1e-4
SHAPES_OF_WORDS = {"table": (7, 6), "w": (6, 5)}
OPTIMIZERS = {
    "sgd": Sgd(rate=0.05, decay=0.02),
    "momentum": Sgd(rate=0.05, momentum=0.9, decay=0.01),
    "nesterov": Sgd(rate=0.05, momentum=0.9, nesterov=True),
    "adam": Adam(rate=0.01, decay=0.02),
    "adamw": Adam(rate=0.01, decay=0.1, decoupled=True),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write_small_network(tmp_path_factory.mktemp("models") / "small.onnx", 12)


def batch(session, seed, classes=10):
    generator = np.random.default_rng(seed)
    inputs = {name: generator.standard_normal(shape).astype(np.float32) for name, shape in session.inputs.items()}
    return inputs, generator.integers(0, classes, session.labels_shape)


def close(found, expected):
    """Hold arrays by name against others, within a part of the largest number of each."""
    for name, values in expected.items():
        assert np.abs(found[name] - values).max() <= TOLERANCE * np.abs(values).max(), name


def compared(model, steps=3, **choices):
    """Make steps on both, and compare losses, gradients, weights and running statistics; return both sessions."""
    queues = choices.pop("queues", 1)
    on_gpu = TrainingSession(model, device="gpu", queues=queues, **choices)
    on_cores = TrainingSession(model, threads=1, **choices)
    for step in range(steps):
        given = batch(on_cores, step)
        assert on_gpu.step(*given) == pytest.approx(on_cores.step(*given), rel=TOLERANCE)
        close(on_gpu.gradients(), on_cores.gradients())
        close(on_gpu.weights(), on_cores.weights())
        on_gpu._trainer.poison()
    return on_gpu, on_cores


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_every_optimizer_are_those_of_the_cores(small, name):
    compared(small, optimizer=OPTIMIZERS[name], batch_size=4)


def test_steps_by_the_rules_of_a_gpu_are_those_of_the_cores(small, monkeypatch):
    target = replace(trainer.this_target(), broadcasts=False, cores=132)
    monkeypatch.setattr(trainer, "this_target", lambda: target)
    compared(small, batch_size=4, slices=2)


def test_a_step_is_submitted_once_and_tells_how_long_its_parts_took(small):
    session = TrainingSession(small, batch_size=2, device="gpu")
    assert (session.tier, session.threads, session.lanes) == ("vulkan", 1, 1)
    assert session.part_ns == {}
    before = session._trainer._device.submits
    session.step(*batch(session, 0))
    assert session._trainer._device.submits == before + 1
    assert list(session.part_ns) == ["forward", "backward", "update"]
    assert min(session.part_ns.values()) > 0
    assert 0 < session.activation_bytes < session.planned_bytes


@pytest.mark.parametrize("queues", [1, 2])
def test_slices_are_those_of_the_cores(small, monkeypatch, queues):
    """Where the device has one queue, it takes all command buffers of a step one after the other."""
    monkeypatch.setattr(device, "queues_here", lambda: 2)
    session, _ = compared(small, batch_size=6, slices=3, optimizer="momentum", queues=queues)
    before = session._trainer._device.submits
    session.step(*batch(session, 9))
    assert session._trainer._device.submits == before + (1 if queues == 1 else 3)
    assert min(session.part_ns.values()) > 0


def test_slices_are_recorded_without_barriers_between_their_passes(small):
    one, two = (TrainingSession(small, batch_size=2 * slices, slices=slices, device="gpu") for slices in (1, 2))
    assert two._trainer.barriers <= one._trainer.barriers + 2  # before what adds them up, and behind it


def test_without_batch_norms_slices_have_the_gradients_of_the_whole_batch():
    sessions = [TrainingSession("squeezenet@32", batch_size=4, slices=slices, device="gpu") for slices in (1, 2)]
    given = batch(sessions[0], 3)
    losses = [session.step(*given) for session in sessions]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    close(sessions[1].gradients(), sessions[0].gradients())


def test_dropout_local_response_norms_and_pools_train():
    generator = np.random.default_rng(1)
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("LRN", ["r"], ["l"], size=5, alpha=0.01),
        helper.make_node("MaxPool", ["l"], ["m"], kernel_shape=[3, 3], strides=[2, 2]),
        helper.make_node("Flatten", ["m"], ["f"]),
        helper.make_node("Dropout", ["f", "ratio"], ["d"]),
        helper.make_node("Gemm", ["d", "w2", "b2"], ["y"], transB=1),
    ]
    constants = {
        "w1": generator.normal(0, 0.3, (12, 3, 3, 3)).astype(np.float32),
        "b1": np.zeros(12, np.float32),
        "w2": generator.normal(0, 0.1, (10, 12 * 3 * 3)).astype(np.float32),
        "b2": np.zeros(10, np.float32),
        "ratio": np.float32(0.5),
    }
    graph = load_bytes(model_bytes(nodes, {"x": np.zeros((3, 3, 16, 16), np.float32)}, constants=constants))
    compared(graph, seed=4)


def test_embeddings_train():
    generator = np.random.default_rng(1)
    nodes = [
        helper.make_node("Gather", ["table", "x"], ["g"], axis=0),
        helper.make_node("ReduceMean", ["g"], ["m"], axes=[1], keepdims=0),
        helper.make_node("Gemm", ["m", "w"], ["y"]),
    ]
    constants = {name: generator.standard_normal(shape).astype("f4") for name, shape in SHAPES_OF_WORDS.items()}
    graph = load_bytes(model_bytes(nodes, {"x": np.zeros((3, 4), np.int64)}, constants=constants, opset=13))
    on_gpu, on_cores = (TrainingSession(graph, optimizer="momentum", device=device) for device in ("gpu", "cpu"))
    for _ in range(3):
        words, labels = generator.integers(-7, 7, (3, 4)), generator.integers(0, 5, 3)
        assert on_gpu.step(words, labels) == pytest.approx(on_cores.step(words, labels), rel=TOLERANCE)
        close(on_gpu.gradients(), on_cores.gradients())
    with pytest.raises(PowerlabError, match="the input 'x' picks from 7 rows and holds 0 to 7"):
        on_gpu.step(np.array([[0, 1, 2, 7]] * 3), labels)


def test_what_is_counted_of_a_mask_trains_while_it_is_small():
    generator = np.random.default_rng(2)
    nodes = [
        helper.make_node("CumSum", ["x", "axis"], ["count"]),
        helper.make_node("Cast", ["count"], ["f"], to=1),
        helper.make_node("Gemm", ["f", "w"], ["y"]),
    ]
    constants = {"axis": np.array(1), "w": generator.standard_normal((4, 5)).astype("f4")}
    graph = load_bytes(model_bytes(nodes, {"x": np.zeros((3, 4), np.int64)}, constants=constants, opset=13))
    on_gpu, on_cores = (TrainingSession(graph, device=device) for device in ("gpu", "cpu"))
    mask, labels = generator.integers(0, 2, (3, 4)), generator.integers(0, 5, 3)
    assert on_gpu.step(mask, labels) == pytest.approx(on_cores.step(mask, labels), rel=TOLERANCE)
    close(on_gpu.gradients(), on_cores.gradients())
    with pytest.raises(PowerlabError, match="the input 'x' holds 0 to 32769, and this model on a GPU takes"):
        on_gpu.step(np.where(np.arange(4) == 1, 2**15 + 1, np.zeros((3, 1), np.int64)), labels)


def test_a_network_of_the_zoo_trains_as_on_the_cores():
    compared("resnet18@64", steps=1, batch_size=2)


def test_activations_may_be_computed_again(small):
    kept, again = (
        TrainingSession(small, batch_size=2, device="gpu", recompute=recompute) for recompute in (False, True)
    )
    given = batch(kept, 1)
    assert kept.step(*given) == again.step(*given)
    for name, gradient in kept.gradients().items():
        np.testing.assert_array_equal(again.gradients()[name], gradient)


def test_answers_are_those_of_the_model_as_it_is_now(small):
    session = TrainingSession(small, batch_size=4, slices=2, device="gpu")
    for step in range(2):
        inputs, labels = batch(session, step)
        session.step(inputs, labels)
        on_cores = TrainingSession(session.graph(), threads=1)
        wanted = [on_cores.answers({"x": inputs["x"][first : first + 2]})["y"] for first in (0, 2)]
        np.testing.assert_allclose(session.answers(inputs)["y"], np.concatenate(wanted), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("slices", [1, 2])
def test_a_loss_that_is_no_number_moves_nothing_and_tells_where_it_comes_from(small, slices):
    session = TrainingSession(small, optimizer="adam", batch_size=2, slices=slices, device="gpu")
    inputs, labels = batch(session, 0)
    session.step(inputs, labels)
    before = session.weights()
    bad = {"x": np.where(np.arange(2)[:, None, None, None] == 1, np.float32(np.nan), inputs["x"])}
    with pytest.raises(PowerlabError, match=r"the loss of step 2 is nan: the numbers of 'x' were not all finite"):
        session.step(bad, labels)
    for name, values in session.weights().items():
        np.testing.assert_array_equal(values, before[name])
    assert session.steps_done == 1
    assert np.isfinite(session.step(inputs, labels))


def test_labels_out_of_range_are_told_and_change_nothing(small):
    session = TrainingSession(small, batch_size=2, device="gpu")
    inputs, _ = batch(session, 0)
    with pytest.raises(PowerlabError, match=r"the label 10 is out of range: .* from 0 to 9\."):
        session.step(inputs, np.array([1, 10]))
    assert session.steps_done == 0


def test_an_operator_that_a_gpu_does_not_train_is_refused_by_name():
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "volume"),
        helper.make_node("Flatten", ["c"], ["y"]),
    ]
    constants = {"w": np.ones((2, 1, 2, 2, 2), np.float32)}
    graph = load_bytes(model_bytes(nodes, {"x": np.zeros((2, 1, 3, 3, 3), np.float32)}, constants=constants))
    with pytest.raises(PowerlabError, match=r"General node 'volume' is not supported on a GPU yet; use the device cpu"):
        TrainingSession(graph, device="gpu")


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"threads": 2}, "a GPU has no threads to choose; leave out threads=2"),
        ({"precision": "bf16"}, "on a GPU models are trained in fp32 alone, not in 'bf16'"),
        ({"group": Alone()}, "several processes train together on the cores alone; leave out the device gpu"),
        ({"queues": 2}, "a batch of 1 slice cannot be spread over 2 queues"),
        ({"device": "cpu", "queues": 2}, "the cpu has no queues; leave out queues=2"),
        ({"device": "tpu"}, "device must be cpu or gpu, not 'tpu'"),
    ],
)
def test_what_there_is_not_is_refused(small, choices, said):
    with pytest.raises(PowerlabError, match=said):
        TrainingSession(small, batch_size=2, **{"device": "gpu", **choices})


def test_memory_that_a_gpu_does_not_have_is_told_before_anything_is_taken(small, monkeypatch):
    card = SimpleNamespace(name="Small Card", memory_bytes=1 << 16)
    monkeypatch.setattr(trainer, "chosen_info", lambda: card)
    said = r"training 'small' needs 0\.\d+ GiB for its activations, gradients and weights, and Small Card has 6\.1e-05"
    with pytest.raises(PowerlabError, match=said):
        TrainingSession(small, batch_size=2, device="gpu")
