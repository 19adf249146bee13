"""Traces as lines of text: CSV with a line a sample, or NDJSON with a document a chunk of samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import RailQuantity
from powerlab.protocol.chunks import payload_of, unpack
from powerlab.protocol.export import Cell, Column, csv_line
from powerlab.protocol.messages import TraceChunk
from powerlab.protocol.wire import encode

TRACE_COLUMNS = (
    Column("run_id", "string", "the run's identifier"),
    Column("sweep_id", "string", "that of its sweep"),
    Column("part", "string", "which part of the run: run, idle-before, idle-after"),
    Column("source", "string", "what read the values, for example ina3221"),
    Column("rail", "string", "the rail's name, or what else was recorded"),
    Column("quantity", "string", "power, energy (a counter), latency, temperature"),
    Column("unit", "string", "W, J, s, °C"),
    Column("provenance", "string", "measured, estimated, simulated"),
    Column("time_ns", "int64", "the device's CLOCK_MONOTONIC"),
    Column("value", "double", "the sample"),
)
UNITS = {
    RailQuantity.POWER: "W",
    RailQuantity.ENERGY: "J",
    RailQuantity.LATENCY: "s",
    RailQuantity.TEMPERATURE: "°C",
}
_LINES = 4096
"""Samples that become one string at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChunk:
    """Consecutive samples of one rail, and whose they are."""

    run_id: str
    sweep_id: str
    chunk: TraceChunk

    @property
    def start(self) -> tuple[str, ...]:
        """What every sample's row begins with, in the order of :data:`TRACE_COLUMNS`."""
        rail = self.chunk.rail
        return (
            *(self.run_id, self.sweep_id, self.chunk.part.value, rail.source, rail.name, rail.quantity.value),
            *(UNITS[rail.quantity], rail.provenance.value),
        )

    def samples(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return times in ns and values; raises PowerlabError where the chunk is damaged."""
        return unpack(payload_of(self.chunk), self.chunk.codec, self.chunk.sample_count)


def trace_csv_lines(chunks: Iterable[RecordedChunk]) -> Iterator[str]:
    """Yield a header, and lines of samples, some thousand at a time; floats are read back exactly."""
    yield csv_line(column.name for column in TRACE_COLUMNS)
    for chunk in chunks:
        start: tuple[Cell, ...] = chunk.start
        begin = csv_line(start).removesuffix("\n")
        times, values = chunk.samples()
        for first in range(0, len(times), _LINES):
            part = slice(first, first + _LINES)
            pairs = zip(times[part].tolist(), values[part].tolist(), strict=True)
            yield "".join(f"{begin},{time_ns},{value!r}\n" for time_ns, value in pairs)


def trace_ndjson_lines(chunks: Iterable[RecordedChunk]) -> Iterator[str]:
    """Yield a JSON document a chunk: the columns, ``time_ns`` and ``value`` being lists."""
    names = [column.name for column in TRACE_COLUMNS]
    for chunk in chunks:
        times, values = chunk.samples()
        cells = (*chunk.start, times.tolist(), values.tolist())
        yield encode(dict(zip(names, cells, strict=True))).decode() + "\n"
