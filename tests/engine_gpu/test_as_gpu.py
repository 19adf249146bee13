"""What a GPU's rules choose, on a processor that stands in for one: it has other rules of its own."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import agrees, compared
from engine_models import load_bytes, onnx_bytes
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace
from onnx import helper
from recurrent_cases import cells
from test_attention import graph_of as attention_of
from test_methods import graph_of

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu import model as gpu_model
from powerlab.engine.gpu.choice.method import Numbers
from powerlab.engine.gpu.choice.rule import by_rule
from powerlab.engine.gpu.device import this_target

RANDOM = np.random.default_rng(9)


@pytest.fixture(autouse=True)
def target(monkeypatch):
    """Let models take this device for a GPU of many cores."""
    found = replace(this_target(), broadcasts=False, cores=132)
    monkeypatch.setattr(gpu_model, "this_target", lambda: found)
    return found


def kernels(model):
    return [kernel.removesuffix("_fp32").removesuffix("_fp16") for kernel, _ in model.steps()]


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(1, 7, 3), (3, 70, 41), (8, 33, 1200), (1, 2, 9000)])
def test_few_rows_are_shared_by_slices(half, rows, inputs, outputs):
    weights = RANDOM.standard_normal((inputs, outputs)).astype(np.float32) / np.float32(np.sqrt(inputs))
    constants = {"w": weights, "b": RANDOM.standard_normal(outputs).astype(np.float32)}
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["c"]), helper.make_node("Sigmoid", ["c"], ["y"])]
    graph = load_bytes(onnx_bytes(nodes, {"x": (rows, inputs)}, constants=constants))
    assert "dense" in kernels(compared(graph, half=half, tolerance=4e-3 if half else 2e-5))


POOLS = {
    "average": ("GlobalAveragePool", {}),
    "largest": ("GlobalMaxPool", {}),
    "norm": ("GlobalLpPool", {"p": 3}),
    "window": ("AveragePool", {"kernel_shape": [9, 13]}),
}


@pytest.mark.parametrize("operator", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"])
def test_many_numbers_of_few_results_are_reduced_by_whole_work_groups(operator):
    node = helper.make_node(operator, ["x", "axes"], ["y"])
    graph = load_bytes(onnx_bytes([node], {"x": (3, 70, 5, 9)}, constants={"axes": np.array([1, 3])}, opset=18))
    assert kernels(compared(graph)) == ["reduce_wide", "store"]


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("kind", POOLS)
def test_pools_over_whole_images(half, kind):
    operator, attributes = POOLS[kind]
    node = helper.make_node(operator, ["x"], ["y"], **attributes)
    graph = load_bytes(onnx_bytes([node], {"x": (2, 6, 9, 13)}))
    assert "global_pool" in kernels(compared(graph, half=half, tolerance=4e-3 if half else 2e-5))


@pytest.mark.parametrize("size", [5, 200, 2100])
@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "LayerNormalization", "LpNormalization"])
def test_long_rows_are_shared_by_more_lanes(operator, size):
    scale = {"s": RANDOM.standard_normal(size).astype(np.float32)} if operator.startswith("Layer") else {}
    graph = load_bytes(
        onnx_bytes([helper.make_node(operator, ["x", *scale], ["y"])], {"x": (3, size)}, constants=scale)
    )
    assert "rows" in kernels(compared(graph))


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize(
    ("window", "parts"),
    [
        ({"inputs": 160, "outputs": 20, "kernel": 3, "size": (5, 4), "pad": 1, "residual": True}, True),
        ({"inputs": 512, "outputs": 12, "kernel": 1, "size": (6, 3)}, True),
        ({"inputs": 3, "outputs": 6, "kernel": 3, "size": (9, 8), "stride": 2}, False),
    ],
)
def test_windows_are_cut_where_an_image_does_not_fill_it(half, window, parts):
    model = compared(graph_of(**window), half=half, tolerance=4e-3 if half else 2e-5)
    assert ("sum_parts" in kernels(model)) == parts
    assert "conv" not in kernels(model)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cells())
def test_units_of_recurrent_cells_are_shared(data):
    assert "recurrent" in kernels(compared(load_bytes(data), tolerance=1e-4))


@pytest.mark.parametrize("sizes", [(1, 1, 17, 70, 64, 100), (2, 3, 9, 37, 6, 5)])
def test_attention_is_spread(sizes):
    assert "attention" in kernels(compared(attention_of(sizes)))


@pytest.mark.parametrize("name", ["squeezenet", "lstm2"])
def test_a_network(name):
    agrees(name, precision="fp16", tolerance=1e-2)


def test_tiles_are_smaller_where_there_is_less_to_do(target):
    """The rule that was fitted to timings: one image is cut more finely than 64, and few cores are left idle."""

    def work_groups(images):
        shape = ConvShape(
            images=images, inputs=256, outputs=256, kernel=(3, 3), pads=(1, 1), in_size=(14, 14), size=(14, 14)
        )
        chosen = by_rule(replace(target, matrices=()))(shape, Numbers.FP32)
        tiles = -(-shape.pixels // chosen.tile_pixels(32)) * -(-256 // (4 * chosen.tile_blocks))
        return tiles * chosen.parts, chosen.parts

    assert work_groups(1)[0] >= 0.9 * target.cores
    assert work_groups(1)[1] > work_groups(64)[1] == 1
