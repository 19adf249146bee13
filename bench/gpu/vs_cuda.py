"""The built-in engine on an NVIDIA GPU beside other engines on the same one, in turn, in one process.

    python -m bench.gpu.vs_cuda                                   # the zoo, fp16 and fp32, batches 1 and 64
    python -m bench.gpu.vs_cuda resnet50 --precisions fp16 --batches 1,8,256 --peers torch torch-compile onnxruntime

`run` is an inference with both its copies, as a sweep measures it. `device` is without them and without what changes
numbers into the engine's own form and back: the dispatches of an inference repeated, beside a CUDA graph of PyTorch's,
eager or compiled, replayed and waited for, and beside ONNX Runtime with inputs and outputs bound to the GPU. Ratios are
a peer's time over ours: above 1, ours is faster. PyTorch keeps fp32 in float32, without TF32, and lets cuDNN time its
convolutions. The clock is the GPU's while ours ran; look at it: a GPU that was idle may take a while to raise it. What
a peer refuses is said below the table.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from powerlab.backends.base import LoadOptions
from powerlab.backends.onnxruntime import load as load_onnxruntime
from powerlab.backends.torch import TorchBackend
from powerlab.backends.torch import load as load_torch
from powerlab.backends.torch_compile import load as load_compiled
from powerlab.boards.processor import cpu_model
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Processor
from powerlab.engine import Session
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.engine.frontend.zoo import ZOO
from powerlab.engine.gpu.device import chosen, devices
from powerlab.measure.output_check import TOLERANCES, largest_difference
from powerlab.sysroot import Sysroot

Inputs = dict[str, Any]

ROUNDS = 3
REPEATED_MS = 60.0
LEAST_RUNS = 3


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine with a model loaded.

    Attributes:
        run: an inference with its copies; returns the outputs.
        device_ms: measures one without them for so many seconds.
    """

    run: Callable[[], dict[str, Any]]
    device_ms: Callable[[float], float]


def median_ms(run: Callable[[], object], seconds: float) -> float:
    """Return the median time of a call over so many seconds."""
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while len(taken) < LEAST_RUNS or time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        taken.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(taken)


def builtin(session: Session, inputs: Inputs) -> Engine:
    """Return the built-in engine, whose dispatches can be repeated, all but those that read and write host memory."""
    kernels = [kernel.partition("_")[0] for kernel, _ in session.steps()]
    first = next(at for at, kernel in enumerate(kernels) if kernel != "load")
    last = len(kernels) - next(at for at, kernel in enumerate(reversed(kernels)) if kernel != "store")

    def device_ms(_seconds: float) -> float:
        times = max(2, round(REPEATED_MS / median_ms(lambda: session.run(inputs), 0)))
        return session.repeat(inputs, first, last, times) / times / 1e6

    return Engine(lambda: session.run(inputs), device_ms)


def pytorch(backend: TorchBackend, inputs: Inputs) -> Engine:
    """Return PyTorch, with a CUDA graph of its work on inputs that lie on the GPU."""
    torch = importlib.import_module("torch")
    given = {name: backend.tensor(value) for name, value in inputs.items()}
    with torch.inference_mode():
        for _ in range(LEAST_RUNS):
            backend.network(given)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            backend.network(given)

    def replay() -> None:
        graph.replay()
        torch.cuda.synchronize()

    return Engine(lambda: backend.run(inputs), lambda seconds: median_ms(replay, seconds))


def onnxruntime(options: LoadOptions, inputs: Inputs) -> Engine:
    """Return ONNX Runtime's CUDA provider, with inputs and outputs that stay on the GPU."""
    package = importlib.import_module("onnxruntime")
    backend = load_onnxruntime(options)
    binding = backend.session.io_binding()
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, package.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value), "cuda", 0))
    for one in backend.session.get_outputs():
        binding.bind_output(one.name, "cuda")

    def bound() -> None:
        backend.session.run_with_iobinding(binding)
        binding.synchronize_outputs()

    return Engine(lambda: backend.run(inputs), lambda seconds: median_ms(bound, seconds))


PEERS: dict[str, Callable[[LoadOptions, Inputs], Engine]] = {
    "torch": lambda options, inputs: pytorch(load_torch(options), inputs),
    "torch-compile": lambda options, inputs: pytorch(load_compiled(options), inputs),
    "onnxruntime": onnxruntime,
}


