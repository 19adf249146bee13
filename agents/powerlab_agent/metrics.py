"""The agent's own metrics, served over HTTP if requested.

A request is answered by a thread of its own, on a core on which nothing is being measured, where there is one. It is
not given a lower priority: it holds the interpreter's lock now and then, and whoever waits for that would wait longer.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, start_http_server
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, StateSetMetricFamily
from prometheus_client.registry import Collector

from powerlab import __version__
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import Provenance
from powerlab.measure.run import worker_cores
from powerlab.sweep.host import Host
from powerlab.throttling.zones import Zones
from powerlab_agent.contact import Contact
from powerlab_agent.spool_size import SpoolSize
from powerlab_agent.status import AgentState, Status


@contextmanager
def served(collector: Collector, host: str, port: int) -> Iterator[int]:
    """Answer ``/metrics`` on an address meanwhile; yields the port.

    Raises:
        PowerlabError: the address cannot be had.
    """
    registry = CollectorRegistry()
    registry.register(collector)
    ProcessCollector(registry=registry)
    try:
        server, thread = start_http_server(port, host, registry)
    except (OSError, UnicodeError) as error:  # the latter where a part of the host's name is too long for any name
        reason = error.strerror if isinstance(error, OSError) else "no name is like this"
        raise PowerlabError(
            f"the metrics cannot be served on port {port} of {host!r} ({reason}); {_mended(error)}."
        ) from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _mended(error: OSError | UnicodeError) -> str:
    """Return what to do about an address that cannot be had."""
    if isinstance(error, PermissionError):
        return "choose one from 1024 on with --metrics-port, for those below are root's"
    if isinstance(error, (socket.gaierror, UnicodeError)) or error.errno == errno.EADDRNOTAVAIL:
        return "give an address of this machine with --metrics-host"
    return "choose another with --metrics-port"


@dataclass(kw_only=True, eq=False)
class AgentCollector(Collector):
    """Reads what others have written down; asks the disk for two sizes and the board for its temperatures."""

    status: Status
    contact: Contact
    spool: SpoolSize
    host: Host
    _zones: Zones = field(init=False)

    def __post_init__(self) -> None:
        self._zones = Zones(self.host.sysroot)
        device = self.host.device()
        self._said = {
            "version": __version__,
            "device": device.name,
            "board": device.board,
            "simulated": "true" if device.simulated else "false",
        }

    def collect(self) -> Iterator[Metric]:
        """Yield the figures as they are now."""
        with _out_of_the_way(self.status):
            yield InfoMetricFamily("powerlab_agent", "What this agent is.", self._said)
            now = self.status.state(reachable=self.contact.reachable)
            yield StateSetMetricFamily(
                "powerlab_agent_state",
                "What the agent does; offline where its server does not answer and nothing is measured.",
                {state.value: state is now for state in AgentState},
            )
            yield from self._contact()
            yield from self._job()
            yield from self._spool()
            yield self._temperature()

    def _contact(self) -> Iterator[Metric]:
        contact = GaugeMetricFamily(
            "powerlab_agent_last_contact_timestamp",
            "When the server last answered; absent until it does.",
            unit="seconds",
        )
        if self.contact.answered_at_s is not None:
            contact.add_metric((), self.contact.answered_at_s)
        yield contact

    def _job(self) -> Iterator[Metric]:
        labels = ("sweep",)
        planned = GaugeMetricFamily(
            "powerlab_agent_job_planned_runs", "Runs that the job in hand asks of this agent.", labels=labels
        )
        finished = GaugeMetricFamily(
            "powerlab_agent_job_finished_runs", "Runs of the job in hand that are over.", labels=labels
        )
        progress = self.status.progress
        if progress is not None:
            planned.add_metric((progress.sweep_id,), progress.planned)
            finished.add_metric((progress.sweep_id,), progress.finished)
        yield from (planned, finished)

    def _spool(self) -> Iterator[Metric]:
        waiting, refused = self.spool.run_counts()
        yield GaugeMetricFamily("powerlab_agent_spool_runs", "Runs on disk that wait for the server.", value=waiting)
        yield GaugeMetricFamily(
            "powerlab_agent_spool_refused_runs", "Runs on disk that the server refused.", value=refused
        )
        taken = GaugeMetricFamily("powerlab_agent_spool", "What the spool takes of its disk.", unit="bytes")
        taken.add_metric((), self.spool.size_bytes())
        yield taken

    def _temperature(self) -> Metric:
        """Return what the board's zones say; a board without zones has no temperature."""
        family = GaugeMetricFamily(
            "powerlab_agent_temperature",
            "Temperatures of what computes, by thermal zone.",
            labels=("zone", "provenance"),
            unit="celsius",
        )
        provenance = Provenance.SIMULATED if self.host.sysroot.simulated else Provenance.MEASURED
        for zone, celsius in self._zones.read().items():
            family.add_metric((zone, provenance.value), celsius)
        return family


@contextmanager
def _out_of_the_way(status: Status) -> Iterator[None]:
    """Let the calling thread run on cores where nothing is measured meanwhile, if there are any."""
    own = os.sched_getaffinity(0)
    point = status.point
    free = own if point is None else own - worker_cores(point)
    os.sched_setaffinity(0, free or own)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)
