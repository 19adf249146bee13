"""Somebody else sets the board's clocks."""

from __future__ import annotations

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.clusters import policies_of
from powerlab.boards.simulator.faults.base import Bench, Fault
from powerlab.boards.simulator.faults.saved import Saved
from powerlab.boards.simulator.parts.base import Moment


class ModeChange(Fault):
    """Another process lowers the highest clock of every policy, once, as soon as something runs."""

    name = "mode-change"
    summary = "another process lowers the CPU's clocks while something runs"
    needs = ("cpu",)
    lacks = "CPU clock to set"

    def __init__(self, bench: Bench) -> None:
        """Prepare."""
        super().__init__(bench)
        self._saved = Saved(bench.sysroot)
        self._done = False

    def tick(self, moment: Moment) -> None:
        """Wait for load, then do it."""
        if self._done or not moment.state.busy_threads:
            return
        self._done = True
        for policy in policies_of(self.bench.simulation):
            directory = f"{layout.CPU}/cpufreq/{policy.name}"
            for end in ("min", "max"):
                self._saved.rewrite(f"{directory}/scaling_{end}_freq", str(policy.cluster.freqs_khz[0]))
