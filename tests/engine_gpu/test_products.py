"""Products of computed matrices by tiles in shared memory, and by units for them where the device has some."""

from __future__ import annotations

import pytest
from comparing import compared
from engine_models import load_bytes, onnx_bytes
from msgspec.structs import replace
from onnx import helper

from powerlab.engine.gpu import model as gpu_model
from powerlab.engine.gpu.device import this_target

SHAPES = {
    "odd": ((17, 35), (35, 19)),
    "batches": ((2, 3, 33, 16), (2, 3, 16, 40)),
    "one for all": ((4, 64, 24), (24, 50)),
    "another order": ((3, 20, 29), (3, 22, 29)),
    "batches apart": ((2, 3, 17, 4, 18), (4, 3, 18, 19)),
}


@pytest.fixture(autouse=True)
def as_gpu(monkeypatch):
    """Let the rule take this device for a GPU, not for a processor that stands in for one."""
    target = replace(this_target(), broadcasts=False)
    monkeypatch.setattr(gpu_model, "this_target", lambda: target)
    return target


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_a_product_of_computed_matrices(name, half, as_gpu):
    x, y = SHAPES[name]
    nodes = [helper.make_node("MatMul", ["x", "y"], ["z"])]
    if name == "another order":
        order = helper.make_node("Transpose", ["y"], ["t"], perm=[0, 2, 1])
        nodes = [order, helper.make_node("MatMul", ["x", "t"], ["z"])]
    if name == "batches apart":  # three axes, of which no neighbours are one
        order = helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2, 4])
        nodes = [order, helper.make_node("MatMul", ["t", "y"], ["z"])]
    model = compared(
        load_bytes(onnx_bytes(nodes, {"x": x, "y": y}, outputs=("z",))), half=half, tolerance=4e-3 if half else 2e-5
    )
    wanted = "product_matrix_half_fp16" if half and as_gpu.matrices else f"product_tiled_fp{16 if half else 32}"
    assert wanted in [kernel for kernel, _ in model.steps()]
