"""A network of a few layers as an ONNX file, for tests that would take too long on a real one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

NODES = ("first", "norm", "rise", "second", "join", "rise_again", "mean", "flat", "classes", "softmax")


def write_small_network(path: Path, side: int = 32) -> Path:
    """Write a residual block with a classifier behind it; its input ``x`` is N x 3 x side x side."""
    random = np.random.default_rng(0)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(random.standard_normal(shape).astype(np.float32) * 0.1, name)

    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], "first", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c1", "scale", "shift", "mu", "var"], ["b1"], "norm"),
        helper.make_node("Relu", ["b1"], ["r1"], "rise"),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], "second", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c2", "r1"], ["a2"], "join"),
        helper.make_node("Relu", ["a2"], ["r2"], "rise_again"),
        helper.make_node("GlobalAveragePool", ["r2"], ["g"], "mean"),
        helper.make_node("Flatten", ["g"], ["f"], "flat"),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["l"], "classes", transB=1),
        helper.make_node("Softmax", ["l"], ["y"], "softmax", axis=1),
    ]
    constants = [
        weights("w1", 16, 3, 3, 3),
        weights("w2", 16, 16, 3, 3),
        weights("w3", 10, 16),
        weights("b3", 10),
        *(weights(name, 16) for name in ("scale", "shift", "mu")),
        numpy_helper.from_array(np.ones(16, dtype=np.float32), "var"),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, side, side])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    return path
