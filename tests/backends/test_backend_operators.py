"""Every engine that is installed computes each operator as the built-in one does."""

from __future__ import annotations

import numpy as np
import pytest
from backend_answers import HERE, TOLERANCE, difference, loaded
from engine_models import onnx_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from operator_cases import CASES

from powerlab.backends import builtin
from powerlab.backends.base import LoadOptions
from powerlab.domain.errors import PowerlabError

NOT_ALIKE = {
    # OpenVINO takes the softmax of one axis where ONNX, before opset 13, takes it of all axes from there on.
    ("openvino", "softmax 11 flattens"),
    ("openvino", "softmax 11 default"),
}
LSTMS = {name for name in CASES if name.startswith("lstm")}
REFUSED = {
    # It has no such function, or it with another number alone.
    "litert": {"elu", "erf"} | LSTMS,
    # No batch axis: these mix the images of a batch, or make tensors that are none.
    "ncnn": {
        "concat constant",
        "concat constant image",
        "flatten back",
        "flatten all",
        "reshape one",
        "resize sizes",
        "squeeze 13",
        "squeeze all",
        "unsqueeze 11",
        "transpose rows",
    }
    | LSTMS,
}


@pytest.fixture
def case(tmp_path):
    def write(name):
        operator, more, attributes, constants, opset, shape, _ = CASES[name]
        node = helper.make_node(operator, ["x", *more], ["y"], "n", **attributes)
        path = tmp_path / "model.onnx"
        path.write_bytes(onnx_bytes([node], {"x": shape}, constants=constants, opset=opset))
        return path, shape[0]

    return write


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("engine", HERE)
def test_every_operator_computes_what_the_built_in_engine_does(engine, name, case):
    path, batch_size = case(name)
    if name in REFUSED.get(engine, ()):
        with pytest.raises(PowerlabError) as refused:
            loaded(engine, path, batch_size)
        assert "\n" not in str(refused.value)
        return
    apart = difference(engine, path, batch_size)
    if (engine, name) in NOT_ALIKE:
        assert apart > 0.1, "it computes the same now; take it off the list"
    else:
        assert apart < TOLERANCE


@pytest.mark.parametrize("engine", sorted({"ncnn", "torch"} & set(HERE)))
@pytest.mark.parametrize("name", ["conv bias stride", "lrn", "average pool", "gemm", "softmax axis"])
def test_operators_in_bfloat16_are_near_the_built_in_engines(engine, name, case):
    path, batch_size = case(name)
    assert difference(engine, path, batch_size, precision="bf16") < 2e-2


@pytest.mark.parametrize("engine", sorted({"ncnn"} & set(HERE)))
def test_groups_that_ncnn_computes_wrongly_in_bfloat16_are_refused(engine, case):
    path, batch_size = case("conv depthwise")
    with pytest.raises(PowerlabError, match="which has 4 groups, wrongly in bf16; ask for fp32"):
        loaded(engine, path, batch_size, precision="bf16")


@pytest.mark.parametrize("engine", sorted({"litert", "ncnn"} & set(HERE)))
def test_a_cell_whose_other_outputs_are_left_out_is_refused_in_a_sentence(engine, tmp_path):
    weights = {"w": np.ones((1, 12, 4), np.float32), "r": np.ones((1, 12, 3), np.float32)}
    node = helper.make_node("LSTM", ["x", *weights], ["y", "", "c"], "n", hidden_size=3)
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx_bytes([node], {"x": (1, 1, 4)}, ["y", "c"], constants=weights))
    with pytest.raises(PowerlabError, match="node 'n'"):
        loaded(engine, path, 1)


@st.composite
def branching_networks(draw):
    """Return ONNX bytes of convolutions whose results are read more than once, also by the caller."""
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    channels = draw(st.sampled_from([1, 3, 8]))
    constants, nodes, tensors = {}, [], ["x"]
    for number in range(draw(st.integers(1, 4))):
        kind, source = draw(st.sampled_from(["Conv", "Relu", "Add", "MaxPool"])), draw(st.sampled_from(tensors))
        made, more, attributes = f"t{number}", [], {}
        if kind == "Conv":
            group = draw(st.sampled_from([1, channels]))
            constants[f"w{number}"] = generator.standard_normal((channels, channels // group, 3, 3), dtype=np.float32)
            more, attributes = [f"w{number}"], {"group": group, "pads": [1, 1, 1, 1]}
        elif kind == "Add":
            more = [draw(st.sampled_from(tensors))]
        elif kind == "MaxPool":
            attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
        nodes.append(helper.make_node(kind, [source, *more], [made], made, **attributes))
        tensors.append(made)
    outputs = sorted({tensors[-1], draw(st.sampled_from(tensors[1:]))})
    return onnx_bytes(nodes, {"x": (1, channels, 6, 5)}, outputs, constants=constants)


@pytest.mark.parametrize("engine", [engine for engine in HERE if engine != "openvino"])  # it compiles too slowly
@settings(max_examples=25, deadline=None)
@given(data=branching_networks())
def test_networks_that_branch_give_the_same_answers(engine, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("networks") / "model.onnx"
    path.write_bytes(data)
    try:
        builtin.load(LoadOptions(model=str(path), batch_size=1, threads=1))
    except PowerlabError:
        return
    assert difference(engine, path) < TOLERANCE
