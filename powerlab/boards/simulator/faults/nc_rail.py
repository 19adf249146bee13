"""A channel of a power monitor that leads nowhere."""

from __future__ import annotations

import re

from powerlab.boards.simulator.faults.base import Bench, Fault
from powerlab.boards.simulator.faults.saved import Saved


class NcRail(Fault):
    """The first channel gets the label ``NC`` and is switched off, as boards leave channels they do not use.

    The driver answers a read of a disabled channel with ENODATA (Documentation/hwmon/ina3221.rst); the reading's files
    are emptied for that, see :mod:`.enodata`.
    """

    name = "nc-rail"
    summary = "the first rail is a channel that is not connected: label NC, switched off"
    needs = ("ina3221",)
    lacks = "INA3221 power monitor, whose channels may be unconnected"

    def __init__(self, bench: Bench) -> None:
        """Prepare."""
        super().__init__(bench)
        self._saved = Saved(bench.sysroot)
        self._sensor = bench.power_sensors()[0]

    def begin(self) -> None:
        """Disconnect the channel."""
        directory = self._sensor.directory
        number = "".join(re.findall(r"\d", self._sensor.paths[0].rpartition("/")[2]))
        for label in (f"{directory}/rail_name_{number}", f"{directory}/in{number}_label"):
            self._saved.rewrite(label, "NC")
        self._saved.rewrite(f"{directory}/in{number}_enable", "0")
        for path in self._sensor.paths:
            self._sensor.files.hold(path)
            self._saved.empty(path)

    def end(self) -> None:
        """Connect it again."""
        self._saved.put_back()
        for path in self._sensor.paths:
            self._sensor.files.release(path)
