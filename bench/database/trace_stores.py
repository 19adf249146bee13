"""What trace stores take and cost: bytes a sample, how fast they are filled, how long questions take.

    python -m bench.database.trace_stores [--runs 24] [--seconds 60] [--chunk 65536] [--traces URL ...] [--json FILE]

Fills an SQLite database with runs of a made board (six rails of 8 mW steps at 100 Hz, an energy counter at 1 kHz, a
latency a query, a temperature a second), and the same traces into a folder of Parquet files, before and after
compaction, and wherever else --traces says. Then it asks all of them in turn, one run after the other: a window of a
second, 1000 points of a minute, a run whole. Times are medians; the ratios are of the medians. ClickHouse is asked too
where POWERLAB_TRACES_QUERY names one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from powerlab.domain.power import Rail, RailQuantity, Trace
from powerlab.protocol.chunks import MAX_SAMPLES, split
from powerlab.protocol.messages import ChunkUpload
from powerlab.store import Store, open_store
from powerlab.store.reads.decimate import Bucket
from powerlab.store.tables import TraceChunkRow
from powerlab.store.traces.base import whole
from powerlab.store.traces.compaction import compact
from powerlab.store.traces.parquet import ParquetTraceStore
from powerlab.store.traces.registry import open_traces
from powerlab.store.writes.runs import store_chunk
from server_examples import COUNTER, RAIL, Clock
from trace_lab import Lab, lab_with


def board(seconds: int, seed: int) -> Iterator[Trace]:
    """Yield the traces of one run, as the sensors of a Jetson, a processor and a model server would give them."""
    random = np.random.default_rng(seed)

    def times(rate_hz: float) -> np.ndarray:
        count = int(seconds * rate_hz)
        step_ns = 1e9 / rate_hz
        jitter = random.normal(0, 20_000, count)
        return (10**12 * (seed + 1) + np.arange(count) * step_ns + jitter).astype(np.int64)

    for number in range(6):
        at = times(100)
        load = 4.0 + number + np.cumsum(random.normal(0, 0.02, len(at))) + random.normal(0, 0.05, len(at))
        yield Trace(rail=replace(RAIL, name=f"VDD_{number}"), time_ns=at, value=np.round(load / 0.008) * 0.008)
    at = times(1000)
    joules = np.cumsum(np.maximum(random.normal(0.02, 0.002, len(at)), 0))
    yield Trace(rail=COUNTER, time_ns=at, value=np.round(joules / 6.1e-5) * 6.1e-5)
    yield Trace(
        rail=of("latency", RailQuantity.LATENCY), time_ns=(at := times(50)), value=random.gamma(9, 2e-3, len(at))
    )
    heat = 45 + np.round(np.cumsum(random.normal(0, 0.1, seconds)) * 2) / 2
    yield Trace(rail=of("cpu-thermal", RailQuantity.TEMPERATURE), time_ns=times(1), value=heat)


def of(name: str, quantity: RailQuantity) -> Rail:
    return replace(RAIL, source="measure", name=name, quantity=quantity, resolution=0.0)


def filled(store: Store, runs: int, seconds: int, chunk: int) -> tuple[Lab, int, float]:
    """Fill a store chunk by chunk, as a server does, and return how many samples it took, and for how long in s."""
    lab, samples, took = lab_with(store, runs), 0, 0.0
    for run in range(runs):
        traces = list(board(seconds, run))
        samples += sum(len(trace.value) for trace in traces)
        began = time.perf_counter()
        for trace in traces:
            for piece in split(trace, chunk):
                upload = ChunkUpload(fencing_token=lab.held.fencing_token, chunk=piece)
                with store.write() as session:
                    store_chunk(session, lab.device_id, lab.run_ids[run], upload)
        took += time.perf_counter() - began
    return lab, samples, took


def bytes_of(lab: Lab) -> int:
    if isinstance(lab.traces, ParquetTraceStore):
        return sum(found.size_bytes for found in lab.files.objects.list())
    with lab.store.session() as session:
        return sum(len(row.payload or b"") for row in session.query(TraceChunkRow))


def questions(lab: Lab, run: int, seconds: int) -> dict[str, Callable[[], object]]:
    run_id, store = lab.run_ids[run], lab.store
    start = 10**12 * (run + 1) + seconds * 500_000_000

    def within(ask: Callable[[object], object]) -> Callable[[], object]:
        def asked() -> object:
            with store.session() as session:
                return ask(session)

        return asked

    return {
        "window of 1 s": within(lambda at: list(lab.traces.window(at, run_id, start, start + 10**9))),
        "1000 points": within(lambda at: list(lab.traces.decimate(at, run_id, 1000, Bucket.MINMAX))),
        "whole run": within(lambda at: list(whole(lab.traces.scan(at, run_id)))),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--chunk", type=int, default=MAX_SAMPLES, help="samples that arrive together at most")
    parser.add_argument("--traces", action="append", default=[], metavar="URL", help="another home, new and empty")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        homes = {"database": "database", "files": f"file://{folder}/files", "compacted": f"file://{folder}/compacted"}
        homes |= {url: url for url in args.traces}
        labs, table = {}, {}
        for number, (name, url) in enumerate(homes.items()):
            query = os.environ.get("POWERLAB_TRACES_QUERY") if url in args.traces else None
            store = open_store(f"{folder}/{number}.db", Clock(), traces=open_traces(url, query))
            labs[name], samples, took = filled(store, args.runs, args.seconds, args.chunk)
            if name == "compacted":
                compact(store, labs[name].files, fewest=2)
                compact(store, labs[name].files, fewest=2, grace=timedelta(0))
            table[name] = {"bytes_a_sample": bytes_of(labs[name]) / samples, "samples_per_s": samples / took}
        times: dict[str, dict[str, list[float]]] = {name: {} for name in labs}
        for run in range(args.runs):
            for name, lab in labs.items():
                for question, ask in questions(lab, run, args.seconds).items():
                    began = time.perf_counter()
                    ask()
                    times[name].setdefault(question, []).append((time.perf_counter() - began) * 1e3)
        for name, asked in times.items():
            table[name] |= {f"{question}, ms": statistics.median(taken) for question, taken in asked.items()}
        for lab in labs.values():
            with closing(lab.store):
                pass
    show(table)
    if args.json:
        args.json.write_text(json.dumps(table, indent=1) + "\n")
    return 0


def show(table: dict[str, dict[str, float]]) -> None:
    first = table["database"]
    print(f"{'':>22}" + "".join(f"{name[:24]:>26}" for name in table))
    for figure in first:
        cells = (f"{row[figure]:.4g} ({row[figure] / first[figure]:.2f}x)" for row in table.values())
        print(f"{figure:>22}" + "".join(f"{cell:>26}" for cell in cells))


if __name__ == "__main__":
    raise SystemExit(main())
