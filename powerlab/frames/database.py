"""Results in a database, read without a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from powerlab.analysis.summary import PointSummary
from powerlab.domain.layers import LayerProfile
from powerlab.domain.power import Trace
from powerlab.domain.run import Run
from powerlab.frames.records import RunChoice, StoredSweep
from powerlab.protocol.trace_export import TRACE_COLUMNS
from powerlab.store import Store
from powerlab.store.maintenance.retired import check_traces_kept
from powerlab.store.reads import queries
from powerlab.store.reads.filters import RunFilter
from powerlab.store.reads.layers import list_layer_profiles
from powerlab.store.reads.sweep_results import summaries_of_sweep
from powerlab.store.reads.trace_stream import chosen_run, stream_chunks

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]


class DatabaseRecords:
    """Reads a database, in a session for each question."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def sweeps(self, sweep_id: str | None) -> Sequence[StoredSweep]:
        """Return one sweep, or all."""
        with self._store.session() as session:
            found = queries.list_sweeps(session) if sweep_id is None else [queries.sweep(session, sweep_id)]
        return [StoredSweep(id=record.id, device=record.device_name) for record in found]

    def summaries(self, sweep_id: str) -> Sequence[PointSummary]:
        """Return what is kept, or compute it."""
        with self._store.session() as session:
            return summaries_of_sweep(session, sweep_id)

    def runs(self, choice: RunChoice) -> Iterator[Run]:
        """Yield runs, a few in memory at a time."""
        filters = RunFilter(sweep_id=choice.sweep_id, model=choice.model, verdict=choice.verdict)
        with self._store.session() as session:
            if choice.sweep_id is not None:
                queries.sweep(session, choice.sweep_id)
            for _, run in queries.stream_runs(session, filters):
                yield run

    def run(self, run_id: str) -> Run:
        """Return one run."""
        with self._store.session() as session:
            return queries.run(session, queries.run_id_from(session, run_id))

    def samples(self, run_id: str) -> pa.Table:
        """Return every sample."""
        import pyarrow as pa

        from powerlab.protocol.arrow import batch_of_samples, schema_of

        schema = schema_of(TRACE_COLUMNS)
        with self._store.session() as session:
            chunks = list(stream_chunks(session, None, chosen_run(session, None, run_id)))
        return pa.Table.from_batches([batch_of_samples(schema, chunks)] if chunks else [], schema)

    def recorded(self, run_id: str) -> tuple[Trace, ...]:
        """Return them whole."""
        with self._store.session() as session:
            found = queries.run_id_from(session, run_id)
            check_traces_kept(session, found)
            return tuple(queries.recorded(session, found))

    def layer_profiles(self) -> Iterator[LayerProfile]:
        """Yield profiles, newest first."""
        with self._store.session() as session:
            for _, profile in list_layer_profiles(session):
                yield profile