def measured(
    model: str, cell: tuple[str, int], peers: Sequence[str], seconds: float, reasons: list[str]
) -> dict[str, tuple[float, float]]:
    """Return milliseconds of an inference with its copies and without, of ours and of each peer that computes the same.

    Raises:
        PowerlabError: the built-in engine does not run the model.
    """
    precision, batch_size = cell
    session = Session(model, device="gpu", precision=precision, batch_size=batch_size)
    inputs = synthetic_inputs(session.inputs, 1, session.dtypes)
    options = LoadOptions(model=model, batch_size=batch_size, threads=1, precision=precision, processor=Processor.GPU)
    engines, expected = {"builtin": builtin(session, inputs)}, session.run(inputs)
    for peer in peers:
        try:
            engine = PEERS[peer](options, inputs)
            difference = largest_difference(engine.run(), expected)
        except (PowerlabError, RuntimeError) as reason:
            reasons.append(f"{model}, {peer}: {str(reason).strip().splitlines()[0][:200]}")
            continue
        if difference > TOLERANCES[precision]:
            reasons.append(f"{model}, {peer}: its outputs differ from ours by {difference:.2g} of the largest")
            continue
        engines[peer] = engine
    rounds = [
        {name: (median_ms(one.run, seconds / ROUNDS), one.device_ms(seconds / ROUNDS)) for name, one in engines.items()}
        for _ in range(ROUNDS)
    ]
    return {name: _medians([one[name] for one in rounds]) for name in engines}


def _medians(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    run, device = map(statistics.median, zip(*pairs, strict=True))
    return run, device


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
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=["torch"], help="default: torch")
    parser.add_argument("--seconds", type=float, default=0.4, help="of each engine and way")
    parser.add_argument("--minutes", type=float, default=1e9, help="after so many no other model begins")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where milliseconds go, too")
    args = parser.parse_args()
    torch = importlib.import_module("torch")
    torch.backends.cudnn.benchmark = True
    gpu, console = devices()[chosen()], Console(width=140)
    console.print(f"{gpu.name}, {gpu.driver}; PyTorch {torch.__version__}; processor: {cpu_model(Sysroot('/'))}")
    end, kept = time.monotonic() + 60 * args.minutes, []
    for precision in args.precisions.split(","):
        for batch_size in map(int, args.batches.split(",")):
            kept += _print(console, args, (precision, batch_size), end)
            if args.json:
                args.json.write_text(json.dumps(kept))
    return 0


def _print(console: Console, args: argparse.Namespace, cell: tuple[str, int], end: float) -> list[dict[str, Any]]:
    precision, batch_size = cell
    title = f"{precision}, batch {batch_size}, milliseconds of an inference (ratios: peer / built-in)"
    table = Table(title=title, title_justify="left")
    for column in ("model", "run", "device", *(f"{peer} {way}" for peer in args.peers for way in ("run", "device"))):
        table.add_column(column, justify="left" if column == "model" else "right")
    table.add_column("clock", justify="right")
    ratios: dict[str, list[tuple[float, float]]] = {peer: [] for peer in args.peers}
    reasons: list[str] = []
    kept = []
    for model in args.models:
        if time.monotonic() > end:
            reasons.append(f"{model}: there was no time left")
            continue
        try:
            found = measured(model, cell, args.peers, args.seconds, reasons)
        except PowerlabError as error:
            reasons.append(f"{model}: {error}")
            continue
        kept.append({"model": model, "precision": precision, "batch": batch_size, "ms": found})
        run, device = found["builtin"]
        shown = []
        for peer in args.peers:
            if peer in found:
                ratios[peer].append((found[peer][0] / run, found[peer][1] / device))
            shown += [
                f"{theirs:.2f} ({theirs / ours:.2f})" if peer in found else "–"
                for theirs, ours in zip(found.get(peer, (0.0, 0.0)), (run, device), strict=True)
            ]
        table.add_row(model, f"{run:.2f}", f"{device:.2f}", *shown, _clock())
    console.print(table)
    for peer, pairs in ratios.items():
        if pairs:
            of_run, of_device = map(statistics.geometric_mean, zip(*pairs, strict=True))
            console.print(f"{peer}, geometric means of {len(pairs)}: run {of_run:.2f}, device {of_device:.2f}")
    for reason in reasons:
        console.print(reason)
    return kept


if __name__ == "__main__":
    sys.exit(main())
