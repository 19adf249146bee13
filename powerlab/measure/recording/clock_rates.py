"""The clocks of processors, graphics processors and memory during a run, sampled in a thread.

with ClockRates(sysroot) as clock_rates:
    ...                                 # the work
    traces = clock_rates.finish()       # one a clock, in MHz

They are shown beside the power, and no figure is made of them. A machine that shows no clock, as most virtual ones,
gives no trace.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from powerlab.domain.power import RailQuantity
from powerlab.measure.recording.slow_samples import SlowSamples, beside_rail
from powerlab.nvml_library import NvmlError, NvmlUnavailableError, session
from powerlab.sysroot import Sysroot
from powerlab.throttling.clocks import shown_clocks

SOURCE = "clocks"
READ_PERIOD_S = 0.2
"""At the rate at which the watches look: fast enough to see a clock fall in the shortest window."""
MOST_SHARE = 0.002
"""Of one core. Machines with a hundred clusters are read less often; at most once in :data:`_LONGEST_PERIOD_S`."""
_LONGEST_PERIOD_S = 2.0


class ClockRates(SlowSamples):
    """Reads every clock on entering, once a period, and on ``finish``."""

    def __init__(self, sysroot: Sysroot, period_s: float = READ_PERIOD_S) -> None:
        self._stack = ExitStack()
        try:
            library = self._stack.enter_context(session(sysroot))
            cards = library, library.devices()
        except (NvmlUnavailableError, NvmlError):
            cards = None
        self._clocks = {clock.name: clock for clock in shown_clocks(sysroot, cards) if clock.read_mhz() is not None}
        begin_s = time.thread_time()
        self._read_mhz()
        cost_s = time.thread_time() - begin_s
        super().__init__(
            {name: beside_rail(sysroot, SOURCE, name, RailQuantity.CLOCK) for name in self._clocks},
            self._read_mhz,
            max(period_s, min(cost_s / MOST_SHARE, _LONGEST_PERIOD_S)),
            "powerlab-clock-rates",
        )

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            opening.push(self._stack.__exit__)
            entered = super().__enter__()
            opening.pop_all()
        return entered

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._stack.close()

    def _read_mhz(self) -> dict[str, float]:
        read = {name: clock.read_mhz() for name, clock in self._clocks.items()}
        return {name: mhz for name, mhz in read.items() if mhz is not None}
