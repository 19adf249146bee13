"""The same samples in powerlab and in a real Prometheus: bytes on disk, and how long windows take over HTTP.

    PYTHONPATH=tests:tests/support:bench python -m service.beside_prometheus [--scale 1] [--times 20]

Prometheus (which must be installed) gets them through ``promtool tsdb create-blocks-from openmetrics``, in W and J, its
own base units, and is counted as its finished blocks are, index included. powerlab is counted as PostgreSQL keeps
``trace_chunk`` with indexes and TOAST after VACUUM, and as Parquet files after compaction. Prometheus' times are whole
milliseconds: what that loses is printed; powerlab keeps nanoseconds. Questions are asked in turn, one after the other,
each about windows drawn at random: samples as they are, and a thousand means of a whole recording.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import urllib3
from sqlalchemy import text

from bench.service.server import AS_SHIPPED, Server, running_server
from bench.service.waveforms import Recording, recordings
from postgres_cluster import new_database, postgres_cluster
from powerlab.domain.power import RailQuantity, Trace
from powerlab.protocol.chunks import split
from powerlab.protocol.messages import ChunksUpload
from powerlab.store import open_store
from powerlab.store.traces.compaction import compact
from powerlab.store.traces.parquet import ParquetTraceStore
from powerlab.store.traces.registry import open_traces
from powerlab.store.writes.runs import store_chunks
from prometheus_server import Prometheus, promtool, running_prometheus
from trace_lab import Lab, lab_with

POINTS = 1000
_MS = 1_000_000
_PROMETHEUS, _DATABASE, _FILES = "Prometheus", "PostgreSQL", "files"


@dataclass(frozen=True, slots=True)
class Figures:
    """What one home takes: bytes a sample, and times in ms by question."""

    bytes_a_sample: float
    times_ms: Mapping[str, list[float]]


def metric_of(trace: Trace) -> str:
    """Return the name that Prometheus' conventions would give a rail's samples."""
    return "powerlab_rail_energy_joules" if trace.rail.quantity is RailQuantity.ENERGY else "powerlab_rail_power_watts"


def open_metrics(recording: Recording, origin_ms: int) -> Iterator[tuple[str, int]]:
    """Yield the samples as OpenMetrics text, and with each trace how many do not have a millisecond of their own."""
    found = [(number, trace) for number, traces in enumerate(recording.runs) for trace in traces]
    for metric in dict.fromkeys(metric_of(trace) for _, trace in found):
        yield f"# TYPE {metric} gauge\n", 0
        for number, trace in (one for one in found if metric_of(one[1]) == metric):
            time_ms, first = np.unique(np.round(trace.time_ns / _MS).astype(np.int64), return_index=True)
            labels = f'{metric}{{run="{number}",rail="{trace.rail.key}"}}'
            lines = zip(trace.value[first].tolist(), (time_ms + origin_ms).tolist(), strict=True)
            # repr gives the shortest text that is the same float again
            body = "".join(f"{labels} {value!r} {at // 1000}.{at % 1000:03d}\n" for value, at in lines)
            yield body, len(trace.value) - len(first)
    yield "# EOF\n", 0


def blocks(recording: Recording, folder: Path, origin_ms: int) -> tuple[int, int]:
    """Let Prometheus' own tool write blocks; returns their bytes, and how many samples had to be left out."""
    source, lost = folder / "samples.om", 0
    with source.open("w", encoding="utf-8") as file:
        for body, lost_here in open_metrics(recording, origin_ms):
            file.write(body)
            lost += lost_here
    done = promtool("tsdb", "create-blocks-from", "openmetrics", source, folder / "data")
    if done.returncode:
        raise RuntimeError(f"promtool: {done.stdout[-500:]}{done.stderr[-500:]}")
    source.unlink()
    return sum(file.stat().st_size for file in (folder / "data").rglob("*") if file.is_file()), lost


def fill(recording: Recording, address: str, traces: str) -> tuple[Lab, int]:
    """Store the samples; returns whose they are, and the bytes they take."""
    store = open_store(address, traces=open_traces(traces))
    with closing(store):
        lab = lab_with(store, len(recording.runs))
        for run_id, run in zip(lab.run_ids, recording.runs, strict=True):
            for trace in run:
                for chunk in split(trace):  # one by one: a request is 64 MiB at most
                    with store.write() as session:
                        upload = ChunksUpload(fencing_token=lab.held.fencing_token, chunks=(chunk,))
                        store_chunks(session, lab.device_id, run_id, upload)
        home = store.traces
        if isinstance(home, ParquetTraceStore):
            compact(store, home, fewest=2)
            compact(store, home, fewest=2, grace=timedelta(0))
            return lab, sum(found.size_bytes for found in home.objects.list())
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
            tables = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relname LIKE 'trace_chunk%'"
            return lab, int(connection.execute(text(f"{tables} AND relkind = 'r'")).scalar_one())


