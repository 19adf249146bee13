"""A Jetson's memory clock: the cap that nvpmodel writes, and what debugfs shows of the clock itself."""

from __future__ import annotations

from collections.abc import Mapping

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.parts.base import Files, Moment, Part
from powerlab.boards.simulator.start import start_mode


class Emc(Part):
    """The memory clock.

    Table: ``max_hz``, ``min_hz``, ``cap`` (the file nvpmodel writes), and the files that pin the clock: ``lock``
    (1 pins), ``rate`` (the clock), ``set`` (the clock to pin it to, where that is another file), ``low`` and ``high``.
    """

    def files(self, idle_w: Mapping[str, float]) -> Files:  # noqa: ARG002
        """Yield the cap, and the files that pin the clock."""
        mode = start_mode(self.board, layout.simulation_of(self.board.name), self.jetpack)
        low, high = str(self.table["min_hz"]), str(self.table["max_hz"])
        yield self.table["cap"], str(mode.emc_hz)
        yield self.table["lock"], "0"
        yield self.table["rate"], low
        if "set" in self.table:
            yield self.table["set"], low
        yield self.table["low"], low
        yield self.table["high"], high

    def tick(self, moment: Moment) -> None:
        """Show the clock; where somebody has pinned it, the file they wrote it to already holds it."""
        if not moment.looked or (moment.settings.emc_pinned and "set" not in self.table):
            return
        layout.put(self.sysroot, self.table["rate"], str(moment.state.emc_hz))
