"""Whether a small CNN learns here what it learns in PyTorch: accuracies over seeds, after the same steps.

    python -m bench.training.accuracy --seeds 10 --steps 10 25 50 100 150
    python -m bench.training.accuracy --data digits --slices 1 4 --precision fp32 bf16

Both engines start from the same weights and see the same batches: images that code makes (a disc, a square, a cross or
a ring in noise), or handwritten digits from scikit-learn. Accuracy is on other images, each engine inferring with its
own running statistics. PyTorch's running variance is a sample's, ours the population's, as ONNX has it; a batch in
slices is normalised slice by slice. Needs PyTorch, and scikit-learn for the digits.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from powerlab.engine import Session
from powerlab.engine.ir.graph import Graph, Node, TensorInfo
from powerlab.engine.ir.shapes import infer
from powerlab.engine.passes import optimise
from powerlab.engine.training import Adam, TrainingSession

BATCH, TESTED, RATE = 32, 512, 0.005
CHANNELS = 16, 32
"""Of the two convolutions."""

Array = NDArray[np.float32]
Batch = tuple[Array, NDArray[np.int64]]
Weights = dict[str, Array]
Draw = Callable[[np.random.Generator, int], Batch]


@dataclass(frozen=True, slots=True)
class Data:
    """What is learnt: square images of one channel.

    Attributes:
        size: rows and columns.
        classes: that are told apart.
        images: given a seed, returns what draws images to learn from, and what draws others.
    """

    size: int
    classes: int
    images: Callable[[int], tuple[Draw, Draw]]


def shapes(random: np.random.Generator, count: int) -> Batch:
    """Return images (count, 1, 16, 16) of a disc, a square, a cross or a ring in noise, and which it is."""
    labels = random.integers(0, 4, count)
    rows, columns = (axis[None] - random.uniform(5, 11, (count, 1, 1)) for axis in np.mgrid[:16, :16])
    radius = random.uniform(3, 5, (count, 1, 1))
    far, near = np.hypot(rows, columns), np.minimum(abs(rows), abs(columns))
    most = np.maximum(abs(rows), abs(columns))
    forms = (far < radius, most < radius * 0.9, (near < 1) & (most < radius), abs(far - radius) < 1)
    drawn = np.choose(labels[:, None, None], forms).astype(np.float32)
    return (drawn + random.normal(0, 0.4, drawn.shape))[:, None].astype(np.float32), labels


def digits(seed: int) -> tuple[Draw, Draw]:
    """Return what draws from 1285 digits (8 × 8), and from the 512 others."""
    x, labels = import_module("sklearn.datasets").load_digits(return_X_y=True)
    order = np.random.default_rng([seed, 3]).permutation(len(x))
    x, labels = (x[order] / 16).astype(np.float32).reshape(-1, 1, 8, 8), labels[order].astype(np.int64)

    def learnt(random: np.random.Generator, count: int) -> Batch:
        picked = random.integers(TESTED, len(x), count)
        return x[picked], labels[picked]

    return learnt, lambda _random, count: (x[:count], labels[:count])


DATA = {"shapes": Data(16, 4, lambda _seed: (shapes, shapes)), "digits": Data(8, 10, digits)}


def start(random: np.random.Generator, data: Data) -> Weights:
    """Return the weights of two convolutions with batch norms and a linear layer."""
    first, second = CHANNELS
    shapes = {
        "w1": (first, 1, 3, 3),
        "w2": (second, first, 3, 3),
        "w3": (data.classes, second * (data.size // 4) ** 2),
    }
    weights = {
        name: random.normal(0, (2 / np.prod(shape[1:])) ** 0.5, shape).astype(np.float32)
        for name, shape in shapes.items()
    }
    for layer, channels in (("1", first), ("2", second)):
        weights |= {f"scale{layer}": np.ones(channels, np.float32), f"shift{layer}": np.zeros(channels, np.float32)}
        weights |= {f"mean{layer}": np.zeros(channels, np.float32), f"var{layer}": np.ones(channels, np.float32)}
    return weights | {"bias": np.zeros(data.classes, np.float32)}


def network(weights: Weights, size: int, batch: int) -> Graph:
    """Return the network for batches of images of size × size."""
    nodes, source = [], "x"
    for layer in "12":
        norm = tuple(f"{name}{layer}" for name in ("scale", "shift", "mean", "var"))
        window = {"kernel_shape": (2, 2), "strides": (2, 2)}
        nodes += [
            Node("Conv", f"conv{layer}", (source, f"w{layer}"), (f"c{layer}",), {"pads": (1, 1, 1, 1)}),
            Node("BatchNormalization", f"norm{layer}", (f"c{layer}", *norm), (f"n{layer}",)),
            Node("Relu", f"relu{layer}", (f"n{layer}",), (f"r{layer}",)),
            Node("MaxPool", f"pool{layer}", (f"r{layer}",), (f"p{layer}",), window),
        ]
        source = f"p{layer}"
    nodes += [
        Node("Flatten", "flat", (source,), ("f",)),
        Node("Gemm", "linear", ("f", "w3", "bias"), ("y",), {"transB": 1}),
    ]
    return infer("shapes", nodes, [TensorInfo("x", (batch, 1, size, size))], ["y"], weights)


def trained_here(
    weights: Weights, batches: Iterator[Batch], threads: int, size: int, *, slices: int = 1, precision: str = "fp32"
) -> Callable[[Array], Array]:
    """Return the built-in engine's network after all batches."""
    graph = network(weights, size, BATCH // slices)
    training = TrainingSession(graph, optimizer=Adam(rate=RATE), threads=threads, slices=slices, precision=precision)
    for batch in batches:
        training.step(*batch)
    whole = network({**weights, **training.weights()}, size, BATCH)
    session = Session(optimise(whole), threads=threads)
    return lambda x: session.run({"x": x})["y"]


def trained_by_torch(weights: Weights, batches: Iterator[Batch], threads: int, _size: int) -> Callable[[Array], Array]:
    """Return PyTorch's network after all batches."""
    torch: Any = import_module("torch")  # of the environment of peers, not of this project's
    functional: Any = import_module("torch.nn.functional")
    torch.set_num_threads(threads)
    tensors = {name: torch.tensor(value) for name, value in weights.items()}
    trained = [tensor.requires_grad_() for name, tensor in tensors.items() if name[:-1] not in ("mean", "var")]
    optimizer = torch.optim.Adam(trained, lr=RATE)

    def forward(x: Any, training: bool) -> Any:
        for layer in "12":
            own = [tensors[f"{name}{layer}"] for name in ("w", "mean", "var", "scale", "shift")]
            x = functional.batch_norm(functional.conv2d(x, own[0], padding=1), *own[1:], training, 0.1)
            x = functional.max_pool2d(functional.relu(x), 2)
        return functional.linear(x.flatten(1), tensors["w3"], tensors["bias"])

    for x, labels in batches:
        optimizer.zero_grad()
        functional.cross_entropy(forward(torch.tensor(x), True), torch.tensor(labels)).backward()
        optimizer.step()

    def answers(x: Array) -> Array:
        return np.asarray(forward(torch.tensor(x), False).detach())

    return answers


def accuracy(infer_batch: Callable[[Array], Array], others: Batch) -> float:
    """Return the share of right answers, in percent."""
    x, labels = others
    parts = [infer_batch(x[begin : begin + BATCH]) for begin in range(0, TESTED, BATCH)]
    return 100 * float(np.mean(np.concatenate(parts).argmax(1) == labels))


def main() -> None:
    """Train in both engines and print their accuracies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, nargs="+", default=[150], help="tested after so many steps each")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--data", choices=DATA, default="shapes")
    parser.add_argument("--slices", type=int, nargs="+", default=[1])
    parser.add_argument("--precision", choices=("fp32", "bf16"), nargs="+", default=["fp32"])
    asked = parser.parse_args()
    data = DATA[asked.data]
    trained: dict[str, Callable[..., Callable[[Array], Array]]] = {
        f"builtin, {precision}, slices {count}": partial(trained_here, slices=count, precision=precision)
        for precision in asked.precision
        for count in asked.slices
    }
    table = Table(f"accuracy, % ± standard error of {asked.seeds} seeds", *(f"{steps} steps" for steps in asked.steps))
    for name, train in {**trained, "torch": trained_by_torch}.items():
        table.add_row(name, *(_mean(_accuracies(train, data, steps, asked)) for steps in asked.steps))
    Console(width=140).print(table)


def _accuracies(
    train: Callable[..., Callable[[Array], Array]], data: Data, steps: int, asked: argparse.Namespace
) -> list[float]:
    """Return the accuracy of each seed after so many steps from its start."""
    found = []
    for seed in range(asked.seeds):
        learnt, others = data.images(seed)
        random = np.random.default_rng([seed, 1])
        batches = (learnt(random, BATCH) for _ in range(steps))
        model = train(start(np.random.default_rng([seed, 0]), data), batches, asked.threads, data.size)
        found.append(accuracy(model, others(np.random.default_rng([seed, 2]), TESTED)))
    return found


def _mean(found: list[float]) -> str:
    error = f" ± {statistics.stdev(found) / len(found) ** 0.5:.2f}" if len(found) > 1 else ""
    return f"{statistics.mean(found):.2f}{error}"


if __name__ == "__main__":
    main()
