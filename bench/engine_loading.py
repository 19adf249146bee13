"""How long models take to load, on the built-in engine and on ONNX Runtime: cold, each in a process of its own.

    python bench/engine_loading.py                # networks of the zoo, two threads, about a minute
    python bench/engine_loading.py a.onnx b.onnx  # files

Both read the same file. The time is from the path to a session that can run, without imports; the least of five
processes in alternating turns, because whatever else a machine does only adds to it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from powerlab.backends.onnx_export import export_onnx
from powerlab.boards.processor import cpu_model
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.target.tiers import choose_tier
from powerlab.sysroot import Sysroot

MODELS = ("mobilenetv2", "efficientnet-b0", "vit-tiny", "densenet121", "resnet18", "resnet50", "yolov3", "vgg16")
ROUNDS = 5
PROGRAMS = {
    "builtin": """
import sys, time
import powerlab.engine.frontend.onnx_reader, powerlab.engine.passes
from powerlab.engine import Session
begin = time.perf_counter()
Session(sys.argv[1], threads=int(sys.argv[2]))
print(time.perf_counter() - begin)
""",
    "onnxruntime": """
import sys, time
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
begin = time.perf_counter()
onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
print(time.perf_counter() - begin)
""",
}


def loading_s(engine: str, path: Path, threads: int) -> float:
    """Return how long an engine takes to load a file, in a new process."""
    command = [sys.executable, "-c", PROGRAMS[engine], str(path), str(threads)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compare(path: Path, threads: int, rounds: int = ROUNDS) -> dict[str, float]:
    """Return the least time of each engine in s."""
    found: dict[str, list[float]] = {engine: [] for engine in PROGRAMS}
    for _ in range(rounds):
        for engine, times in found.items():
            times.append(loading_s(engine, path, threads))
    return {engine: min(times) for engine, times in found.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line per model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(arguments)
    print(f"{cpu_model(Sysroot())}, tier {choose_tier().name}, {args.threads} thread(s)")
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models:
            path = Path(model)
            if path.suffix != ".onnx":
                path = Path(folder) / f"{model}.onnx"
                path.write_bytes(export_onnx(load_graph(model)))
            found = compare(path, args.threads)
            times = ", ".join(f"{engine} {1e3 * time_s:.0f} ms" for engine, time_s in found.items())
            print(f"{path.stem}: {times}; ONNX Runtime / ours {found['onnxruntime'] / found['builtin']:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
