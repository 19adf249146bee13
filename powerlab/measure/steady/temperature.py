"""Temperatures of a device's thermal zones, read by a thread of their own.

with Thermometer(sysroot) as thermometer:
    ...                                 # the work
    traces = thermometer.finish()

Source: Documentation/driver-api/thermal/sysfs-api. A machine without zones, as most virtual ones are, has no
temperature: that is a state, and gives no figure.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import numpy as np

from powerlab.domain.power import Rail, RailQuantity, Trace
from powerlab.domain.quantity import Provenance
from powerlab.sysroot import Sysroot
from powerlab.throttling.reading import first_line
from powerlab.throttling.thermal import parse_celsius

SOURCE = "thermal"
READ_PERIOD_S = 1.0
"""Heat sinks take seconds to minutes, and on some boards reading a zone takes a millisecond."""
_ROOT = "/sys/class/thermal"
_ELSEWHERE = re.compile(r"pmic|batt?ery|\bbat[0-9]*\b|charg|wifi|wlan|nvme|modem|int3400", re.I)
"""Zones that say nothing of what computes; Jetson's PMIC zone says 100 °C for ever."""


class Zones:
    """The zones of what computes; a sensor that gives no temperature, as a dead one with -256 °C, is left out."""

    def __init__(self, sysroot: Sysroot) -> None:
        self._sysroot = sysroot
        found = [(path, first_line(sysroot, f"{path}/type")) for path in sysroot.glob(f"{_ROOT}/thermal_zone*")]
        alive = [
            (path, name)
            for path, name in sorted(found, key=lambda zone: int(re.sub(r"\D", "", zone[0]) or 0))
            if name and _ELSEWHERE.search(name) is None and self._celsius(path) is not None
        ]
        count = Counter(name for _, name in alive)
        self._paths = {
            name if count[name] == 1 else f"{name}-{path.removeprefix(f'{_ROOT}/thermal_zone')}": path
            for path, name in alive
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The zones' names, each once; none where there is no zone."""
        return tuple(self._paths)

    def read(self) -> dict[str, float]:
        """Return the temperatures in °C by name; a zone that gives none now is left out."""
        read = {name: self._celsius(path) for name, path in self._paths.items()}
        return {name: celsius for name, celsius in read.items() if celsius is not None}

    def hottest_c(self) -> float | None:
        """Return the temperature of the hottest zone in °C; None without zones."""
        return max(self.read().values(), default=None)

    def _celsius(self, path: str) -> float | None:
        return parse_celsius(first_line(self._sysroot, f"{path}/temp"))


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
