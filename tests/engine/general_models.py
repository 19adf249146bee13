"""Models of a few nodes over inputs of any type, run by the engine on several threads and judged by ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
from engine_models import load_bytes, run_ort
from onnx import helper, numpy_helper

from powerlab.engine import Session
from powerlab.engine.passes import optimise


def model_bytes(nodes, inputs, outputs=("y",), *, constants=None, opset=18):
    """Return an ONNX file; ``inputs`` maps names to arrays, whose types and shapes the inputs have."""
    types = {name: helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype) for name, value in inputs.items()}
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, types[name], np.shape(value)) for name, value in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


def node_bytes(operator, inputs, *, outputs=("y",), constants=None, opset=18, order=None, **attributes):
    """Return an ONNX file of one node; ``order`` names its inputs where constants or absent ones stand between."""
    names = order or [*inputs, *(constants or {})]
    node = helper.make_node(operator, names, list(outputs), "n", **attributes)
    return model_bytes([node], inputs, outputs, constants=constants, opset=opset)


def run_engine(data, inputs):
    """Return the outputs, which must not depend on the threads, on what memory held before, nor on earlier runs."""
    graph = optimise(load_bytes(data))
    session = Session(graph, threads=1)
    found = session.run(inputs)
    session.poison()
    several = Session(graph, threads=3)
    for again in (session.run(inputs), several.run(inputs)):
        for name, value in found.items():
            assert value.dtype == again[name].dtype
            np.testing.assert_array_equal(value, again[name])
    return found


def alike(found, expected, rtol=1e-5, atol=1e-6):
    """Hold outputs against what was expected: integers and bools exactly, in their own type."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].shape == value.shape, name
        assert found[name].dtype == value.dtype, name
        if value.dtype.kind == "f":
            np.testing.assert_allclose(found[name], value, rtol=rtol, atol=atol, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], value, err_msg=name)


def check_by_ort(data, inputs, **tolerances):
    """Run a model in the engine and in ONNX Runtime and hold both together."""
    found = run_engine(data, inputs)
    alike(found, run_ort(data, inputs), **tolerances)
    return found
