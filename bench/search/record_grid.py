"""Record one full grid of real runs on this machine, for ``compare.py``.

    python -m bench.search.record_grid squeezenet                     # one of GRIDS; writes recorded/squeezenet.json
    python -m bench.search.record_grid squeezenet --add --blocks 5    # until every point has five repeats
    python -m bench.search.record_grid squeezenet --add --for 120     # two minutes of it; the same once more goes on
    python -m bench.search.record_grid resnet18-slices --window 2     # longer runs, where points are nearly alike
    python -m bench.search.record_grid --list

Every point (threads x batch x engine x slices x spin time) gets three repeats, in three blocks that are each shuffled.
To be done in two minutes, a point keeps one worker for its repeats, and a window is half a second: far shorter than a
sweep's, so the scatter is larger than a sweep's. Where it hides which point is best, `--add` measures more blocks: the
truth is then the median of more repeats; and `--window` measures longer. `--add` also goes on where a recording was cut
off. The power is powerlab's
estimate for machines without a sensor, and the file says so.

Nobody else may use the machine: beside a process that keeps a core busy, runs of one point differ by a factor of two,
beside another guest of a virtual machine's host by 1.4, and which point is best is an accident. So a run begins when
the machine is idle and at its usual speed, which a fixed computation on all processors tells. It takes the place of any
rest before a run: a guest that has rested may wake with two of its processors on one core of the host. A run during
which other processes used more than OTHERS_CORES, or after which that computation takes SLOWER times its least time, is
made again, at the end of its block; the file says how many were.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
from collections import deque
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median
from time import monotonic, perf_counter, sleep
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when numpy is loaded

import numpy as np

from powerlab.analysis.dimensions import in_words
from powerlab.backends.registry import backend_module
from powerlab.boards.processor import cpu_model
from powerlab.domain.errors import PowerlabError
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.measure.recording.background_load import BackgroundLoad
from powerlab.measure.run import worker_cores
from powerlab.measure.worker.messages import Load, Measure
from powerlab.measure.worker.process import Worker, WorkerError
from powerlab.power.sources.estimate import Estimate
from powerlab.sysroot import Sysroot

FOLDER = Path(__file__).parent / "recorded"
REPEATS = 3
WARM_UP_S, WINDOW_S, LEAST = 0.15, 0.5, 3
OTHERS_CORES, SLOWER = 0.1, 1.15
IDLE_S, PATIENCE_S = 0.1, 900.0
THREE = ("builtin", "onnxruntime", "openvino")
FOUR = (*THREE, "ncnn")
BATCHES = (1, 2, 4, 6, 8, 12)
KEY = ("engine", "batch", "slices", "threads", "spin_us", "repeat")
SPINS = (0, 20, 50, 100, 200, 500, 1000)


def _plan(model: str, **changes: object) -> SweepPlan:
    return SweepPlan(**{"models": (model,), "threads": (1, 2), "engines": THREE, "batch_sizes": BATCHES, **changes})  # type: ignore[arg-type]


GRIDS: dict[str, SweepPlan] = {
    "squeezenet": _plan("squeezenet"),
    "mobilenetv2": _plan("mobilenetv2"),
    "mobilenetv3": _plan("mobilenetv3", engines=FOUR, batch_sizes=(1, 2, 4, 6, 8, 12)),
    "efficientnet-b0": _plan("efficientnet-b0", batch_sizes=(1, 2, 3, 4, 6, 8)),
    "resnet18": _plan("resnet18", engines=FOUR, batch_sizes=(1, 2, 4, 6, 8)),
    "lstm2": _plan("lstm2", batch_sizes=(1, 2, 4, 8, 16, 32)),
    "vit-tiny": _plan("vit-tiny", batch_sizes=(1, 2, 3, 4, 6, 8)),
    "densenet121": _plan("densenet121", batch_sizes=(1, 2, 3, 4)),
    "squeezenet-spin": _plan("squeezenet", engines=("builtin",), spin_us=SPINS, batch_sizes=(1, 2, 4, 8)),
    "resnet18-slices": _plan(
        "resnet18", engines=("builtin",), threads=(2,), slices=(1, 2), spin_us=SPINS, batch_sizes=(2, 4, 6, 8)
    ),
}


class Yardstick:
    """A fixed computation on every processor at once, which other guests of the host slow down."""

    def __init__(self) -> None:
        self._cores = sorted(os.sched_getaffinity(0))
        self._pool = ThreadPoolExecutor(len(self._cores))
        self._matrix = np.random.default_rng(1).random((256, 256), np.float32)
        self._least_s = min(self._after_a_rest() for _ in range(50))

    def slower(self, for_s: float = 0.0) -> float:
        """Return how many times its least time the computation takes, after it was made again and again so long."""
        end_s = monotonic() + for_s
        self._seconds()  # wakes the processors
        while monotonic() < end_s:
            self._seconds()
        return self._seconds() / self._least_s

    def _after_a_rest(self) -> float:
        sleep(0.05)  # a host may give a guest that has rested other processors
        self._seconds()
        return self._seconds()

    def _seconds(self) -> float:
        return max(self._pool.map(self._multiply, self._cores))

    def _multiply(self, core: int) -> float:
        os.sched_setaffinity(0, {core})  # of this thread
        begin_s = perf_counter()
        for _ in range(30):
            self._matrix @ self._matrix
        return perf_counter() - begin_s


def record(
    plan: SweepPlan,
    blocks: int = REPEATS,
    for_s: float = PATIENCE_S,
    have: Collection[tuple[object, ...]] = (),
    window_s: float = WINDOW_S,
) -> tuple[list[dict[str, object]], int]:
    """Return a row for each run, in the order in which they were made, and how many were made again.

    Args:
        plan: the grid.
        blocks: repeats of every point.
        for_s: how long to go on at most.
        have: the :func:`_key` of runs that are there.
        window_s: how long a run is timed.
    """
    deadline_s = monotonic() + for_s
    (energy,) = Estimate().channels(Sysroot())
    rows: list[dict[str, object]] = []
    again = 0
    with ExitStack() as stack:
        workers = _loaded(plan, stack)
        yardstick = Yardstick()
        for repeat in range(blocks):
            order = random.Random(f"{plan.seed} {repeat}").sample(list(workers), len(workers))
            left = deque(point for point in order if _key(point, repeat) not in have)
            while left and _is_idle(yardstick, deadline_s):
                point = left.popleft()
                workers[point].warm_up(WARM_UP_S)
                others = BackgroundLoad(workers[point].pid)
                begin_s, begin_j = monotonic(), energy.read()
                timed = workers[point].measure(Measure(duration_s=window_s, min_inferences=LEAST, margin_s=0.0))
                power_w = (energy.read() - begin_j) / (monotonic() - begin_s)
                if others.cores() > OTHERS_CORES or yardstick.slower() > SLOWER:
                    left.append(point)
                    again += 1
                else:
                    rows.append(_row(point, repeat, (timed.end_ns - timed.start_ns).tolist(), power_w))
    return rows, again


def _loaded(plan: SweepPlan, stack: ExitStack) -> dict[Point, Worker]:
    """Return a warm worker for every point that can be run here."""
    workers: dict[Point, Worker] = {}
    for point in plan.points():
        worker = stack.enter_context(Worker(worker_cores(point)))
        load = Load(
            backend_module=backend_module(point.workload.engine),
            workload=point.workload,
            threads=point.threads,
            sysroot="/",
            seed=plan.seed,
            spin_us=point.spin_us,
        )
        try:
            worker.load(load)
            worker.warm_up(WARM_UP_S)
        except (PowerlabError, WorkerError) as error:
            print(f"left out {in_words(point)}: {error}", file=sys.stderr)
            continue
        workers[point] = worker
    return workers


def _is_idle(yardstick: Yardstick, deadline_s: float) -> bool:
    """Wait until nobody else uses the machine; returns False at a time of the monotonic clock."""
    while monotonic() < deadline_s:
        others = BackgroundLoad()
        slower = yardstick.slower(IDLE_S)
        if others.cores() <= OTHERS_CORES and slower <= SLOWER:
            return True
    return False


def _key(point: Point, repeat: int) -> tuple[object, ...]:
    """Return what tells a run from the others: the first columns of its row."""
    load = point.workload
    return load.engine, load.batch_size, load.slices, point.threads, point.spin_us, repeat


def _row(point: Point, repeat: int, latencies_ns: list[int], power_w: float) -> dict[str, object]:
    load = point.workload
    return {
        **dict(zip(KEY, _key(point, repeat), strict=True)),
        "latency_p50_ms": round(median(latencies_ns) / 1e6, 5),
        "throughput_img_per_s": round(load.batch_size / (fmean(latencies_ns) / 1e9), 4),
        "power_w": round(power_w, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", nargs="?", choices=list(GRIDS))
    parser.add_argument("--blocks", type=int, default=REPEATS, help="repeats of every point (default: %(default)s)")
    parser.add_argument("--add", action="store_true", help="keep those that the grid has, and make what is missing")
    parser.add_argument("--for", type=float, default=PATIENCE_S, dest="for_s", metavar="S", help="stop after so long")
    parser.add_argument("--window", type=float, default=WINDOW_S, dest="window_s", metavar="S", help="seconds a run")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    if args.list or args.grid is None:
        print(*GRIDS, sep="\n")
        return
    path, plan = FOLDER / f"{args.grid}.json", GRIDS[args.grid]
    before: dict[str, Any] = json.loads(path.read_text()) if args.add else {"rows": []}
    machine = f"{platform.node()}: {cpu_model(Sysroot())}, {platform.release()}"
    if args.add and before["machine"] != machine:
        raise SystemExit(f"{args.grid} was recorded on {before['machine']}; no other machine can add to it.")
    if args.add and before["window_s"] != args.window_s:
        raise SystemExit(f"{args.grid} was recorded in windows of {before['window_s']} s; give --window so long.")
    have = {tuple(row[: len(KEY)]) for row in before["rows"]}
    rows, again = record(plan, args.blocks, args.for_s, have, args.window_s)
    if not rows:
        raise SystemExit(
            f"{args.grid}: no run was made: other processes, or other guests of the host, keep this machine busy, or "
            "nothing is missing."
        )
    document = {
        "title": args.grid,
        "model": plan.models[0],
        "machine": machine,
        "recorded": ", ".join(filter(None, (before.get("recorded"), datetime.now(UTC).date().isoformat()))),
        "window_s": args.window_s,
        "power": "estimated (estimate:host)",
        "others_cores": OTHERS_CORES,
        "slower": SLOWER,
        "made_again": again + before.get("made_again", 0),
        "columns": list(rows[0]),
    }
    head = json.dumps(document, indent=1).removesuffix("\n}")
    lines = ",\n  ".join(json.dumps(row) for row in (*before["rows"], *(list(row.values()) for row in rows)))
    path.write_text(f'{head},\n "rows": [\n  {lines}\n ]\n}}\n')
    print(f"{args.grid}: {len(rows)} runs, {again} more were disturbed; {len(before['rows']) + len(rows)} are there")


if __name__ == "__main__":
    main()
