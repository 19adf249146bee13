"""A Jetson's memory clock: the cap that nvpmodel writes, and the firmware's own files in debugfs."""

from __future__ import annotations

from collections.abc import Mapping

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.parts.base import Files, Moment, Part
from powerlab.boards.simulator.start import start_mode

_BPMP = "/sys/kernel/debug/bpmp/debug/clk/emc"


class Emc(Part):
    """The memory clock.

    Table: ``max_hz``, ``min_hz``, ``cap`` (the file nvpmodel writes), and ``lock`` where the firmware can pin the
    clock.
    """

    def files(self, idle_w: Mapping[str, float]) -> Files:  # noqa: ARG002
        """Yield the cap's file and, with a ``lock``, the firmware's."""
        mode = start_mode(self.board, layout.simulation_of(self.board.name), self.jetpack)
        yield self.table["cap"], str(mode.emc_hz)
        if "lock" in self.table:
            yield self.table["lock"], "0"
            yield f"{_BPMP}/rate", str(self.table["min_hz"])
            yield f"{_BPMP}/min_rate", str(self.table["min_hz"])
            yield f"{_BPMP}/max_rate", str(self.table["max_hz"])
            yield f"{_BPMP}/state", "1"

    def tick(self, moment: Moment) -> None:
        """Show the clock, where nobody has pinned it: then the file holds what was asked for."""
        if moment.looked and "lock" in self.table and not moment.settings.emc_pinned:
            rate, text = self.sysroot.path(f"{_BPMP}/rate"), str(moment.state.emc_hz)
            if layout.first_line(rate) != text:
                layout.rewrite(rate, text)
