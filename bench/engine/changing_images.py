"""How long detectors take when every image is another one, beside ONNX Runtime.

    build/networks-venv/bin/python -m bench.engine.export_networks build/detectors --detectors
    python -m bench.engine.changing_images build/detectors/*.onnx

How many boxes a detector goes on with differs from image to image, so what comes after them has shapes that it has not
had before: the engine plans it anew. Both engines take every image once, in turns, with a pause between, so that no
thread of one still spins while the other computes. The first image, for which everything is planned, is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from powerlab.boards.processor import cpu_model
from powerlab.engine import Session
from powerlab.engine.target.tiers import choose_tier
from powerlab.sysroot import Sysroot

IMAGES = 15
PAUSE_S = 0.02
PATCHES = 8
"""Of one color each, down and across: noise of single pixels looks the same everywhere."""


def image(generator: np.random.Generator, shape: Sequence[int]) -> NDArray[np.float32]:
    """Return an image of patches of any colors, shape (3, H, W)."""
    channels, height, width = shape
    patches = generator.random((channels, PATCHES, PATCHES), np.float32)
    rows, columns = np.arange(height) * PATCHES // height, np.arange(width) * PATCHES // width
    return np.ascontiguousarray(patches[:, rows][:, :, columns])


def measure(path: Path, threads: int, images: int = IMAGES) -> tuple[list[float], list[float]]:
    """Return how many seconds the engine and ONNX Runtime took for each image but the first."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    peer = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    own = Session(path, threads=threads)
    (name, shape), *_ = own.inputs.items()
    runs: tuple[Callable[[dict[str, Any]], object], ...] = (own.run, lambda given: peer.run(None, given))
    taken: tuple[list[float], list[float]] = ([], [])
    generator = np.random.default_rng(0)
    for number in range(images + 1):
        given = {name: image(generator, shape)}
        for index in (0, 1) if number % 2 else (1, 0):
            time.sleep(PAUSE_S)
            begin_s = time.perf_counter()
            runs[index](given)
            taken[index].append(time.perf_counter() - begin_s)
    return taken[0][1:], taken[1][1:]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line per file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--images", type=int, default=IMAGES)
    args = parser.parse_args(arguments)
    print(f"{cpu_model(Sysroot())}, tier {choose_tier().name}, {args.threads} thread(s)\n")
    print("| model | ms | ONNX Runtime ms | ONNX Runtime ÷ ours |\n|---|--:|--:|--:|")
    for path in args.files:
        own_s, peer_s = measure(path, args.threads, args.images)
        ratios = sorted(peer / own for own, peer in zip(own_s, peer_s, strict=True))
        low, middle, high = ratios[0], statistics.median(ratios), ratios[-1]
        own_ms, peer_ms = (1000 * statistics.median(one) for one in (own_s, peer_s))
        print(f"| {path.stem} | {own_ms:.0f} | {peer_ms:.0f} | {middle:.2f} ({low:.2f}–{high:.2f}) |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
