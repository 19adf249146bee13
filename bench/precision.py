"""How much faster 8-bit integers are than float32, in the built-in engine and beside its peers.

    python bench/precision.py                        # ResNet-50 and MobileNetV2, batch 1, one and two threads
    python bench/precision.py resnet50 --threads 1 --seconds 4
    POWERLAB_TIER=avx2 python bench/precision.py --peers

Each network is quantized once with random calibration (`powerlab engine quantize`), and every engine runs that file;
the built-in one runs the network in float32 too. Each has a process of its own and they take turns. A ratio is another
engine's median time over that of the built-in one in int8: above 1, ours is faster. Only the built-in engine and ONNX
Runtime are sure to compute what the file says: OpenVINO rearranges quantizations. POWERLAB_TIER holds back ours alone.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from peer_ratios import OURS, Cell
from peer_turns import EngineError, EngineProcess
from rich.console import Console
from rich.table import Table

from powerlab.backends.packages import installed_version
from powerlab.boards.processor import cpu_model
from powerlab.engine.target.tiers import choose_tier
from powerlab.sysroot import Sysroot

MODELS = ("resnet50", "mobilenetv2")
PEERS = ("onnxruntime", "openvino")
FOLDER = Path("build/precision")
FLOATS = "fp32"
"""The built-in engine with the network as it was."""

LEAST_TURNS = 5
TURN_S = 0.1


def quantized(model: str) -> Path:
    """Return the file of a network in 8-bit integers, which is written where there is none yet."""
    path = FOLDER / f"{model}-int8.onnx"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        powerlab = Path(sys.executable).with_name("powerlab")
        command = [powerlab, "engine", "quantize", model, "--calibrate", "random", "--output", path]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path


def measure(model: str, batch: int, threads: int, peers: Sequence[str], seconds: float) -> dict[str, float | str]:
    """Return the median seconds of an inference, by engine; for one that takes no part, why."""
    file = str(quantized(model))
    cells = {
        name: Cell(model=model if name == FLOATS else file, batch_size=batch, threads=threads)
        for name in (OURS, FLOATS, *peers)
    }
    engines: dict[str, EngineProcess] = {}
    found: dict[str, float | str] = {}
    times: dict[str, list[float]] = {}
    try:
        for name, cell in cells.items():
            engine = EngineProcess(OURS if name == FLOATS else name, cell)
            try:
                engine.outputs()
                times[name] = engine.turn(1, 1)
                engines[name] = engine
            except EngineError as error:
                found[name] = str(error)
                engine.close()
        counts = {name: max(1, round(TURN_S / times[name][0])) for name in engines}
        turns = max(LEAST_TURNS, round(seconds / (2 * TURN_S * len(engines))))
        for name in engines:
            times[name] = []
        for _ in range(turns):
            for name, engine in engines.items():
                times[name] += engine.turn(counts[name], counts[name])
    finally:
        for engine in engines.values():
            engine.close()
    return found | {name: statistics.median(values) for name, values in times.items() if values}


def main() -> None:
    """Measure what the command line asks for and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--batches", type=int, nargs="+", default=[1])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--peers", nargs="*", default=PEERS)
    parser.add_argument("--seconds", type=float, default=6, help="of a cell, without loading")
    asked = parser.parse_args()
    tier = choose_tier()
    versions = ", ".join(f"{peer} {installed_version(peer)}" for peer in asked.peers)
    table = Table(title=f"{cpu_model(Sysroot())}; {tier.name}, {tier.bytes}; {versions}")
    for column in ("model", "batch", "threads", "int8 ms", *(f"{name} / int8" for name in (FLOATS, *asked.peers))):
        table.add_column(column, justify="left" if column == "model" else "right")
    for model in asked.models:
        for batch, threads in itertools.product(asked.batches, asked.threads):
            found = measure(model, batch, threads, asked.peers, asked.seconds)
            ours = found[OURS]
            if isinstance(ours, str):
                sys.exit(f"{model}: the built-in engine {ours}")
            cells = [found[name] for name in (FLOATS, *asked.peers)]
            ratios = [one if isinstance(one, str) else f"{one / ours:.2f}" for one in cells]
            table.add_row(model, str(batch), str(threads), f"{1000 * ours:.2f}", *ratios)
    Console(width=110 if not sys.stdout.isatty() else None).print(table)


if __name__ == "__main__":
    main()
