"""What a run on the GPU costs the host: copying, submitting and waiting, beside what the GPU's own clock counts.

    python bench/engine_gpu_overhead.py
    python bench/engine_gpu_overhead.py --kernels 1,100 --runs 5000

Each kernel clamps eight numbers, so that it takes next to no time, and waits for the one before it. `host` is the
median time of a run less what the GPU counts between the first kernel's begin and the last one's end. On a driver that
computes on the processor (lavapipe) this is the cost of waking its threads, and says nothing about GPUs.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Callable

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


def times_us(run: Callable[[], object], runs: int) -> list[float]:
    """Return how long each of some runs takes."""
    times = []
    for _ in range(runs):
        start = time.perf_counter_ns()
        run()
        times.append((time.perf_counter_ns() - start) / 1e3)
    return times


def row(kernels: int, runs: int) -> tuple[float, float, float, float]:
    """Return the median and 99th percentile of a run, what the GPU counts of it, and what is the host's; µs."""
    model, inputs = chain(kernels), {"t0": np.zeros((1, NUMBERS), np.float32)}
    for _ in range(20):
        model.run(inputs)
    times = times_us(lambda: model.run(inputs), runs)
    steps = len(model.steps())
    counted = statistics.median(model.repeat(inputs, 0, steps, 1) / 1e3 for _ in range(max(runs // 10, 20)))
    median = statistics.median(times)
    return median, float(np.percentile(times, 99)), counted, median - counted


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", default="1,8,64", metavar="N,...")
    parser.add_argument("--runs", type=int, default=2000)
    args = parser.parse_args()
    gpu, console = devices()[chosen()], Console(width=120)
    console.print(f"{gpu.name}, {gpu.driver}; processor: {cpu_model(Sysroot('/'))}")
    table = Table(title="one run, µs", title_justify="left")
    for column in ("kernels", "median", "p99", "counted by the GPU", "host"):
        table.add_column(column, justify="right")
    for kernels in (int(text) for text in args.kernels.split(",")):
        table.add_row(str(kernels), *(f"{value:.1f}" for value in row(kernels, args.runs)))
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
