"""Small quantized ONNX models, as ONNX Runtime's tools write them, and answers in quanta."""

from __future__ import annotations

import numpy as np
import onnx
from engine_models import run_ort
from onnx import helper, numpy_helper

from powerlab.engine import Session

MICROSOFT = "com.microsoft"


def model_bytes(nodes, inputs, outputs, constants, opset=21):
    """Return an ONNX file; ``inputs`` and ``outputs`` map names to (ONNX type, shape or None)."""
    graph = helper.make_graph(
        list(nodes),
        "quantized",
        [helper.make_tensor_value_info(name, *info) for name, info in inputs.items()],
        [helper.make_tensor_value_info(name, *info) for name, info in outputs.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def quantized_between(operator, shapes, made, *, constants=(), domain="", attributes=None, opset=21):
    """Return a model that quantizes float inputs, runs one operator of quantized tensors, and dequantizes the result.

    Args:
        operator: its name.
        shapes: of the float inputs x0, x1, ...; each has a scale of 0.02 and the zero point 118.
        made: names of the operator's inputs: x0_q, x0_s, x0_z, ..., those in ``constants``, y_s, y_z.
        constants: name -> value.
        domain: of the operator.
        attributes: of the operator.
        opset: of ONNX's operators.
    """
    values = {"y_s": np.float32(0.05), "y_z": np.uint8(131), **dict(constants)}
    nodes = []
    for index in range(len(shapes)):
        name = f"x{index}"
        values |= {f"{name}_s": np.float32(0.02), f"{name}_z": np.uint8(118)}
        nodes.append(helper.make_node("QuantizeLinear", [name, f"{name}_s", f"{name}_z"], [f"{name}_q"]))
    nodes.append(helper.make_node(operator, made, ["y_q"], domain=domain, **(attributes or {})))
    nodes.append(helper.make_node("DequantizeLinear", ["y_q", "y_s", "y_z"], ["y"]))
    inputs = {f"x{index}": (onnx.TensorProto.FLOAT, shape) for index, shape in enumerate(shapes)}
    return model_bytes(nodes, inputs, {"y": (onnx.TensorProto.FLOAT, None)}, values, opset)


def answers(data, tmp_path, inputs):
    """Return what the engine and ONNX Runtime make of ``inputs``: name -> array, each."""
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    return Session(path, threads=1).run(inputs), run_ort(data, inputs)


def random_floats(shapes, seed=0):
    generator = np.random.default_rng(seed)
    return {f"x{index}": generator.standard_normal(shape, dtype=np.float32) for index, shape in enumerate(shapes)}
