"""Attention by one kernel: found where nobody else reads the scores, and right for odd sizes, masks and empty rows."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import compared
from engine_models import load_bytes, onnx_bytes
from onnx import helper

from powerlab.engine import Session
from powerlab.engine.gpu.model import GpuModel
from powerlab.engine.passes import optimise

RANDOM = np.random.default_rng(7)
SIZES = {"small": (1, 2, 5, 5, 4, 4), "odd": (2, 3, 9, 37, 6, 5), "wide": (1, 1, 17, 70, 64, 100)}
"""images, heads, queries, keys, numbers of a key, numbers of a value"""


def graph_of(sizes, *, mask=None, cleaned=False, outputs=("y",), order=None, as_rows=False):
    """Return attention; ``as_rows``: the numbers of a key lie side by side, as in most models."""
    images, heads, queries, keys, inner, width = sizes
    shapes = {
        "q": (images, heads, queries, inner),
        "k": (images, heads, keys, inner) if as_rows else (images, heads, inner, keys),
        "v": (images, heads, keys, width),
    }
    constants = {"factor": np.array(inner**-0.5, np.float32), "zero": np.zeros(1, np.float32)}
    nodes = [helper.make_node("Transpose", ["k"], ["columns"], perm=(0, 1, 3, 2))] if as_rows else []
    nodes.append(helper.make_node("MatMul", ["q", "columns" if as_rows else "k"], ["m"]))
    nodes.append(helper.make_node("Mul", ["m", "factor"], ["scaled"]))
    scores = "scaled"
    if mask is not None:
        constants["mask"] = mask
        nodes.append(helper.make_node("Add", ["scaled", "mask"], ["masked"]))
        scores = "masked"
    nodes.append(helper.make_node("Softmax", [scores], ["p"]))
    weights = "p"
    if cleaned:
        nodes += [helper.make_node("IsNaN", ["p"], ["n"]), helper.make_node("Where", ["n", "zero", "p"], ["clean"])]
        weights = "clean"
    nodes.append(helper.make_node("MatMul", [weights, "v"], ["y" if order is None else "heads"]))
    if order is not None:
        nodes.append(helper.make_node("Transpose", ["heads"], ["y"], perm=order))
    return load_bytes(onnx_bytes(nodes, shapes, outputs, constants=constants))


def kernels(model):
    return [kernel.removesuffix("_fp32").removesuffix("_fp16") for kernel, _ in model.steps()]


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("half", [False, True])
def test_without_a_mask(name, half):
    model = compared(graph_of(SIZES[name]), half=half, tolerance=4e-3 if half else 2e-5)
    assert [one for one in kernels(model) if one not in ("load", "store", "unpack")] == ["attention"]


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("order", [(0, 2, 1, 3), (2, 3, 1, 0)])
def test_its_result_is_written_in_the_order_that_a_transpose_asks_for(order, name, half):
    model = compared(graph_of(SIZES[name], order=order), half=half, tolerance=4e-3 if half else 2e-5)
    assert [one for one in kernels(model) if one not in ("load", "store", "unpack")] == ["attention"]


def test_a_result_that_others_read_too_is_transposed_by_itself():
    assert "strided" in kernels(compared(graph_of(SIZES["odd"], order=(0, 2, 1, 3), outputs=("y", "heads"))))


@pytest.mark.parametrize("shape", [(9, 37), (2, 1, 9, 37), (1, 3, 9, 37)])
def test_with_a_mask(shape):
    mask = np.where(RANDOM.random(shape) < 0.3, -np.inf, RANDOM.standard_normal(shape)).astype(np.float32)
    mask[..., 0] = 0
    assert "attention" in kernels(compared(graph_of(SIZES["odd"], mask=mask)))


def test_rows_without_keys_are_zeros_where_the_model_says_so():
    mask = np.zeros((9, 37), np.float32)
    mask[4] = -np.inf
    graph = graph_of(SIZES["odd"], mask=mask, cleaned=True)
    model = compared(graph)
    assert "attention" in kernels(model)
    inputs = {info.name: RANDOM.standard_normal(info.shape).astype(np.float32) for info in graph.inputs}
    assert not model.run(inputs)["y"][:, :, 4].any()


def test_scores_that_are_read_are_made():
    assert "product" in kernels(compared(graph_of(SIZES["odd"], outputs=("y", "p"))))


def test_work_is_that_of_all_its_nodes():
    graph = optimise(graph_of(SIZES["wide"]), for_cores=False)
    images, heads, queries, keys, inner, width = SIZES["wide"]
    flops = sum(one.flops for one in GpuModel(graph).work)
    assert flops >= 2 * images * heads * queries * keys * (inner + width)
    assert flops == pytest.approx(sum(one.flops for one in Session(graph, 1).work), rel=0.01)


@pytest.mark.parametrize("half", [False, True])
def test_a_result_that_is_the_scores_of_another_belongs_to_the_first(half):
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["m"]),
        helper.make_node("Softmax", ["m"], ["p"]),
        helper.make_node("MatMul", ["p", "v"], ["o"]),
        helper.make_node("Softmax", ["o"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["y"]),
    ]
    shapes = {"q": (1, 2, 5, 4), "k": (1, 2, 4, 7), "v": (1, 2, 7, 6), "w": (1, 2, 6, 3)}
    model = compared(load_bytes(onnx_bytes(nodes, shapes)), half=half, tolerance=4e-3 if half else 2e-5)
    assert kernels(model).count("attention") == 1


@pytest.mark.parametrize("reshaped", [False, True])
def test_more_than_one_mask_is_added_node_by_node(reshaped):
    """Windows of an image have a bias of their own, and some of them a mask."""
    shapes = {"q": (4, 3, 9, 8), "k": (4, 3, 8, 9), "v": (4, 3, 9, 8)}
    constants = {
        "bias": RANDOM.standard_normal((3, 9, 9)).astype(np.float32),
        "mask": RANDOM.standard_normal((4, 1, 9, 9)).astype(np.float32),
        "apart": np.array([1, 4, 3, 9, 9]),
        "joined": np.array([4, 3, 9, 9]),
    }
    masks = [
        helper.make_node("Reshape", ["biased", "apart"], ["images"]),
        helper.make_node("Add", ["images", "mask"], ["masked"]),
        helper.make_node("Reshape", ["masked", "joined"], ["scores"]),
    ]
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["m"]),
        helper.make_node("Add", ["m", "bias"], ["biased"]),
        *(masks if reshaped else [helper.make_node("Add", ["biased", "mask"], ["scores"])]),
        helper.make_node("Softmax", ["scores"], ["p"]),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    model = compared(load_bytes(onnx_bytes(nodes, shapes, ("y",), constants=constants)))
    assert "attention" not in kernels(model)
