"""Stored sweeps and runs of a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from urllib.parse import urlencode

from powerlab.analysis.summary import PointSummary
from powerlab.client import Client
from powerlab.client.whole_traces import whole_traces
from powerlab.domain.device import Device
from powerlab.domain.layers import LayerProfile
from powerlab.domain.power import Trace
from powerlab.domain.run import Run
from powerlab.measure.audit.audit import Audit
from powerlab.protocol.identifiers import Identifier
from powerlab.protocol.records import SweepRecord
from powerlab.sources.source import Format, RunChoice, Source, SweepChoice

_BLOCK_BYTES = 1 << 16


class ServerSource(Source):
    """Passes every question on to a server, which also writes the tables."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.name = f"server {client.server}"

    def identifiers(self, beginning: str) -> Sequence[Identifier]:
        """Ask the server."""
        return self._client.identifiers(beginning)

    def sweeps(self, choice: SweepChoice) -> Iterator[SweepRecord]:
        """Turn the server's pages."""
        return self._client.sweeps(**asdict(choice))

    def sweep(self, sweep_id: str) -> SweepRecord:
        """Ask the server."""
        return self._client.sweep(sweep_id)

    def summaries(self, sweep_id: str) -> Sequence[PointSummary]:
        """Ask the server."""
        return self._client.summaries(sweep_id)

    def runs(self, choice: RunChoice) -> Iterator[Run]:
        """Turn the server's pages."""
        return self._client.runs(**asdict(choice))

    def run(self, run_id: str) -> Run:
        """Ask the server."""
        return self._client.run(run_id)

    def audit(self, run_id: str) -> Audit:
        """Let the server recompute it."""
        return self._client.audit(run_id)

    def table_of_runs(self, format_: Format, choice: RunChoice) -> Iterator[bytes]:
        """Pass on what the server exports."""
        return self._exported("runs", format=format_, **asdict(choice))

    def device(self, sweep_id: str) -> Device:
        """Ask the server."""
        return self._client.device(self._client.sweep(sweep_id).device_id).device

    def recorded(self, run_id: str) -> Sequence[Trace]:
        """Ask the server for every sample."""
        return whole_traces(self._client, run_id)

    def traces(self, format_: Format, sweep_id: str | None, run_id: str | None) -> Iterator[bytes]:
        """Pass on what the server exports."""
        return self._exported("traces", format=format_, sweep_id=sweep_id, run_id=run_id)

    def layer_profiles(self) -> Iterator[LayerProfile]:
        """Turn the server's pages."""
        return self._client.layer_profiles()

    def _exported(self, what: str, **wish: str | None) -> Iterator[bytes]:
        fields = urlencode({name: value for name, value in wish.items() if value is not None})
        _, blocks = self._client.transport.stream(f"/exports/{what}?{fields}", 0, _BLOCK_BYTES)
        return blocks
