"""What it saves to add up gradients over processes while others are computed, and what it costs to add them up at all.

    python -m bench.training.together                           # ResNet-50, 2 processes of 1 thread, batch 4 each
    python -m bench.training.together alexnet --batch 8 --steps 20
    python -m bench.training.together --mpirun-options "--allow-run-as-root --oversubscribe"

Steps of three kinds take turns in every process: alone, adding up behind the backward pass, and beside it. Times are
medians of the first process: of a step, and of what it spends in MPI, where it waits or moves gradients. Needs mpi4py
and Open MPI.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

from rich.console import Console
from rich.table import Table

from powerlab.backends.training.batch import LABELS, RATE, batch, target_of
from powerlab.boards.processor import cpu_model
from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.training import Sgd, TrainingSession
from powerlab.engine.training.launch import run_together
from powerlab.engine.training.together import Alone, Group, MpiGroup
from powerlab.sysroot import Sysroot


def measured(model: str, batch_size: int, threads: int, steps: int) -> None:
    """Train as one of the processes; the first prints the table."""
    graph = load_graph(model, batch_size=batch_size)
    groups: dict[str, Group] = {"alone": Alone(), "behind": MpiGroup(overlapped=False), "beside": MpiGroup()}
    sessions = {
        kind: TrainingSession(graph, target_of(graph).loss, Sgd(rate=RATE), threads=threads, group=group)
        for kind, group in groups.items()
    }
    given = batch(graph, 0)
    labels = given.pop(LABELS)
    took: dict[str, list[tuple[float, float]]] = {kind: [] for kind in sessions}
    for _ in range(1 + steps):
        for kind, session in sessions.items():
            before = time.perf_counter()
            session.step(given, labels)
            took[kind].append((1e3 * (time.perf_counter() - before), session.part_ns["reduce"] / 1e6))
    group = MpiGroup()
    if group.rank:
        return
    table = Table("gradients", "step ms", "in MPI ms", "of a step alone")
    medians = {kind: [statistics.median(one) for one in zip(*times[1:], strict=True)] for kind, times in took.items()}
    for kind, (step, waited) in medians.items():
        table.add_row(kind, f"{step:.1f}", f"{waited:.1f}", f"{step / medians['alone'][0]:.3f}")
    console = Console(width=100, color_system=None)  # mpirun shows a terminal to its processes
    console.print(table)
    console.print(
        f"{model}, batch {batch_size} and {threads} thread(s) in each of {group.size} processes, {steps} steps; "
        f"{cpu_model(Sysroot())}, {sessions['alone'].tier}."
    )


def main() -> int:
    """Read the command line and start the processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="resnet50", metavar="MODEL")
    parser.add_argument("--batch", type=int, default=4, metavar="N", help="of each process; default: 4")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of each process; default: 1")
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="default: 2")
    parser.add_argument("--steps", type=int, default=10, metavar="N", help="of each kind; default: 10")
    parser.add_argument("--mpirun-options", default="", metavar="WORDS")
    parser.add_argument("--started", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.started:
        measured(asked.model, asked.batch, asked.threads, asked.steps)
        return 0
    numbers = {"--batch": asked.batch, "--threads": asked.threads, "--steps": asked.steps}
    words = [word for name, number in numbers.items() for word in (name, str(number))]
    try:
        program = ["-m", "bench.training.together", "--started", asked.model, *words]
        run_together(program, asked.processes, options=asked.mpirun_options.split())
    except PowerlabError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
