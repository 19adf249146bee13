"""What sampling costs: processor time of several ways to sample, and what each does to the engine's latency.

    python -m bench.measuring.sampler_cost                    # about 3 minutes

Each way samples the six rails of an AGX Xavier (twelve files of volts and amperes, JetPack 5) 100 times a second in a
process of its own. The files are plain files in memory and no driver's: a real INA3221 adds some 0.5 ms of bus time
to each read, the same for every way. Two figures:

- processor time of the way's processes while they sample, as a share of one core, in slots that the ways take in turn;
- the engine's median latency with the way sampling, over the same without, a moment before or after: paired turns of a
  few inferences, in changing order, so that what slows the machine down for a while slows both. 1 means no effect.

Both with 95 % intervals of the median from order statistics. Other programs count: slots and pairs in which they took
more than a tenth of a core are left out, unless too few remain; then all are used, and the output says so.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import psutil

from bench.measuring.sampler_ways import RAILS, WAYS, ZEUS_RAILS, rail_files, zeus_version
from powerlab.boards.simulator import create_tree
from powerlab.engine import Session
from powerlab.engine.frontend.synthetic_inputs import synthetic_inputs
from powerlab.measure.percentiles.latency import interval_ranks
from powerlab.native import _native

PERIOD_S = 0.01
SLOT_S = 0.7
SETTLE_S = 0.03
"""Between starting a way and timing the engine."""
OURS = "powerlab"
OURS_MORE = 3
"""So many pairs for powerlab for each one of the others: its effect is the smallest."""
FAST_PERIOD_S = 0.001
OTHERS_CORES = 0.1
FEWEST = 8
"""So many quiet slots or pairs of a way must be left, or the noisy ones are used too."""


def _cpu_s(pids: Sequence[int]) -> float:
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return time.process_time() + sum(one.user + one.system for one in times)


class Others:
    """Counts the cores that programs other than this one and its children keep busy."""

    def __init__(self) -> None:
        self._before = self._read()

    @staticmethod
    def _read() -> tuple[float, float]:
        machine = psutil.cpu_times()
        busy_s = sum(getattr(machine, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))
        ours = psutil.Process()
        return time.monotonic(), busy_s - _cpu_s([child.pid for child in ours.children(recursive=True)])

    def cores(self) -> float:
        """Return the cores since the last call."""
        before, self._before = self._before, self._read()
        return max(0.0, self._before[1] - before[1]) / max(self._before[0] - before[0], 1e-9)


class Figures:
    """Figures of each way, each with what other programs did meanwhile."""

    def __init__(self, names: Sequence[str]) -> None:
        self._all: dict[str, list[tuple[float, float]]] = {name: [] for name in names}

    def add(self, name: str, value: float, others_cores: float) -> None:
        self._all[name].append((value, others_cores))

    def fewest(self) -> int:
        """Return how many figures the way with the fewest has."""
        return min(map(len, self._all.values()))

    def of(self, name: str) -> tuple[list[float], str]:
        """Return the figures to use, and how many they are in words."""
        quiet = [value for value, others in self._all[name] if others <= OTHERS_CORES]
        if len(quiet) >= FEWEST:
            return quiet, f"{len(quiet)} of {len(self._all[name])} quiet"
        return [value for value, _ in self._all[name]], f"{len(self._all[name])}, NOT quiet"


def _serve_way(pipe: Connection, name: str, tree: Path) -> None:
    """Make a way; start it when asked, stop it when asked again and say what it took; end when asked for nothing."""
    way = WAYS[name](tree, PERIOD_S)
    pipe.send(None)
    while pipe.recv():
        rounds = way.rounds
        way.start()
        begin_s, cpu_s = time.monotonic(), _cpu_s(way.children())
        pipe.recv()
        cpu_s, passed_s = _cpu_s(way.children()) - cpu_s, time.monotonic() - begin_s
        way.stop()
        pipe.send((cpu_s, passed_s, way.rounds - rounds))


def _serve_engine(pipe: Connection, model: str, threads: int) -> None:
    """Load the engine; time so many inferences whenever asked for them; end when asked for none."""
    session = Session(model, threads=threads)
    inputs = synthetic_inputs(session.inputs, 0, session.dtypes)
    session.run(inputs)
    pipe.send(None)
    while count := pipe.recv():
        latencies = []
        for _ in range(count + 1):
            start = time.perf_counter()
            session.run(inputs)
            latencies.append(time.perf_counter() - start)
        pipe.send(statistics.median(latencies[1:]))


@contextmanager
def _child(target: object, *arguments: object) -> Iterator[Connection]:
    """Run a function of this file in a process of its own; yield the pipe to it when it is ready."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    # No daemon: zeus starts a process of its own.
    process = context.Process(target=target, args=(theirs, *arguments))
    process.start()
    theirs.close()
    try:
        ours.recv()
        yield ours
    finally:
        ours.send(0)
        process.join()


@contextmanager
def _all_ways(names: Sequence[str], tree: Path) -> Iterator[dict[str, Connection]]:
    """Run a process a way."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(_child(_serve_way, name, tree)) for name in names}


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median and its 95 % interval; the extremes where there are too few values for one."""
    ordered = sorted(values)
    low, high = interval_ranks(len(ordered), 0.5) or (1, len(ordered))
    return statistics.median(ordered), ordered[low - 1], ordered[high - 1]


