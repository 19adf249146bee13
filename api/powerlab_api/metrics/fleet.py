"""Metrics of the fleet, read from the database: equal at every replica, so aggregate with max, never sum."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from powerlab.domain.run import Verdict
from powerlab.store import Store
from powerlab.store.reads.fleet import Fleet, FleetDevice, read_fleet
from powerlab_api.metrics.figures import SHOWN

_log = logging.getLogger("powerlab.api")
_KEPT_S = 5.0
"""However many ask, the database is asked once in that time."""
_POINT = (
    "device",
    "model",
    "mode",
    "threads",
    "batch",
    "engine",
    "processor",
    "workload",
    "precision",
    "scenario",
    "verdict",
    "provenance",
)


class FleetCollector(Collector):
    """Asks the database, at most once in a few seconds; a database that is away costs its figures and no other."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._fleet: Fleet | None = None
        self._read_s = float("-inf")

    def collect(self) -> Iterator[Metric]:
        """Yield the figures; without a database only that there is none."""
        fleet = self._kept()
        yield GaugeMetricFamily(
            "powerlab_database_up",
            "1 where the database answered a moment ago, else 0.",
            value=float(fleet is not None),
        )
        if fleet is not None:
            yield from _jobs(fleet, self._store.clock().timestamp())
            yield from _devices(fleet.devices)
            yield from _backlogs(fleet.devices, self._store.clock().timestamp())
            yield from _newest(fleet.devices)

    def _kept(self) -> Fleet | None:
        with self._lock:
            if self._clock() - self._read_s >= _KEPT_S:
                self._fleet = self._read()
                self._read_s = self._clock()
            return self._fleet

    def _read(self) -> Fleet | None:
        try:
            with self._store.session() as session:
                return read_fleet(session, self._store.clock())
        except SQLAlchemyError as error:
            _log.error("the metrics lack what the database knows, which does not answer: %s", error)
            return None


def _jobs(fleet: Fleet, now_s: float) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("powerlab_jobs", "Jobs by state.", labels=("state",))
    for state, count in fleet.jobs.items():
        jobs.add_metric((state.value,), count)
    yield jobs
    yield GaugeMetricFamily(
        "powerlab_leases_expired",
        "Running jobs whose agent has been silent for longer than its lease.",
        value=fleet.expired_leases,
    )
    oldest = GaugeMetricFamily(
        "powerlab_oldest_queued_job_age",
        "How long the oldest queued job waits; absent without one.",
        unit="seconds",
    )
    if fleet.oldest_queued_at is not None:
        oldest.add_metric((), max(0.0, now_s - fleet.oldest_queued_at.timestamp()))
    yield oldest


def _devices(devices: tuple[FleetDevice, ...]) -> Iterator[Metric]:
    info = InfoMetricFamily("powerlab_device", "What a device is.", labels=("device",))
    seen = GaugeMetricFamily(
        "powerlab_device_last_seen_timestamp", "When a device's agent last spoke.", labels=("device",), unit="seconds"
    )
    jobs = GaugeMetricFamily(
        "powerlab_device_jobs", "Jobs that wait for a device's agent, or that it has.", labels=("device", "state")
    )
    runs = CounterMetricFamily(
        "powerlab_device_runs", "Runs that a device has ever stored.", labels=("device", "verdict")
    )
    samples = CounterMetricFamily(
        "powerlab_device_samples",
        "Samples that a device has ever stored: of power, energy, latency and temperature.",
        labels=("device",),
    )
    for one in devices:
        said = {"id": one.id, "board": one.board, "architecture": one.architecture}
        info.add_metric((one.name,), {**said, "simulated": "true" if one.simulated else "false"})
        seen.add_metric((one.name,), one.seen_at.timestamp())
        jobs.add_metric((one.name, "queued"), one.queued_jobs)
        jobs.add_metric((one.name, "running"), one.running_jobs)
        for verdict in Verdict:
            runs.add_metric((one.name, verdict.value), one.runs.get(verdict, 0))
        samples.add_metric((one.name,), one.sample_count)
    yield from (info, seen, jobs, runs, samples)


def _backlogs(devices: tuple[FleetDevice, ...], now_s: float) -> Iterator[Metric]:
    """Yield what agents have not uploaded; that of an agent that never said is absent and not 0."""
    own = ("device",)
    runs = GaugeMetricFamily("powerlab_device_backlog_runs", "Runs that wait on a device.", labels=own)
    refused = GaugeMetricFamily(
        "powerlab_device_backlog_refused_runs", "Runs on a device that a server refused.", labels=own
    )
    chunks = GaugeMetricFamily("powerlab_device_backlog_chunks", "Chunks of traces that wait on a device.", labels=own)
    size = GaugeMetricFamily("powerlab_device_backlog", "What all that takes of its disk.", labels=own, unit="bytes")
    oldest = GaugeMetricFamily(
        "powerlab_device_backlog_oldest_age",
        "How long the oldest run on a device waits; absent where none does.",
        labels=own,
        unit="seconds",
    )
    shed = CounterMetricFamily(
        "powerlab_device_shed_runs", "Runs whose traces a device has ever thrown away for want of room.", labels=own
    )
    for one in devices:
        said = one.backlog
        if said is None:
            continue
        counts = ((runs, said.runs), (refused, said.refused_runs), (chunks, said.chunks), (size, said.size_bytes))
        for family, count in counts:
            family.add_metric((one.name,), count)
        if said.oldest_since is not None:
            oldest.add_metric((one.name,), max(0.0, now_s - said.oldest_since.timestamp()))
        shed.add_metric((one.name,), said.shed_runs)
    yield from (runs, refused, chunks, size, oldest, shed)


def _newest(devices: tuple[FleetDevice, ...]) -> Iterator[Metric]:
    """Yield what was measured; a figure that a run lacks, for want of a sensor, is absent and never 0."""
    arrived = GaugeMetricFamily(
        "powerlab_newest_run_timestamp",
        "When the newest accepted run of a device arrived.",
        labels=("device",),
        unit="seconds",
    )
    for one in devices:
        if one.newest is not None:
            arrived.add_metric((one.name,), one.newest.received_at.timestamp())
    yield arrived
    for shown in SHOWN:
        family = GaugeMetricFamily(shown.name, shown.help, labels=_POINT, unit=shown.unit)
        for one in devices:
            if one.newest is None:
                continue
            point, load = one.newest.point, one.newest.point.workload
            for figure in one.newest.metrics:
                if figure.name == shown.metric:
                    told = (one.name, load.model, point.mode, str(point.threads), str(load.batch_size))
                    how = (
                        load.engine,
                        load.processor.value,
                        load.kind.value,
                        load.precision,
                        load.scenario.value,
                        one.newest.verdict.value,
                    )
                    family.add_metric((*told, *how, figure.provenance.value), figure.value * shown.per_unit)
        yield family
