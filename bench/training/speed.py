"""How fast the built-in engine trains against PyTorch on this machine, in this run: paired ratios, nothing absolute.

    python -m bench.training.speed                                        # every cell, against eager mode: 20 minutes
    python -m bench.training.speed resnet50 lstm2 --batch 8 --threads 1 2 --seconds 20
    python -m bench.training.speed resnet50 --peers torch torch-compile --load-limit 1800   # compiling takes minutes
    python -m bench.training.speed resnet50 --precision bf16              # PyTorch by autocast

A step is forward pass, gradients and update by ``--optimizer``, on one batch of random numbers. Engines begin with the
same weights in a process each, take turns as in ``bench/engine/vs_peers.py``, and must agree in the loss of the first
step, unless layers drop at random. A ratio above 1 means that the built-in engine is faster. Where the memory does not
hold all engines of a cell, one process at a time is loaded, and anew for its turns. Needs PyTorch.

PyTorch keeps what it compiled: with TORCHINDUCTOR_CACHE_DIR a first run, whose figures nobody needs, compiles, and a
second one on a quiet machine loads that.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from rich.console import Console

from bench.peers.ratios import Cell, Measured
from bench.peers.table import ratio_table, sentences
from bench.peers.turns import ANSWER_S, Effort, measure_one_at_a_time, measure_processes
from powerlab.backends.packages import installed_version
from powerlab.boards.processor import cpu_model
from powerlab.domain.training import OPTIMIZERS, PRECISIONS, TRAINERS
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.runtime.memory import available_bytes, weight_bytes
from powerlab.engine.target.tiers import choose_tier
from powerlab.sysroot import Sysroot

NETWORKS = ("resnet50", "resnet152", "densenet201", "alexnet", "yolov3", "lstm2")
WIDTH = 132
"""Columns of the table where the output is no terminal."""


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=NETWORKS, metavar="MODEL", help=f"default: {' '.join(NETWORKS)}")
    parser.add_argument("--batch", type=int, nargs="+", default=[8, 32], metavar="N", help="default: 8 32")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N", help="default: 1 2")
    parser.add_argument("--peers", nargs="+", choices=TRAINERS[1:], default=["torch"], help="default: torch")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default=OPTIMIZERS[0], help=f"default: {OPTIMIZERS[0]}")
    parser.add_argument("--precision", choices=PRECISIONS, default=PRECISIONS[0], help=f"default: {PRECISIONS[0]}")
    parser.add_argument("--seconds", type=float, default=30.0, metavar="S", help="seconds a cell, without loading")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds a cell at least; default: 3")
    parser.add_argument(
        "--load-limit",
        type=float,
        default=ANSWER_S,
        metavar="S",
        help=f"an engine that loads longer takes no part; default: {ANSWER_S:g} s",
    )
    return parser.parse_args()


def step_bytes(cell: Cell) -> int:
    """Return about how much memory an engine needs to train: what all layers make, and weights with their gradients.

    Of large networks in eager PyTorch that is 0.8 to 1.3 times the truth (``bench/training/memory.py``); the built-in
    engine needs less.
    """
    graph = load_graph(cell.model, batch_size=cell.batch_size)
    return sum(info.elements * info.dtype.itemsize for info in graph.tensors.values()) + 2 * weight_bytes(graph)


def measured_in(cell: Cell, peers: Sequence[str], effort: Effort, left_bytes: int) -> Measured:
    """Measure a cell, with all engines loaded at once where so many bytes hold them."""
    at_once = (1 + len(peers)) * step_bytes(cell) <= left_bytes
    return (measure_processes if at_once else measure_one_at_a_time)(cell, peers, effort)


def main() -> None:
    """Read the command line, compare, print the table."""
    options = _options()
    if installed_version("torch") is None:
        sys.exit("PyTorch is not installed: pip install torch")
    effort = Effort(cell_s=options.seconds, turn_s=0.5, least_rounds=options.rounds, answer_s=options.load_limit)
    measured: list[Measured] = []
    for model in options.models:
        for batch_size in options.batch:
            for threads in options.threads:
                cell = Cell(
                    model=model,
                    batch_size=batch_size,
                    threads=threads,
                    precision=options.precision,
                    optimizer=options.optimizer,
                )
                measured.append(measured_in(cell, options.peers, effort, available_bytes()))
                print(cell, *(f"{one.median:.2f}" for one in measured[-1].ratios.values()), file=sys.stderr, flush=True)
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    console.print(ratio_table(measured, options.peers))
    for sentence in sentences(measured):
        console.print(sentence)
    cores = len(os.sched_getaffinity(0))
    console.print(
        f"{cpu_model(Sysroot())}, {cores} cores, {choose_tier().name}; {options.optimizer}; "
        f"{options.precision}; "
        f"PyTorch {installed_version('torch')}."
    )


if __name__ == "__main__":
    main()
