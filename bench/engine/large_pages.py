"""What large pages of memory do for the built-in engine: the same networks with and without, each in a process.

    python -m bench.engine.large_pages                        # five networks of the zoo, one thread, about four minutes
    python -m bench.engine.large_pages a.onnx --threads 2 --rounds 9

*small* is a process to which the kernel gives small pages only (prctl PR_SET_THP_DISABLE); *cached* has its weights in
the mapped file of the cache of prepared models, where pages are small, too, and its activations in large ones. A round
has one process of each, so a ratio pairs neighbours; medians are printed, of the ratios with their extremes. Above 1
large pages are faster.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from powerlab.boards.processor import cpu_model
from powerlab.engine.target.tiers import choose_tier
from powerlab.sysroot import Sysroot

MODELS = ("mobilenetv2", "resnet50", "densenet121", "vit-tiny", "lstm2")
KINDS = ("large", "small", "cached")
ROUNDS = 5

_PROGRAM = """
import ctypes, statistics, sys, time
import numpy as np
PR_SET_THP_DISABLE = 41
if sys.argv[3] == "small" and ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0):
    sys.exit("the kernel cannot keep large pages from this process")
from powerlab.engine import Session
session = Session(sys.argv[1], threads=int(sys.argv[2]))
random = np.random.default_rng(0)
data = {name: random.random(shape).astype(session.dtypes[name]) for name, shape in session.inputs.items()}
times, end = [], time.perf_counter() + 1.5
while time.perf_counter() < end or len(times) < 5:
    begin = time.perf_counter()
    session.run(data)
    times.append(time.perf_counter() - begin)
print(statistics.median(times[1:]))
"""


def inference_s(kind: str, model: str, threads: int, cache: Path) -> float:
    """Return the median seconds of an inference, in a new process."""
    settings = {"POWERLAB_CACHE": "16G" if kind == "cached" else "off", "XDG_CACHE_HOME": str(cache)}
    command = [sys.executable, "-c", _PROGRAM, model, str(threads), kind]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **settings})
    return float(done.stdout)


def compare(model: str, threads: int, rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Return the times of each kind in s, one a round."""
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        inference_s("cached", model, threads, Path(folder))
        for _ in range(rounds):
            for kind, times in found.items():
                times.append(inference_s(kind, model, threads, Path(folder)))
    return found


def line(name: str, found: dict[str, list[float]]) -> str:
    """Return the row of a table."""
    cells = [name, f"{statistics.median(found['large']) * 1e3:.2f}"]
    for kind in KINDS[1:]:
        ratios = sorted(other / large for other, large in zip(found[kind], found["large"], strict=True))
        cells.append(f"{statistics.median(ratios):.3f} ({ratios[0]:.3f}–{ratios[-1]:.3f})")
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL", help="of the zoo, or an ONNX file")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="compute threads (default: 1)")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, metavar="N", help=f"processes of each (default: {ROUNDS})"
    )
    args = parser.parse_args(arguments)
    print(f"{cpu_model(Sysroot())}, tier {choose_tier().name}, {args.threads} thread(s)\n")
    print("| model | ms | small ÷ large | cached ÷ large |")
    print("|---|--:|--:|--:|")
    for model in args.models:
        print(line(Path(model).stem, compare(model, args.threads, args.rounds)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
