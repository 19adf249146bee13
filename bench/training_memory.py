"""What computing activations again saves and costs: planned memory, and the time of a step, of the built-in engine.

    python bench/training_memory.py                            # some networks, batch 8, one thread
    python bench/training_memory.py resnet50 --batch 8 32 --steps 0     # memory alone: nothing is computed

Memory is what a plan takes for activations, packed weights and scratch; weights, gradients and what the optimizer keeps
come on top, alike in both. Times are the shortest of ``--steps``, the two kinds taking turns.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from powerlab.backends.training.batch import LABELS, RATE, batch, target_of
from powerlab.boards.processor import cpu_model
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.training import Sgd, TrainingSession
from powerlab.sysroot import Sysroot

NETWORKS = ("resnet50", "densenet121", "mobilenetv2", "vit-tiny")


def shortest_ms(sessions: tuple[TrainingSession, ...], given: dict[str, NDArray[Any]], steps: int) -> list[float]:
    """Return the shortest step of each session, in ms."""
    inputs = {name: value for name, value in given.items() if name != LABELS}
    took: list[list[float]] = [[] for _ in sessions]
    for _ in range(steps):
        for session, times in zip(sessions, took, strict=True):
            begin = time.perf_counter()
            session.step(inputs, given[LABELS])
            times.append(1e3 * (time.perf_counter() - begin))
    return [min(times) for times in took]


def main() -> None:
    """Read the command line, plan, measure, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=NETWORKS, metavar="MODEL")
    parser.add_argument("--batch", type=int, nargs="+", default=[8], metavar="N")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--steps", type=int, default=3, metavar="N")
    asked = parser.parse_args()
    table = Table("model", "batch", "kept MB", "recomputed MB", "÷", "kept ms", "recomputed ms", "×")
    for model in asked.models:
        for batch_size in asked.batch:
            graph = load_graph(model, batch_size=batch_size)
            sessions = tuple(
                TrainingSession(
                    graph, target_of(graph).loss, Sgd(rate=RATE), threads=asked.threads, recompute=recompute
                )
                for recompute in (False, True)
            )
            kept, again = (session.activation_bytes / 1e6 for session in sessions)
            row = [model, str(batch_size), f"{kept:.0f}", f"{again:.0f}", f"{kept / again:.2f}"]
            if asked.steps:
                whole, longer = shortest_ms(sessions, batch(graph, 0), asked.steps)
                row += [f"{whole:.0f}", f"{longer:.0f}", f"{longer / whole:.2f}"]
            table.add_row(*row)
            print(*row, file=sys.stderr, flush=True)
    console = Console(width=100)
    console.print(table)
    console.print(f"{cpu_model(Sysroot())}, {asked.threads} thread(s), {sessions[0].tier}.")


if __name__ == "__main__":
    main()
