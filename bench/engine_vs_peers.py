"""How fast the built-in engine is against its peers on this machine, in this run: paired ratios, nothing absolute.

    python bench/engine_vs_peers.py resnet50 --threads 2 --batch 1

Every engine runs the same weights in a process of its own. They take turns, a few inferences a turn, and never compute
at the same time; each turn of the built-in engine is set against the peer's turn next to it, so that what slows the
machine down for a while slows both. A ratio above 1 means that the built-in engine is slower.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import time
from multiprocessing.connection import Connection

from powerlab.backends.base import LoadOptions
from powerlab.backends.packages import installed_version
from powerlab.backends.registry import BACKENDS, load
from powerlab.engine.zoo import ZOO
from powerlab.measure.output_check import largest_difference

PEERS = [engine for engine in BACKENDS if engine != "builtin"]

RUNS_A_TURN = 4
"""The first one of a turn warms the caches again and is not counted."""

PAUSE_S = 0.01
"""Between turns, so that the threads of the engine before have stopped spinning."""


def _serve(pipe: Connection, engine: str, options: LoadOptions) -> None:
    """Load an engine, send its answers, then one latency for every turn asked for, until asked for none."""
    backend = load(BACKENDS[engine], options)
    inputs = backend.inputs(seed=0)
    pipe.send(backend.run(inputs))
    while pipe.recv():
        latencies = []
        for _ in range(RUNS_A_TURN):
            start = time.perf_counter()
            backend.run(inputs)
            latencies.append(time.perf_counter() - start)
        pipe.send(statistics.median(latencies[1:]))


def compare(model: str, peers: list[str], threads: int, batch: int, rounds: int) -> None:
    """Time `model` on the built-in engine and its peers in turn, and print one line a peer."""
    options = LoadOptions(model=model, batch_size=batch, threads=threads)
    context = multiprocessing.get_context("spawn")
    pipes, answers, processes = {}, {}, []
    for engine in ("builtin", *peers):
        pipes[engine], theirs = context.Pipe()
        processes.append(context.Process(target=_serve, args=(theirs, engine, options), daemon=True))
        processes[-1].start()
        theirs.close()
        answers[engine] = pipes[engine].recv()
    turns: dict[str, list[float]] = {engine: [] for engine in pipes}
    for _ in range(rounds):
        for engine, pipe in pipes.items():
            time.sleep(PAUSE_S)
            pipe.send(True)
            turns[engine].append(pipe.recv())
    for pipe in pipes.values():
        pipe.send(False)
    for process in processes:
        process.join()
    for peer in peers:
        ratios = [ours / theirs for ours, theirs in zip(turns["builtin"], turns[peer], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        apart = largest_difference(answers["builtin"], answers[peer])
        print(
            f"{model:12} batch {batch:3} threads {threads:2}  time / {peer:12} {middle:5.2f}  "
            f"(quartiles {low:.2f} to {high:.2f}, {rounds} rounds; answers differ by {apart:.1e} of the largest)"
        )


def main() -> None:
    """Read the command line and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=sorted(ZOO), help="zoo names (default: all)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--peers", nargs="+", choices=PEERS)
    options = parser.parse_args()
    peers = options.peers or [engine for engine in PEERS if installed_version(engine) is not None]
    if not peers:
        sys.exit("no peer is installed: pip install 'powerlab[peers]'")
    for model in options.models:
        compare(model, peers, options.threads, options.batch, options.rounds)


if __name__ == "__main__":
    main()
