"""Values that are read about once a second in a thread, beside the power that is sampled much faster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

import numpy as np

from powerlab.domain.power import Rail, RailQuantity, Trace
from powerlab.domain.quantity import Provenance
from powerlab.sysroot import Sysroot


def beside_rail(sysroot: Sysroot, source: str, name: str, quantity: RailQuantity) -> Rail:
    """Return the description of what is read beside the power; nobody states its errors."""
    return Rail(
        source=source,
        name=name,
        quantity=quantity,
        resolution=0.0,
        relative_error=0.0,
        update_period_s=0.0,
        provenance=Provenance.SIMULATED if sysroot.simulated else Provenance.MEASURED,
    )


class SlowSamples:
    """Reads values on entering, once a period, and on :meth:`finish`; with nothing to read there is no thread.

    Attributes:
        core_share: after :meth:`finish`, processor time of the reading as a share of one core.
    """

    def __init__(
        self, rails: Mapping[str, Rail], read: Callable[[], Mapping[str, float]], period_s: float, thread_name: str
    ) -> None:
        """Prepare.

        Args:
            rails: what is read, by the names that ``read`` gives.
            read: returns the values by name; what cannot be read now is left out.
            period_s: time between two readings.
            thread_name: the thread's.
        """
        self.core_share = 0.0
        self.period_s = period_s
        self._rails, self._read_all = dict(rails), read
        self._samples: dict[str, list[tuple[int, float]]] = {name: [] for name in self._rails}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._read_until_stopped, name=thread_name, daemon=True)
        self._started = False

    def __enter__(self) -> Self:
        if self._samples:
            self._read()
            self._thread.start()
            self._started = True
        return self

    def finish(self) -> tuple[Trace, ...]:
        """End reading and return one trace of each value."""
        self._stop()
        if self._samples:
            self._read()
        return self.traces()

    def traces(self) -> tuple[Trace, ...]:
        """Return what was read until now: one trace of each value."""
        return tuple(
            Trace(
                rail=self._rails[name],
                time_ns=np.array([time_ns for time_ns, _ in samples], dtype=np.int64),
                value=np.array([value for _, value in samples], dtype=np.float64),
            )
            for name, samples in ((name, list(samples)) for name, samples in self._samples.items())
            if samples
        )

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
        while not self._stopping.wait(self.period_s):
            self._read()
        self.core_share = time.thread_time() / max(time.monotonic() - begin_s, 1e-9)

    def _read(self) -> None:
        for name, value in self._read_all().items():
            self._samples[name].append((time.monotonic_ns(), value))