class Asker:
    """Asks about windows of the runs of a recording, both servers over connections that stay open."""

    def __init__(self, recording: Recording, prometheus: Prometheus, origin_ms: int) -> None:
        self._recording, self._prometheus, self._origin_ms = recording, prometheus, origin_ms
        self._pool = urllib3.PoolManager(maxsize=4)

    def span(self, run: int) -> tuple[int, int]:
        """Return the first and the last time of a run, in ns."""
        traces = self._recording.runs[run]
        return min(int(one.time_ns[0]) for one in traces), max(int(one.time_ns[-1]) for one in traces)

    def of_prometheus(self, run: int, start_ns: int, end_ns: int, *, whole: bool) -> tuple[float, int]:
        """Return how long Prometheus took in ms, and how many samples a rail it returned at most."""
        start_ms, end_ms = (self._origin_ms + round(at / _MS) for at in (start_ns, end_ns))
        if whole:
            step_ms = max(1, -(-(end_ms - start_ms) // POINTS))
            query = f'avg_over_time({{run="{run}"}}[{step_ms}ms])'
            fields = {"start": (start_ms + step_ms) / 1e3, "end": end_ms / 1e3, "step": step_ms / 1e3}
            path = f"query_range?{urlencode({'query': query, **fields})}"
        else:
            query = f'{{run="{run}"}}[{end_ms - start_ms}ms]'
            path = f"query?{urlencode({'query': query, 'time': end_ms / 1e3})}"
        took_ms, body = self._ask(f"{self._prometheus.url}/api/v1/{path}")
        return took_ms, max((len(one["values"]) for one in json.loads(body)["data"]["result"]), default=0)

    def of_powerlab(self, server: Server, run_id: str, start_ns: int, end_ns: int) -> tuple[float, int]:
        """Return the same of powerlab."""
        fields = urlencode({"from_ns": start_ns, "to_ns": end_ns, "points": POINTS, "bucket": "mean"})
        took_ms, body = self._ask(f"{server.url}/api/v1/runs/{run_id}/traces?{fields}")
        return took_ms, max((len(one["value"]) for one in json.loads(body)), default=0)

    def _ask(self, url: str) -> tuple[float, bytes]:
        began = time.perf_counter()
        answer = self._pool.request("GET", url)
        took_ms = (time.perf_counter() - began) * 1e3
        if answer.status != 200:
            raise RuntimeError(f"{url}: {answer.status} {answer.data[:300]!r}")
        return took_ms, answer.data


def measure(recording: Recording, times: int) -> dict[str, Figures]:
    """Fill every home with a recording, ask them in turn, and print what it was."""
    origin_ms = (int(time.time()) // 7200 - 12) * 7_200_000  # a day ago, at the start of a block of Prometheus
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(postgres_cluster(AS_SHIPPED))
        taken: dict[str, int] = {}
        taken[_PROMETHEUS], lost = blocks(recording, folder, origin_ms)
        homes = {_DATABASE: "database", _FILES: f"file://{folder}/files"}
        labs, servers = {}, {}
        for name, traces in homes.items():
            address = new_database(cluster)
            labs[name], taken[name] = fill(recording, address, traces)
            servers[name] = stack.enter_context(running_server(address, traces=traces))
        config = folder / "prometheus.yml"
        config.write_text("global: {}\n", encoding="utf-8")
        prometheus = stack.enter_context(running_prometheus(config, folder / "data"))
        asker, times_ms = Asker(recording, prometheus, origin_ms), {name: dict[str, list[float]]() for name in taken}
        for question, run, start_ns, end_ns in _questions(recording, asker, times):
            answers = {_PROMETHEUS: asker.of_prometheus(run, start_ns, end_ns, whole=question != "window")}
            for name, server in servers.items():
                answers[name] = asker.of_powerlab(server, labs[name].run_ids[run], start_ns, end_ns)
            for name, (took_ms, points) in answers.items():
                if points == 0:
                    raise RuntimeError(f"{name} found nothing from {start_ns} to {end_ns}")
                times_ms[name].setdefault(question, []).append(took_ms)
    _say(recording, lost)
    counted = {name: {question: took[1:] for question, took in asked.items()} for name, asked in times_ms.items()}
    return {name: Figures(taken[name] / recording.samples, counted[name]) for name in taken}


def _questions(recording: Recording, asker: Asker, times: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield windows of a few hundred samples and whole runs, of runs drawn at random; the first pair warms up."""
    dice = random.Random(1)
    window_ns = round(600 / recording.rate_hz * 1e9)
    for _ in range(times + 1):
        run = dice.randrange(len(recording.runs))
        first, last = asker.span(run)
        start = dice.randrange(first, max(first + 1, last - window_ns))
        yield "window", run, start, start + window_ns
        yield "whole", run, first, last


def _say(recording: Recording, lost: int) -> None:
    shift = [abs(trace.time_ns - np.round(trace.time_ns / _MS) * _MS) for run in recording.runs for trace in run]
    print(f"\n{recording.name}: {recording.samples:,} samples; load average {os.getloadavg()[0]:.1f}")
    print(
        f"  in milliseconds times move by up to {max(map(np.max, shift)) / 1e3:.0f} µs, and {lost} samples have no "
        "millisecond of their own and are left out"
    )


def show(found: Mapping[str, Figures]) -> None:
    """Print a table, with ratios to Prometheus."""
    of = found[_PROMETHEUS]
    print(f"  {'':<26}" + "".join(f"{name:>26}" for name in found))
    rows = {"bytes a sample": {name: one.bytes_a_sample for name, one in found.items()}}
    for question in of.times_ms:
        for word, share in (("p50", 50), ("p95", 95)):
            rows[f"{question}, {word}, ms"] = {
                name: float(np.percentile(one.times_ms[question], share)) for name, one in found.items()
            }
    for row, figures in rows.items():
        cells = (f"{figure:.3g} ({figure / figures[_PROMETHEUS]:.2f}x)" for figure in figures.values())
        print(f"  {row:<26}" + "".join(f"{cell:>26}" for cell in cells))


def main() -> int:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="length of the two long recordings (default: 1)")
    parser.add_argument("--times", type=int, default=20, help="how often each question is asked (default: 20)")
    args = parser.parse_args()
    for recording in recordings(args.scale):
        show(measure(recording, args.times))
    return 0


if __name__ == "__main__":
    sys.exit(main())
