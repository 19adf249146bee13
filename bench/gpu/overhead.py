"""What a run on the GPU costs the host: copying, submitting and waiting, beside what the GPU's own clock counts.

    python -m bench.gpu.overhead
    python -m bench.gpu.overhead --kernels 1,100 --runs 5000

Each kernel clamps eight numbers, so that it takes next to no time, and waits for the one before it. `counted` is from
the first kernel's begin to the last one's end by the GPU's clock, in runs with a timestamp behind every kernel; `host`
is what such a run takes beside that, run by run. `run` is without timestamps. On a driver that computes on the
processor (lavapipe) this is the cost of waking its threads, and says nothing about GPUs.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from powerlab.boards.processor import cpu_model
from powerlab.engine.gpu.device import chosen, devices
from powerlab.engine.gpu.model import GpuModel
from powerlab.engine.ir.graph import Graph, Node, TensorInfo
from powerlab.sysroot import Sysroot

NUMBERS = 8


def chain(kernels: int) -> GpuModel:
    """Return a model of so many kernels, one behind the other."""
    names = [f"t{index}" for index in range(kernels + 1)]
    tensors = {name: TensorInfo(name, (1, NUMBERS)) for name in names}
    nodes = tuple(
        Node("Clamp", f"clamp{index}", (x,), (y,), {"clamp": (float(-index - 1), float("inf"))})
        for index, (x, y) in enumerate(itertools.pairwise(names))
    )
    return GpuModel(Graph("chain", nodes, (tensors[names[0]],), (tensors[names[-1]],), {}, tensors))


def row(kernels: int, runs: int) -> list[float]:
    """Return µs: median and 99th percentile of runs, what the GPU counts of timed ones, and both of the rest."""
    model, inputs = chain(kernels), {"t0": np.zeros((1, NUMBERS), np.float32)}
    for _ in range(20):
        model.timed(inputs)
    whole, counted, host = [], [], []
    for _ in range(runs):
        start = time.perf_counter_ns()
        model.run(inputs)
        between = time.perf_counter_ns()
        _, steps = model.timed(inputs)
        own = sum(ns for *_, ns in steps)
        whole.append((between - start) / 1e3)
        counted.append(own / 1e3)
        host.append((time.perf_counter_ns() - between - own) / 1e3)
    of_runs, of_host = (np.percentile(times, (50, 99)).tolist() for times in (whole, host))
    return [*of_runs, statistics.median(counted), *of_host]


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", default="1,8,64", metavar="N,...")
    parser.add_argument("--runs", type=int, default=2000)
    args = parser.parse_args()
    gpu, console = devices()[chosen()], Console(width=120)
    console.print(f"{gpu.name}, {gpu.driver}; processor: {cpu_model(Sysroot('/'))}")
    table = Table(title="one run, µs", title_justify="left")
    for column in ("kernels", "run", "p99", "counted", "host", "host p99"):
        table.add_column(column, justify="right")
    for kernels in (int(text) for text in args.kernels.split(",")):
        table.add_row(str(kernels), *(f"{value:.1f}" for value in row(kernels, args.runs)))
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
