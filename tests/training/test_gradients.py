"""Gradients of the engine's operators against central differences in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph, Node, TensorInfo
from powerlab.engine.ir.shapes import infer
from powerlab.engine.ops import OPERATORS
from powerlab.engine.ops.gradients import GRADIENTS
from powerlab.engine.training import TrainingSession
from training.numeric import leaf, slopes, squared_error

SHAPE = (3, 4, 5)
POSITIVE = ("Log", "Sqrt", "Reciprocal")


def check(graph: Graph, tolerance: float = 2e-5) -> None:
    """Compare the gradient of every parameter, along a random way, with a central difference."""
    random = np.random.default_rng(7)
    values = {info.name: random.standard_normal(info.shape).astype(np.float32) * 0.1 for info in graph.inputs}
    target = random.standard_normal(graph.outputs[0].shape).astype(np.float32)
    session = TrainingSession(graph, "mse", threads=1)
    session.step(values, target)
    found = session.gradients()
    ways = {name: random.standard_normal(gradient.shape) for name, gradient in found.items()}
    wanted = slopes(graph, values, lambda output: squared_error(output, target.astype(np.float64)), ways)
    for name, way in ways.items():
        size = float(np.linalg.norm(found[name]) * np.linalg.norm(way)) + 1e-12
        assert float(np.sum(found[name] * way)) == pytest.approx(wanted[name], abs=tolerance * size), name


def one(operator: str, shape: tuple[int, ...] = SHAPE, *others: str, constants=None, **attributes: object) -> Graph:
    """Return a network of one operator."""
    random = np.random.default_rng(3)
    start = random.uniform(0.5, 2.0, shape) if operator in POSITIVE else random.uniform(-4, 4, shape)
    node = Node(operator, "node", ("p", *others), ("y",), attributes)
    return leaf(shape, node, output="y", constants={"p0": start.astype(np.float32), **(constants or {})})


FUNCTIONS = {
    "Abs": {},
    "Cos": {},
    "Elu": {"alpha": 0.7},
    "Erf": {},
    "Exp": {},
    "Gelu": {},
    "HardSigmoid": {},
    "HardSwish": {},
    "LeakyRelu": {"alpha": 0.1},
    "Log": {},
    "LogSoftmax": {"axis": -1},
    "Mish": {},
    "Neg": {},
    "Reciprocal": {},
    "Relu": {},
    "Selu": {},
    "Sigmoid": {},
    "Sin": {},
    "Softmax": {"axis": 1},
    "Softplus": {},
    "Softsign": {},
    "Sqrt": {},
    "Swish": {"alpha": 1.3},
    "Tanh": {},
    "Transpose": {"perm": (2, 0, 1)},
}


@pytest.mark.parametrize("operator", FUNCTIONS)
def test_functions(operator):
    check(one(operator, **FUNCTIONS[operator]))


def test_gelu_by_tanh_and_clip():
    check(one("Gelu", approximate="tanh"))
    bounds = {"low": np.float32(-1.0), "high": np.float32(2.5)}
    check(one("Clip", SHAPE, "low", "high", constants={name: np.asarray(value) for name, value in bounds.items()}))


@pytest.mark.parametrize("operator", ["Add", "Div", "Max", "Min", "Mul", "PRelu", "Sub", "Sum", "Mean"])
@pytest.mark.parametrize("shape", [SHAPE, (4, 1), (5,)])
def test_of_two_tensors(operator, shape):
    random = np.random.default_rng(5)
    nodes = [
        Node("Add", "left", ("x", "p0"), ("a",)),
        Node("Add", "right", ("z", "q0"), ("b",)),
        Node(operator, "node", ("a", "b"), ("y",)),
    ]
    constants = {"p0": random.uniform(0.5, 2, SHAPE).astype("f4"), "q0": random.uniform(0.6, 2.1, shape).astype("f4")}
    check(infer("two", nodes, [TensorInfo("x", SHAPE), TensorInfo("z", shape)], ["y"], constants))


def test_power_where_and_views():
    exponent = {"e": np.asarray(3.0, np.float32)}
    check(one("Pow", SHAPE, "e", constants=exponent))
    condition = np.random.default_rng(1).random(SHAPE) < 0.5
    check(
        one("Where", SHAPE, "p", "o", constants={"o": np.ones((1,), "f4"), "p": condition})
        if False
        else _where(condition)
    )
    check(one("Reshape", SHAPE, "s", constants={"s": np.array([5, -1])}))
    check(one("Flatten"))
    check(one("Unsqueeze", SHAPE, "s", constants={"s": np.array([1])}))
    check(one("Expand", (3, 1, 5), "s", constants={"s": np.array([2, 1, 4, 1])}))


def _where(condition: np.ndarray) -> Graph:
    random = np.random.default_rng(3)
    node = Node("Where", "node", ("c", "p", "q0"), ("y",))
    constants = {"p0": random.random(SHAPE).astype("f4"), "q0": random.random((5,)).astype("f4"), "c": condition}
    return leaf(SHAPE, node, output="y", constants=constants)


@pytest.mark.parametrize("operator", ["ReduceMean", "ReduceSum"])
@pytest.mark.parametrize(("axes", "keepdims"), [([1], 0), ([0, 2], 1), ([-1], 0)])
def test_reductions(operator, axes, keepdims):
    check(one(operator, SHAPE, "axes", constants={"axes": np.array(axes)}, keepdims=keepdims))
    if axes == [1]:
        check(one(operator, keepdims=keepdims))


def test_global_average_and_concat():
    check(one("GlobalAveragePool", (2, 3, 4, 5)))
    random = np.random.default_rng(3)
    constants = {"p0": random.random(SHAPE).astype("f4"), "q0": random.random((3, 2, 5)).astype("f4")}
    nodes = [
        Node("Add", "left", ("x", "p0"), ("a",)),
        Node("Add", "right", ("z", "q0"), ("b",)),
        Node("Concat", "node", ("a", "b", "a"), ("y",), {"axis": 1}),
    ]
    check(infer("two", nodes, [TensorInfo("x", SHAPE), TensorInfo("z", (3, 2, 5))], ["y"], constants))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((4, 5), (5, 3)),
        ((2, 4, 5), (5, 3)),
        ((2, 3, 4, 5), (3, 5, 2)),
        ((1, 4, 5), (2, 5, 3)),
        ((5,), (5, 3)),
        ((4, 5), (5,)),
    ],
)
def test_products(left, right):
    random = np.random.default_rng(5)
    nodes = [
        Node("Add", "left", ("x", "p0"), ("a",)),
        Node("Add", "right", ("z", "q0"), ("b",)),
        Node("MatMul", "node", ("a", "b"), ("y",)),
    ]
    constants = {"p0": random.standard_normal(left).astype("f4"), "q0": random.standard_normal(right).astype("f4")}
    check(infer("two", nodes, [TensorInfo("x", left), TensorInfo("z", right)], ["y"], constants))


@pytest.mark.parametrize("across_left", [0, 1])
@pytest.mark.parametrize("across_right", [0, 1])
def test_linear(across_left, across_right):
    random = np.random.default_rng(5)
    left, right = ((5, 4) if across_left else (4, 5)), ((3, 5) if across_right else (5, 3))
    attributes = {"transA": across_left, "transB": across_right, "alpha": 0.5, "beta": 2.0}
    nodes = [
        Node("Add", "left", ("x", "p0"), ("a",)),
        Node("Gemm", "node", ("a", "w", "c"), ("y",), attributes),
    ]
    constants = {
        name: random.standard_normal(shape).astype("f4") for name, shape in (("p0", left), ("w", right), ("c", (3,)))
    }
    check(infer("linear", nodes, [TensorInfo("x", left)], ["y"], constants))


def test_the_registry_has_every_gradient_beside_its_operator():
    assert set(GRADIENTS) <= set(OPERATORS)
    assert all(OPERATORS[name].gradient is rule for name, rule in GRADIENTS.items())


def test_what_has_no_gradient_is_refused_by_name():
    with pytest.raises(
        PowerlabError, match=r"Ceil node 'node' cannot be trained: the engine has no gradient for Ceil\."
    ):
        TrainingSession(one("Ceil"), "mse", threads=1)
