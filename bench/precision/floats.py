"""How much faster 16-bit floats, and weights in fewer bits, are than float32, in the built-in engine and in its peers.

    python -m bench.precision.floats     # ResNet-50 and others in bf16, fp16; AlexNet and others with smaller weights
    python -m bench.precision.floats resnet50 --precisions bf16 --threads 1 --seconds 4

Every engine runs the network in the same precision, those of weights alone from the same rounded file; one that does
not offer it says so below the table. Each has a process of its own and they take turns. `fp32 / it` compares the
built-in engine with itself, a peer's ratio is its time over that of the built-in engine in the same precision: above 1,
ours is faster. SQNR is that of the built-in engine's outputs beside its own in float32, for random inputs.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.peers.ratios import OURS, Cell
from bench.peers.turns import EngineError, EngineProcess, Outputs
from bench.precision.bert_network import NETWORKS
from bench.precision.files import float_file
from powerlab.backends.packages import installed_version
from powerlab.boards.processor import cpu_model
from powerlab.domain.accuracy import sqnr_db
from powerlab.engine.target.tiers import IN_16_BITS, choose_tier, missing_numbers
from powerlab.sysroot import Sysroot

CASES = {
    **dict.fromkeys(IN_16_BITS, ("resnet50", "mobilenetv2", "densenet201", "yolov3", "vit-tiny", "bert")),
    "fp16w": ("alexnet", "vgg16", "lstm2"),
    "int8w": ("alexnet", "vgg16", "lstm2"),
    "int4w": ("alexnet", "vgg16", "lstm2"),
}
"""Precision -> the networks it is meant for."""

PEERS = ("onnxruntime", "openvino", "torch", "ncnn")
LEAST_TURNS = 5
TURN_S = 0.1


def kept_db(exact: Outputs, found: Outputs) -> float:
    """Return the power of all outputs together over that of what they differ by, in dB."""
    pairs = [(exact[name].astype(np.float64), found[name]) for name in exact]
    signal = sum(float(np.square(right).sum()) for right, _ in pairs)
    return sqnr_db(signal, sum(float(np.square(right - value).sum()) for right, value in pairs))


def measure(
    cells: Mapping[tuple[str, str], Cell], seconds: float
) -> tuple[dict[tuple[str, str], float | str], dict[tuple[str, str], Outputs]]:
    """Return the median seconds of an inference by engine and precision, or why it takes no part, and the outputs."""
    engines: dict[tuple[str, str], EngineProcess] = {}
    found: dict[tuple[str, str], float | str] = {}
    times: dict[tuple[str, str], list[float]] = {}
    outputs: dict[tuple[str, str], Outputs] = {}
    try:
        for key, cell in cells.items():
            engine = EngineProcess(key[0], cell)
            try:
                outputs[key] = engine.outputs()
                times[key] = engine.turn(1, 1)
                engines[key] = engine
            except EngineError as error:
                found[key] = str(error)
                engine.close()
        counts = {key: max(1, round(TURN_S / times[key][0])) for key in engines}
        turns = max(LEAST_TURNS, round(seconds / (2 * TURN_S * len(engines))))
        for key in engines:
            times[key] = []
        for _ in range(turns):
            for key, engine in engines.items():
                times[key] += engine.turn(counts[key], counts[key])
    finally:
        for engine in engines.values():
            engine.close()
    return found | {key: statistics.median(values) for key, values in times.items() if values}, outputs


def main() -> None:
    """Measure what the command line asks for and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="instead of those each precision is meant for")
    parser.add_argument("--precisions", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--batches", type=int, nargs="+", default=[1])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--peers", nargs="*", default=PEERS)
    parser.add_argument("--seconds", type=float, default=6, help="of a cell, without loading")
    asked = parser.parse_args()
    tier = choose_tier()
    versions = ", ".join(f"{peer} {installed_version(peer)}" for peer in asked.peers)
    table = Table(title=f"{cpu_model(Sysroot())}; {tier.name}, {tier.pairs or 'no bfloat16'}; {versions}")
    for column in ("precision", "model", "batch", "threads", "ms", "fp32 / it", "SQNR dB", *asked.peers):
        table.add_column(column, justify="left" if column in ("precision", "model") else "right")
    absent: dict[str, str] = {}
    for precision in asked.precisions:
        if lacking := missing_numbers(tier, precision):
            absent[precision] = f"{precision}: this processor has no instructions for {lacking}"
            continue
        for model in asked.models or CASES[precision]:
            for batch, threads in itertools.product(asked.batches, asked.threads):
                file = str(float_file(model, batch)) if model in NETWORKS else model
                cell = Cell(model=file, batch_size=batch, threads=threads)
                table.add_row(precision, model, *_row(precision, cell, asked.peers, asked.seconds, absent))
    console = Console(width=120 if not sys.stdout.isatty() else None)
    console.print(table)
    for reason in absent.values():
        console.print(reason)


def _row(precision: str, cell: Cell, peers: Sequence[str], seconds: float, absent: dict[str, str]) -> list[str]:
    """Return a row of the table; notes why a peer takes no part."""
    wanted = {(OURS, "fp32"): cell} | {(name, precision): replace(cell, precision=precision) for name in (OURS, *peers)}
    found, outputs = measure(wanted, seconds)
    ours, floats = found[OURS, precision], found[OURS, "fp32"]
    if isinstance(ours, str) or isinstance(floats, str):
        sys.exit(f"{cell} in {precision}: the built-in engine {ours} {floats}")
    ratios = []
    for peer in peers:
        one = found[peer, precision]
        ratios.append("–" if isinstance(one, str) else f"{one / ours:.2f}")
        if isinstance(one, str):
            absent[f"{peer} {precision}"] = f"{peer}, {precision}: {one}"
    kept = kept_db(outputs[OURS, "fp32"], outputs[OURS, precision])
    return [
        str(cell.batch_size),
        str(cell.threads),
        f"{1000 * ours:.2f}",
        f"{floats / ours:.2f}",
        f"{kept:.1f}",
        *ratios,
    ]


if __name__ == "__main__":
    main()
