"""How fast the built-in engine trains against PyTorch on this machine, in this run: paired ratios, nothing absolute.

    python -m bench.training.speed                                        # every cell, against eager mode: 20 minutes
    python -m bench.training.speed resnet50 lstm2 --batch 8 --threads 1 2 --seconds 20
    python -m bench.training.speed resnet50 --peers torch torch-compile   # compiling takes minutes a cell
    python -m bench.training.speed resnet50 --precision bf16              # PyTorch by autocast

A step is forward pass, gradients and update by ``--optimizer``, on one batch of random numbers. Engines begin with the
same weights in a process each, take turns as in ``bench/engine/vs_peers.py``, and must agree in the loss of the first
step, unless layers drop at random. A ratio above 1 means that the built-in engine is faster. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import os
import sys

from rich.console import Console

from bench.peers.ratios import Cell, Measured
from bench.peers.table import ratio_table, sentences
from bench.peers.turns import Effort, measure_processes
from powerlab.backends.packages import installed_version
from powerlab.boards.processor import cpu_model
from powerlab.domain.training import OPTIMIZERS, PRECISIONS, TRAINERS
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
    return parser.parse_args()


def main() -> None:
    """Read the command line, compare, print the table."""
    options = _options()
    if installed_version("torch") is None:
        sys.exit("PyTorch is not installed: pip install torch")
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
                effort = Effort(cell_s=options.seconds, turn_s=0.5, least_rounds=3)
                measured.append(measure_processes(cell, options.peers, effort))
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
