"""The graph's own helpers, and the counts of parameters and work."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes, onnx_bytes
from onnx import helper
from operator_cases import floats

from powerlab.engine.ir.graph import Graph, Node, TensorInfo, quoted
from powerlab.engine.ir.statistics import mac_count, operator_counts, parameter_count
from powerlab.engine.passes import optimise
from powerlab.engine.passes.rewriting import Rewriter, fuse_into_producers, rewrite_nodes


def chain():
    nodes = (
        Node("Relu", "first", ("x",), ("a",)),
        Node("Add", "second", ("a", "a"), ("b",)),
        Node("Clip", "third", ("b", "", "hi"), ("y",)),
    )
    tensors = {name: TensorInfo(name, (2, 3)) for name in ("x", "a", "b", "y")}
    tensors["hi"] = TensorInfo("hi", ())
    constants = {"hi": np.array(6, np.float32)}
    return Graph("chain", nodes, (tensors["x"],), (tensors["y"],), constants, tensors)


def test_producers_and_consumers_follow_the_names():
    graph = chain()
    assert {name: node.name for name, node in graph.producers().items()} == {"a": "first", "b": "second", "y": "third"}
    consumers = {name: [node.name for node in nodes] for name, nodes in graph.consumers().items()}
    assert consumers == {"x": ["first"], "a": ["second", "second"], "b": ["third"], "y": [], "hi": ["third"]}
    assert graph.output_names() == {"y"}
    assert graph.shape("b") == (2, 3)
    assert graph.tensors["b"].elements == 6


def test_an_absent_input_is_the_empty_name():
    node = chain().nodes[2]
    assert [node.input(index) for index in range(4)] == ["b", "", "hi", ""]


def test_nothing_in_a_graph_can_be_changed():
    graph = chain()
    attributes = {"axis": 1}
    node = Node("Concat", "c", ("x",), ("y",), attributes)
    attributes["axis"] = 2
    assert node.attributes["axis"] == 1
    for change in (
        lambda: graph.constants.__setitem__("w", np.zeros(1)),
        lambda: graph.tensors.__delitem__("x"),
        lambda: node.attributes.__setitem__("axis", 3),
    ):
        with pytest.raises((TypeError, AttributeError)):
            change()
    with pytest.raises(AttributeError, match="immutable"):
        graph.name = "other"


def test_names_in_messages_are_short_and_on_one_line():
    assert quoted("conv1") == "'conv1'"
    assert "\n" not in quoted("a\nb")
    assert len(quoted("x" * 1000)) < 100
    assert str(Node("Relu", "", ("x",), ("y",))) == "Relu node 'y'"


def test_a_rewritten_graph_has_what_was_added_and_the_old_one_has_not():
    graph = chain()
    rewritten = graph.rewritten(graph.nodes[:1], constants={"w": np.ones((4, 2), np.float32)})
    assert rewritten.tensors["w"] == TensorInfo("w", (4, 2))
    assert operator_counts(rewritten) == {"Relu": 1}
    assert "w" not in graph.constants
    assert len(graph.nodes) == 3


def test_a_rule_sees_the_old_graph_and_gives_new_names():
    def twice(view, rewriter):
        middle = rewriter.tensor("a", view.shape(0))
        rewriter.constant("a", np.zeros(1, np.float32))
        assert rewriter.producer(view.node.inputs[0]).name == "first"
        return [Node("Relu", "1", ("a",), (middle,)), Node("Relu", "2", (middle,), view.node.outputs)]

    graph = rewrite_nodes(chain(), {"Add": twice})
    assert [(node.op_type, node.outputs[0]) for node in graph.nodes][1:3] == [("Relu", "a_1"), ("Relu", "b")]
    assert "a_2" in graph.constants


def test_only_a_tensor_that_one_node_reads_is_offered_for_fusion():
    offered = {}

    def look(node, sole, _rewriter):
        offered.update({name: sole(name) is not None for name in node.inputs})

    fuse_into_producers(chain(), look)
    assert offered == {"x": False, "a": False, "b": True, "": False, "hi": False}


def test_added_constants_are_found_before_old_ones():
    rewriter = Rewriter(chain())
    name = rewriter.constant("hi", np.array(7, np.float32))
    assert (float(rewriter.value("hi")), float(rewriter.value(name))) == (6, 7)


def counted(node, shape, constants):
    graph = load_bytes(onnx_bytes([node], {"x": shape}, constants=constants))
    optimised = optimise(graph)
    assert (parameter_count(optimised), mac_count(optimised)) == (parameter_count(graph), mac_count(graph))
    return parameter_count(graph), mac_count(graph)


def test_counts_are_those_done_by_hand():
    conv = helper.make_node("Conv", ["x", "w", "b"], ["y"], group=2)
    assert counted(conv, (2, 4, 5, 5), {"w": floats(6, 2, 3, 3), "b": floats(6)}) == (114, 2 * 6 * 9 * 18)
    gemm = helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)
    assert counted(gemm, (3, 7), {"w": floats(5, 7), "b": floats(5)}) == (40, 3 * 5 * 7)
    matmul = helper.make_node("MatMul", ["x", "w"], ["y"])
    assert counted(matmul, (2, 3, 7), {"w": floats(7, 5)}) == (35, 2 * 3 * 5 * 7)


def test_statistics_of_a_norm_are_not_learned_and_bounds_are_no_parameters():
    norm = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["n"])
    clip = helper.make_node("Clip", ["n", "lo"], ["y"])
    constants = {name: np.ones(4, np.float32) for name in "sbmv"} | {"lo": np.float32(0)}
    graph = load_bytes(onnx_bytes([norm, clip], {"x": (1, 4, 2, 2)}, constants=constants))
    assert (parameter_count(graph), mac_count(graph)) == (8, 0)
