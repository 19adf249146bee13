"""How far the gradients of the zoo's networks are from PyTorch's in double precision, ours and PyTorch's own in single.

    python bench/training_gradients.py                       # networks with images of 64 × 64, batch 2
    python bench/training_gradients.py resnet50@96 --batch 4

Of each weight, the norm of the difference over the norm of the exact gradient; the table has the median and the largest
over all weights but those whose gradient is zero (a bias before a batch norm). Networks run without their Dropout.
Needs PyTorch.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.training import Sgd, TrainingSession

NETWORKS = (
    "alexnet",
    "densenet121@64",
    "efficientnet-b0@64",
    "lstm2",
    "mobilenetv2@64",
    "mobilenetv3@64",
    "resnet18@64",
    "resnet50@64",
    "squeezenet@64",
    "vit-tiny",
)

NOTHING = 1e-6
"""Gradients below this part of the network's largest are zero but for rounding."""

Gradients = dict[str, NDArray[np.float64]]


def without_dropout(graph: Graph) -> Graph:
    """Return a network that keeps everything."""
    return graph.rewritten(
        Node("Identity", node.name, node.inputs[:1], node.outputs[:1]) if node.op_type == "Dropout" else node
        for node in graph.nodes
    )


def without_kinks(graph: Graph) -> Graph:
    """Return a network whose activations bend instead of break: softplus for Relu and Clip."""
    return graph.rewritten(
        Node("Softplus", node.name, node.inputs[:1], node.outputs) if node.op_type in ("Clip", "Relu") else node
        for node in graph.nodes
    )


def pool_pads(node: Node) -> tuple[int, int]:
    """Return the padding of a pool, which PyTorch has alike on both sides."""
    attributes: Mapping[str, Any] = node.attributes
    top, left, bottom, right = attributes.get("pads", (0, 0, 0, 0))
    if (top, left) != (bottom, right):
        raise ValueError(f"{node} pads one side more than the other.")
    return top, left


def operators(torch: Any, functional: Any) -> dict[str, Callable[..., Any]]:
    """Return operator -> what computes it from the node and its inputs."""

    def conv(node: Node, x: Any, weight: Any, bias: Any = None) -> Any:
        attributes: Mapping[str, Any] = node.attributes
        top, left, bottom, right = attributes.get("pads", (0, 0, 0, 0))
        x = functional.pad(x, (left, right, top, bottom))
        steps = (attributes.get("strides", 1), 0, attributes.get("dilations", 1), attributes.get("group", 1))
        return functional.conv2d(x, weight, bias, *steps)

    def gemm(node: Node, a: Any, b: Any, c: Any = 0.0) -> Any:
        return a @ (b.T if node.attributes.get("transB", 0) else b) + c

    def lstm(_node: Node, x: Any, weights: Any, recurrence: Any, bias: Any, *_more: Any) -> Any:
        units = recurrence.shape[2]
        hidden = cell = torch.zeros(x.shape[1], units, dtype=x.dtype)
        made, of_both = [], bias[0, : 4 * units] + bias[0, 4 * units :]
        for step in x:
            gates = step @ weights[0].T + hidden @ recurrence[0].T + of_both
            given, shown, kept, candidate = gates.split(units, 1)
            cell = kept.sigmoid() * cell + given.sigmoid() * candidate.tanh()
            hidden = shown.sigmoid() * cell.tanh()
            made.append(hidden)
        return torch.stack(made)[:, None]

    def squeeze(_node: Node, x: Any, axes: Any) -> Any:
        return x.squeeze(tuple(axes.tolist()))

    def max_pool(node: Node, x: Any) -> Any:
        attributes: Mapping[str, Any] = node.attributes
        return functional.max_pool2d(x, attributes["kernel_shape"], attributes["strides"], pool_pads(node))

    def average_pool(node: Node, x: Any) -> Any:
        attributes: Mapping[str, Any] = node.attributes
        return functional.avg_pool2d(x, attributes["kernel_shape"], attributes["strides"], pool_pads(node))

    def batch_norm(node: Node, x: Any, scale: Any, shift: Any, *_running: Any) -> Any:
        return functional.batch_norm(x, None, None, scale, shift, True, 0.1, node.attributes.get("epsilon", 1e-5))

    def layer_norm(node: Node, x: Any, scale: Any, shift: Any) -> Any:
        return functional.layer_norm(x, x.shape[-1:], scale, shift, node.attributes.get("epsilon", 1e-5))

    def gather(node: Node, x: Any, index: Any) -> Any:
        axis = int(str(node.attributes["axis"]))
        picked = x.index_select(axis, index.reshape(-1))
        return picked.reshape(*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])

    def lrn(node: Node, x: Any) -> Any:
        return functional.local_response_norm(x, **{k: v for k, v in node.attributes.items() if k != "bias"}, k=1.0)

    def hard_sigmoid(node: Node, x: Any) -> Any:
        attributes: Mapping[str, Any] = node.attributes
        return torch.clamp(x * attributes.get("alpha", 0.2) + attributes.get("beta", 0.5), 0, 1)

    return {
        "Add": lambda _, a, b: a + b,
        "AveragePool": average_pool,
        "BatchNormalization": batch_norm,
        "Clip": lambda _, x, low, high: torch.clamp(x, low, high),
        "Concat": lambda node, *parts: torch.cat(parts, node.attributes["axis"]),
        "Conv": conv,
        "Div": lambda _, a, b: a / b,
        "Erf": lambda _, x: torch.erf(x),
        "Expand": lambda _, x, shape: x.expand(shape.tolist()),
        "Flatten": lambda _, x: x.flatten(1),
        "Gather": gather,
        "Gemm": gemm,
        "GlobalAveragePool": lambda _, x: x.mean((2, 3), keepdim=True),
        "HardSigmoid": hard_sigmoid,
        "HardSwish": lambda _, x: functional.hardswish(x),
        "Identity": lambda _, x: x,
        "LRN": lrn,
        "LSTM": lstm,
        "LayerNormalization": layer_norm,
        "MatMul": lambda _, a, b: a @ b,
        "MaxPool": max_pool,
        "Mul": lambda _, a, b: a * b,
        "Relu": lambda _, x: functional.relu(x),
        "Reshape": lambda _, x, shape: x.reshape([x.shape[i] if s == 0 else s for i, s in enumerate(shape.tolist())]),
        "Sigmoid": lambda _, x: torch.sigmoid(x),
        "Softplus": lambda _, x: functional.softplus(x, threshold=100.0),
        "Squeeze": squeeze,
        "Softmax": lambda node, x: functional.softmax(x, node.attributes.get("axis", -1)),
        "Transpose": lambda node, x: x.permute(node.attributes["perm"]),
    }


