"""Convolutions of bytes that a max pool ends: one step, the same bytes, and less memory."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from engine_models import run_ort
from msgspec.structs import replace
from onnx import helper
from quantized_models import model_bytes

from powerlab.engine import Session, codegen
from powerlab.engine.codegen.quantized.pooled import find_pooled
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.onnx_writer import write_onnx
from powerlab.engine.passes import optimise
from powerlab.engine.quantization.calibrate import calibrate, random_batches
from powerlab.engine.quantization.prepare import prepared_for_quantization
from powerlab.engine.quantization.quantize import Options, quantize_graph
from powerlab.engine.target.machine import this_machine
from powerlab.engine.target.tiers import TIER_VARIABLE, available_tiers, choose_tier

FLOAT32 = onnx.TensorProto.FLOAT


def network(shape, kernel, stride, pool, *, joined=False, read_twice=False, adds=False, seed=0):
    """A convolution, an activation, a max pool and another convolution; ``pool`` is its kernel, stride and pads."""
    generator = np.random.default_rng(seed)
    size, step, pads = pool
    outputs = 32 if joined else 24

    def weights(*sizes):
        return (generator.standard_normal(sizes) / np.sqrt(np.prod(sizes[1:]))).astype(np.float32)

    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c"], pads=[kernel // 2] * 4, strides=[stride] * 2),
        *([helper.make_node("Add", ["c", "x"], ["s"])] if adds else []),
        helper.make_node("Relu", ["s" if adds else "c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[size] * 2, strides=[step] * 2, pads=[pads] * 4),
        *([helper.make_node("Concat", ["p", "p"], ["j"], axis=1)] if joined else []),
        helper.make_node("Conv", ["j" if joined else "p", "w1"], ["y"]),
        *([helper.make_node("Conv", ["r", "w1"], ["z"])] if read_twice else []),
    ]
    constants = {
        "w0": weights(outputs, shape[1], kernel, kernel),
        "w1": weights(7, outputs * (1 + joined), 1, 1),
    }
    made = {"y": (FLOAT32, None), **({"z": (FLOAT32, None)} if read_twice else {})}
    return model_bytes(nodes, {"x": (FLOAT32, shape)}, made, constants, 17)


def quantized(folder, *sizes, **options):
    """Write such a network in integers; return its path and the inputs of one run."""
    floats, integers = folder / "floats.onnx", folder / "integers.onnx"
    floats.write_bytes(network(*sizes, **options))
    graph = prepared_for_quantization(load_graph(floats))
    write_onnx(quantize_graph(graph, calibrate(graph, random_batches(graph, 16)), Options()).graph, integers)
    return integers, random_batches(graph, 1, seed=5)[0]


def kernels(session):
    return [kernel for kernel, _ in session.steps()]


def is_pooled(session):
    return any(kernel.startswith("conv_pool_u8") for kernel in kernels(session))


def is_apart(session):
    """Tell whether bytes that a convolution makes are pooled by another step; a tier may make them of floats."""
    pairs = itertools.pairwise(kernels(session))
    return any(one.startswith("conv_direct_u8") and other.startswith("pool_max_u8") for one, other in pairs)


SIZES = [
    ((1, 3, 33, 40), 7, 2, (3, 2, 1)),  # as residual networks begin
    ((2, 3, 40, 24), 3, 1, (2, 2, 0)),
    ((3, 20, 40, 18), 3, 1, (3, 2, 0)),
    ((1, 20, 80, 9), 1, 1, (2, 3, 0)),
    ((1, 33, 40, 17), 5, 1, (3, 1, 1)),
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_bytes_are_those_of_two_steps(sizes, threads, tmp_path):
    model, inputs = quantized(tmp_path, *sizes)
    rounded = run_ort(str(model), inputs, as_written=True)["y"]
    for tier in available_tiers():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(TIER_VARIABLE, tier.name)
            found = Session(model, threads).run(inputs)["y"]
            alone = Session(model, 1)
            patch.setattr(codegen, "find_pooled", lambda *_: {})
            apart = Session(model, threads)
            np.testing.assert_array_equal(found, apart.run(inputs)["y"], tier.name)
            assert not is_pooled(apart), tier.name
        assert not is_apart(alone), tier.name
        np.testing.assert_array_equal(found, alone.run(inputs)["y"], tier.name)
        assert np.abs(found - rounded).max() <= 0.02 * np.abs(rounded).max(), tier.name


def test_small_bands_keep_the_rows_that_the_next_windows_see(tmp_path, monkeypatch):
    """With little cache a band is for a few windows, and those of 3 x 3 share rows with the next."""
    model, inputs = quantized(tmp_path, (2, 3, 64, 40), 3, 1, (3, 2, 1))
    expected = Session(model, 1).run(inputs)["y"]
    machine = this_machine(choose_tier(), 1)
    small = replace(machine, caches=replace(machine.caches, l2_bytes=36 << 10))
    monkeypatch.setattr(codegen, "this_machine", lambda _tier, threads: replace(small, threads=threads))
    for threads in (1, 2):
        session = Session(model, threads)
        assert is_pooled(session)
        np.testing.assert_array_equal(session.run(inputs)["y"], expected)


def test_a_pool_may_write_into_what_it_is_joined_with(tmp_path):
    model, inputs = quantized(tmp_path, (1, 3, 32, 32), 3, 1, (2, 2, 0), joined=True)
    session = Session(model, 2)
    assert is_pooled(session)
    rounded = run_ort(str(model), inputs, as_written=True)["y"]
    assert np.abs(session.run(inputs)["y"] - rounded).max() <= 0.02 * np.abs(rounded).max()


def test_the_step_has_the_work_of_both(tmp_path):
    model, _ = quantized(tmp_path, (1, 3, 32, 32), 3, 1, (2, 2, 0))
    session = Session(model, 1)
    work = dict(zip(kernels(session), session.work, strict=True))
    (pooled,) = (one for kernel, one in work.items() if kernel.startswith("conv_pool_u8"))
    assert pooled.operator == "QuantConv"
    assert pooled.shape == (1, 24, 16, 16)
    assert pooled.flops == 2 * 24 * 32 * 32 * 27 + 4 * 24 * 16 * 16
    # The image, 648 weights, four numbers of 32 bits an output at most, and the result: not what lies between.
    least = 3 * 32 * 32 + 24 * 27 + 24 * 16 * 16
    assert least <= pooled.bytes_moved <= least + 16 * 24


@pytest.mark.parametrize(
    ("sizes", "options", "why"),
    [
        (((1, 3, 32, 32), 3, 1, (2, 2, 0)), {"read_twice": True}, "others read what lies between"),
        (((1, 24, 32, 32), 3, 1, (2, 2, 0)), {"adds": True}, "a residual is added"),
        (((1, 24, 6, 6), 3, 1, (2, 2, 0)), {}, "three rows go badly into two threads"),
    ],
    ids=str,
)
def test_what_stays_apart(sizes, options, why, tmp_path):
    model, _ = quantized(tmp_path, *sizes, **options)
    assert not is_pooled(Session(model, 2)), why


def test_large_weights_stay_apart(tmp_path):
    """They would come from beyond the second-level cache again for every band."""
    model, _ = quantized(tmp_path, (1, 20, 40, 18), 3, 1, (2, 2, 0))
    graph, machine = optimise(load_graph(model)), this_machine(choose_tier(), 1)
    assert find_pooled(graph, lambda _: machine)
    small = replace(machine, caches=replace(machine.caches, l2_bytes=2 * 24 * 20 * 9 - 2))
    assert not find_pooled(graph, lambda _: small)
