"""What the agent reads of its device for telemetry, in as few bytes as say it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from powerlab.protocol.readings import ClockNow, RailPower, Snapshot, TemperatureNow, TotalPower
from powerlab.readings.reader import Reader
from powerlab.readings.reading import Reading
from powerlab.sweep.host import Host

_MODE_EVERY_S = 60.0


class DeviceReader:
    """Reads a device; made by :func:`opened_reader`."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def snapshot(self) -> Snapshot:
        """Return what the device reads now."""
        return snapshot_of(self._reader.read())


@contextmanager
def opened_reader(host: Host, *, streaming: bool) -> Iterator[DeviceReader]:
    """Open a device for reading; ``streaming`` as of :class:`~powerlab.readings.reader.Reader`."""
    with Reader(host, streaming=streaming, mode_every_s=_MODE_EVERY_S) as reader:
        yield DeviceReader(reader)


def snapshot_of(reading: Reading) -> Snapshot:
    """Return a reading with no more digits than sensors have."""
    total = reading.total
    return Snapshot(
        mode=reading.mode,
        total=None
        if total is None
        else TotalPower(power_w=_rounded(total.recent.power_w, 3), provenance=total.provenance, scope=total.scope),
        rails=tuple(
            RailPower(
                rail=rail.rail,
                power_w=_rounded(rail.recent.power_w, 3),
                provenance=rail.provenance,
                problem=rail.problem,
            )
            for rail in reading.rails
        ),
        clocks=tuple(
            ClockNow(name=clock.name, clock_mhz=round(clock.clock_mhz, 1), limit_mhz=_rounded(clock.limit_mhz, 1))
            for clock in reading.clocks
        ),
        temperatures=tuple(
            TemperatureNow(name=one.name, celsius=round(one.celsius, 1), limit_c=_rounded(one.limit_c, 1))
            for one in reading.temperatures
        ),
        load=tuple(round(share, 2) for _, share in sorted(reading.busy.items())),
    )


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
