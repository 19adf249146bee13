"""How fast the built-in engine is against its peers on this machine, in this run: paired ratios, nothing absolute.

    python bench/engine_vs_peers.py resnet50 --threads 2 --batch 1

Every engine runs the same weights in a process of its own. They take turns, a few inferences a turn, and never compute
at the same time; each turn of the built-in engine is set against the peer's turn next to it, so that what slows the
machine down for a while slows both. A ratio above 1 means that the built-in engine is slower.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from powerlab.backends.onnx_export import export_onnx
from powerlab.engine import Session
from powerlab.engine.load import load_graph
from powerlab.engine.passes import optimise
from powerlab.engine.zoo import ZOO

Run = Callable[[np.ndarray], np.ndarray]

RUNS_A_TURN = 4
"""The first one of a turn warms the caches again and is not counted."""

PAUSE_S = 0.01
"""Between turns, so that the threads of the engine before have stopped spinning."""


def _builtin(model: str, _path: str, threads: int, batch: int) -> Run:
    session = Session(optimise(load_graph(model, batch_size=batch)), threads=threads)
    (name,), (output,) = session.inputs, session.outputs
    return lambda x: session.run({name: x})[output]


def _onnxruntime(_model: str, path: str, threads: int, _batch: int) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda x: session.run(None, {name: x})[0]


def _openvino(_model: str, path: str, threads: int, _batch: int) -> Run:
    import openvino

    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(path, "CPU", settings).create_infer_request()
    return lambda x: request.infer([x])[0]


ENGINES = {"builtin": _builtin, "onnxruntime": _onnxruntime, "openvino": _openvino}


def _serve(pipe: Connection, engine: str, arguments: tuple[str, str, int, int], x: np.ndarray) -> None:
    """Load an engine, send its answer, then one latency for every turn asked for, until asked for none."""
    run = ENGINES[engine](*arguments)
    pipe.send(np.array(run(x)))
    while pipe.recv():
        latencies = []
        for _ in range(RUNS_A_TURN):
            start = time.perf_counter()
            run(x)
            latencies.append(time.perf_counter() - start)
        pipe.send(statistics.median(latencies[1:]))


def compare(model: str, peers: list[str], threads: int, batch: int, rounds: int) -> None:
    """Time `model` on the built-in engine and its peers in turn, and print one line a peer."""
    graph = load_graph(model, batch_size=batch)
    x = np.random.default_rng(0).standard_normal(graph.inputs[0].shape, dtype=np.float32)
    context = multiprocessing.get_context("spawn")
    pipes, answers, processes = {}, {}, []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(export_onnx(graph))
        for engine in ("builtin", *peers):
            pipes[engine], theirs = context.Pipe()
            arguments = (model, str(path), threads, batch)
            processes.append(context.Process(target=_serve, args=(theirs, engine, arguments, x), daemon=True))
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
        apart = np.abs(answers["builtin"] - answers[peer]).max() / np.abs(answers[peer]).max()
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
    parser.add_argument("--peers", nargs="+", choices=[name for name in ENGINES if name != "builtin"])
    options = parser.parse_args()
    peers = options.peers or [name for name in ENGINES if name != "builtin" and importlib.util.find_spec(name)]
    if not peers:
        sys.exit("no peer is installed: pip install 'powerlab[peers]'")
    for model in options.models:
        compare(model, peers, options.threads, options.batch, options.rounds)


if __name__ == "__main__":
    main()
