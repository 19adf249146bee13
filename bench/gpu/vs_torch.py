"""The built-in engine on an NVIDIA GPU beside PyTorch on the same one, in turn, in one process.

    python -m bench.gpu.vs_torch                                  # the zoo, fp16 and fp32, batches 1 and 64
    python -m bench.gpu.vs_torch resnet50 --precisions fp16 --batches 1,8,256

`run` is an inference with both its copies, as a sweep measures it; PyTorch's is eager. `device` is without copies: the
dispatches of an inference repeated, beside a CUDA graph of PyTorch's, replayed and waited for. Ratios are PyTorch's
time over ours: above 1, ours is faster. PyTorch keeps fp32 in float32, without TF32, and lets cuDNN time its
convolutions. The clock is the GPU's while ours ran; look at it: a GPU that was idle may take a while to raise it.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from powerlab.backends.base import LoadOptions
from powerlab.backends.torch import TorchBackend
from powerlab.backends.torch import load as load_torch
from powerlab.boards.processor import cpu_model
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Processor
from powerlab.engine import Session
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.frontend.zoo import ZOO
from powerlab.engine.gpu.device import chosen, devices
from powerlab.sysroot import Sysroot

ROUNDS = 3
REPEATED_MS = 60.0
LEAST_RUNS = 3


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of one inference, each with its copies and without."""

    run: float
    device: float
    torch_run: float
    torch_device: float


def median_ms(run: Callable[[], object], seconds: float) -> float:
    """Return the median time of a call over so many seconds."""
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while len(taken) < LEAST_RUNS or time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        taken.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(taken)


def graph_of(torch: Any, backend: TorchBackend, inputs: dict[str, Any]) -> Callable[[], None]:
    """Return a replay of PyTorch's work on inputs that lie on the GPU; it waits for the end."""
    given = {name: backend.tensor(value) for name, value in inputs.items()}
    with torch.inference_mode():
        for _ in range(LEAST_RUNS):
            backend.compute(given)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            backend.compute(given)

    def replay() -> None:
        graph.replay()
        torch.cuda.synchronize()

    return replay


def measured(torch: Any, model: str, precision: str, batch_size: int, seconds: float) -> Times:
    """Return the medians of rounds in which each had its turn.

    Raises:
        PowerlabError: one of the two does not run the model.
    """
    session = Session(model, device="gpu", precision=precision, batch_size=batch_size)
    inputs, steps = synthetic_inputs(session.inputs, 1, session.dtypes), len(session.steps())
    options = LoadOptions(model=model, batch_size=batch_size, threads=1, precision=precision, processor=Processor.GPU)
    backend = load_torch(options)
    session.run(inputs)
    replay = graph_of(torch, backend, inputs)
    rounds = []
    for _ in range(ROUNDS):
        run = median_ms(lambda: session.run(inputs), seconds / ROUNDS)
        times = max(2, round(REPEATED_MS / run))
        device = session.repeat(inputs, 0, steps, times) / times / 1e6
        torch_run = median_ms(lambda: backend.run(inputs), seconds / ROUNDS)
        rounds.append((run, device, torch_run, median_ms(replay, seconds / ROUNDS)))
    return Times(*(statistics.median(column) for column in zip(*rounds, strict=True)))


def _clock() -> str:
    """Return the GPU's clock as NVIDIA's management library tells it."""
    nvml = importlib.import_module("pynvml")
    nvml.nvmlInit()
    return f"{nvml.nvmlDeviceGetClockInfo(nvml.nvmlDeviceGetHandleByIndex(0), nvml.NVML_CLOCK_SM)} MHz"


def main() -> int:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=sorted(ZOO), metavar="MODEL", help="default: the zoo")
    parser.add_argument("--precisions", default="fp16,fp32", metavar="NAME,...")
    parser.add_argument("--batches", default="1,64", metavar="N,...")
    parser.add_argument("--seconds", type=float, default=0.4, help="of each model, precision, batch and way")
    args = parser.parse_args()
    torch = importlib.import_module("torch")
    torch.backends.cudnn.benchmark = True
    gpu, console = devices()[chosen()], Console(width=120)
    console.print(f"{gpu.name}, {gpu.driver}; PyTorch {torch.__version__}; processor: {cpu_model(Sysroot('/'))}")
    for precision in args.precisions.split(","):
        for batch_size in map(int, args.batches.split(",")):
            _print(console, torch, args.models, (precision, batch_size), args.seconds)
    return 0


def _print(console: Console, torch: Any, models: Sequence[str], cell: tuple[str, int], seconds: float) -> None:
    precision, batch_size = cell
    title = f"{precision}, batch {batch_size}, milliseconds; ratios PyTorch / built-in"
    table = Table(title=title, title_justify="left")
    for column in ("model", "run", "device", "torch run", "torch device", "run ratio", "device ratio", "clock"):
        table.add_column(column, justify="left" if column == "model" else "right")
    ratios, reasons = [], []
    for model in models:
        try:
            found = measured(torch, model, precision, batch_size, seconds)
        except PowerlabError as error:
            reasons.append(f"{model}: {error}")
            continue
        ratios.append((found.torch_run / found.run, found.torch_device / found.device))
        shown = (found.run, found.device, found.torch_run, found.torch_device, *ratios[-1])
        table.add_row(model, *(f"{value:.2f}" for value in shown), _clock())
    console.print(table)
    if ratios:
        run, device = map(statistics.geometric_mean, zip(*ratios, strict=True))
        console.print(f"geometric means of {len(ratios)}: run {run:.2f}, device {device:.2f}")
    for reason in reasons:
        console.print(reason)


if __name__ == "__main__":
    sys.exit(main())
