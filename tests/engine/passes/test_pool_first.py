"""Pools go before 1 x 1 convolutions where that computes the same, and stay where it does not."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import check_against_ort, onnx_bytes
from onnx import helper
from operator_cases import floats, positive

IMAGE = (2, 6, 8, 9)
CONSTANTS = {
    "one": floats(4, 6, 1, 1),
    "grouped": floats(4, 3, 1, 1),
    "next": floats(5, 4, 1, 1),
    "three": floats(4, 6, 3, 3),
    "b": floats(4),
    "s": positive(4),
}
HALVES = {"kernel_shape": [2, 2], "strides": [2, 2]}


def node(operator, inputs, output, **attributes):
    return helper.make_node(operator, inputs, [output], output, **attributes)


def optimised(*nodes, outputs=("y",)):
    """Return the operators and shapes of the optimised graph, which was checked against ONNX Runtime."""
    used = {name for item in nodes for name in item.input}
    constants = {name: value for name, value in CONSTANTS.items() if name in used}
    graph = check_against_ort(onnx_bytes(nodes, {"x": IMAGE}, outputs, constants=constants))
    return [(item.op_type, graph.shape(item.outputs[0])) for item in graph.nodes]


def test_a_pool_goes_before_the_convolution_it_reads():
    found = optimised(node("Conv", ["x", "one", "b"], "c"), node("AveragePool", ["c"], "y", **HALVES))
    assert found == [("AveragePool", (2, 6, 4, 4)), ("FusedConv", (2, 4, 4, 4))]


def test_a_mean_of_all_pixels_goes_there_too():
    found = optimised(node("Conv", ["x", "grouped"], "c", group=2), node("GlobalAveragePool", ["c"], "y"))
    assert found == [("GlobalAveragePool", (2, 6, 1, 1)), ("FusedConv", (2, 4, 1, 1))]


def test_a_pool_overtakes_all_that_keeps_pixels_apart():
    found = optimised(
        node("Conv", ["x", "one"], "c"),
        node("BatchNormalization", ["c", "s", "b", "b", "s"], "n"),
        node("Conv", ["n", "next"], "d"),
        node("AveragePool", ["d"], "p", **HALVES),
        node("Relu", ["p"], "y"),
    )
    assert found == [("AveragePool", (2, 6, 4, 4)), ("FusedConv", (2, 4, 4, 4)), ("FusedConv", (2, 5, 4, 4))]


def test_of_two_pools_both_go_first():
    found = optimised(
        node("Conv", ["x", "one"], "c"),
        node("AveragePool", ["c"], "p", **HALVES),
        node("Conv", ["p", "next"], "d"),
        node("AveragePool", ["d"], "y", **HALVES),
    )
    assert [operator for operator, _ in found] == ["AveragePool", "AveragePool", "FusedConv", "FusedConv"]
    assert found[1][1] == (2, 6, 2, 2)


CONV = node("Conv", ["x", "one"], "c")
POOL = node("AveragePool", ["c"], "y", **HALVES)
STAYS = {
    "it reads a larger kernel's result": [node("Conv", ["x", "three"], "c"), POOL],
    "the convolution leaves pixels out": [node("Conv", ["x", "one"], "c", strides=[2, 2]), POOL],
    "the convolution is padded": [node("Conv", ["x", "one"], "c", pads=[1, 1, 1, 1]), POOL],
    "somebody else reads the convolution": [CONV, POOL, node("Relu", ["c"], "r")],
    "an activation stands between": [CONV, node("Relu", ["c"], "r"), node("AveragePool", ["r"], "y", **HALVES)],
    "a sum stands between": [
        CONV,
        node("Conv", ["x", "one", "b"], "d"),
        node("Add", ["c", "d"], "a"),
        node("AveragePool", ["a"], "y", **HALVES),
    ],
    "it reads a norm of a larger kernel's result": [
        node("Conv", ["x", "three"], "c"),
        node("BatchNormalization", ["c", "s", "b", "b", "s"], "n"),
        node("AveragePool", ["n"], "y", **HALVES),
    ],
    "it makes no fewer pixels": [CONV, node("AveragePool", ["c"], "y", kernel_shape=[3, 3], pads=[1, 1, 1, 1])],
    "it is padded": [CONV, node("AveragePool", ["c"], "y", **HALVES, pads=[1, 1, 1, 1])],
    "it takes the largest": [CONV, node("MaxPool", ["c"], "y", **HALVES)],
}


@pytest.mark.parametrize("reason", STAYS)
def test_a_pool_stays_where(reason):
    nodes = STAYS[reason]
    found = optimised(*nodes, outputs=("y", "r") if nodes[-1].output[0] == "r" else ("y",))
    pools = [index for index, (operator, _) in enumerate(found) if operator.endswith("Pool")]
    assert pools == [len(found) - 1 - (nodes[-1].op_type == "Relu")]


def test_a_bias_is_not_averaged_away():
    """Numbers by hand: two pixels of 1 and 3 through a weight of 10 and a bias of 5."""
    from engine_models import load_bytes

    from powerlab.engine import Session
    from powerlab.engine.passes import optimise

    nodes = [node("Conv", ["x", "w", "b"], "c"), node("AveragePool", ["c"], "y", kernel_shape=[1, 2], strides=[1, 2])]
    constants = {"w": np.full((1, 1, 1, 1), 10, np.float32), "b": np.full(1, 5, np.float32)}
    graph = optimise(load_bytes(onnx_bytes(nodes, {"x": (1, 1, 1, 2)}, constants=constants)))
    found = Session(graph).run({"x": np.array([[[[1, 3]]]], np.float32)})
    assert found["y"].tolist() == [[[[25]]]]