def by_torch(graph: Graph, weights: tuple[str, ...], x: Any, labels: Any, dtype: str) -> Gradients:
    """Return PyTorch's gradients of the cross entropy."""
    torch: Any = import_module("torch")
    functional: Any = import_module("torch.nn.functional")
    kind, known = getattr(torch, dtype), operators(torch, functional)
    values = {name: torch.tensor(np.array(value)) for name, value in graph.constants.items()}
    values = {name: value.to(kind) if value.is_floating_point() else value for name, value in values.items()}
    for name in weights:
        values[name].requires_grad_()
    values[graph.inputs[0].name] = torch.tensor(x).to(kind)
    nodes = graph.nodes[:-1] if graph.nodes[-1].op_type == "Softmax" else graph.nodes
    for node in nodes:
        values[node.outputs[0]] = known[node.op_type](node, *(values[name] for name in node.inputs))
    functional.cross_entropy(values[nodes[-1].outputs[0]], torch.tensor(labels)).backward()
    return {name: np.asarray(values[name].grad.double()) for name in weights}


def errors(found: Mapping[str, NDArray[Any]], exact: Gradients) -> list[float]:
    """Return the relative error of each gradient that is not zero."""
    norms = {name: float(np.linalg.norm(value)) for name, value in exact.items()}
    least = NOTHING * max(norms.values())
    return [float(np.linalg.norm(found[name] - exact[name])) / norm for name, norm in norms.items() if norm > least]


def main() -> None:
    """Print the errors of each network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1, help="of images and labels")
    parser.add_argument("--smooth", action="store_true", help="softplus for Relu and Clip, which have no kink then")
    asked = parser.parse_args()
    table = Table("network", "weights", "builtin, median", "largest", "torch float32, median", "largest")
    for name in asked.networks:
        graph = without_dropout(load_graph(name, batch_size=asked.batch))
        graph = without_kinks(graph) if asked.smooth else graph
        random = np.random.default_rng(asked.seed)
        x = random.standard_normal(graph.inputs[0].shape, dtype=np.float32)
        _, classes, *pixels = graph.outputs[0].shape
        labels = random.integers(0, classes, (asked.batch, *pixels))
        session = TrainingSession(graph, optimizer=Sgd(rate=0.0))
        session.step(x, labels)
        found = session.gradients()
        exact, single = (by_torch(graph, tuple(found), x, labels, dtype) for dtype in ("float64", "float32"))
        rows = [errors(one, exact) for one in (found, single)]
        table.add_row(
            name, str(len(rows[0])), *(f"{one:.1e}" for row in rows for one in (statistics.median(row), max(row)))
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
