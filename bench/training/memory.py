"""Memory of training beside PyTorch's, and what computing activations again saves and costs in the built-in engine.

    python -m bench.training.memory                            # some networks, batch 8, one thread
    python -m bench.training.memory resnet50 --batch 8 32
    python -m bench.training.memory --peers                    # without PyTorch

Memory is the peak of a process of its own for each kind, in two steps of SGD, less what it has when its libraries are
loaded (VmHWM and VmRSS of /proc): weights, gradients, activations, packed weights, scratch, and what the allocators
keep. Times are the shortest of ``--steps``.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from powerlab.backends.packages import installed_version
from powerlab.backends.training.batch import LABELS, RATE, batch, target_of
from powerlab.boards.processor import cpu_model
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.graph import Graph
from powerlab.engine.target.tiers import choose_tier
from powerlab.engine.training import Sgd, TrainingSession
from powerlab.sysroot import Sysroot

NETWORKS = ("resnet50", "densenet121", "mobilenetv2", "vit-tiny", "alexnet", "lstm2")
KINDS = ("kept", "recomputed", "bf16")
PEERS = ("torch",)


def status_mb(key: str) -> float:
    """Return a size that /proc tells of this process, in MB."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 / 1e6 for line in text.splitlines() if line.startswith(f"{key}:"))


def stepper(kind: str, graph: Graph, threads: int) -> Callable[[], object]:
    """Return what makes a step of a kind."""
    given = batch(graph, 0)
    if kind in PEERS:
        module = import_module("powerlab.backends.training.torch")
        torch = import_module("torch")
        torch.set_num_threads(threads)
        trainer = module.TorchTrainer(graph, torch, "sgd")
        return lambda: trainer.run(given)
    precision = kind if kind == "bf16" else "fp32"
    recompute = kind == "recomputed"
    loss, optimizer = target_of(graph).loss, Sgd(rate=RATE)
    session = TrainingSession(graph, loss, optimizer, threads=threads, recompute=recompute, precision=precision)
    inputs = {name: value for name, value in given.items() if name != LABELS}
    return lambda: session.step(inputs, given[LABELS])


def measure(kind: str, model: str, batch_size: int, threads: int, steps: int) -> dict[str, float]:
    """Return peak memory and the shortest step of a kind, in this process."""
    if kind in PEERS:
        import_module("torch")
    load_graph("squeezenet@64")  # and with it what the engine imports
    gc.collect()
    before = status_mb("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    step = stepper(kind, load_graph(model, batch_size=batch_size), threads)
    took = []
    for _ in range(max(2, steps)):
        begin = time.perf_counter()
        step()
        took.append(time.perf_counter() - begin)
    return {"mb": status_mb("VmHWM") - before, "ms": 1e3 * min(took)}


def measured_apart(*words: object) -> dict[str, float]:
    """Return what :func:`measure` does in a process of its own."""
    command = [sys.executable, "-m", "bench.training.memory", "--alone", *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Read the command line, measure, print the table."""
    if sys.argv[1:2] == ["--alone"]:
        kind, model, *numbers = sys.argv[2:]
        print(json.dumps(measure(kind, model, *map(int, numbers))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=NETWORKS, metavar="MODEL")
    parser.add_argument("--batch", type=int, nargs="+", default=[8], metavar="N")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--steps", type=int, default=3, metavar="N")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=[one for one in PEERS if installed_version(one)])
    asked = parser.parse_args()
    kinds = (*(kind for kind in KINDS if kind != "bf16" or choose_tier().pairs), *asked.peers)
    table = Table("model", "batch", *(f"{kind} MB" for kind in kinds), *(f"{kind} ms" for kind in kinds))
    for model in asked.models:
        for batch_size in asked.batch:
            found = [measured_apart(kind, model, batch_size, asked.threads, asked.steps) for kind in kinds]
            row = [f"{one[unit]:.0f}" for unit in ("mb", "ms") for one in found]
            table.add_row(model, str(batch_size), *row)
            print(model, batch_size, *row, file=sys.stderr, flush=True)
    console = Console(width=100)
    console.print(table)
    console.print(f"{cpu_model(Sysroot())}, {asked.threads} thread(s), {choose_tier().name}.")


if __name__ == "__main__":
    main()
