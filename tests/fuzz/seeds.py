"""Models to begin with: ONNX's own node cases, as they are and with all inputs but the first as constants."""

from __future__ import annotations

import warnings

import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from fuzz.mutate import MAX_BYTES
from powerlab.engine.ops import SUPPORTED


def node_cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [case for case in load_model_tests(kind="node") if case.model is not None and case.data_sets]
    for case in cases:
        if not {node.op_type for node in case.model.graph.node} & SUPPORTED:
            continue
        inputs = case.data_sets[0][0]
        for kept in (range(len(inputs)), (0,)):
            model = onnx.ModelProto()
            model.CopyFrom(case.model)
            model.ir_version = max(model.ir_version, 4)
            left = []
            for index, info in enumerate(case.model.graph.input):
                if index in kept or index >= len(inputs):
                    left.append(info)
                elif isinstance(inputs[index], onnx.TensorProto):
                    model.graph.initializer.append(inputs[index])
                    model.graph.initializer[-1].name = info.name
                elif inputs[index] is not None and hasattr(inputs[index], "dtype"):
                    model.graph.initializer.append(numpy_helper.from_array(inputs[index], info.name))
            del model.graph.input[:]
            model.graph.input.extend(left)
            data = model.SerializeToString()
            if len(data) < MAX_BYTES:
                yield case.name + ("_0" if kept == (0,) else ""), data


def write(folder):
    """Write the node cases into a folder."""
    for name, data in node_cases():
        (folder / f"{name}.onnx").write_bytes(data)
