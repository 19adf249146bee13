"""Sensors that are gone, or say what a dead one says."""

from __future__ import annotations

from powerlab.boards.simulator.faults.first_sensor import FirstSensorFault
from powerlab.boards.simulator.parts.base import Moment

_DEAD_M_C = -256000
"""What Tegra's thermal sensors say when they are not powered."""
_ZONE = "/sys/class/thermal/thermal_zone0/temp"


class DeadSensor(FirstSensorFault):
    """The first power sensor's files are gone, and the first thermal zone says -256 °C."""

    name = "dead-sensor"
    summary = "the first power sensor's files are gone, the first temperature is -256 °C"

    def spoil(self, path: str) -> None:
        """Take the file away."""
        self.saved.remove(path)

    def tick(self, moment: Moment) -> None:  # noqa: ARG002
        """Let the zone say what a dead one says, after its part has written the truth."""
        self.saved.rewrite(_ZONE, str(_DEAD_M_C))
