"""Small ONNX models for tests, ONNX Runtime as a judge, and the onnx package's light networks with real weights."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from engine_reference import run_graph
from onnx import helper, numpy_helper

from powerlab.engine import Session
from powerlab.engine.frontend.onnx_reader.build import parse
from powerlab.engine.passes import optimise
from powerlab.engine.target.tiers import choose_tier

TOLERANCE = 1e-4
"""Largest difference over the largest value of the reference."""

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def onnx_bytes(nodes, inputs, outputs=("y",), *, constants=None, opset=17, inputs_too=()):
    """Return an ONNX file; ``inputs`` maps names to shapes; constants in ``inputs_too`` are listed as inputs too."""
    constants = constants or {}
    infos = {**inputs, **{name: constants[name].shape for name in inputs_too}}
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in infos.items()],
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8 if opset > 8 else 3).SerializeToString()


def load_bytes(data, shapes=None, batch_size=None, folder=None):
    return parse(data, shapes or {}, batch_size, folder).graph()


def saturating_peers():
    """Tell whether others add products of bytes in pairs of 16 bits here, which saturate: on x86 without VNNI."""
    return platform.machine() == "x86_64" and not any(word in choose_tier().bytes for word in ("vnni", "amx"))


def run_ort(data, inputs, *, as_written=False):
    """Return what ONNX Runtime makes of a file; ``as_written``: node by node, for those that it optimises wrongly."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if as_written:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    if saturating_peers():
        options.add_session_config_entry("session.disable_quant_qdq", "1")  # in floats, as the file says
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return dict(zip([value.name for value in session.get_outputs()], session.run(None, inputs), strict=True))


def random_inputs(graph, seed=0):
    generator = np.random.default_rng(seed)
    return {info.name: generator.standard_normal(info.shape, dtype=np.float32) for info in graph.inputs}


def relative_error(found, expected):
    assert found.keys() == expected.keys()
    worst = 0.0
    for name, value in expected.items():
        assert found[name].shape == value.shape, name
        scale = float(np.abs(value).max()) if value.size else 0.0
        worst = max(worst, float(np.abs(found[name] - value).max(initial=0)) / (scale or 1.0))
    return worst


def check_against_ort(data, seed=0, tolerance=TOLERANCE):
    """Load, optimise and run ``data`` in numpy, compare with ONNX Runtime, and return the optimised graph."""
    loaded = load_bytes(data)
    inputs = random_inputs(loaded, seed)
    expected = run_ort(data, inputs)
    assert {info.name: info.shape for info in loaded.outputs} == {name: v.shape for name, v in expected.items()}
    optimised = optimise(loaded)
    assert relative_error(run_graph(optimised, inputs), expected) < tolerance
    return optimised


def check_session(data, tolerance=TOLERANCE, seed=0):
    """Compare a session with ONNX Runtime, and its bits with those of more threads and of memory full of NaN.

    Returns the session.
    """
    graph = load_bytes(data)
    optimised, inputs = optimise(graph), random_inputs(graph, seed)
    expected = run_ort(data, inputs)
    session = Session(optimised, threads=1)
    found = session.run(inputs)
    assert relative_error(found, expected) < tolerance
    session.poison()
    for again in (session.run(inputs), Session(optimised, threads=3).run(inputs)):
        for name, value in found.items():
            np.testing.assert_array_equal(again[name], value)
    return session


def check_runs(model, inputs, expected, tolerance, small=0.01, **choices):
    """Compare with what is expected, on average, and the bits with those of more threads and of memory full of NaN.

    Numbers that are small are what is left of a cancellation, and may differ more.
    """
    session = Session(model, threads=1, **choices)
    found = session.run(inputs)
    for name, one in expected.items():
        assert np.abs(found[name] - one).mean() < tolerance * (small + np.abs(one).max()), name
    session.poison()
    for again in (session.run(inputs), Session(model, threads=3, **choices).run(inputs)):
        assert all(again[name].tobytes() == found[name].tobytes() for name in found)


def light_model(name, seed=0):
    """Return a light network as ONNX bytes, its constant weights replaced by seeded random ones of sound size."""
    model = onnx.load(LIGHT / f"light_{name}.onnx")
    generator = np.random.default_rng(seed)
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    roles = {
        name: (node.op_type, index)
        for node in model.graph.node
        if node.op_type != "ConstantOfShape"
        for index, name in enumerate(node.input)
    }
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        value = _weight(roles.get(node.output[0]), tuple(map(int, shapes[node.input[0]])), generator)
        model.graph.initializer.append(numpy_helper.from_array(value, node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    model.ir_version = 8  # from 4 on an initialiser need not be listed as an input
    return model.SerializeToString()


def _weight(role, shape, generator):
    operator, index = role or ("", 0)
    if operator == "BatchNormalization" and index in (1, 4):  # small scales keep sums of branches from growing
        low, high = (0.2, 0.4) if index == 1 else (0.5, 1.0)
        return generator.uniform(low, high, shape).astype(np.float32)
    if len(shape) < 2:
        centre = 0.0 if operator in ("Conv", "Gemm", "BatchNormalization") else 0.5
        return generator.normal(centre, 0.1, shape).astype(np.float32)
    return (generator.standard_normal(shape, dtype=np.float32) * np.float32(np.sqrt(2 / np.prod(shape[1:])))).astype(
        np.float32
    )
