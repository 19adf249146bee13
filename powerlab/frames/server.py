"""Results on a server, asked for with its client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import numpy as np

from powerlab.analysis.summary import PointSummary
from powerlab.client import Client
from powerlab.domain.layers import LayerProfile
from powerlab.domain.power import Trace
from powerlab.domain.run import Run
from powerlab.frames.records import RunChoice, StoredSweep
from powerlab.protocol.trace_export import TRACE_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

_BLOCK_BYTES = 1 << 16
_MOST_SAMPLES = 100_000


class ServerRecords:
    """Passes every question on."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def sweeps(self, sweep_id: str | None) -> Sequence[StoredSweep]:
        """Ask for one sweep, or for all."""
        found = self._client.sweeps() if sweep_id is None else [self._client.sweep(sweep_id)]
        return [StoredSweep(id=record.id, device=record.device_name) for record in found]

    def summaries(self, sweep_id: str) -> Sequence[PointSummary]:
        """Ask the server."""
        return self._client.summaries(sweep_id)

    def runs(self, choice: RunChoice) -> Iterator[Run]:
        """Turn the server's pages."""
        if choice.sweep_id is not None:
            self._client.sweep(choice.sweep_id)
        return self._client.runs(sweep_id=choice.sweep_id, model=choice.model, verdict=choice.verdict)

    def run(self, run_id: str) -> Run:
        """Ask the server."""
        return self._client.run(run_id)

    def samples(self, run_id: str) -> pa.Table:
        """Read what the server exports: the traces that it shows are decimated."""
        import pyarrow as pa
        from pyarrow import parquet

        from powerlab.protocol.arrow import schema_of

        fields = urlencode({"format": "parquet", "run_id": run_id})
        _, blocks = self._client.transport.stream(f"/exports/traces?{fields}", 0, _BLOCK_BYTES)
        table = parquet.read_table(pa.BufferReader(b"".join(blocks)))
        return pa.Table.from_arrays(table.columns, schema=schema_of(TRACE_COLUMNS))

    def recorded(self, run_id: str) -> tuple[Trace, ...]:
        """Ask for as many samples of a trace as a server sends; of a longer one its neighbours' extremes are kept."""
        return tuple(
            Trace(
                rail=view.rail,
                time_ns=np.array(view.time_ns, dtype=np.int64),
                value=np.array(view.value, dtype=np.float64),
                read_cost_ns=view.read_cost_ns,
                part=view.part,
            )
            for view in self._client.traces(self._client.run(run_id).id, points=_MOST_SAMPLES)
        )

    def layer_profiles(self) -> Iterator[LayerProfile]:
        """Turn the server's pages."""
        return self._client.layer_profiles()
