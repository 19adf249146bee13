"""What a session computes from unusual numbers, shapes and files is what ONNX Runtime computes, on any thread count."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from engine_models import TOLERANCE, light_model, load_bytes, onnx_bytes, random_inputs, relative_error, run_ort
from engine_reference import run_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from operator_cases import CASES, floats

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.passes import optimise

SPECIAL = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}
KNOWN_DIFFERENCES = {
    # Small groups become one with zeros between, so that 0 times infinity, not a number, reaches the neighbours.
    "conv depthwise": set(SPECIAL),
    # Without a bound an infinity stays one; ONNX Runtime makes it the largest float.
    "clip attributes open": {"-inf"},
    "clip input high": {"-inf"},
}
JUDGED_BY_NUMPY = {
    # ONNX Runtime takes not a number for a large one.
    *(name for name in CASES if name.startswith("lstm")),
    # ONNX Runtime's running sum carries not a number to all later channels.
    "lrn",
    # ONNX Runtime drops not a number from most windows.
    "max pool",
    "max pool ceil",
    "max pool same",
}


def session_of(data, threads=2):
    return Session(optimise(load_bytes(data)), threads=threads)


def case_bytes(name):
    operator, more, attributes, constants, opset, shape, _ = CASES[name]
    node = helper.make_node(operator, ["x", *more], ["y"], "n", **attributes)
    return onnx_bytes([node], {"x": shape}, constants=constants, opset=opset)


@pytest.mark.parametrize("value", SPECIAL)
@pytest.mark.parametrize("name", CASES)
def test_not_a_number_and_infinity_spread_as_in_onnx_runtime(name, value):
    data = case_bytes(name)
    session = session_of(data)
    (x,) = (np.random.default_rng(3).standard_normal(shape, dtype=np.float32) for shape in session.inputs.values())
    x.reshape(-1)[x.size // 2] = SPECIAL[value]
    found = session.run({"x": x})["y"]
    if name in JUDGED_BY_NUMPY:
        with np.errstate(invalid="ignore"):
            expected = run_graph(optimise(load_bytes(data)), {"x": x})["y"]
    else:
        expected = run_ort(data, {"x": x})["y"]
    if value not in KNOWN_DIFFERENCES.get(name, ()):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        return
    assert not np.isfinite(found[~np.isfinite(expected)]).any()  # never hidden
    both = np.isfinite(found) & np.isfinite(expected)
    assert both.any()
    np.testing.assert_allclose(found[both], expected[both], rtol=1e-4, atol=1e-5)


@st.composite
def odd_networks(draw):
    """Return ONNX bytes of a convolution, perhaps with a norm, pool and residual, over an image of an odd shape."""
    batch = draw(st.sampled_from([1, 2, 3]))
    channels = draw(st.sampled_from([1, 3, 4, 16, 17]))
    height, width = draw(st.sampled_from([(1, 1), (1, 9), (7, 1), (2, 2), (5, 3), (13, 17)]))
    group = draw(st.sampled_from([one for one in (1, 2, 4, channels) if channels % one == 0]))
    outputs = group * draw(st.sampled_from([1, 2, 5]))
    kernel = draw(st.sampled_from([(1, 1), (3, 3), (1, 3), (5, 2)]))
    pads = [draw(st.integers(kernel[axis % 2] // 2, kernel[axis % 2])) for axis in range(4)]
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    constants = {
        "w": generator.standard_normal((outputs, channels // group, *kernel), dtype=np.float32),
        "b": generator.standard_normal(outputs, dtype=np.float32),
    }
    strides = draw(st.sampled_from([(1, 1), (2, 1), (3, 3)]))
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], group=group, pads=pads, strides=strides)]
    last = "c"
    if draw(st.booleans()):
        nodes.append(helper.make_node("Relu", [last], ["r"]))
        nodes.append(helper.make_node("Add", ["r", "c"], ["a"]))
        last = "a"
    ending = draw(st.sampled_from(["GlobalAveragePool", "Flatten", "Softmax", "Concat"]))
    more = {"Softmax": {"axis": 1}, "Concat": {"axis": draw(st.sampled_from([0, 1, 3]))}}.get(ending, {})
    nodes.append(helper.make_node(ending, [last, "c"] if ending == "Concat" else [last], ["y"], **more))
    return onnx_bytes(nodes, {"x": (batch, channels, height, width)}, ["y", "c"], constants=constants)


@settings(max_examples=80, deadline=None)
@given(odd_networks())
def test_images_of_odd_shapes_give_what_onnx_runtime_gives(data):
    session = session_of(data)
    inputs = random_inputs(load_bytes(data))
    assert relative_error(session.run(inputs), run_ort(data, inputs)) < TOLERANCE


@settings(max_examples=20, deadline=None)
@given(odd_networks(), st.sampled_from([2, 3, 5]))
def test_bits_do_not_depend_on_threads_nor_on_earlier_runs(data, threads):
    one, many = session_of(data, 1), session_of(data, threads)
    inputs, others = random_inputs(load_bytes(data)), random_inputs(load_bytes(data), seed=9)
    first = one.run(inputs)
    one.run({name: value * np.nan for name, value in others.items()})
    one.poison()
    for again in (one.run(inputs), many.run(inputs), many.run(inputs)):
        assert all(np.array_equal(again[name], first[name]) for name in first)


def conv_model(dtype):
    generator = np.random.default_rng(1)
    weights = generator.standard_normal((5, 3, 3, 3)).astype(dtype), generator.standard_normal(5).astype(dtype)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w", "b"], ["y"])],
        "conv",
        [helper.make_tensor_value_info("x", kind, (1, 3, 8, 8))],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(value, name) for name, value in zip("wb", weights, strict=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, weights


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_weights_of_any_float_type_are_computed_with_in_float32(dtype, tmp_path):
    model, (w, b) = conv_model(dtype)
    onnx.save(model, tmp_path / "m.onnx")
    x = floats(1, 3, 8, 8).astype(dtype)
    session = Session(tmp_path / "m.onnx")
    found = session.run({"x": x})["y"]
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), axis=(2, 3))
    expected = np.einsum("nchwij,ocij->nohw", windows, w.astype(np.float64)) + b.astype(np.float64)[:, None, None]
    assert found.dtype == dtype == session.dtypes["x"] == session.dtypes["y"]
    rtol = 1e-3 if dtype == np.float16 else 1e-4
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=rtol, atol=rtol)


def test_weights_in_a_file_beside_the_model_give_the_same_bits(tmp_path):
    model, _ = conv_model(np.float32)
    onnx.save(model, tmp_path / "inside.onnx")
    onnx.save(model, tmp_path / "beside.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    x = floats(1, 3, 8, 8)
    inside, beside = (Session(tmp_path / f"{name}.onnx").run({"x": x})["y"] for name in ("inside", "beside"))
    np.testing.assert_array_equal(beside, inside)
    whole = (tmp_path / "weights.bin").read_bytes()
    (tmp_path / "weights.bin").write_bytes(whole[:-1])
    with pytest.raises(PowerlabError, match="reaches past the end of 'weights"):
        Session(tmp_path / "beside.onnx")


def test_an_input_that_is_read_only_or_strided_or_swapped_is_taken_or_explained():
    session = session_of(case_bytes("conv"))
    x = random_inputs(load_bytes(case_bytes("conv")))["x"]
    expected = session.run({"x": x})["y"]
    frozen = x.copy()
    frozen.setflags(write=False)
    backwards = x[:, :, ::-1].copy()[:, :, ::-1]
    for same in (frozen, backwards, np.asfortranarray(x)):
        np.testing.assert_array_equal(session.run({"x": same})["y"], expected)
    with pytest.raises(PowerlabError, match="must be a float32 array"):
        session.run({"x": x.astype(">f4")})


@pytest.mark.parametrize("batch", [0, -1])
def test_no_images_are_refused_with_the_shape(tmp_path, batch):
    path = tmp_path / "m.onnx"
    path.write_bytes(case_bytes("conv"))
    with pytest.raises(PowerlabError, match=r"the shape .* given for input 'x' has a dimension of size 0 or less"):
        Session(path, shapes={"x": (batch, 4, 9, 7)})


def test_a_batch_no_machine_holds_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(case_bytes("conv"))
    with pytest.raises(PowerlabError) as error:
        Session(path, shapes={"x": (10**9, 4, 9, 7)})
    assert str(error.value).count(".") <= 2
    assert "impossible shape" in str(error.value)


def test_a_light_network_gives_the_same_bits_with_any_threads(tmp_path):
    path = tmp_path / "light.onnx"
    path.write_bytes(light_model("squeezenet"))
    sessions = [Session(path, threads=threads) for threads in (1, 2, 3)]
    generator = np.random.default_rng(0)
    inputs = {name: generator.standard_normal(s, dtype=np.float32) for name, s in sessions[0].inputs.items()}
    first, *others = (session.run(inputs) for session in sessions)
    assert all(np.array_equal(first[name], other[name]) for other in others for name in first)
