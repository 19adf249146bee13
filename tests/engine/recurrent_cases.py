"""Files with one recurrent node of any form that ONNX has."""

from __future__ import annotations

import numpy as np
from engine_models import onnx_bytes
from hypothesis import strategies as st
from onnx import helper
from operator_cases import cell_constants, floats

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
FUNCTIONS = {"GRU": 2, "LSTM": 3, "RNN": 1}
NAMES = ["Sigmoid", "Tanh", "Relu", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu"]
NAMES += ["Softsign", "Softplus"]
NUMBERS = {"Affine": 2, "LeakyRelu": 1, "ThresholdedRelu": 1, "ScaledTanh": 2, "HardSigmoid": 2, "Elu": 1}
"""Function → whether it takes an alpha, or an alpha and a beta."""


def functions(draw, operator, directions):
    """Return attributes with activations: bounded ones last, so that no state grows."""
    names = [draw(st.sampled_from(NAMES)) for _ in range(FUNCTIONS[operator] * directions)]
    names = [
        name if index % FUNCTIONS[operator] == 0 else draw(st.sampled_from(["Tanh", "Softsign", "HardSigmoid"]))
        for index, name in enumerate(names)
    ]
    if operator == "RNN":
        names = [draw(st.sampled_from(["Tanh", "Relu", "Softsign", "ScaledTanh"])) for _ in names]
    alphas = [draw(st.sampled_from([0.25, 0.5])) for name in names if NUMBERS.get(name, 0) >= 1]
    betas = [draw(st.sampled_from([0.25, 0.5])) for name in names if NUMBERS.get(name, 0) == 2]
    attributes = {"activations": names}
    return attributes | ({"activation_alpha": alphas} if alphas else {}) | ({"activation_beta": betas} if betas else {})


@st.composite
def cells(draw):
    """Return a file with one recurrent node of any form."""
    operator = draw(st.sampled_from(list(GATES)))
    steps, batch, inputs, hidden = (draw(st.integers(1, most)) for most in (5, 9, 20, 40))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    directions = 2 if direction == "bidirectional" else 1
    constants = cell_constants(GATES[operator], directions, inputs, hidden)
    state, more = (directions, batch, hidden), {}
    names = ["w", "r", draw(st.sampled_from(["b", ""])), draw(st.sampled_from(["", "l"]))]
    if names[3]:
        constants["l"] = np.array([draw(st.integers(1, steps)) for _ in range(batch)], np.int32)
    for name in "hc" if operator == "LSTM" else "h":
        kind = draw(st.sampled_from(["absent", "constant", "computed"]))
        names.append("" if kind == "absent" else name)
        if kind == "computed":
            more[name] = state
        elif kind == "constant":
            constants[name] = floats(*state)
    if operator == "LSTM" and draw(st.booleans()):
        names.append("p")
        constants["p"] = floats(directions, 3 * hidden) / 3
    attributes = {"hidden_size": hidden, "direction": direction}
    if draw(st.booleans()):
        attributes |= functions(draw, operator, directions)
    if draw(st.booleans()):
        attributes["clip"] = draw(st.sampled_from([0.6, 1.5]))  # no alpha: a ThresholdedRelu jumps there
    if operator == "GRU":
        attributes["linear_before_reset"] = draw(st.integers(0, 1))
    outputs = draw(st.sampled_from([("y", "yh"), ("y",), ("", "yh")]))
    if operator == "LSTM" and outputs == ("y", "yh"):
        outputs = ("y", "yh", "yc")
    node = helper.make_node(operator, ["x", *names], list(outputs), "n", **attributes)
    shapes = {"x": (steps, batch, inputs), **more}
    constants = {name: value for name, value in constants.items() if name in names}
    return onnx_bytes([node], shapes, [name for name in outputs if name], constants=constants, opset=14)
