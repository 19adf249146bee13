"""Batches cut into slices on the GPU, in turn: what recording them side by side without barriers between them is worth.

    python -m bench.gpu.slices                              # squeezenet and mobilenetv2, 8 images
    python -m bench.gpu.slices resnet18 --batch 4 --slices 1,2,4 --queues 1,2 --seconds 10

`time` is that over the time of a whole batch, by the median of paired ratios: below 1, slices are faster. Slices are
spread over the queues; a device that has fewer of them than are asked for says so.
On a driver that computes on the processor (lavapipe) it says nothing about GPUs.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from powerlab.boards.processor import cpu_model
from powerlab.engine import Session
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.gpu.device import chosen, devices
from powerlab.sysroot import Sysroot

Way = tuple[int, int]
"""Slices and queues."""


def session_of(model: str, batch: int, way: Way) -> Session:
    """Return a session whose slices are spread over queues."""
    slices, queues = way
    return Session(model, device="gpu", batch_size=batch, slices=slices, queues=queues)


def times_ms(model: str, batch: int, ways: list[Way], seconds: float) -> np.ndarray:
    """Return milliseconds of a batch, shape (rounds, ways): in each round every way had its turn."""
    sessions = [session_of(model, batch, way) for way in ways]
    inputs = synthetic_inputs(sessions[0].inputs, 1, sessions[0].dtypes)
    for session in sessions:
        session.run(inputs)
    rounds: list[list[float]] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(rounds) < 3:
        rounds.append([])
        for session in sessions:
            start = time.perf_counter()
            session.run(inputs)
            rounds[-1].append(1e3 * (time.perf_counter() - start))
    return np.array(rounds)


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["squeezenet", "mobilenetv2"], metavar="MODEL")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--slices", default="1,2,4,8", metavar="N,...", help="others are compared with the first")
    parser.add_argument("--queues", default="1", metavar="N,...", help="no more than there are slices")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each model, at least")
    args = parser.parse_args()
    gpu = devices()[chosen()]
    slices, queues = ([int(one) for one in text.split(",")] for text in (args.slices, args.queues))
    ways = [(cut, each) for cut in slices for each in queues if each <= cut]
    console = Console(width=120)
    console.print(f"{gpu.name}, {gpu.driver}, queues: {gpu.queues}; processor: {cpu_model(Sysroot('/'))}")
    table = Table(title=f"fp32, batch {args.batch}", title_justify="left")
    for column in ("model", "slices", "queues", "ms", "time"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for model in args.models:
        found = times_ms(model, args.batch, ways, args.seconds)
        for index, way in enumerate(ways):
            ratio = np.median(found[:, index] / found[:, 0])
            table.add_row(model, *map(str, way), f"{np.median(found[:, index]):.1f}", f"{ratio:.2f}")
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
