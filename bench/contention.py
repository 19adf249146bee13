"""What one busy process beside an engine costs it: latencies alone and beside, of the built-in engine and its peers.

    python bench/contention.py                     # the networks of the bench, two threads, about 6 minutes
    python bench/contention.py mobilenetv2 lstm2   # some of them

Every engine runs the same weights in a process of its own, and they take turns: one alone, one beside a process that
only computes. The slow-down is the median beside over the median alone; p99 is of the inferences beside it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from engine_vs_peers import MODELS, PEERS
from peer_ratios import OURS, Cell
from peer_turns import EngineError, EngineProcess
from rich.console import Console
from rich.table import Table

from powerlab.backends.packages import installed_version
from powerlab.boards.processor import cpu_model
from powerlab.engine.target.tiers import choose_tier
from powerlab.sysroot import Sysroot

ROUNDS = 3
ALONE_S, BESIDE_S = 0.5, 1.5
"""About how long the counted inferences of a turn take, judged by one alone."""


@contextmanager
def busy_process() -> Iterator[None]:
    """Run a process that takes one processor's time if it can have it."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            time.sleep(0.2)
            yield
        finally:
            process.kill()


def measure(model: str, engine: str, threads: int) -> tuple[list[float], list[float]]:
    """Return the latencies in ms alone and beside a busy process, in alternating turns.

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
            with busy_process():
                beside += running.turn(2, max(10, int(BESIDE_S / once_s / 2)))
    finally:
        running.close()
    return [1e3 * latency for latency in alone], [1e3 * latency for latency in beside]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row per model and engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(arguments)
    engines = [OURS, *(peer for peer in PEERS if installed_version(peer))]
    root = Sysroot()
    console = Console(width=None if sys.stdout.isatty() else 120)
    cores = len(os.sched_getaffinity(0))
    console.print(f"{cpu_model(root)}, {cores} cores, tier {choose_tier().name}, {args.threads} threads, batch 1")
    table = Table("model", "engine", "alone ms", "beside ms", "slow-down", "p99 beside ms", box=None)
    for model in args.models:
        for engine in engines:
            try:
                alone, beside = measure(model, engine, args.threads)
            except EngineError as error:
                console.print(f"{model}, {engine}: {error}")
                continue
            quiet, busy = statistics.median(alone), statistics.median(beside)
            tail = float(np.percentile(beside, 99))
            table.add_row(model, engine, f"{quiet:.2f}", f"{busy:.2f}", f"{busy / quiet:.2f}", f"{tail:.2f}")
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
