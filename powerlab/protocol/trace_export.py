"""Traces as text: CSV with one line per sample, or NDJSON with one document per chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import Part, Rail, RailQuantity
from powerlab.protocol.export import Cell, Column, csv_line
from powerlab.protocol.wire import encode

TRACE_COLUMNS = (
    Column("run_id", "string", "the run's identifier"),
    Column("sweep_id", "string", "that of its sweep"),
    Column("part", "string", "which part of the run: run, idle-before, idle-after, cool-down, warm-up"),
    Column("source", "string", "what read the values, for example ina3221"),
    Column("rail", "string", "the rail's name, or what else was recorded"),
    Column("quantity", "string", "power, energy (a counter), latency, temperature, clock"),
    Column("unit", "string", "W, J, s, °C, MHz"),
    Column("provenance", "string", "measured, estimated, simulated"),
    Column("time_ns", "int64", "the device's CLOCK_MONOTONIC", unit="ns"),
    Column("value", "double", "the sample"),
)
UNITS = {
    RailQuantity.POWER: "W",
    RailQuantity.ENERGY: "J",
    RailQuantity.LATENCY: "s",
    RailQuantity.TEMPERATURE: "°C",
    RailQuantity.CLOCK: "MHz",
}
_LINES = 4096
"""Samples that become one string at a time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recorded:
    """Consecutive samples of one rail, and whose they are: times in ns and values, both of shape (n,)."""

    run_id: str
    sweep_id: str
    rail: Rail
    part: Part
    time_ns: NDArray[np.int64]
    value: NDArray[np.float64]

    @property
    def start(self) -> tuple[str, ...]:
        """What every sample's row begins with, in the order of :data:`TRACE_COLUMNS`."""
        rail = self.rail
        return (
            *(self.run_id, self.sweep_id, self.part.value, rail.source, rail.name, rail.quantity.value),
            *(UNITS[rail.quantity], rail.provenance.value),
        )


def trace_csv_lines(recorded: Iterable[Recorded]) -> Iterator[str]:
    """Yield a header, and lines of samples, some thousand at a time; floats are read back exactly."""
    yield csv_line(column.name for column in TRACE_COLUMNS)
    for one in recorded:
        start: tuple[Cell, ...] = one.start
        begin = csv_line(start).removesuffix("\n")
        for first in range(0, len(one.time_ns), _LINES):
            part = slice(first, first + _LINES)
            pairs = zip(one.time_ns[part].tolist(), one.value[part].tolist(), strict=True)
            yield "".join(f"{begin},{time_ns},{value!r}\n" for time_ns, value in pairs)


def trace_ndjson_lines(recorded: Iterable[Recorded]) -> Iterator[str]:
    """Yield a JSON document a chunk: the columns, ``time_ns`` and ``value`` being lists."""
    names = [column.name for column in TRACE_COLUMNS]
    for one in recorded:
        cells = (*one.start, one.time_ns.tolist(), one.value.tolist())
        yield encode(dict(zip(names, cells, strict=True))).decode() + "\n"
