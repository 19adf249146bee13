"""A channel of a power monitor that leads nowhere."""

from __future__ import annotations

import re

from powerlab.boards.simulator.faults.first_sensor import FirstSensorFault


class NcRail(FirstSensorFault):
    """The first channel gets the label ``NC`` and is switched off, as boards leave channels they do not use.

    The driver answers a read of a disabled channel with ENODATA (Documentation/hwmon/ina3221.rst); the reading's files
    are emptied for that, see :mod:`.enodata`.
    """

    name = "nc-rail"
    summary = "the first rail is a channel that is not connected: label NC, switched off"
    needs = ("ina3221",)
    lacks = "INA3221 power monitor, whose channels may be unconnected"

    def begin(self) -> None:
        """Disconnect the channel."""
        directory = self.sensor.directory
        number = "".join(re.findall(r"\d", self.sensor.paths[0].rpartition("/")[2]))
        for label in (f"{directory}/rail_name_{number}", f"{directory}/in{number}_label"):
            self.saved.rewrite(label, "NC")
        self.saved.rewrite(f"{directory}/in{number}_enable", "0")
        super().begin()

    def spoil(self, path: str) -> None:
        """Let readings fail."""
        self.saved.empty(path)
