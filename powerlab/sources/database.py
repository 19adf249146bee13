"""Stored sweeps and runs of a database, read without a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from powerlab.analysis.summary import PointSummary
from powerlab.domain.device import Device
from powerlab.domain.layers import LayerProfile
from powerlab.domain.power import Trace
from powerlab.domain.run import Run
from powerlab.measure.audit.audit import Audit
from powerlab.protocol.identifiers import Identifier
from powerlab.protocol.records import SweepRecord
from powerlab.sources.source import Format, RunChoice, Source, SweepChoice, encoded
from powerlab.store import Store
from powerlab.store.maintenance.retired import check_traces_kept
from powerlab.store.reads import queries
from powerlab.store.reads.filters import RunFilter, SweepFilter
from powerlab.store.reads.identifiers import identifiers
from powerlab.store.reads.layers import list_layer_profiles
from powerlab.store.reads.run_audit import audit_run
from powerlab.store.reads.sweep_results import summaries_of_sweep
from powerlab.store.reads.trace_stream import chosen_run, stream_chunks


class DatabaseSource(Source):
    """Reads a database, in a session for each question."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.name = f"database {store.address}"

    def close(self) -> None:
        """Close the database."""
        self._store.close()

    def identifiers(self, beginning: str) -> Sequence[Identifier]:
        """Look in every table that has identifiers."""
        with self._store.session() as session:
            return identifiers(session, beginning)

    def sweeps(self, choice: SweepChoice) -> Iterator[SweepRecord]:
        """Yield sweeps, newest first."""
        with self._store.session() as session:
            yield from queries.list_sweeps(session, SweepFilter(**asdict(choice)))

    def sweep(self, sweep_id: str) -> SweepRecord:
        """Return one sweep."""
        with self._store.session() as session:
            return queries.sweep(session, sweep_id)

    def summaries(self, sweep_id: str) -> Sequence[PointSummary]:
        """Return what is kept, or compute it."""
        with self._store.session() as session:
            return summaries_of_sweep(session, sweep_id)

    def runs(self, choice: RunChoice) -> Iterator[Run]:
        """Yield runs, a few in memory at a time."""
        with self._store.session() as session:
            for _, run in queries.stream_runs(session, RunFilter(**asdict(choice))):
                yield run

    def run(self, run_id: str) -> Run:
        """Return one run."""
        with self._store.session() as session:
            return queries.run(session, run_id)

    def audit(self, run_id: str) -> Audit:
        """Recompute a run from its samples and timings."""
        with self._store.session() as session:
            return audit_run(session, run_id)

    def device(self, sweep_id: str) -> Device:
        """Return the device as it described itself last."""
        with self._store.session() as session:
            return queries.device(session, queries.sweep(session, sweep_id).device_id).device

    def recorded(self, run_id: str) -> Sequence[Trace]:
        """Return the traces whole."""
        with self._store.session() as session:
            check_traces_kept(session, run_id)
            return queries.recorded(session, run_id)

    def traces(self, format_: Format, sweep_id: str | None, run_id: str | None) -> Iterator[bytes]:
        """Yield the traces of a sweep or a run as a table, a chunk in memory at a time."""
        from powerlab.protocol.trace_export import trace_csv_lines, trace_ndjson_lines

        with self._store.session() as session:
            chunks = stream_chunks(session, sweep_id, chosen_run(session, sweep_id, run_id))
            if format_ == "parquet":
                from powerlab.store.reads.parquet import traces_as_parquet

                yield from traces_as_parquet(chunks)
            else:
                yield from encoded(trace_csv_lines(chunks) if format_ == "csv" else trace_ndjson_lines(chunks))

    def layer_profiles(self) -> Iterator[LayerProfile]:
        """Yield profiles, newest first."""
        with self._store.session() as session:
            for _, profile in list_layer_profiles(session):
                yield profile
