"""What it costs an engine that a machine is not quiet: latencies alone and disturbed, of ours and its peers.

    python -m bench.engine.contention                          # the networks of the bench, two threads, all peers
    python -m bench.engine.contention --peers onnxruntime      # beside one, about 4 minutes
    python -m bench.engine.contention mobilenetv2 lstm2        # some of them
    python -m bench.engine.contention --situation quota        # as root: the engine may use 1.5 processors' time
    python -m bench.engine.contention --situation unequal      # as root: one processor has half its speed

Every engine runs the same weights in a process of its own, and they take turns: one alone, one disturbed. ``busy`` is a
process that only computes; ``quota`` a control group with three quarters of the threads' time in every 20 ms, as a
container has it; ``unequal`` a process that takes every other 2 ms of the last processor, so that this one is half as
fast. The slow-down is the median disturbed over the median alone, then the same of the means, which count the
inferences that a quota stopped; p99 is of the disturbed inferences.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.engine.vs_peers import MODELS, PEERS
from bench.peers.processor_time import can_limit, limited
from bench.peers.ratios import OURS, Cell
from bench.peers.turns import EngineError, EngineProcess
from powerlab.backends.packages import installed_version
from powerlab.boards.processor import cpu_model
from powerlab.engine.target.tiers import choose_tier
from powerlab.sysroot import Sysroot

ROUNDS = 3
ALONE_S, BESIDE_S = 0.5, 1.5
"""About how long the counted inferences of a turn take, judged by one alone."""


QUOTA = 0.75
"""Processors a thread may use, under a quota."""

QUOTA_PERIOD_US, SLICE_US = 20_000, 4_000


@contextmanager
def _computing() -> Iterator[int]:
    """Run a process that takes one processor's time if it can have it."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            time.sleep(0.2)
            yield process.pid
        finally:
            process.kill()


@contextmanager
def busy(_pid: int, _threads: int) -> Iterator[None]:
    """Let a busy process run beside the engine."""
    with _computing():
        yield


@contextmanager
def quota(pid: int, threads: int) -> Iterator[None]:
    """Let the engine's process use less processor time than its threads ask for."""
    with limited(pid, QUOTA * threads, QUOTA_PERIOD_US):
        yield


@contextmanager
def unequal(_pid: int, _threads: int) -> Iterator[None]:
    """Take half of the last processor's time, in slices of 2 ms, before anybody else."""
    with _computing() as other:
        os.sched_setaffinity(other, {max(os.sched_getaffinity(0))})
        os.setpriority(os.PRIO_PROCESS, other, -20)
        with limited(other, 0.5, SLICE_US):
            yield


Situation = Callable[[int, int], AbstractContextManager[None]]
SITUATIONS: Mapping[str, Situation] = {"busy": busy, "quota": quota, "unequal": unequal}
"""Each is given the engine's process and its threads."""


def measure(model: str, engine: str, threads: int, situation: Situation = busy) -> tuple[list[float], list[float]]:
    """Return the latencies in ms alone and disturbed, in alternating turns.

    Raises:
        EngineError: the engine takes no part, with the reason.
    """
    running = EngineProcess(engine, Cell(model=model, batch_size=1, threads=threads))
    try:
        running.outputs()
        once_s = statistics.median(running.turn(2, 5))
        alone: list[float] = []
        beside: list[float] = []
        for _ in range(ROUNDS):
            alone += running.turn(2, max(5, int(ALONE_S / once_s)))
            with situation(running.pid, threads):
                beside += running.turn(2, max(10, int(BESIDE_S / once_s / 2)))
    finally:
        running.close()
    return [1e3 * latency for latency in alone], [1e3 * latency for latency in beside]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row per model and engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--situation", choices=SITUATIONS, default="busy", help="what disturbs (default: busy)")
    parser.add_argument("--peers", nargs="*", choices=PEERS, help="default: all that are installed")
    args = parser.parse_args(arguments)
    if args.situation != "busy" and not can_limit():
        parser.error(f"--situation {args.situation} limits processor time, which takes root and control groups.")
    peers = PEERS if args.peers is None else args.peers
    engines = [OURS, *(peer for peer in peers if installed_version(peer))]
    root = Sysroot()
    console = Console(width=None if sys.stdout.isatty() else 120)
    cores = len(os.sched_getaffinity(0))
    machine = f"{cpu_model(root)}, {cores} cores, tier {choose_tier().name}"
    console.print(f"{machine}, {args.threads} threads, batch 1, {args.situation}")
    table = Table(
        "model", "engine", "alone ms", "disturbed ms", "slow-down", "of the mean", "p99 disturbed ms", box=None
    )
    for model in args.models:
        for engine in engines:
            try:
                alone, disturbed = measure(model, engine, args.threads, SITUATIONS[args.situation])
            except EngineError as error:
                console.print(f"{model}, {engine}: {error}")
                continue
            quiet, slowed = statistics.median(alone), statistics.median(disturbed)
            tail = float(np.percentile(disturbed, 99))
            mean = statistics.fmean(disturbed) / statistics.fmean(alone)
            table.add_row(
                *(model, engine, f"{quiet:.2f}", f"{slowed:.2f}", f"{slowed / quiet:.2f}", f"{mean:.2f}", f"{tail:.2f}")
            )
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
