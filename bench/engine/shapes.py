"""What sizes that change between runs cost: a session of open sizes beside one planned for each size.

    python -m bench.engine.shapes                     # some networks, one thread and two, about a minute
    python -m bench.engine.shapes mobilenetv2 --threads 2

Both run the same file on the same images, whose batch and size change from run to run, in alternating turns. The first
run of each size is timed apart: that is when its plan is made.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from powerlab.backends.onnx_export import export_onnx
from powerlab.boards.processor import cpu_model
from powerlab.engine import Session
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.target.tiers import choose_tier
from powerlab.sysroot import Sysroot

MODELS = ("squeezenet", "mobilenetv2", "resnet50", "yolov3-tiny")
SHAPES = ((1, 3, 224, 224), (2, 3, 192, 192), (1, 3, 160, 224))
ROUNDS = 15


def open_file(model: str, folder: Path) -> Path:
    """Write a model of the zoo with open batch, height and width."""
    exported = onnx.load_from_string(export_onnx(load_graph(model)))
    for value in (*exported.graph.input, *exported.graph.output):
        for axis, size in enumerate(value.type.tensor_type.shape.dim):
            if axis != 1:
                size.dim_param = f"axis{axis}"
    path = folder / f"{model}.onnx"
    onnx.save(exported, path)
    return path


def taken_s(call: Callable[[], Any]) -> float:
    """Return how long a call takes."""
    begin_s = time.perf_counter()
    call()
    return time.perf_counter() - begin_s


def measure(path: Path, threads: int, shapes: Sequence[tuple[int, ...]] = SHAPES) -> tuple[list[float], list[float]]:
    """Return the ratio of the open session's median to the static one's for each shape, and the first runs in s."""
    images: list[NDArray[np.float32]] = [np.ones(shape, np.float32) for shape in shapes]
    name = Session(path, threads=threads).inputs.popitem()[0]
    static = [Session(path, threads=threads, shapes={name: shape}) for shape in shapes]
    one = Session(path, threads=threads)
    first_s = [taken_s(lambda image=image: one.run({name: image})) for image in images]
    apart: list[list[float]] = [[] for _ in shapes]
    together: list[list[float]] = [[] for _ in shapes]
    for number in range(ROUNDS):
        for index, image in enumerate(images):
            turns = [(static[index], apart), (one, together)]
            for session, found in turns if number % 2 else turns[::-1]:
                session.run({name: image})  # its weights are in the caches as the other's were
                found[index].append(taken_s(lambda session=session, image=image: session.run({name: image})))
    pairs = zip(together, apart, strict=True)
    return [statistics.median(many) / statistics.median(single) for many, single in pairs], first_s


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line per model and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    parser.add_argument("--threads", type=int, action="append")
    args = parser.parse_args(arguments)
    print(
        f"{cpu_model(Sysroot())}, tier {choose_tier().name}; shapes {', '.join('x'.join(map(str, s)) for s in SHAPES)}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models:
            path = open_file(model, Path(folder))
            for threads in args.threads or (1, 2):
                ratios, first_s = measure(path, threads)
                said = ", ".join(f"{ratio:.3f}" for ratio in ratios)
                plans = ", ".join(f"{1e3 * one:.0f}" for one in first_s)
                print(f"{model}, {threads} thread(s): open / static {said}; first runs {plans} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
