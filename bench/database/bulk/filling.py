"""What a fleet of years leaves in the database, row by row, as powerlab itself would have written it."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import numpy as np

from bench.database.bulk.fleet import (
    BUDGET,
    CONDITIONS,
    DAYS,
    RAIL_NAMES,
    START,
    Asked,
    Board,
    boards,
    identifier,
    runs,
    sweeps,
)
from bench.database.bulk.layers import layer_profile
from bench.database.bulk.loading import Loader
from powerlab.domain.power import Part, Trace
from powerlab.domain.quantity import METRICS
from powerlab.domain.run import Run
from powerlab.domain.workload import Workload
from powerlab.protocol.chunks import payload_of, split
from powerlab.protocol.messages import TraceChunk
from powerlab.protocol.wire import digest, encode, to_document
from powerlab.store.tables import Base

LONG_SAMPLES, LONG_CHUNKS = 60_000, 3
"""A long run: half an hour at 100 Hz."""
SHORT_SAMPLES, IDLE_SAMPLES = 240, 80
_TABLES = Base.metadata.tables
_BUDGET, _CONDITIONS = encode(BUDGET), encode(CONDITIONS)


class Filler:
    """Fills a database with the past of a fleet.

    Trace chunks are drawn from a few hundred that were really encoded: what is asked of them does not depend on their
    being different.
    """

    def __init__(self, loader: Loader, run_count: int, sample_count: int, seed: int = 0) -> None:
        self._loader, self._dice = loader, random.Random(seed)  # noqa: S311 - nothing secret
        self._run_count = run_count
        short = len(RAIL_NAMES) * (SHORT_SAMPLES + IDLE_SAMPLES)
        self._long = len(RAIL_NAMES) * LONG_CHUNKS * LONG_SAMPLES
        self._long_every = max(1, round(self._long / max(1.0, sample_count / run_count - short)))
        self._next: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(1))
        self._workloads: dict[Workload, int] = {}
        self._tallies: Counter[tuple[str, str]] = Counter()
        self._samples: Counter[tuple[str, str]] = Counter()
        self._newest: dict[tuple[str, str], str] = {}
        self.sample_count = 0

    def fill(self) -> Iterator[int]:
        """Load everything; yields the number of runs so far, now and then."""
        devices = boards(max(4, min(1000, self._run_count // 500)), self._dice)
        homes = {board.id: self._device(board) for board in devices}
        self._pool = _Payloads(devices[0])
        self._profiles(devices)
        self._models()
        stored = 0
        for asked in sweeps(devices, self._run_count, self._dice):
            self._sweep(asked, *homes[asked.board.id])
            stored += len(asked.plan.points()) * asked.plan.repeats
            yield stored
        for (device_id, verdict), runs_of_verdict in self._tallies.items():
            self._add(
                "device_tally", device_id=device_id, verdict=verdict, run_count=runs_of_verdict,
                sample_count=self._samples[device_id, verdict], newest_run_id=self._newest[device_id, verdict],
            )  # fmt: skip
        self._loader.finish()

    def _add(self, table: str, **row: Any) -> None:
        self._loader.add(_TABLES[table], row)

    def _device(self, board: Board) -> tuple[int, dict[str, int], tuple[int, ...]]:
        """Store a device with three starts of its agent; returns the last snapshot, its modes, and the rails."""
        at = START + timedelta(days=DAYS * board.first)
        said = board.description
        self._add("device", id=board.id, name=said.device.name, enrolled_at=at, seen_at=START + timedelta(days=DAYS))
        self._add(
            "token", id=next(self._next["token"]), name=f"agent {board.id}", role="agent", device_id=board.id,
            sha256=digest(board.id), created_at=at,
        )  # fmt: skip
        for start in range(3):
            snapshot = next(self._next["device_snapshot"])
            self._add(
                "device_snapshot", id=snapshot, device_id=board.id, taken_at=at + timedelta(days=start),
                simulated=said.device.simulated, document=encode(said),
            )  # fmt: skip
            modes = {}
            for position, mode in enumerate(said.capabilities.modes):
                modes[mode.name] = next(self._next["power_mode"])
                self._add(
                    "power_mode", id=modes[mode.name], snapshot_id=snapshot, position=position, name=mode.name,
                    settings=encode(mode.settings), origin=mode.origin.value,
                    requires_reboot=mode.requires_reboot, online_cores=mode.online_cores, description="a mode",
                )  # fmt: skip
        rails = tuple(next(self._next["rail"]) for _ in RAIL_NAMES)
        for number, rail in zip(rails, said.capabilities.sources[0].rails, strict=True):
            document = to_document(rail)
            self._add("rail", **{**document, "id": number, "device_id": board.id, "offset_bound": document["offset"]})
        return snapshot, modes, rails

    def _profiles(self, devices: list[Board]) -> None:
        for number in range(500):
            board, own = self._dice.choice(devices), identifier(self._dice)
            document = encode(layer_profile(own, board.description.device.name))
            at = START + timedelta(days=DAYS, minutes=number)
            self._add("layer_profile", id=own, device_id=board.id, created_at=at, document=document)

    def _models(self) -> None:
        for number in range(300):
            at = START + timedelta(days=number)
            self._add(
                "model", sha256=digest(number), name=f"network-{number % 40:02}.onnx", byte_count=1 << 20,
                uploaded_bytes=1 << 20, created_at=at, completed_at=at,
            )  # fmt: skip

    def _workload(self, workload: Workload) -> int:
        if workload not in self._workloads:
            self._workloads[workload] = next(self._next["workload"])
            self._add("workload", **{**to_document(workload), "id": self._workloads[workload]})
        return self._workloads[workload]

    def _sweep(self, asked: Asked, snapshot: int, modes: dict[str, int], rails: tuple[int, ...]) -> None:
        submitter = f"person-{self._dice.randrange(30)}"
        left = self._run_count // 5000
        waits = asked.at > START + timedelta(days=DAYS * (1 - left * 24 / self._run_count))
        self._add(
            "sweep", id=asked.id, device_id=asked.board.id, snapshot_id=snapshot, plan=encode(asked.plan),
            created_at=asked.at, submitter=submitter,
        )  # fmt: skip
        self._add(
            "job", id=identifier(self._dice), sweep_id=asked.id, device_id=asked.board.id, fencing_token=1, priority=0,
            state="queued" if waits else "done", detail="", created_at=asked.at,
            leased_at=None if waits else asked.at, finished_at=None if waits else asked.at + timedelta(hours=1),
        )  # fmt: skip
        for number in range(8):
            self._add(
                "audit_event", id=next(self._next["audit_event"]), at=asked.at + timedelta(seconds=number),
                actor=submitter if number == 0 else f"device {asked.board.id}",
                action=("create sweep", "lease", "release", "finish")[min(number, 3)], subject=asked.id,
                detail=encode({"device": asked.board.description.device.name}),
            )  # fmt: skip
        points = {}
        for position, point in enumerate(asked.plan.points()):
            points[point.id] = next(self._next["point"])
            self._add(
                "point", id=points[point.id], sweep_id=asked.id, key=point.id, position=position,
                workload_id=self._workload(point.workload), power_mode_id=modes[point.mode], threads=point.threads,
                spin_us=point.spin_us, cores=point.cores,
            )  # fmt: skip
        for number, run in enumerate(runs(asked, self._dice)):
            self._run(run, asked, points[run.point.id], asked.at + timedelta(seconds=9 * number + 0.25), rails)

    def _run(self, run: Run, asked: Asked, point: int, at: datetime, rails: tuple[int, ...]) -> None:
        self._add(
            "run", id=run.id, sweep_id=run.sweep_id, point_id=point, repeat=run.repeat, started_at=run.started_at,
            window_start_ns=run.window_ns[0], window_end_ns=run.window_ns[1], inference_count=run.inference_count,
            verdict=run.verdict.value, findings=encode(run.findings), total=encode(run.total),
            budget=_BUDGET, conditions=_CONDITIONS, sha256=run.id.replace("-", "") * 2,
            received_at=at, device_id=asked.board.id, workload_id=self._workload(run.point.workload),
            threads=run.point.threads, mode=run.point.mode,
            simulated=asked.board.description.device.simulated,
            power_provenance=asked.board.provenance.value if run.metrics else None,
        )  # fmt: skip
        for position, one in enumerate(run.metrics):
            self._add(
                "run_metric", run_id=run.id, name=one.name, position=position, value=one.value, low=one.low,
                high=one.high, unit=METRICS[one.name].unit, provenance=one.provenance.value, received_at=at,
            )  # fmt: skip
        key = asked.board.id, run.verdict.value
        self._tallies[key] += 1
        self._newest[key] = run.id
        if not run.metrics:
            return
        long = self._tallies.total() % self._long_every == self._long_every // 2
        for rail in rails:
            for chunk, payload in self._pool.of_run(self._dice, long=long):
                self._samples[key] += chunk.sample_count
                self.sample_count += chunk.sample_count
                self._add(
                    "trace_chunk", id=next(self._next["trace_chunk"]), run_id=run.id, received_at=at, rail_id=rail,
                    part=chunk.part.value, position=chunk.position, t_first_ns=chunk.t_first_ns,
                    t_last_ns=chunk.t_last_ns, sample_count=chunk.sample_count, value_min=chunk.value_min,
                    value_max=chunk.value_max, value_sum=chunk.value_sum, read_cost_ns=chunk.read_cost_ns,
                    codec=chunk.codec, sha256=chunk.sha256, payload=payload,
                )  # fmt: skip


class _Payloads:
    """Encoded chunks to draw from."""

    def __init__(self, board: Board) -> None:
        self._noise = np.random.default_rng(0)
        rail = board.description.capabilities.sources[0].rails[0]

        def some(number: int, length: int, size: int, part: Part) -> list[list[tuple[TraceChunk, bytes]]]:
            return [
                [(one, payload_of(one)) for one in split(self._trace(rail, length, part), size)] for _ in range(number)
            ]

        self._short = some(100, SHORT_SAMPLES, SHORT_SAMPLES, Part.RUN)
        self._idle = some(100, IDLE_SAMPLES, IDLE_SAMPLES, Part.IDLE_BEFORE)
        self._long = some(4, LONG_CHUNKS * LONG_SAMPLES, LONG_SAMPLES, Part.RUN)

    def of_run(self, dice: random.Random, *, long: bool) -> list[tuple[TraceChunk, bytes]]:
        if long:
            return dice.choice(self._long)
        return [*dice.choice(self._short), *dice.choice(self._idle)]

    def _trace(self, rail: Any, length: int, part: Part) -> Trace:
        """A sensor with steps of 8 mW, read a hundred times a second with a little jitter."""
        time_ns = 1_000_000_000 + np.arange(length) * 10_000_000 + self._noise.integers(0, 60_000, length)
        value = np.round(14 + np.cumsum(self._noise.normal(0, 0.02, length)).clip(-6, 6), 3)
        value = np.round(value / rail.resolution) * rail.resolution
        return Trace(rail=rail, time_ns=time_ns, value=value, read_cost_ns=20_000, part=part)
