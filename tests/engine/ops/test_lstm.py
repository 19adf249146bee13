"""LSTM: read in every form, judged by ONNX Runtime and numpy, refused in a sentence where it is another operator."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import TOLERANCE, load_bytes, onnx_bytes, random_inputs, relative_error, run_ort
from engine_reference import run_graph
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from operator_cases import floats, ints, lstm_constants

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.ir.statistics import mac_count, parameter_count
from powerlab.engine.passes import optimise

STEPS, BATCH, INPUTS, HIDDEN = 5, 2, 5, 6
OUTPUTS = ("y", "yh", "yc")


def lstm_bytes(inputs, constants, outputs=OUTPUTS, *, opset=14, x=(STEPS, BATCH, INPUTS), more=None, **attributes):
    """Return a file with one LSTM: ``inputs`` after x, ``more`` being those that are no constants."""
    node = helper.make_node("LSTM", ["x", *inputs], list(outputs), "n", hidden_size=HIDDEN, **attributes)
    return onnx_bytes([node], {"x": x, **(more or {})}, [o for o in outputs if o], constants=constants, opset=opset)


def both_errors(data, judge=None, seed=0, threads=2):
    """Return how far the optimised graph in numpy, and the session, are from ONNX Runtime or another judge."""
    loaded = load_bytes(data)
    inputs = random_inputs(loaded, seed)
    expected = run_ort(data, inputs) if judge is None else judge(inputs)
    assert {info.name: info.shape for info in loaded.outputs} == {name: v.shape for name, v in expected.items()}
    optimised = optimise(loaded)
    again = optimise(optimised)
    assert again.nodes == optimised.nodes
    found = Session(optimised, threads=threads).run(inputs)
    return relative_error(run_graph(optimised, inputs), expected), relative_error(found, expected)


@st.composite
def lstms(draw):
    """Return an LSTM of any sizes, direction, inputs left out and outputs left out, and the sizes."""
    steps, batch, inputs, hidden = (draw(st.integers(1, most)) for most in (6, 9, 20, 40))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    directions = 2 if direction == "bidirectional" else 1
    constants = lstm_constants(directions, inputs, hidden)
    state = (directions, batch, hidden)
    more, names = {}, ["w", "r", draw(st.sampled_from(["b", ""])), ""]
    for name in "hc":
        kind = draw(st.sampled_from(["absent", "constant", "zero", "computed"]))
        names.append("" if kind == "absent" else name)
        if kind == "computed":
            more[name] = state
        elif kind != "absent":
            constants[name] = floats(*state) * (kind == "constant")
    outputs = draw(st.sampled_from([OUTPUTS, ("y",), ("y", "yh"), ("", "yh"), ("", "", "yc"), ("y", "", "yc")]))
    node = helper.make_node("LSTM", ["x", *names], list(outputs), "n", hidden_size=hidden, direction=direction)
    shapes = {"x": (steps, batch, inputs), **more}
    return onnx_bytes([node], shapes, [name for name in outputs if name], constants=constants)


@settings(max_examples=60, deadline=None)
@given(lstms(), st.sampled_from([1, 2, 3]))
def test_any_lstm_gives_what_onnx_runtime_gives(data, threads):
    assert max(both_errors(data, threads=threads)) < TOLERANCE


@pytest.mark.parametrize("opset", [7, 14, 22])
def test_every_opset_is_read(opset):
    assert max(both_errors(lstm_bytes(list("wrb"), lstm_constants(), opset=opset))) < TOLERANCE


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("state", ["none", "constant", "computed"])
def test_sequences_may_come_first(direction, state):
    """ONNX Runtime does not compute layout 1: the same LSTM in layout 0 judges it."""
    directions = 2 if direction == "bidirectional" else 1
    constants, shape = lstm_constants(directions), (BATCH, directions, HIDDEN)
    names = ["w", "r", "b", *(["", "h", "c"] if state != "none" else [])]
    given_states = {name: floats(*shape) for name in "hc"} if state == "constant" else {}
    more = dict.fromkeys("hc", shape) if state == "computed" else None
    data = lstm_bytes(
        names, constants | given_states, x=(BATCH, STEPS, INPUTS), more=more, layout=1, direction=direction
    )

    def judge(inputs):
        swapped = {name: value.swapaxes(0, 1).copy() for name, value in (given_states | inputs).items()}
        plain = lstm_bytes(
            names,
            constants | {name: value for name, value in swapped.items() if name in given_states},
            more=dict.fromkeys(more, (directions, BATCH, HIDDEN)) if more else None,
            direction=direction,
        )
        found = run_ort(plain, {name: swapped[name] for name in inputs})
        return {
            "y": found["y"].transpose(2, 0, 1, 3),
            "yh": found["yh"].swapaxes(0, 1),
            "yc": found["yc"].swapaxes(0, 1),
        }

    assert max(both_errors(data, judge)) < TOLERANCE


def torch_lstm(directions, batch_first):
    """Return nn.LSTM of two layers as PyTorch exports it: transposes around, squeezes or a merge of directions."""
    hidden = HIDDEN
    nodes, constants, source, inputs = [], {"one": ints(1), "merged": ints(0, 0, -1)}, "x", INPUTS
    if batch_first:
        nodes.append(helper.make_node("Transpose", ["x"], ["x_steps"], perm=[1, 0, 2]))
        source = "x_steps"
    for layer in range(2):
        weights = lstm_constants(directions, inputs, hidden)
        constants |= {f"{name}{layer}": value for name, value in weights.items()}
        names = [source, *(f"{name}{layer}" for name in "wrb")]
        direction = "bidirectional" if directions == 2 else "forward"
        made = [f"y{layer}", f"h{layer}", f"c{layer}"]
        nodes.append(helper.make_node("LSTM", names, made, hidden_size=hidden, direction=direction))
        source = f"s{layer}"
        if directions == 1:
            nodes.append(helper.make_node("Squeeze", [made[0], "one"], [source]))
        else:
            nodes.append(helper.make_node("Transpose", [made[0]], [f"t{layer}"], perm=[0, 2, 1, 3]))
            nodes.append(helper.make_node("Reshape", [f"t{layer}", "merged"], [source]))
        inputs = directions * hidden
    nodes.append(helper.make_node("Concat", ["h0", "h1"], ["states"], axis=0))
    if batch_first:
        nodes.append(helper.make_node("Transpose", [source], ["y"], perm=[1, 0, 2]))
    else:
        nodes.append(helper.make_node("Identity", [source], ["y"]))
    shape = (3, 7, INPUTS) if batch_first else (7, 3, INPUTS)
    return onnx_bytes(nodes, {"x": shape}, ["y", "states"], constants=constants)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("directions", [1, 2])
def test_two_layers_as_pytorch_exports_them(directions, batch_first):
    assert max(both_errors(torch_lstm(directions, batch_first))) < TOLERANCE


def test_batch_of_one_needs_no_transpose():
    node = helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2])
    lstm = helper.make_node("LSTM", ["t", "w", "r"], ["y"], "n", hidden_size=HIDDEN)
    graph = optimise(load_bytes(onnx_bytes([node, lstm], {"x": (1, STEPS, INPUTS)}, constants=lstm_constants())))
    assert [node.op_type for node in graph.nodes] == ["Reshape", "FusedLstm"]


def test_multiplications_and_parameters_are_counted():
    graph = load_bytes(lstm_bytes(list("wrb"), lstm_constants()))
    macs = STEPS * BATCH * 4 * HIDDEN * (INPUTS + HIDDEN)
    assert mac_count(graph) == mac_count(optimise(graph)) == macs
    assert parameter_count(graph) == parameter_count(optimise(graph)) == 4 * HIDDEN * (INPUTS + HIDDEN + 2)


def test_an_extra_output_nobody_reads_is_not_computed():
    graph = optimise(load_bytes(lstm_bytes(list("wrb"), lstm_constants())))
    assert graph.nodes[0].outputs == OUTPUTS
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y", "yh", "yc"], "n", hidden_size=HIDDEN)
    data = onnx_bytes([node], {"x": (STEPS, BATCH, INPUTS)}, ["yh"], constants=lstm_constants())
    graph = optimise(load_bytes(data))
    assert graph.nodes[0].outputs == ("y", "yh", "")
    assert "yc" not in graph.tensors


def test_extreme_numbers_saturate_the_gates_and_not_a_number_stays():
    data = lstm_bytes(["w", "r", "b"], lstm_constants(), outputs=("y",))
    session = Session(optimise(load_bytes(data)))
    x = floats(STEPS, BATCH, INPUTS) * 1e4
    expected = run_ort(data, {"x": x})["y"]
    # Sums of tens of thousands are rounded to a thousandth, and a gate may lie just where it turns.
    np.testing.assert_allclose(session.run({"x": x})["y"], expected, atol=1e-3)
    x[2, 1, 0] = np.nan
    broken = np.isnan(session.run({"x": x})["y"])
    assert broken[2:, :, 1].all()
    assert not broken[:2].any()
    assert not broken[:, :, 0].any()


@pytest.mark.parametrize(
    ("inputs", "constants", "attributes", "sentence"),
    [
        ("wrb", {}, {"direction": "sideways"}, "has direction 'sideways'; known are forward, reverse, bidirectional"),
        ("wrb", {}, {"layout": 2}, "has layout 2, which must be 0 or 1"),
        ("wrb", {}, {"activations": ["Relu"]}, "has 1 activations; it needs 3 for each direction"),
        ("wrb", {}, {"activations": ["Relu", "Tanh", "Best"]}, "has the activation 'best'; known are sigmoid, tanh"),
        (
            "wrb",
            {},
            {"direction": "bidirectional"},
            r"needs input 2 of the shape \(2, 24, 5\), but it has \(1, 24, 5\)",
        ),
        ("wr", {"r": floats(1, 20, 5)}, {}, "has hidden_size 6, but its weights are for 5"),
        ("wrb", {"b": floats(1, 24)}, {}, r"needs input 4 of the shape \(1, 48\), but it has \(1, 24\)"),
        (
            "wr l",
            {"l": np.array((5, 6), np.int32)},
            {},
            r"has sequences of the lengths \(5, 6\); it needs 2 from 0 to 5",
        ),
        ("wrb h", {"h": floats(1, 3, 6)}, {}, r"needs input 6 of the shape \(1, 2, 6\), but it has \(1, 3, 6\)"),
        ("wrb   p", {"p": floats(1, 12)}, {}, r"needs input 8 of the shape \(1, 18\), but it has \(1, 12\)"),
    ],
)
def test_what_is_no_recurrence_is_refused_in_a_sentence(inputs, constants, attributes, sentence):
    slots = {"w": 0, "r": 1, "b": 2, "l": 3, "h": 4, "c": 5, "p": 6}
    names = [""] * 7
    for name in inputs.replace(" ", ""):
        names[slots[name]] = name
    data = lstm_bytes(names, lstm_constants() | constants, ("y",), **attributes)
    with pytest.raises(PowerlabError, match=f"LSTM node 'n' {sentence}.*\\.$"):
        optimise(load_bytes(data))


@pytest.mark.parametrize("name", ["w", "l"])
def test_weights_and_lengths_that_are_computed_are_refused(name):
    constants = lstm_constants() | {"l": np.array((STEPS, STEPS), np.int32)}
    shape = constants.pop(name).shape
    nodes = [helper.make_node("LSTM", ["x", "w", "r", "b", "l"], ["y"], "n", hidden_size=HIDDEN)]
    if name == "l":
        nodes.insert(0, helper.make_node("Cast", ["raw"], ["l"], to=6))
    more = {"raw" if name == "l" else name: shape}
    data = onnx_bytes(nodes, {"x": (STEPS, BATCH, INPUTS), **more}, constants=constants)
    with pytest.raises(PowerlabError, match=r"'n' needs its input [25] to be a constant, but only a run gives"):
        optimise(load_bytes(data))


def test_a_node_whose_outputs_have_no_names_is_refused():
    node = helper.make_node("LSTM", ["x", "w", "r"], ["", "", ""], "n", hidden_size=HIDDEN)
    relu = helper.make_node("Relu", ["x"], ["y"])
    with pytest.raises(PowerlabError, match="'n' has no output"):
        load_bytes(onnx_bytes([node, relu], {"x": (STEPS, BATCH, INPUTS)}, constants=lstm_constants()))