def _slot(way: Connection) -> tuple[float, float]:
    """Let a way sample for a while; return its share of a core in %, and how many rounds a second it made."""
    way.send(True)
    time.sleep(SLOT_S)
    way.send(True)
    cpu_s, passed_s, rounds = way.recv()
    return 100 * cpu_s / passed_s, rounds / passed_s


def cost(names: Sequence[str], tree: Path, seconds: float) -> None:
    """Print what each way takes of one core."""
    shares = Figures(names)
    rates: dict[str, list[float]] = {name: [] for name in names}
    with _all_ways(names, tree) as ways:
        for way in ways.values():
            _slot(way)
        others = Others()
        for _ in range(max(3, round(seconds / len(names) / SLOT_S))):
            for name, way in ways.items():
                others.cores()
                share, rate = _slot(way)
                shares.add(name, share, others.cores())
                rates[name].append(rate)
    ours = statistics.median(shares.of(OURS)[0])
    print(f"processor time at {1 / PERIOD_S:.0f} Hz, % of one core (median, 95 % interval)")
    for name in names:
        figures, count = shares.of(name)
        middle, low, high = interval(figures)
        print(
            f"  {name:16} {middle:7.3f} %  ({low:.3f} to {high:.3f})  {middle / ours:7.1f} x powerlab   "
            f"{statistics.median(rates[name]):5.1f} rounds/s   slots: {count}"
        )


def _turn(engine: Connection, way: Connection | None, inferences: int) -> float:
    """Return the engine's median latency in s, with a way sampling meanwhile or without."""
    if way is not None:
        way.send(True)
    time.sleep(SETTLE_S)
    engine.send(inferences)
    latency_s: float = engine.recv()
    if way is not None:
        way.send(True)
        way.recv()
    return latency_s


def latency(names: Sequence[str], tree: Path, seconds: float, threads: int, options: argparse.Namespace) -> None:
    """Print what each way does to the engine's latency."""
    model, inferences = options.model, options.inferences
    ratios, off_s = Figures(names), []
    shuffled = random.Random(0)  # noqa: S311
    turns = [name for name in names for _ in range(OURS_MORE if name == OURS else 1)]
    with _all_ways(names, tree) as ways, _child(_serve_engine, model, threads) as engine:
        others = Others()
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s or ratios.fewest() < 3:
            shuffled.shuffle(turns)
            for name in turns:
                pair = {}
                others.cores()
                for way in shuffled.sample((None, ways[name]), 2):
                    pair[way is not None] = _turn(engine, way, inferences)
                ratios.add(name, pair[True] / pair[False], others.cores())
                off_s.append(pair[False])
    print(
        f"latency of {model} on {threads} of {os.cpu_count()} cores ({statistics.median(off_s) * 1e3:.1f} ms), "
        "with sampling / without"
    )
    for name in names:
        figures, count = ratios.of(name)
        middle, low, high = interval(figures)
        print(f"  {name:16} {middle:7.4f}    ({low:.4f} to {high:.4f})   pairs: {count}")


def fastest(tree: Path, seconds: float) -> None:
    """Print how well the native sampler keeps 1 kHz."""
    channels = [[str(path) for path in pair] for pair in rail_files(tree)]
    sampler = _native.sampler.Sampler(channels, round(FAST_PERIOD_S * 1e9))
    sampler.start()
    time.sleep(seconds)
    sampler.stop()
    time_ns = sampler.take()[0][0]
    off_us = np.abs(np.diff(time_ns) - FAST_PERIOD_S * 1e9) / 1e3
    middle, high, worst = np.percentile(off_us, [50, 99, 100])
    rate, share = sampler.rounds / (sampler.wall_ns * 1e-9), 100 * sampler.cpu_ns / sampler.wall_ns
    periods = sampler.rounds + sampler.missed_deadlines
    print(
        f"powerlab's native sampler at {1 / FAST_PERIOD_S:.0f} Hz: {rate:.1f} rounds/s, {sampler.missed_deadlines} of "
        f"{periods} periods missed, {share:.2f} % of one core"
    )
    print(
        f"  two samples' distance differs from 1 ms by {middle:.0f} µs (median), {high:.0f} µs (99 %), "
        f"{worst:.0f} µs (worst)"
    )


def main() -> None:
    """Read the command line and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=180.0, help="how long all of it may take (default: 180)")
    parser.add_argument("--model", default="resnet50", help="a zoo name (default: resnet50)")
    parser.add_argument("--inferences", type=int, default=4, help="timed in a turn (default: 4)")
    options = parser.parse_args()
    names, cores = list(WAYS), os.cpu_count() or 1
    memory = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        tree = Path(folder) / "board"
        create_tree("jetson-agx-xavier", tree, 5)
        zeus = zeus_version()
        print(
            f"{len(RAILS)} rails in {2 * len(RAILS)} plain files in memory (zeus: {ZEUS_RAILS} rails, "
            f"{'its package ' + zeus if zeus else 'its way of polling, written anew'}); {cores} cores; "
            f"load of the machine before: {os.getloadavg()[0]:.2f}"
        )
        cost(names, tree, 0.2 * options.seconds)
        fastest(tree, 0.03 * options.seconds)
        sampled = names[1:]
        latency(sampled, tree, 0.5 * options.seconds, cores, options)
        if cores > 1:
            latency([OURS], tree, 0.2 * options.seconds, cores - 1, options)


if __name__ == "__main__":
    sys.exit(main())
