"""Steps in bfloat16: near those in float32, the same bits on any threads, refused where nothing multiplies it."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph, Node, TensorInfo
from powerlab.engine.ir.shapes import infer
from powerlab.engine.target.tiers import choose_tier
from powerlab.engine.training import Adam, Sgd, TrainingSession
from requires import needs_instructions

needs_bf16 = needs_instructions(bool(choose_tier().pairs), "bfloat16")

CONVOLUTIONS = {
    "one": (96, 24, {"kernel_shape": (1, 1)}),
    "groups": (96, 32, {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1), "group": 3}),
    "strided": (80, 96, {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1), "strides": (2, 2)}),
    "own": (80, 1, {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1), "group": 80}),
    "even": (64, 80, {"kernel_shape": (2, 3), "pads": (0, 1, 1, 1), "dilations": (1, 2)}),
    "tens": (40, 8, {"kernel_shape": (3, 1), "group": 8}),
}
"""Output channels, inputs of a group, and attributes; each follows on the one before."""


def network() -> Graph:
    """Return convolutions of many forms and two linear layers; what they multiply first is as in bfloat16."""
    random, constants, nodes, source = np.random.default_rng(3), {}, [], "x"
    for name, (outputs, inputs, attributes) in CONVOLUTIONS.items():
        kernel = attributes["kernel_shape"]
        scale = np.sqrt(2 / (inputs * kernel[0] * kernel[1]))
        constants[f"{name}.w"] = (random.standard_normal((outputs, inputs, *kernel)) * scale).astype(np.float32)
        constants[f"{name}.b"] = random.standard_normal(outputs).astype(np.float32)
        nodes.append(Node("Conv", name, (source, f"{name}.w", f"{name}.b"), (f"{name}.y",), attributes))
        nodes.append(Node("Softplus", f"{name}.act", (f"{name}.y",), (f"{name}.a",)))
        source = f"{name}.a"
    constants |= {
        "v": (random.standard_normal((1680, 96)) / 40).astype(np.float32),
        "u": (random.standard_normal((5, 96)) / 9).astype(np.float32),
    }
    nodes += [
        Node("Flatten", "flat", (source,), ("f",)),
        Node("MatMul", "linear", ("f", "v"), ("l",)),
        Node("Tanh", "tanh", ("l",), ("t",)),
        Node("Gemm", "last", ("t", "u"), ("scores",), {"transB": 1}),
    ]
    return infer("mixed", nodes, [TensorInfo("x", (40, 24, 18, 15))], ["scores"], constants)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return network()


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    return batch(4)


def batch(seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.standard_normal((40, 24, 18, 15)).astype(np.float32), random.integers(0, 5, 40)


@needs_bf16
def test_gradients_are_near_those_in_float32(graph):
    errors = []
    for seed in (4, 5, 6):  # one batch's error is twice or half of another's
        data = batch(seed)
        wide, narrow = (TrainingSession(graph, threads=2, precision=one) for one in ("fp32", "bf16"))
        kernels = {kernel for plan, _ in narrow.runs(*data) for kernel in plan.kernels()}
        for family in ("conv_direct_bf16_f32", "conv_weight_gradient_bf16", "pack_kernels_bf16", "narrow_rows_bf16"):
            assert any(kernel.startswith(family) for kernel in kernels), family
        assert narrow.step(*data) == pytest.approx(wide.step(*data), rel=1e-2)
        right, found = wide.gradients(), narrow.gradients()
        errors.append({name: np.linalg.norm(found[name] - right[name]) / np.linalg.norm(right[name]) for name in right})
    for name in errors[0]:
        assert 0 < np.sqrt(np.mean([one[name] ** 2 for one in errors])) < 0.02, name


@needs_bf16
def test_threads_change_no_bit_and_weights_stay_wide(graph, data):
    found = []
    for threads in range(1, 5):
        session = TrainingSession(graph, optimizer=Adam(rate=1e-4), threads=threads, precision="bf16")
        found.append(([session.step(*data) for _ in range(2)], session.weights()))
    for losses, weights in found[1:]:
        assert losses == found[0][0]
        assert all(np.array_equal(weights[name], value) for name, value in found[0][1].items())
    assert found[0][0][1] < found[0][0][0]
    first = found[0][1]["one.w"].view(np.uint32)
    assert np.count_nonzero(first & 0xFFFF) > first.size / 2


@needs_bf16
def test_steps_too_small_for_bfloat16_add_up_in_the_weights(graph, data):
    session = TrainingSession(graph, optimizer=Sgd(rate=1e-6), threads=2, precision="bf16")
    before = session.weights()
    for _ in range(3):
        session.step(*data)
    assert not np.array_equal(session.weights()["v"], before["v"])


def test_precisions_that_nothing_trains_in_are_refused(graph, monkeypatch):
    with pytest.raises(PowerlabError, match=r"models are trained in fp32 or bf16, not in 'int8'\."):
        TrainingSession(graph, precision="int8")
    here = choose_tier()
    monkeypatch.setattr("powerlab.engine.training.plans.choose_tier", lambda: replace(here, pairs=""))
    with pytest.raises(PowerlabError, match=f"the engine tier {here.name} has no instructions for bfloat16 .* in fp32"):
        TrainingSession(graph, precision="bf16")
