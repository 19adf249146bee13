"""The built-in engine on a GPU beside ncnn's Vulkan on the same one.

    python -m bench.gpu.vs_ncnn                                     # the zoo in fp32 and fp16, batch 1
    python -m bench.gpu.vs_ncnn squeezenet mobilenetv2 --precisions fp32 --seconds 10

Each engine has a process of its own and they take turns. `ncnn / ours` is the ratio of the median times: above 1, ours
is faster. On a driver that computes on the processor (lavapipe) this compares kernels, and says nothing about GPUs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from bench.peers.ratios import Cell
from bench.peers.turns import EngineError, EngineProcess
from powerlab.boards.processor import cpu_model
from powerlab.domain.workload import Processor
from powerlab.engine.frontend.zoo import ZOO
from powerlab.engine.gpu.device import chosen, devices
from powerlab.sysroot import Sysroot

ENGINES = ("builtin", "ncnn")
LEAST_TURNS = 3


def medians(cell: Cell, seconds: float) -> dict[str, float | str]:
    """Return the median milliseconds of an inference by engine, or why it takes no part."""
    found: dict[str, float | str] = {}
    engines: dict[str, EngineProcess] = {}
    times: dict[str, list[float]] = {}
    try:
        for name in ENGINES:
            process = EngineProcess(name, cell)
            engines[name] = process
            try:
                process.outputs()
                times[name] = []
            except EngineError as error:
                found[name] = str(error)
        end = time.monotonic() + seconds
        while times and (time.monotonic() < end or min(map(len, times.values())) < LEAST_TURNS):
            for name, taken in times.items():
                taken.extend(engines[name].turn(0, 1))
        return found | {name: 1e3 * statistics.median(taken) for name, taken in times.items()}
    finally:
        for process in engines.values():
            process.close()


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=sorted(ZOO), metavar="MODEL", help="default: the zoo")
    parser.add_argument("--precisions", default="fp32,fp16", metavar="NAME,...")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each model and precision, at least")
    args = parser.parse_args()
    gpu = devices()[chosen()]
    console = Console(width=120)
    console.print(f"{gpu.name}, {gpu.driver}; processor: {cpu_model(Sysroot('/'))}")
    for precision in args.precisions.split(","):
        _print(console, precision, args.models, args.seconds)
    return 0


def _print(console: Console, precision: str, models: Sequence[str], seconds: float) -> None:
    table = Table(title=f"{precision}, batch 1, one inference", title_justify="left")
    for column in ("model", "built-in ms", "ncnn ms", "ncnn / ours"):
        table.add_column(column, justify="left" if column == "model" else "right")
    ratios, reasons = [], []
    for model in models:
        cell = Cell(model=model, batch_size=1, threads=1, precision=precision, processor=Processor.GPU)
        found = medians(cell, seconds)
        reasons += [f"{model}, {name}: {value}" for name, value in found.items() if isinstance(value, str)]
        numbers = [value for name in ENGINES if isinstance(value := found[name], float)]
        ratio = numbers[1] / numbers[0] if len(numbers) == len(ENGINES) else None
        ratios += [] if ratio is None else [ratio]
        shown = [f"{value:.1f}" if isinstance(value, float) else "–" for value in (found[name] for name in ENGINES)]
        table.add_row(model, *shown, "–" if ratio is None else f"{ratio:.2f}")
    console.print(table)
    if ratios:
        console.print(f"geometric mean of {len(ratios)}: {statistics.geometric_mean(ratios):.2f}")
    for reason in reasons:
        console.print(reason)


if __name__ == "__main__":
    sys.exit(main())
