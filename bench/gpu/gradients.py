"""How far gradients of the zoo's networks on the GPU are from those on the cores, without the kinks of activations.

    python -m bench.gpu.gradients                       # networks with images of 64 × 64, batch 2
    python -m bench.gpu.gradients resnet50@96 --batch 4

Of each weight, the norm of the difference over the norm of the cores' gradient, as ``bench.training.gradients`` has it,
which holds the cores' against double precision; networks have softplus in place of what breaks. Ends with 1 where a
gradient is above 1e-4.
"""

from __future__ import annotations

import argparse
import statistics
import sys

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.training.gradients import errors, without_dropout, without_kinks
from powerlab.backends.training.batch import LABELS, batch, target_of
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.training import Sgd, TrainingSession

NETWORKS = (
    *("densenet121@64", "efficientnet-b0@64", "lstm2", "mobilenetv2@64", "mobilenetv3@64", "resnet18@64"),
    *("resnet50@64", "squeezenet@64", "vit-tiny", "yolov3-tiny@96"),
)
"""Those whose weights lavapipe's kernels see at once."""

LARGEST = 1e-4


def errors_of(network: str, batch_size: int) -> list[float]:
    """Return the relative error of each gradient that is not zero."""
    graph = without_kinks(without_dropout(load_graph(network, batch_size=batch_size)))
    given = batch(graph, 1)
    inputs = {name: value for name, value in given.items() if name != LABELS}
    found = []
    for device in ("cpu", "gpu"):
        session = TrainingSession(graph, target_of(graph).loss, Sgd(rate=0.0), device=device)
        session.step(inputs, given[LABELS])
        found.append(session.gradients())
    on_cores, on_gpu = found
    return errors(on_gpu, {name: value.astype(np.float64) for name, value in on_cores.items()})


def main() -> int:
    """Print a table, and return 1 where an error is too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=NETWORKS, metavar="NETWORK")
    parser.add_argument("--batch", type=int, default=2)
    args = parser.parse_args()
    table, wrong = Table("network", "median", "largest"), False
    for network in args.networks:
        found = errors_of(network, args.batch)
        wrong = wrong or max(found) > LARGEST
        table.add_row(network, f"{statistics.median(found):.1e}", f"{max(found):.1e}")
    Console().print(table)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
