"""Losses in double precision by the operators' own rules, and their slopes by central differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from powerlab.engine.ir.graph import Graph, Node, TensorInfo
from powerlab.engine.ir.shapes import infer
from powerlab.engine.ops import NodeView, operator

Values = dict[str, np.ndarray]


def leaf(shape: tuple[int, ...], *operators: Node, output: str, constants: Mapping[str, np.ndarray]) -> Graph:
    """Return a network whose operators read ``p``: the input x plus the parameter ``p0``, both of the given shape."""
    nodes = [Node("Add", "start", ("x", "p0"), ("p",)), *operators]
    return infer("leaf", nodes, [TensorInfo("x", shape)], [output], dict(constants))


def evaluated(graph: Graph, values: Mapping[str, np.ndarray]) -> Values:
    """Return every tensor of a graph in double precision."""
    known: Values = {name: np.asarray(value) for name, value in {**graph.constants, **values}.items()}
    known = {name: value.astype(np.float64) if value.dtype == np.float32 else value for name, value in known.items()}
    for node in graph.nodes:
        infos = tuple(graph.tensors[name] if name else None for name in node.inputs)
        view = NodeView(node, infos, tuple(known[name] if name else None for name in node.inputs))
        made = _OTHERS[node.op_type](view) if node.op_type in _OTHERS else operator(node).evaluate(view)
        known.update(zip(node.outputs, made if isinstance(made, tuple) else (made,), strict=False))
    return known


def cross_entropy(logits: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean of -log softmax(logits)[label]."""
    apart = logits - logits.max(axis=1, keepdims=True)
    logs = apart - np.log(np.exp(apart).sum(axis=1, keepdims=True))
    return float(-logs[np.arange(len(labels)), labels].mean())


def squared_error(output: np.ndarray, target: np.ndarray) -> float:
    """Return the mean of the squares."""
    return float(np.mean((output - target) ** 2))


def slopes(
    graph: Graph,
    values: Mapping[str, np.ndarray],
    loss: Callable[[np.ndarray], float],
    ways: Mapping[str, np.ndarray],
    step: float = 1e-5,
) -> dict[str, float]:
    """Return how fast the loss grows when each of the parameters goes its way."""
    output = graph.outputs[0].name

    def moved(name: str, by: float) -> float:
        weight = graph.constants[name].astype(np.float64) + by * ways[name]
        return loss(evaluated(graph, {**values, name: weight})[output])

    return {name: (moved(name, step) - moved(name, -step)) / (2 * step) for name in ways}


def _along(view: NodeView, default: int = -1) -> int:
    return view.integer("axis", default)


def _softmax(view: NodeView) -> np.ndarray:
    powers = np.exp(view.value(0) - view.value(0).max(axis=_along(view), keepdims=True))
    return powers / powers.sum(axis=_along(view), keepdims=True)


_OTHERS: dict[str, Callable[[NodeView], np.ndarray]] = {
    "LogSoftmax": lambda view: np.log(_softmax(view)),
    "PRelu": lambda view: np.where(view.value(0) < 0, view.value(0) * view.value(1), view.value(0)),
    "Pow": lambda view: view.value(0) ** view.value(1),
    "Softmax": _softmax,
    "GlobalAveragePool": lambda view: view.value(0).mean(axis=tuple(range(2, view.value(0).ndim)), keepdims=True),
}
"""Operators whose rules give no value, or only one in single precision."""
