"""How long models take to load on the built-in engine and on ONNX Runtime, each time in a process of its own.

    python -m bench.engine.loading                # all networks of the zoo, two threads, about three minutes
    python -m bench.engine.loading a.onnx b.onnx  # files
    python -m bench.engine.loading resnet50 --rounds 9
    python -m bench.engine.loading --answer       # with the first inference
    python -m bench.engine.loading --keep-memory  # from a host that takes back what is free: bench/peers/kept_memory.py

All read the same file. The time is from the path to a session that can run, without imports; with ``--answer`` to the
first outputs for zeros, for which engines take memory that they do not take before. *cold* is the engine
without its cache; *cached* finds the model prepared by an earlier process (``POWERLAB_CACHE``). A round has one process
of each, so a ratio pairs neighbours; medians are printed, of the ratios ONNX Runtime's time / ours with their extremes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from bench.peers.kept_memory import kept_memory
from powerlab.backends.onnx_export import export_onnx
from powerlab.boards.processor import cpu_model
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.zoo import ZOO
from powerlab.engine.target.tiers import choose_tier
from powerlab.sysroot import Sysroot

ROUNDS = 5
SETTLED_S = 2.5
"""A file that was written just now is verified again by the next process that maps it."""

_BUILTIN = """
import sys, time
import numpy as np
import powerlab.engine.frontend.onnx_reader, powerlab.engine.passes, powerlab.engine.prepared.key
from powerlab.engine import Session
from powerlab.engine.target.tiers import native_engine
native_engine()
begin = time.perf_counter()
session = Session(sys.argv[1], threads=int(sys.argv[2]))
if len(sys.argv) > 3:
    session.run({name: np.zeros(shape, session.dtypes[name]) for name, shape in session.inputs.items()})
print(time.perf_counter() - begin)
"""
PROGRAMS = {
    "cold": _BUILTIN,
    "cached": _BUILTIN,
    "onnxruntime": """
import sys, time
import numpy as np
import onnxruntime
TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
begin = time.perf_counter()
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
if len(sys.argv) > 3:
    session.run(None, {one.name: np.zeros(one.shape, TYPES[one.type]) for one in session.get_inputs()})
print(time.perf_counter() - begin)
""",
}


def loading_s(kind: str, path: Path, threads: int, cache: Path, *, answer: bool) -> float:
    """Return how long a file takes to load, in a new process."""
    command = [sys.executable, "-c", PROGRAMS[kind], str(path), str(threads), *(["answer"] if answer else [])]
    settings = {"POWERLAB_CACHE": "16G" if kind == "cached" else "off", "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **settings})
    return float(done.stdout)


def compare(
    path: Path, threads: int, cache: Path, rounds: int = ROUNDS, *, answer: bool = False
) -> dict[str, list[float]]:
    """Return the times of each kind in s, one a round."""
    loading_s("cached", path, threads, cache, answer=answer)
    time.sleep(SETTLED_S)
    loading_s("cached", path, threads, cache, answer=answer)
    found: dict[str, list[float]] = {kind: [] for kind in PROGRAMS}
    for _ in range(rounds):
        for kind, times in found.items():
            times.append(loading_s(kind, path, threads, cache, answer=answer))
    return found


def line(name: str, found: dict[str, list[float]]) -> str:
    """Return the medians of a model's times, and of the ratios of each round, as a row of a table."""
    cells = [f"{1e3 * statistics.median(times):.0f}" for times in found.values()]
    for kind in ("cold", "cached"):
        ratios = [peer / own for own, peer in zip(found[kind], found["onnxruntime"], strict=True)]
        cells.append(f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})")
    return f"| {' | '.join((name, *cells))} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line per model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=tuple(ZOO), metavar="MODEL")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--answer", action="store_true", help="until the first outputs")
    parser.add_argument("--keep-memory", action="store_true", help="from the host of this virtual machine")
    args = parser.parse_args(arguments)
    with kept_memory() if args.keep_memory else nullcontext():
        return _compare(args)


def _compare(args: argparse.Namespace) -> int:
    print(f"{cpu_model(Sysroot())}, tier {choose_tier().name}, {args.threads} thread(s)\n")
    print("| model | cold ms | cached ms | ONNX Runtime ms | ONNX Runtime ÷ cold | ONNX Runtime ÷ cached |")
    print("|---|--:|--:|--:|--:|--:|")
    for model in args.models:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(model)
            if path.suffix != ".onnx":
                path = Path(folder) / f"{model}.onnx"
                path.write_bytes(export_onnx(load_graph(model)))
            print(
                line(path.stem, compare(path, args.threads, Path(folder), args.rounds, answer=args.answer)), flush=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
