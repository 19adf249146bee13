"""Networks drawn at random run in 16 bits and in bytes as they do in float32, but for what rounding costs."""

from __future__ import annotations

import pytest
from engine_models import check_runs, load_bytes, random_inputs, run_ort
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from moving_networks import moving_networks
from random_networks import random_networks

from powerlab.engine import Session
from powerlab.engine.frontend.onnx_writer import write_onnx
from powerlab.engine.passes import optimise
from powerlab.engine.quantization.calibrate import calibrate
from powerlab.engine.quantization.layers import layers_of
from powerlab.engine.quantization.prepare import prepared_for_quantization
from powerlab.engine.quantization.quantize import quantize_graph
from powerlab.engine.target.tiers import BF16, FP16, choose_tier
from requires import needs_instructions

SMALL = 0.5

NETWORKS = st.one_of(moving_networks(), random_networks())


@pytest.mark.parametrize(
    ("precision", "tolerance"),
    [
        pytest.param(BF16, 0.1, marks=needs_instructions(bool(choose_tier().pairs), "bfloat16")),
        pytest.param(FP16, 0.03, marks=needs_instructions(bool(choose_tier().halves), "arithmetic in float16")),
    ],
)
@settings(max_examples=100)
@given(network=NETWORKS)
def test_16_bits_cost_little(tmp_path_factory, precision, tolerance, network):
    path = tmp_path_factory.mktemp("moving") / "network.onnx"
    path.write_bytes(network)
    inputs = random_inputs(load_bytes(network))
    check_runs(path, inputs, Session(path, threads=1).run(inputs), tolerance, SMALL, precision=precision)


@settings(max_examples=100)
@given(NETWORKS)
def test_bytes_give_what_onnx_runtime_makes_of_them(tmp_path_factory, network):
    graph = prepared_for_quantization(load_bytes(network))
    assume(layers_of(graph))
    calibration = calibrate(graph, [random_inputs(graph, seed) for seed in range(8)], threads=1)
    path = tmp_path_factory.mktemp("moving") / "quantized.onnx"
    quantized = quantize_graph(graph, calibration).graph
    write_onnx(quantized, path)
    inputs = random_inputs(graph)
    check_runs(optimise(quantized), inputs, run_ort(str(path), inputs, as_written=True), 0.03, SMALL)
