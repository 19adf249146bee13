"""Temperatures of a device's thermal zones, sampled in a thread.

with Thermometer(sysroot) as thermometer:
    ...                                 # the work
    traces = thermometer.finish()

A machine without zones, as most virtual ones are, has no temperature, and gives no trace.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import numpy as np

from powerlab.domain.power import Rail, RailQuantity, Trace
from powerlab.domain.quantity import Provenance
from powerlab.sysroot import Sysroot
from powerlab.throttling.zones import Zones

SOURCE = "thermal"
READ_PERIOD_S = 1.0
"""Heat sinks take seconds to minutes, and on some boards reading a zone takes a millisecond."""


class Thermometer:
    """Reads every zone on entering, once a period, and on :meth:`finish`.

    Attributes:
        core_share: after :meth:`finish`, processor time of the reading as a share of one core.
    """

    def __init__(self, sysroot: Sysroot, period_s: float = READ_PERIOD_S) -> None:
        self.core_share = 0.0
        self._zones = Zones(sysroot)
        self._provenance = Provenance.SIMULATED if sysroot.simulated else Provenance.MEASURED
        self._period_s = period_s
        self._samples: dict[str, list[tuple[int, float]]] = {name: [] for name in self._zones.names}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._read_until_stopped, name="powerlab-thermometer", daemon=True)
        self._started = False

    def __enter__(self) -> Self:
        self._read()
        if self._samples:
            self._thread.start()
            self._started = True
        return self

    def finish(self) -> tuple[Trace, ...]:
        """End reading and return one trace a zone, in °C."""
        self._stop()
        self._read()
        return self.traces()

    def traces(self) -> tuple[Trace, ...]:
        """Return what was read until now: one trace a zone, in °C."""
        return tuple(self._trace(name, list(samples)) for name, samples in self._samples.items() if samples)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        self._stopping.set()
        if self._started:
            self._thread.join()

    def _read_until_stopped(self) -> None:
        begin_s = time.monotonic()
        while not self._stopping.wait(self._period_s):
            self._read()
        self.core_share = time.thread_time() / max(time.monotonic() - begin_s, 1e-9)

    def _read(self) -> None:
        for name, celsius in self._zones.read().items():
            self._samples[name].append((time.monotonic_ns(), celsius))

    def _trace(self, name: str, samples: Sequence[tuple[int, float]]) -> Trace:
        return Trace(
            rail=Rail(
                source=SOURCE,
                name=name,
                quantity=RailQuantity.TEMPERATURE,
                resolution=0.0,
                relative_error=0.0,
                update_period_s=0.0,
                provenance=self._provenance,
            ),
            time_ns=np.array([time_ns for time_ns, _ in samples], dtype=np.int64),
            value=np.array([celsius for _, celsius in samples], dtype=np.float64),
        )
