"""GRU, RNN and LSTM in every form of ONNX, as ONNX Runtime computes them."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import check_against_ort, check_session, load_bytes, onnx_bytes, run_ort
from hypothesis import given, settings
from onnx import helper
from operator_cases import cell_constants, floats
from recurrent_cases import GATES, cells

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.passes import optimise
from powerlab.engine.target.tiers import TIER_VARIABLE, available_tiers


@settings(max_examples=120, deadline=None)
@given(cells())
def test_any_cell_gives_what_onnx_runtime_gives(data):
    check_against_ort(data)
    check_session(data)


@pytest.mark.parametrize("tier", [tier.name for tier in available_tiers()])
@pytest.mark.parametrize("resets", [0, 1])
def test_a_gru_of_modest_size_on_every_tier(tier, resets, monkeypatch):
    monkeypatch.setenv(TIER_VARIABLE, tier)
    node = helper.make_node("GRU", ["x", *"wrb"], ["y", "yh"], hidden_size=65, linear_before_reset=resets)
    constants = cell_constants(3, 1, 33, 65)
    check_session(onnx_bytes([node], {"x": (7, 11, 33)}, ("y", "yh"), constants=constants, opset=14))


@pytest.mark.parametrize("operator", ["GRU", "RNN"])
def test_sequences_may_come_first(operator):
    constants = cell_constants(GATES[operator])
    node = helper.make_node(operator, ["x", *"wrb"], ["y", "yh"], hidden_size=6, layout=1)
    data = onnx_bytes([node], {"x": (2, 4, 5)}, ("y", "yh"), constants=constants, opset=14)
    plain = helper.make_node(operator, ["x", *"wrb"], ["y", "yh"], hidden_size=6)
    judge = onnx_bytes([plain], {"x": (4, 2, 5)}, ("y", "yh"), constants=constants, opset=14)
    x = floats(2, 4, 5)
    found, expected = Session(optimise(load_bytes(data))).run({"x": x}), run_ort(judge, {"x": x.swapaxes(0, 1).copy()})
    np.testing.assert_allclose(found["y"], expected["y"].transpose(2, 0, 1, 3), atol=1e-5)
    np.testing.assert_allclose(found["yh"], expected["yh"].swapaxes(0, 1), atol=1e-5)


def test_coupled_gates_forget_what_they_take_in():
    """The forget gate of an LSTM with the input gate's weights negated is the same, since 1 - s(x) = s(-x)."""
    constants = cell_constants(4)
    mirrored = {name: value.copy() for name, value in constants.items()}
    for name in "wr":
        mirrored[name][:, 12:18] = -mirrored[name][:, 0:6]
    for half in (0, 24):
        mirrored["b"][:, half + 12 : half + 18] = -mirrored["b"][:, half : half + 6]
    x = floats(4, 2, 5)
    coupled = helper.make_node("LSTM", ["x", *"wrb"], ["y"], hidden_size=6, input_forget=1)
    usual = helper.make_node("LSTM", ["x", *"wrb"], ["y"], hidden_size=6)
    found, expected = (
        Session(optimise(load_bytes(onnx_bytes([node], {"x": (4, 2, 5)}, constants=weights)))).run({"x": x})["y"]
        for node, weights in ((coupled, constants), (usual, mirrored))
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_not_a_number_stays_in_its_sequence():
    node = helper.make_node("GRU", ["x", *"wrb"], ["y"], hidden_size=6)
    session = Session(optimise(load_bytes(onnx_bytes([node], {"x": (5, 3, 5)}, constants=cell_constants(3)))))
    x = floats(5, 3, 5)
    x[2, 1, 0] = np.nan
    broken = np.isnan(session.run({"x": x})["y"])
    assert broken[2:, :, 1].all()
    assert not broken[:2].any()
    assert not broken[:, :, [0, 2]].any()


@pytest.mark.parametrize(
    ("operator", "change", "attributes", "sentence"),
    [
        ("GRU", {"r": floats(1, 18, 5)}, {}, "has hidden_size 6, but its weights are for 5"),
        ("GRU", {"b": floats(1, 18)}, {}, r"needs input 4 of the shape \(1, 36\), but it has \(1, 18\)"),
        ("RNN", {"w": floats(1, 6, 4)}, {}, r"needs input 2 of the shape \(1, 6, 5\), but it has \(1, 6, 4\)"),
        ("RNN", {}, {"activations": ["Tanh", "Tanh"]}, "has 2 activations; it needs 1 for each direction"),
        ("GRU", {}, {"activations": ["Tanh", "Sine"]}, "has the activation 'sine'; known are"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(operator, change, attributes, sentence):
    constants = cell_constants(GATES[operator]) | change
    node = helper.make_node(operator, ["x", *"wrb"], ["y"], "n", hidden_size=6, **attributes)
    with pytest.raises(PowerlabError, match=f"{operator} node 'n' {sentence}.*\\.$"):
        load_bytes(onnx_bytes([node], {"x": (4, 2, 5)}, constants=constants))
