"""Kernels for convolutions on a GPU in turn, each with its best tiles: what one is worth that no rule takes yet.

    python -m bench.gpu.kernels                                   # matrices with weights in shared memory, and direct
    python -m bench.gpu.kernels resnet18 --batch 8 --kernels tiled tiled_half matrix_half --tiles 4

Each distinct convolution, and each linear layer of many rows, is timed alone: by the first candidates of every kernel,
as the tuner has them and without Winograd, then by the best of each kernel in turn. `network` is all dispatches of an
inference but those that read and write host memory, repeated, every layer by the best of one kernel, or by the rule
where that kernel has no candidate. `time` is that over the first kernel's, by the median of paired ratios: below 1, the
kernel is faster. `differs` is its results' largest difference from the first kernel's, of the largest number.
Look at the clock as `bench.gpu.vs_cuda` shows it: a GPU that was idle may take a while to raise it.
On a driver that computes on the processor (lavapipe) it says nothing about GPUs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import to_builtins
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.gpu.choice.candidates import candidates
from powerlab.engine.gpu.choice.method import MATRICES, MATRICES_DIRECT, Method, Numbers
from powerlab.engine.gpu.choice.rule import by_rule
from powerlab.engine.gpu.device import chosen, devices, this_target
from powerlab.engine.gpu.model import GpuModel
from powerlab.engine.gpu.tuning.layer import Layer
from powerlab.engine.gpu.tuning.timing import TimedLayer, rounds, that_run, turn_ns
from powerlab.engine.gpu.tuning.tuner import Question, tuned_layers
from powerlab.engine.ir.graph import Graph
from powerlab.engine.passes import optimise

MODELS = ("vgg16", "resnet50", "resnet18", "vit-tiny")
OUTSIDE = ("load_", "store_")
"""How the names of kernels begin that read or write host memory."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One shape by the best tiles of each kernel.

    Attributes:
        question: the shape, and what is multiplied.
        layers: of the network that have it.
        best: kernel → its best method.
        ns: shape (rounds, kernels), in the order of ``best``.
    """

    question: Question
    layers: int
    best: dict[str, Method]
    ns: NDArray[np.float64]


def compared(question: Question, alike: tuple[Layer, int], kernels: Sequence[str], tiles: int) -> Compared | None:
    """Return a shape's times by the best of so many candidates of each kernel; None where no kernel has any.

    Args:
        question: the shape, and what is multiplied.
        alike: a layer of this shape, and how many there are.
        kernels: that take turns.
        tiles: candidates of each kernel that are tried.
    """
    (shape, numbers), (layer, layers) = question, alike
    plain = [one for one in candidates(shape, this_target(), numbers) if not one.winograd]
    wanted = [one for kernel in kernels for one in [own for own in plain if own.kernel == kernel][:tiles]]
    if not wanted:
        return None
    timed = that_run(layer, wanted, half=numbers is Numbers.FP16)
    turns = {method: turn_ns(one) for method, one in timed.items()}
    best: dict[str, Method] = {}
    for method in sorted(turns, key=turns.__getitem__):
        best.setdefault(method.kernel, method)
    best = {kernel: best[kernel] for kernel in kernels if kernel in best}
    return Compared(question, layers, best, rounds([timed[method] for method in best.values()]))


def network(graph: Graph, found: Sequence[Compared], kernel: str, *, half: bool) -> TimedLayer:
    """Return a network whose layers are computed by the best methods of one kernel."""
    own = {one.question: one.best[kernel] for one in found if kernel in one.best}
    expected = by_rule(this_target())

    def choose(shape: ConvShape, numbers: Numbers) -> Method:
        return own.get((shape, numbers)) or expected(shape, numbers)

    model = GpuModel(graph, half=half, choose=choose)
    inside = [at for at, (name, _) in enumerate(model.steps()) if not name.startswith(OUTSIDE)]
    return TimedLayer(model, synthetic_inputs(model.inputs, 1, model.dtypes), inside[0], inside[-1] + 1)


def differences(networks: Sequence[TimedLayer]) -> Iterator[float]:
    """Yield the largest difference of each network's results from the first one's, of the largest number of these."""
    first, *_ = results = [one.model.run(one.inputs) for one in networks]
    for one in results:
        yield max(float(np.abs(one[name] - first[name]).max() / np.abs(first[name]).max()) for name in first)


def words(shape: ConvShape) -> str:
    """Return a shape in a few characters."""
    kernel, size = "x".join(map(str, shape.kernel)), "x".join(map(str, shape.size))
    return f"{shape.inputs}->{shape.outputs} {kernel}{f' /{shape.groups}' if shape.groups > 1 else ''} at {size}"


def operations(shape: ConvShape) -> int:
    """Return the multiplications and additions of a convolution."""
    return 2 * shape.pixels * shape.outputs * shape.taps * shape.inputs // shape.groups


def ratios(ns: NDArray[np.float64]) -> list[float]:
    """Return the median of the paired ratios of each column to the first."""
    return [float(one) for one in np.median(ns / ns[:, :1], axis=0)]


def measured(console: Console, model: str, args: argparse.Namespace, end: float) -> dict[str, Any]:
    """Measure one network, print its table, and return what is in it."""
    target, half = this_target(), args.precision == "fp16"
    graph = optimise(load_graph(model, batch_size=args.batch), for_cores=False)
    found: list[Compared] = []
    table = Table(title=f"{model}, {args.precision}, batch {args.batch}", title_justify="left")
    for column in ("convolution", "layers", "kernel", "pixels x outputs", "µs", "TFLOP/s", "time", "differs"):
        table.add_column(column, justify="left" if column in ("convolution", "kernel") else "right")
    for question, alike in tuned_layers(graph, target, half=half).items():
        if time.monotonic() > end:
            console.print(f"{model}: there was no time left for all of its shapes")
            break
        one = compared(question, alike, args.kernels, args.tiles)
        if one is None:
            continue
        found.append(one)
        shape, medians = question[0], np.median(one.ns, axis=0)
        for at, (ns, ratio, (kernel, best)) in enumerate(zip(medians, ratios(one.ns), one.best.items(), strict=True)):
            tile = f"{best.tile_pixels(target.subgroup_lanes)} x {4 * best.tile_blocks}"
            speed = f"{operations(shape) / ns / 1e3:.1f}"
            named = ("", "") if at else (words(shape), str(one.layers))
            table.add_row(*named, kernel, tile, f"{ns / 1e3:.1f}", speed, f"{ratio:.2f}" if at else "")
    networks = [network(graph, found, kernel, half=half) for kernel in args.kernels]
    taken, differ = rounds(networks), list(differences(networks))
    for at, (kernel, ns, ratio) in enumerate(zip(args.kernels, np.median(taken, axis=0), ratios(taken), strict=True)):
        last = (f"{ratio:.2f}", f"{differ[at]:.1g}") if at else ("", "")
        table.add_row("" if at else "network", "", kernel, "", f"{ns / 1e3:.1f}", "", *last)
    console.print(table)
    shapes = [
        {
            "shape": to_builtins(one.question[0]),
            "layers": one.layers,
            "methods": [to_builtins(method) for method in one.best.values()],
            "ns": one.ns.tolist(),
        }
        for one in found
    ]
    return {"model": model, "batch": args.batch, "kernels": args.kernels, "ns": taken.tolist(), "shapes": shapes}


def main() -> int:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL", help=f"default: {' '.join(MODELS)}")
    parser.add_argument("--precision", choices=("fp16", "fp32"), default="fp16")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--kernels", nargs="+", default=[MATRICES, MATRICES_DIRECT], metavar="KERNEL")
    parser.add_argument("--tiles", type=int, default=8, help="that are tried of each kernel, the likeliest first")
    parser.add_argument("--minutes", type=float, default=1e9, help="after so many no other shape or model begins")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where all times go, too")
    args = parser.parse_args()
    gpu, console = devices()[chosen()], Console(width=120)
    console.print(f"{gpu.name}, {gpu.driver}")
    end, kept = time.monotonic() + 60 * args.minutes, []
    for model in args.models:
        if time.monotonic() > end:
            console.print(f"{model}: there was no time left")
            continue
        kept.append(measured(console, model, args, end))
        if args.json:
            args.json.write_text(json.dumps(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
