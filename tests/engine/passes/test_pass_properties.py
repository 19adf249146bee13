"""For any small network: the passes keep what it computes, and running them again changes nothing."""

from __future__ import annotations

import numpy as np
from engine_models import TOLERANCE, load_bytes, onnx_bytes, random_inputs, relative_error, run_ort
from engine_reference import run_graph
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper

from powerlab.engine import Session
from powerlab.engine.ir.statistics import mac_count
from powerlab.engine.passes import LOWERED, optimise

CHANNELS = 3
IMAGE = (1, CHANNELS, 4, 4)
RANDOM = np.random.default_rng(11)
CONSTANTS = {
    "w": RANDOM.normal(0, 0.3, (CHANNELS, CHANNELS, 3, 3)).astype(np.float32),
    "wd": RANDOM.normal(0, 0.5, (CHANNELS, 1, 3, 3)).astype(np.float32),
    "b": RANDOM.normal(0, 1, CHANNELS).astype(np.float32),
    "s": RANDOM.uniform(0.5, 1.5, CHANNELS).astype(np.float32),
    "v": RANDOM.normal(0, 1, (CHANNELS, 1, 1)).astype(np.float32),
    "half": np.float32(0.5),
    "lo": np.float32(-1),
    "hi": np.float32(2),
    "image": np.array(IMAGE),
}
SAME = {"pads": [1, 1, 1, 1]}

# Operator, constants after the computed input(s), attributes, number of computed inputs: all keep the image's shape.
STEPS = [
    ("Conv", ["w"], SAME, 1),
    ("Conv", ["w", "b"], SAME, 1),
    ("Conv", ["wd", "b"], {**SAME, "group": CHANNELS}, 1),
    ("BatchNormalization", ["s", "b", "b", "s"], {}, 1),
    ("Relu", [], {}, 1),
    ("LeakyRelu", [], {"alpha": 0.25}, 1),
    ("Sigmoid", [], {}, 1),
    ("Tanh", [], {}, 1),
    ("Mul", [], {}, 2),
    ("Clip", ["lo", "hi"], {}, 1),
    ("Add", [], {}, 2),
    ("Add", ["v"], {}, 1),
    ("Mul", ["half"], {}, 1),
    ("Sub", ["v"], {}, 1),
    ("Sum", [], {}, 3),
    ("Identity", [], {}, 1),
    ("Dropout", [], {}, 1),
    ("Reshape", ["image"], {}, 1),
    ("MaxPool", [], {**SAME, "kernel_shape": [3, 3]}, 1),
    ("AveragePool", [], {**SAME, "kernel_shape": [3, 3]}, 1),
    ("LRN", [], {"size": 3}, 1),
    ("Softmax", [], {"axis": 1}, 1),
]


@st.composite
def networks(draw):
    """Return ONNX bytes of a random graph whose nodes read any earlier tensors, and with one to three outputs."""
    nodes, made = [], ["x"]
    for index in range(draw(st.integers(1, 9))):
        operator, constants, attributes, count = draw(st.sampled_from(STEPS))
        sources = [draw(st.sampled_from(made[-3:])) for _ in range(count)]
        nodes.append(helper.make_node(operator, [*sources, *constants], [f"t{index}"], **attributes))
        made.append(f"t{index}")
    outputs = draw(st.lists(st.sampled_from(made[1:]), min_size=1, max_size=2, unique=True))
    outputs = list(dict.fromkeys([made[-1], *outputs]))
    return onnx_bytes(nodes, {"x": IMAGE}, outputs, constants=CONSTANTS)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks())
def test_passes_keep_what_a_network_computes_and_are_idempotent(data):
    loaded = load_bytes(data)
    optimised = optimise(loaded)
    assert {node.op_type for node in optimised.nodes} <= LOWERED
    assert optimised.inputs == loaded.inputs
    assert optimised.outputs == loaded.outputs
    inputs = random_inputs(loaded)
    expected = run_ort(data, inputs)
    assert relative_error(run_graph(optimised, inputs), expected) < TOLERANCE
    assert relative_error(Session(optimised, threads=1).run(inputs), expected) < TOLERANCE
    assert mac_count(optimised) <= mac_count(loaded)

    again = optimise(optimised)
    assert again.nodes == optimised.nodes
    assert again.tensors == optimised.tensors
    assert all(again.constants[name] is value for name, value in optimised.constants.items())
