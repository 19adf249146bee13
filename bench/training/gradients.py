"""How far the gradients of the zoo's networks are from PyTorch's in double precision, ours and PyTorch's own in single.

    python -m bench.training.gradients                       # networks with images of 64 × 64, batch 2
    python -m bench.training.gradients resnet50@96 --batch 4
    python -m bench.training.gradients --random 30           # networks that seeds make

Of each weight, the norm of the difference over the norm of the exact gradient; the table has the median and the largest
over all weights but those whose gradient is zero (a bias before a batch norm). Networks run without their Dropout.
Ends with 1 where the largest of ours is above 1e-4 and above PyTorch's own. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from bench.training.random_networks import random_network
from powerlab.backends.training.batch import LABELS, batch, target_of
from powerlab.backends.training.torch_functions import torch_functions
from powerlab.backends.training.torch_loss import labels_for_torch, torch_loss
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.graph import Array, Graph, Node, TensorInfo
from powerlab.engine.ir.shapes import infer
from powerlab.engine.training import Sgd, TrainingSession

NETWORKS = (
    "alexnet",
    "densenet121@64",
    "densenet201@64",
    "efficientnet-b0@64",
    "fcn5",
    "gru",
    "gru-reset-after",
    "lstm2",
    "mobilenetv2@64",
    "mobilenetv3@64",
    "resnet18@64",
    "resnet50@64",
    "resnet101@64",
    "resnet152@64",
    "rnn",
    "squeezenet@64",
    "vgg16",
    "vit-tiny",
    "yolov3-tiny@96",
    "yolov3@96",
)

KINKS = ("Clip", "LeakyRelu", "Relu")

RECURRENT: dict[str, tuple[str, int, dict[str, object]]] = {
    "gru": ("GRU", 3, {}),
    "gru-reset-after": ("GRU", 3, {"linear_before_reset": 1}),
    "rnn": ("RNN", 1, {}),
}
"""Networks that the zoo has not: name → operator, gates and attributes."""

RANDOM = "random-"
"""How the names of random networks begin; their seed follows."""

LARGEST = 1e-4
"""Of a relative error, unless single precision itself is not that exact: then PyTorch's own is the bound."""

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
    """Return a network whose activations bend instead of break: softplus for Relu, LeakyRelu and Clip."""
    return graph.rewritten(
        Node("Softplus", node.name, node.inputs[:1], node.outputs) if node.op_type in KINKS else node
        for node in graph.nodes
    )


def recurrent_network(name: str, batch_size: int) -> Graph:
    """Return one of :data:`RECURRENT` over eight steps, with a linear layer behind."""
    operator, gates, attributes = RECURRENT[name]
    steps, inputs, hidden, classes, random = 8, 24, 32, 10, np.random.default_rng(0)

    def weights(*shape: int) -> Array:
        return random.uniform(-0.3, 0.3, shape).astype(np.float32)

    constants = {
        "w": weights(1, gates * hidden, inputs),
        "r": weights(1, gates * hidden, hidden),
        "b": weights(1, 2 * gates * hidden),
        "of_classes": weights(classes, hidden),
        "zero": np.zeros(1, np.int64),
    }
    nodes = [
        Node(operator, "layer", ("x", "w", "r", "b"), ("", "last"), {"hidden_size": hidden, **attributes}),
        Node("Squeeze", "squeeze", ("last", "zero"), ("state",)),
        Node("Gemm", "classes", ("state", "of_classes"), ("y",), {"transB": 1}),
    ]
    return infer(name, nodes, [TensorInfo("x", (steps, batch_size, inputs))], ["y"], constants)


def network(name: str, batch_size: int) -> Graph:
    """Return one of the zoo, of :data:`RECURRENT`, or ``random-SEED``."""
    if name in RECURRENT:
        return recurrent_network(name, batch_size)
    if name.startswith(RANDOM):
        return random_network(int(name.removeprefix(RANDOM)), batch_size)
    return load_graph(name, batch_size=batch_size)


def by_torch(graph: Graph, weights: tuple[str, ...], x: Any, labels: Any, dtype: str) -> Gradients:
    """Return PyTorch's gradients of the loss."""
    torch: Any = import_module("torch")
    kind = getattr(torch, dtype)
    constants = {name: torch.tensor(np.array(value)) for name, value in graph.constants.items()}
    values: dict[str, Any] = {"": None}
    values |= {name: value.to(kind) if value.is_floating_point() else value for name, value in constants.items()}
    for name in weights:
        values[name].requires_grad_()
    values[graph.inputs[0].name] = torch.tensor(x).to(kind)
    for function in torch_functions(torch, graph):
        made = function.compute(*(values[name] for name in function.inputs))
        values.update(zip(function.outputs, made if isinstance(made, tuple) else (made,), strict=False))
    given = {name: torch.tensor(value) for name, value in labels_for_torch(graph, {LABELS: labels}).items()}
    given = {name: value.to(kind) if value.is_floating_point() else value for name, value in given.items()}
    torch_loss(torch, graph)(values, given).backward()
    return {name: np.asarray(values[name].grad.double()) for name in weights}


def errors(found: Mapping[str, NDArray[Any]], exact: Gradients) -> list[float]:
    """Return the relative error of each gradient that is not zero."""
    norms = {name: float(np.linalg.norm(value)) for name, value in exact.items()}
    least = NOTHING * max(norms.values())
    return [float(np.linalg.norm(found[name] - exact[name])) / norm for name, norm in norms.items() if norm > least]


def exact_enough(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Whether no error of ours is above :data:`LARGEST`, or else above the largest of PyTorch's in float32."""
    return max(ours) <= max(LARGEST, *theirs)


def verdict(inexact: Sequence[str], *, smooth: bool) -> str:
    """Say which networks' gradients are not exact enough."""
    if not inexact:
        return f"No error of ours is above {LARGEST:g}, or else PyTorch's own in float32 is larger."
    kinks = "" if smooth else "; where a ReLU has its kink decides that, so look at --smooth"
    return f"Above {LARGEST:g} and above PyTorch's own: {', '.join(inexact)}{kinks}."


def main() -> None:
    """Print the errors of each network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1, help="of images and labels")
    parser.add_argument("--smooth", action="store_true", help=f"softplus for {', '.join(KINKS)}")
    parser.add_argument("--random", type=int, metavar="N", help="random networks of the seeds below N instead")
    asked = parser.parse_args()
    names = asked.networks if asked.random is None else [f"{RANDOM}{seed}" for seed in range(asked.random)]
    table = Table("network", "weights", "builtin, median", "largest", "torch float32, median", "largest")
    inexact: list[str] = []
    for name in names:
        graph = without_dropout(network(name, asked.batch))
        graph = without_kinks(graph) if asked.smooth else graph
        random = np.random.default_rng(asked.seed)
        x = random.standard_normal(graph.inputs[0].shape, dtype=np.float32)
        labels = batch(graph, asked.seed)[LABELS]
        session = TrainingSession(graph, target_of(graph).loss, optimizer=Sgd(rate=0.0))
        session.step(x, labels)
        found = session.gradients()
        exact, single = (by_torch(graph, tuple(found), x, labels, dtype) for dtype in ("float64", "float32"))
        rows = [errors(one, exact) for one in (found, single)]
        inexact += [] if exact_enough(*rows) else [name]
        table.add_row(
            name, str(len(rows[0])), *(f"{one:.1e}" for row in rows for one in (statistics.median(row), max(row)))
        )
    Console(width=120).print(table)
    print(verdict(inexact, smooth=asked.smooth))
    if inexact:
        sys.exit(1)


if __name__ == "__main__":
    main()
